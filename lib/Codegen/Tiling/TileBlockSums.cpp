//===- TileBlockSums.cpp - tiling of sums of scaled sums ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product with a matrix of codes is a sum over blocks of scaled sums over the
// elements of a block. Both sums are tiled together, so the inner ones are in
// registers:
//
//   forall panels
//     for register tiles of rows
//       for blocks
//         for elements of the block: add to rows x columns     (registers)
//         scale them, and add to the sums of the rows          (registers)
//
// Each element of the matrix is read, and unpacked, once for the rows of a
// tile. Sums have the same order for all tile sizes. A row of a register tile
// is one vector of columns; the bodies of both operations are cloned for each.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCTILEBLOCKSUMSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-tile-block-sums"

namespace {
/// A sum whose operand is a sum that nobody else reads.
struct BlockSums {
  linalg::GenericOp outer, inner;
  /// Loops of `outer`: the first and the last dimension of the result, and the
  /// reduction.
  unsigned rows, columns, blocks;
  /// The reduction loop of `inner`.
  unsigned elements;
};
} // namespace

/// Returns the only reduction loop of an operation that computes sums of
/// columns in 32 bits: the last dimension of the result is that of all inputs
/// that depend on it.
static std::optional<unsigned> getColumnSum(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.getNumReductionLoops() != 1 || op.getNumParallelLoops() < 2 ||
      op.getNumParallelLoops() + 1 != op.getNumLoops() ||
      llvm::is_contained(op.getStaticLoopRanges(), 0) ||
      getElementTypeOrSelf(op.getResult(0)).getIntOrFloatBitWidth() != 32 ||
      !computesVectors(op) || op.hasIndexSemantics() ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return std::nullopt;
  AffineMap result = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (result.getNumResults() != op.getNumParallelLoops())
    return std::nullopt;
  AffineExpr last = result.getResults().back();
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (map.isFunctionOfDim(cast<AffineDimExpr>(last).getPosition()) &&
        map.getResults().back() != last)
      return std::nullopt;
  }
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  return loops.front();
}

static std::optional<BlockSums> getBlockSums(linalg::GenericOp outer) {
  std::optional<unsigned> blocks = getColumnSum(outer);
  if (!blocks || !isa<FunctionOpInterface>(outer->getParentOp()))
    return std::nullopt;
  AffineMap result = outer.getMatchingIndexingMap(outer.getDpsInitOperand(0));
  for (OpOperand *input : outer.getDpsInputOperands()) {
    auto inner = input->get().getDefiningOp<linalg::GenericOp>();
    AffineMap map = outer.getMatchingIndexingMap(input);
    if (!inner || !inner->hasOneUse() || !map.isFunctionOfDim(*blocks) ||
        map.getNumResults() != outer.getNumLoops() ||
        inner->getBlock() != outer->getBlock())
      continue;
    if (std::optional<unsigned> elements = getColumnSum(inner))
      return BlockSums{outer,
                       inner,
                       result.getDimPosition(0),
                       result.getDimPosition(result.getNumResults() - 1),
                       *blocks,
                       *elements};
  }
  return std::nullopt;
}

/// Tiles the outer sum to a scf.forall, and the inner one inside.
static LogicalResult tile(RewriterBase &rewriter, BlockSums &sums,
                          ArrayRef<int64_t> sizes) {
  scf::SCFTileAndFuseOptions options;
  options.tilingOptions.setTileSizes(
      getAsIndexOpFoldResult(rewriter.getContext(), sizes));
  options.tilingOptions.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp);
  options.setFusionControlFn(
      [&](tensor::ExtractSliceOp, OpResult producer,
          bool) -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
        if (producer.getOwner() != sums.inner &&
            !isa<linalg::FillOp>(producer.getOwner()))
          return std::nullopt;
        return scf::SCFTileAndFuseOptions::ControlFnResult{false};
      });
  rewriter.setInsertionPoint(sums.outer);
  FailureOr<scf::SCFTileAndFuseResult> tiled =
      scf::tileConsumerAndFuseProducersUsingSCF(
          rewriter, cast<TilingInterface>(sums.outer.getOperation()), options);
  if (failed(tiled))
    return sums.outer.emitOpError("cannot be tiled");
  rewriter.replaceOp(sums.outer,
                     tiled->replacements.lookup(sums.outer->getResult(0)));
  if (sums.inner->use_empty())
    rewriter.eraseOp(sums.inner);
  for (Operation *op : tiled->tiledAndFusedOps) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic)
      continue;
    if (generic.getNumLoops() == sizes.size())
      sums.outer = generic;
    else
      sums.inner = generic;
  }
  return success();
}

