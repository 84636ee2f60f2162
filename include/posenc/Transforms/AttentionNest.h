//===- AttentionNest.h - loops over tiles of attention ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops that CPUs and GPUs share: an `scf.forall` over sequences, query
// heads and blocks of queries around an `scf.for` over tiles of keys, whose
// body is a `posenc.online_attention`. Ragged sequences, lengths, pages, KV
// splits, and tiles that the masks exclude belong to these loops; a target
// lowers the tile only.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TRANSFORMS_ATTENTIONNEST_H
#define POSENC_TRANSFORMS_ATTENTIONNEST_H

#include "posenc/IR/Posenc.h"

#include "mlir/IR/PatternMatch.h"

namespace mlir::posenc {

/// Tables of cos and sin for a rotation of attention, tensors with the pairs in
/// the last dimension.
struct RotationTables {
  Value cos, sin;
  /// If the operation has no positions, the tables are (positions, pairs), and
  /// their first row is that of position `-origin`, an index. Otherwise they
  /// have a row for each element of the positions, whose axes they do not have.
  Value origin;

  explicit operator bool() const { return cos != nullptr; }
};

/// The shape of the loops.
struct AttentionNestOptions {
  /// Rows of a tile of queries, a row being a query of one of the query heads
  /// of a key head; tiles of queries that share each tile of keys; keys of a
  /// tile.
  int64_t rowsPerQueryTile = 16, queryTilesPerTask = 1, keysPerTile = 32;
  /// Whether bounds of the region `where` load elements of tensors, and for
  /// each operation of the region a tensor with the bounds of its elements in
  /// each tile of keys, or null; see `MaskBounds::setTables`.
  bool boundsElements = false;
  SmallVector<Value> keyBounds;
  /// Whether tiles of queries are copied to `(dim, rows)` panels, which CPUs
  /// read. Requires one tile of queries per task otherwise.
  bool packsQueries = true;
  /// Whether tiles of keys start at multiples of `keysPerTile`, so that the
  /// tiles of a query depend on no other query.
  bool alignedKeyTiles = false;
  /// Whether a tile of queries has one head; otherwise it has as many heads of
  /// a group as fit.
  bool oneHeadPerTile = false;
  /// Keys of a KV split: a fourth loop of the `scf.forall` is over the splits
  /// of each sequence's keys, which start at multiples of it. 0 if there is
  /// none.
  int64_t keysPerSplit = 0;
  /// The number of KV splits, an index. Null if all keys are one split;
  /// otherwise the outputs have the splits as first dimension.
  Value numSplits;
  /// With ragged queries, sequences of fewer queries than `minQueries`, or of
  /// more than `maxQueries` unless that is 0, are left out: their results stay
  /// as they are. Splits of ragged queries have a `maxQueries`, and
  /// `createSplitRow` says where a sequence's results begin in them.
  int64_t minQueries = 0, maxQueries = 0;
  /// Whether the loop over tiles of ragged queries is over those of all
  /// sequences, in one list, so that their number follows from the number of
  /// tokens. Requires that no sequence has a maximum of queries.
  bool listsRaggedTiles = false;
  /// Tables of the rotations; without them, `posenc.rope` rotates a tile.
  RotationTables queryTables, keyTables;
};

/// Returns the first row, in the results of KV splits, of a sequence whose
/// queries begin at `start` and are at most `maxQueries`. Rows of sequences do
/// not overlap, and are fewer than min(all queries, sequences * maxQueries).
Value createSplitRow(OpBuilder &builder, Location loc, Value sequence,
                     Value start, int64_t maxQueries);

/// The KV splits with keys after the first one, which has results without keys,
/// too: at least 1, and an end that is at least `begin`.
struct SplitRange {
  Value begin, end;
};

/// Returns the splits after the first one that have some of the keys from
/// `begin` to before `end`, all of one integer or index type.
SplitRange createSplitRange(ImplicitLocOpBuilder &b, Value begin, Value end,
                            int64_t keysPerSplit);

/// Emits the loops of an attention op on tensors at the insertion point.
/// Returns the results that replace those of the op.
ValueRange createAttentionNest(RewriterBase &rewriter, AttentionOp op,
                               const AttentionNestOptions &options);

} // namespace mlir::posenc

#endif // POSENC_TRANSFORMS_ATTENTIONNEST_H
