//===- AttentionDecomposition.h - attention to loops over tiles -*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Padded, ragged and paged sequences differ only in how a tile is read
// (AttentionOperands.cpp); the rest of the code uses positions within a
// sequence. A task, one iteration of the scf.forall, has several register tiles
// of queries. Each tile of keys is copied once for all of them. Tiles of
// queries and of keys have constant sizes; the rows after the last token are
// zeros and do not contribute to the results.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_TRANSFORMS_ATTENTIONDECOMPOSITION_H
#define POSENC_LIB_TRANSFORMS_ATTENTIONDECOMPOSITION_H

#include "HeadRows.h"

#include "posenc/IR/CreateGeneric.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Transforms/AttentionIndices.h"
#include "posenc/Transforms/AttentionNest.h"
#include "posenc/Transforms/MaskBounds.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::posenc {

/// Lowers one `posenc.attention` on tensors to loops of
/// `posenc.online_attention`.
class AttentionDecomposition {
public:
  AttentionDecomposition(RewriterBase &rewriter, AttentionOp op,
                         const AttentionNestOptions &options)
      : builder(rewriter), loc(op.getLoc()), op(op), options(options),
        sum(op.getSumType()), rowsPerQueryTile(options.rowsPerQueryTile),
        numQueryTiles(options.queryTilesPerTask),
        keysPerTile(options.keysPerTile),
        maskBounds(op.getWhere(), options.boundsElements) {}

  /// Emits the loops and returns their results, which replace those of the op.
  ValueRange decompose();

private:
  /// The tokens [first, first + count) of one sequence, and the heads
  /// [head, head + numHeads).
  struct Tokens {
    OpFoldResult first, count;
    OpFoldResult head, numHeads;
  };
  /// A register tile of the task's queries.
  struct QueryTile {
    Value number;       ///< Index of the tile within the task.
    OpFoldResult first; ///< Index of its first query within the task.
    OpFoldResult count; ///< Number of its queries that exist.
    Value position;     ///< Position of its first query in the sequence.
  };
  /// The accumulators, running max and running sum.
  using State = SmallVector<Value>;

  RowTransform getTransform(Value norm, RotationAttr rotation);
  void normAllHeads();
  void chooseTiles();
  /// Whether the tiles of all ragged sequences are one list.
  bool listsTiles() {
    return options.listsRaggedTiles && op.hasRaggedQueries() &&
           !options.maxQueries;
  }
  void findTask(ValueRange loops);
  std::pair<Value, Value> findKeyRange();
  Value takeQueries();
  Value packQueries();
  Value padQueries();
  Value getQueries(Value packed, const QueryTile &queryTile);
  Value takeKeys(Value tensor, Value firstKey, OpFoldResult count);
  Value widenKeys(Value rows, Value scales, Value firstKey, OpFoldResult count);
  Value pad(Value tile, ArrayRef<int64_t> shape);
  Value takeMask(const QueryTile &queryTile, Value firstKey,
                 OpFoldResult count);
  Value transformByTables(Value rows, unsigned tokenDim, RowTransform transform,
                          const RotationTables &tables, Value positions,
                          bool isRagged, Value start, Value first,
                          Value firstPosition, OpFoldResult count);
  Value takePositions(Value positions, RotationAttr rotation, bool isRagged,
                      Value start, Value first, OpFoldResult count);
  State createState();
  State createStateOfSplit(State first);
  State addKeys(Value panels, Value firstKey, Value end, ValueRange state);
  State addVisibleKeys(Value panels, Value firstKey, Value end,
                       OpFoldResult count, Value isFull, ValueRange state);
  State addKeyTile(const QueryTile &queryTile, Value panels, Value key,
                   Value value, Value firstKey, Value end, OpFoldResult count,
                   bool appliesWhere, State state);
  void cloneRegions(OnlineAttentionOp tile, bool appliesWhere);
  QueryTile getQueryTile(Value number);
  Value createIsVisible(const QueryTile &queryTile, Value firstKey);
  PairTile getPairs(Value firstQuery, Value lastQuery, Value firstKey,
                    Value endKey);
  State createIf(Value condition, ValueRange before,
                 function_ref<State()> ifTrue,
                 function_ref<State()> ifFalse = nullptr);
  State forEachQueryTile(ValueRange state,
                         function_ref<State(const QueryTile &, State)> body);
  Value extractQueryTile(Value tensor, Value number);
  Value insertQueryTile(Value tile, Value tensor, Value number);
  SmallVector<OpFoldResult> getQueryTileOffsets(Value tensor, Value number);
  SmallVector<OpFoldResult> getQueryTileSizes(Value tensor);
  void insertResults(ValueRange state, ValueRange outputs,
                     scf::InParallelOp terminator);
  Value createResult(Value part, Value sums, Value init, bool isOutput);

  /// Offsets and sizes of tokens in a tensor of heads; without the last
  /// dimension if `withLanes` is false.
  void getSlice(Value tensor, HeadLayout layout, bool isRagged, Value start,
                const Tokens &tokens, bool withLanes,
                SmallVector<OpFoldResult> &offsets,
                SmallVector<OpFoldResult> &sizes);
  Value extract(Value tensor, ArrayRef<OpFoldResult> offsets,
                ArrayRef<OpFoldResult> sizes, ArrayRef<int64_t> dropped) {
    return extractSlice(builder, loc, tensor, offsets, sizes, dropped);
  }

  OpFoldResult attr(int64_t value) { return builder.getIndexAttr(value); }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value toValue(OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(builder, loc, value);
  }
  Value add(Value a, Value b) {
    return builder.createOrFold<arith::AddIOp>(loc, a, b);
  }
  Value sub(Value a, Value b) {
    return builder.createOrFold<arith::SubIOp>(loc, a, b);
  }
  OpFoldResult apply(AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(builder, loc, expr, operands);
  }
  /// Returns the size of a tile that starts at `first`, clipped to `end`.
  OpFoldResult clip(int64_t tile, OpFoldResult first, OpFoldResult end) {
    AffineExpr d0 = builder.getAffineDimExpr(0),
               d1 = builder.getAffineDimExpr(1);
    return affine::makeComposedFoldedAffineMin(
        builder, loc,
        AffineMap::get(2, 0, {builder.getAffineConstantExpr(tile), d0 - d1},
                       builder.getContext()),
        {end, first});
  }
  Value fill(ArrayRef<OpFoldResult> sizes, double value) {
    Value empty = tensor::EmptyOp::create(builder, loc, sizes, sum);
    Value scalar = arith::ConstantOp::create(builder, loc,
                                             builder.getFloatAttr(sum, value));
    return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
  }

  OpBuilder builder;
  Location loc;
  AttentionOp op;
  AttentionNestOptions options;
  FloatType sum;
  int64_t rowsPerQueryTile, numQueryTiles, keysPerTile;

  // Sizes of the operation.
  OpFoldResult numBatch, numQueryHeads, numKeyHeads, numQueries, numKeys;
  int64_t headsPerTile = 1, queriesPerTile = 1;
  /// GQA group size, if it is static.
  std::optional<int64_t> headsPerKeyHead;

  // The sequence and heads of the task, and its KV split; null if all
  // keys are one split.
  AttentionSequence sequence;
  Value head, keyHead, split;
  Tokens queries;
  /// Positions of the task's first and last query in the sequence.
  Value firstPosition, lastPosition;
  MaskBounds maskBounds;
  /// Whether tiles may have fewer than `keysPerTile` keys.
  bool hasPartialKeyTiles = true;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_TRANSFORMS_ATTENTIONDECOMPOSITION_H