namespace {
/// Emits register tiles of both sums, over the tiles of their columns.
class RegisterTiles {
public:
  RegisterTiles(RewriterBase &rewriter, BlockSums sums);

  /// Replaces both sums. `sizes` are numbers of rows in decreasing order, of
  /// which the last one is 1.
  void emit(ArrayRef<int64_t> sizes);

private:
  /// The values of loops; others are 0.
  using Indices = llvm::SmallDenseMap<unsigned, Value>;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, b.getLoc(), value);
  }
  /// Returns the number of iterations of a loop.
  Value getSize(linalg::GenericOp op, unsigned loop);
  /// Returns the vector of the columns of an operand, or one number in all
  /// lanes.
  Value read(linalg::GenericOp op, OpOperand &operand, const Indices &at);
  /// Returns the initial sum of an operation at a row.
  Value readStart(linalg::GenericOp op, const Indices &at);
  /// Returns what the body of an operation yields for vectors of columns.
  /// `known` is the operand that is a value of the other operation, if any.
  Value compute(linalg::GenericOp op, const Indices &at, Value sum,
                OpOperand *known = nullptr, Value value = {});
  /// Returns `result` with the rows from `first` on.
  Value emitTile(Value first, int64_t rows, Value result);

  ImplicitLocOpBuilder b;
  RewriterBase &rewriter;
  BlockSums sums;
  int64_t columns;
  /// The loop of the rows in `inner`, of its blocks and its columns, and the
  /// operand of `outer` that `inner` computes.
  unsigned innerRows, innerBlocks, innerColumns;
  OpOperand *partial;
};
} // namespace

RegisterTiles::RegisterTiles(RewriterBase &rewriter, BlockSums sums)
    : b(sums.outer.getLoc(), rewriter), rewriter(rewriter), sums(sums) {
  linalg::GenericOp outer = sums.outer, inner = sums.inner;
  columns = outer.getStaticLoopRanges()[sums.columns];
  partial = llvm::find_if(outer->getOpOperands(), [&](OpOperand &operand) {
    return operand.get() == inner.getResult(0);
  });
  AffineMap from = outer.getMatchingIndexingMap(partial),
            to = inner.getMatchingIndexingMap(inner.getDpsInitOperand(0));
  auto find = [&](unsigned loop) {
    unsigned dim = *from.getResultPosition(b.getAffineDimExpr(loop));
    return to.getDimPosition(dim);
  };
  innerRows = find(sums.rows);
  innerBlocks = find(sums.blocks);
  innerColumns = find(sums.columns);
}

Value RegisterTiles::getSize(linalg::GenericOp op, unsigned loop) {
  for (OpOperand &operand : op->getOpOperands()) {
    // The partial sums will not be there.
    if (operand.get() == sums.inner.getResult(0))
      continue;
    if (std::optional<unsigned> dim =
            op.getMatchingIndexingMap(&operand).getResultPosition(
                b.getAffineDimExpr(loop)))
      return getValueOrCreateConstantIndexOp(
          b, b.getLoc(),
          tensor::getMixedSize(b, b.getLoc(), operand.get(), *dim));
  }
  llvm_unreachable("every loop indexes an operand");
}

Value RegisterTiles::read(linalg::GenericOp op, OpOperand &operand,
                          const Indices &at) {
  Type element = getElementTypeOrSelf(operand.get().getType());
  auto type = VectorType::get({columns}, element);
  Value tensor = operand.get();
  if (!isa<RankedTensorType>(tensor.getType()))
    return vector::BroadcastOp::create(b, type, tensor);
  unsigned last = op == sums.inner ? innerColumns : sums.columns;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<Value> indices;
  for (AffineExpr expr : map.getResults()) {
    Value index = at.lookup(cast<AffineDimExpr>(expr).getPosition());
    indices.push_back(index ? index : constant(0));
  }
  if (!map.isFunctionOfDim(last))
    return vector::BroadcastOp::create(
        b, type, tensor::ExtractOp::create(b, tensor, indices));
  return vector::TransferReadOp::create(b, type, tensor, indices,
                                        /*padding=*/std::nullopt,
                                        ArrayRef<bool>{true});
}

Value RegisterTiles::readStart(linalg::GenericOp op, const Indices &at) {
  OpOperand &init = *op.getDpsInitOperand(0);
  auto fill = init.get().getDefiningOp<linalg::FillOp>();
  if (!fill)
    return read(op, init, at);
  Value start = fill.getInputs().front();
  return vector::BroadcastOp::create(
      b, VectorType::get({columns}, start.getType()), start);
}

Value RegisterTiles::compute(linalg::GenericOp op, const Indices &at, Value sum,
                             OpOperand *known, Value value) {
  Block &body = *op.getBlock();
  IRMapping mapping;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = body.getArgument(operand.getOperandNumber());
    if (op.isDpsInit(&operand))
      mapping.map(argument, sum);
    else if (!argument.use_empty())
      mapping.map(argument, &operand == known ? value : read(op, operand, at));
  }
  auto toVector = [&](Value scalar) {
    if (Value found = mapping.lookupOrNull(scalar))
      return found;
    Value all = vector::BroadcastOp::create(
        b, VectorType::get({columns}, scalar.getType()), scalar);
    mapping.map(scalar, all);
    return all;
  };
  for (Operation &inner : body.without_terminator()) {
    if (inner.hasTrait<OpTrait::ConstantLike>()) {
      b.clone(inner, mapping);
      Value scalar = mapping.lookup(inner.getResult(0));
      mapping.erase(inner.getResult(0));
      mapping.map(inner.getResult(0),
                  vector::BroadcastOp::create(
                      b, VectorType::get({columns}, scalar.getType()), scalar));
      continue;
    }
    for (Value operand : inner.getOperands())
      toVector(operand);
    Operation *copy = b.clone(inner, mapping);
    for (Value result : copy->getResults())
      result.setType(VectorType::get({columns}, result.getType()));
  }
  return toVector(body.getTerminator()->getOperand(0));
}

Value RegisterTiles::emitTile(Value first, int64_t rows, Value result) {
  linalg::GenericOp outer = sums.outer, inner = sums.inner;
  SmallVector<Value> at, start;
  for (int64_t i = 0; i < rows; ++i) {
    at.push_back(b.createOrFold<arith::AddIOp>(first, constant(i)));
    start.push_back(readStart(outer, {{sums.rows, at.back()}}));
  }
  Value zero = constant(0), one = constant(1);
  auto blocks =
      scf::ForOp::create(b, zero, getSize(inner, innerBlocks), one, start);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(blocks.getBody());
    Value block = blocks.getInductionVar();
    SmallVector<Value> parts;
    auto getInner = [&](int64_t i) {
      return Indices{{innerRows, at[i]}, {innerBlocks, block}};
    };
    for (int64_t i = 0; i < rows; ++i)
      parts.push_back(readStart(inner, getInner(i)));
    auto elements =
        scf::ForOp::create(b, zero, getSize(inner, sums.elements), one, parts);
    {
      OpBuilder::InsertionGuard innerGuard(b);
      b.setInsertionPointToStart(elements.getBody());
      for (int64_t i = 0; i < rows; ++i) {
        Indices indices = getInner(i);
        indices[sums.elements] = elements.getInductionVar();
        parts[i] = compute(inner, indices, elements.getRegionIterArg(i));
      }
      scf::YieldOp::create(b, parts);
    }
    SmallVector<Value> next;
    for (int64_t i = 0; i < rows; ++i)
      next.push_back(compute(outer, {{sums.rows, at[i]}, {sums.blocks, block}},
                             blocks.getRegionIterArg(i), partial,
                             elements.getResult(i)));
    scf::YieldOp::create(b, next);
  }
  AffineMap map = outer.getMatchingIndexingMap(outer.getDpsInitOperand(0));
  for (int64_t i = 0; i < rows; ++i) {
    SmallVector<Value> indices;
    for (AffineExpr expr : map.getResults())
      indices.push_back(
          cast<AffineDimExpr>(expr).getPosition() == sums.rows ? at[i] : zero);
    result = vector::TransferWriteOp::create(b, blocks.getResult(i), result,
                                             indices, ArrayRef<bool>{true})
                 .getResult();
  }
  return result;
}

void RegisterTiles::emit(ArrayRef<int64_t> sizes) {
  linalg::GenericOp outer = sums.outer;
  b.setInsertionPoint(outer);
  Value result = outer.getDpsInits().front();
  if (auto fill = result.getDefiningOp<linalg::FillOp>())
    result = fill.getDpsInits().front();
  Value count = getSize(outer, sums.rows), first = constant(0);
  std::optional<int64_t> known = getConstantIntValue(count);
  for (int64_t size : sizes) {
    if (known && *known < size)
      continue;
    Value rest = b.createOrFold<arith::SubIOp>(count, first);
    Value whole = b.createOrFold<arith::SubIOp>(
        count, b.createOrFold<arith::RemUIOp>(rest, constant(size)));
    auto loop = scf::ForOp::create(b, first, whole, constant(size), result);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      scf::YieldOp::create(
          b, emitTile(loop.getInductionVar(), size, loop.getRegionIterArg(0)));
    }
    result = loop.getResult(0);
    first = whole;
    if (known)
      *known %= size;
  }
  rewriter.replaceOp(outer, result);
  rewriter.eraseOp(sums.inner);
}

namespace {
struct TileBlockSums final
    : mlir::posenc::impl::PosencTileBlockSumsPassBase<TileBlockSums> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<BlockSums> all;
    int64_t lanes = vectorBytes / 4;
    getOperation()->walk([&](linalg::GenericOp op) {
      std::optional<BlockSums> sums = getBlockSums(op);
      if (sums && op.getStaticLoopRanges()[sums->columns] % lanes == 0)
        all.push_back(*sums);
    });
    IRRewriter rewriter(&getContext());
    if (!all.empty())
      updateKernelConfig(getOperation(), &KernelConfig::tasksBy, TasksBy::All);
    for (BlockSums &sums : all)
      if (failed(tileOne(rewriter, sums)))
        return signalPassFailure();
  }

private:
  LogicalResult tileOne(RewriterBase &rewriter, BlockSums sums);

  /// Vectors of columns of a register tile.
  static constexpr int64_t kVectors = 4;
};
} // namespace

LogicalResult TileBlockSums::tileOne(RewriterBase &rewriter, BlockSums sums) {
  SmallVector<int64_t> ranges = sums.outer.getStaticLoopRanges();
  // Accumulators take 24 of the 32 registers of AVX-512, and 8 of 16.
  SmallVector<int64_t> rows{2, 1};
  if (vectorBytes >= 64)
    rows = {6, 4, 2, 1};
  int64_t columns = kVectors * vectorBytes / 4;
  while (ranges[sums.columns] % columns != 0)
    columns /= 2;
  reportChoice(
      sums.outer, DEBUG_TYPE,
      llvm::formatv("register tiles of {0} x {1}", rows.front(), columns));
  SmallVector<int64_t> sizes(ranges.size(), 1);
  sizes[sums.rows] = sizes[sums.blocks] = 0;
  sizes[sums.columns] = columns;
  if (failed(tile(rewriter, sums, sizes)))
    return failure();
  RegisterTiles(rewriter, sums).emit(rows);
  return success();
}
