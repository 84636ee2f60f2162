//===- TileElementwise.cpp - loops over vectors of elements -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operation that computes every element on its own becomes a loop over rows
// and, in each, one over as many elements as a vector has. What is left at the
// end of a row stays an operation of its own. Where an input is transposed,
// tiles are squares: rows of both are vectors then.
//
// A reduction of columns is elementwise for each row of its input: it becomes
// loops over parts of the result, over rows, and over the vectors of the part,
// which stays in the first cache.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCTILEELEMENTWISEPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// The roles of an operation's loops.
struct ElementwiseLoops {
  /// Its elements lie next to each other in all results.
  unsigned vector;
  /// Its elements lie next to each other in an input that is transposed.
  std::optional<unsigned> transposed;
  /// Those of a reduction of columns.
  SmallVector<unsigned> reductions;
};
} // namespace

static bool isLast(AffineMap map, unsigned loop) {
  return map.getNumResults() > 0 &&
         map.getDimPosition(map.getNumResults() - 1) == loop;
}

/// The loops of the operation, if it can be tiled here.
static std::optional<ElementwiseLoops> getLoops(linalg::LinalgOp op) {
  // Of loops that never run, slices would lie outside of their tensors. Copies
  // may vanish yet, and are of vectors in any case.
  if (isa<linalg::CopyOp>(op) || !op.hasPureTensorSemantics() ||
      op.getNumParallelLoops() == 0 ||
      op.getNumParallelLoops() + op.getNumReductionLoops() !=
          op.getNumLoops() ||
      llvm::is_contained(op.getStaticLoopRanges(), 0) ||
      op.getNumDpsInits() == 0)
    return std::nullopt;
  if (!llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return std::nullopt;
  if (!computesVectors(op))
    return std::nullopt;
  std::optional<unsigned> vector;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (map.getNumResults() != op.getNumParallelLoops())
      return std::nullopt;
    unsigned last = map.getDimPosition(map.getNumResults() - 1);
    if (vector && vector != last)
      return std::nullopt;
    vector = last;
  }
  ElementwiseLoops loops{*vector, std::nullopt, {}};
  op.getReductionDims(loops.reductions);
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!map.isFunctionOfDim(*vector) || isLast(map, *vector))
      continue;
    // A reduction of rows of this input.
    if (!loops.reductions.empty())
      return std::nullopt;
    if (!loops.transposed)
      loops.transposed = map.getDimPosition(map.getNumResults() - 1);
  }
  return loops;
}

bool mlir::posenc::isTiledElementwise(linalg::LinalgOp op) {
  return op.getNumReductionLoops() == 0 && getLoops(op).has_value();
}

bool mlir::posenc::isTiledColumnReduction(linalg::LinalgOp op) {
  return op.getNumReductionLoops() > 0 && !isTiledContraction(op) &&
         !isTiledReduction(op) && getLoops(op).has_value();
}

/// Whether the loop adds products to a tile, its first result.
static bool addsProducts(scf::ForOp loop) {
  return loop && loop.getNumResults() == 1 &&
         (llvm::any_of(loop.getOps<linalg::LinalgOp>(), isTiledContraction) ||
          !loop.getOps<vector::ContractionOp>().empty());
}

/// Whether the operation starts or ends a tile of products that is in
/// registers.
static bool isRegisterTile(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() ||
      llvm::any_of(op.getStaticLoopRanges(), ShapedType::isDynamic))
    return false;
  if (llvm::any_of(op.getDpsInputs(), [](Value input) {
        return addsProducts(input.getDefiningOp<scf::ForOp>());
      }))
    return true;
  return op->getNumResults() == 1 &&
         llvm::any_of(op->getResult(0).getUsers(), [](Operation *user) {
           return addsProducts(dyn_cast<scf::ForOp>(user));
         });
}

/// Tiles by these sizes; 0 is no loop. Returns the operation within the loops.
static FailureOr<linalg::LinalgOp>
tile(RewriterBase &rewriter, linalg::LinalgOp op, ArrayRef<int64_t> sizes,
     scf::SCFTilingOptions::LoopType loopType,
     SmallVector<LoopLikeOpInterface> &loops) {
  scf::SCFTilingOptions options;
  options.setTileSizes(getAsIndexOpFoldResult(op->getContext(), sizes));
  options.setLoopType(loopType);
  rewriter.setInsertionPoint(op);
  FailureOr<scf::SCFTilingResult> result = scf::tileUsingSCF(
      rewriter, cast<TilingInterface>(op.getOperation()), options);
  if (failed(result))
    return failure();
  rewriter.replaceOp(op, result->replacements);
  loops.assign(result->loops.begin(), result->loops.end());
  return cast<linalg::LinalgOp>(result->tiledOps.front());
}

namespace {
struct TileElementwise final
    : mlir::posenc::impl::PosencTileElementwisePassBase<TileElementwise> {
  using Base::Base;

  /// Makes a loop over whole vectors, and in front of the rest the same loop:
  /// nothing is left of sizes that the vectors divide.
  static void peel(RewriterBase &rewriter, LoopLikeOpInterface loop) {
    scf::ForOp partial;
    (void)scf::peelForLoopAndSimplifyBounds(
        rewriter, cast<scf::ForOp>(loop.getOperation()), partial);
  }

  /// Returns the lanes of a vector: the elements of the narrowest result, of
  /// f32 at most, that fill a hardware vector, or fewer for short rows.
  int64_t getLanes(linalg::LinalgOp op, int64_t rowSize) const {
    unsigned bits = 32;
    // LLVM takes wider vectors of a remainder apart, and then has no conversion
    // to bf16.
    bool isSplit = llvm::any_of(op->getRegion(0).front(), [](Operation &inner) {
      return isa<arith::RemFOp>(inner);
    });
    if (!isSplit)
      for (Value init : op.getDpsInits())
        bits =
            std::min(bits, getElementTypeOrSelf(init).getIntOrFloatBitWidth());
    int64_t lanes = vectorBytes * 8 / std::max(bits, 16u);
    while (!ShapedType::isDynamic(rowSize) && rowSize < lanes && lanes > 4)
      lanes /= 2;
    return lanes;
  }

  /// Computes what a reduction of few columns adds up where it is added, vector
  /// by vector. Others may use it, too. Returns whether it does.
  bool fuseInput(RewriterBase &rewriter, linalg::LinalgOp op,
                 const ElementwiseLoops &of) {
    if (op.getNumDpsInputs() != 1 || op.getNumLoops() != 2)
      return false;
    OpOperand &input = *op.getDpsInputOperands().front();
    auto producer = input.get().getDefiningOp<linalg::GenericOp>();
    if (!producer || producer->getBlock() != op->getBlock() ||
        producer->getNumResults() != 1 || !isTiledElementwise(producer) ||
        isRegisterTile(producer) ||
        !op.getMatchingIndexingMap(&input).isIdentity() ||
        !producer.getMatchingIndexingMap(producer.getDpsInitOperand(0))
             .isIdentity())
      return false;
    int64_t lanes = getLanes(producer, op.getStaticLoopRanges()[of.vector]);
    if (op.getStaticLoopRanges()[of.vector] % lanes != 0)
      return false;
    SmallVector<int64_t> sizes(2, 1);
    sizes[of.vector] = lanes;
    scf::SCFTileAndFuseOptions options;
    options.tilingOptions.setTileSizes(
        getAsIndexOpFoldResult(op->getContext(), sizes));
    options.tilingOptions.setInterchange({of.vector, of.reductions.front()});
    options.setFusionControlFn(
        [&](tensor::ExtractSliceOp, OpResult result, bool)
            -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
          if (result.getOwner() != producer)
            return std::nullopt;
          return scf::SCFTileAndFuseOptions::ControlFnResult{
              /*yieldProducerReplacement=*/true};
        });
    rewriter.setInsertionPoint(op);
    FailureOr<scf::SCFTileAndFuseResult> tiled =
        scf::tileConsumerAndFuseProducersUsingSCF(
            rewriter, cast<TilingInterface>(op.getOperation()), options);
    if (failed(tiled))
      return false;
    // Sizes are those of the destination, which is there before.
    rewriter.replaceUsesWithIf(
        producer.getResult(0), producer.getDpsInits().front(),
        [](OpOperand &use) { return isa<tensor::DimOp>(use.getOwner()); });
    for (auto [old, replacement] : tiled->replacements)
      rewriter.replaceUsesWithIf(old, replacement, [&](OpOperand &use) {
        return !tiled->loops.front()->isAncestor(use.getOwner());
      });
    rewriter.eraseOp(op);
    return true;
  }

  /// Takes rows that are shorter than a vector one by one: all of a tile's
  /// would be one vector, and need more registers than there are.
  LogicalResult tileShortRows(RewriterBase &rewriter, linalg::LinalgOp op,
                              const ElementwiseLoops &of) {
    if (isa<FunctionOpInterface>(op->getParentOp()) || op.getNumLoops() == 1)
      return success();
    SmallVector<int64_t> sizes(op.getNumLoops(), 1);
    sizes[of.vector] = 0;
    SmallVector<LoopLikeOpInterface> loops;
    return tile(rewriter, op, sizes, scf::SCFTilingOptions::LoopType::ForOp,
                loops);
  }

  LogicalResult tileOne(RewriterBase &rewriter, linalg::LinalgOp op,
                        const ElementwiseLoops &of) {
    using LoopType = scf::SCFTilingOptions::LoopType;
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    int64_t lanes = getLanes(op, ranges[of.vector]);
    auto isShort = [&](unsigned loop) {
      return !ShapedType::isDynamic(ranges[loop]) && ranges[loop] < lanes;
    };
    // A row of fewer elements than a vector.
    if (isShort(of.vector))
      return tileShortRows(rewriter, op, of);
    std::optional<unsigned> transposed = of.transposed;
    if (transposed && isShort(*transposed))
      transposed = std::nullopt;
    SmallVector<LoopLikeOpInterface> loops;
    SmallVector<int64_t> rows(op.getNumLoops(), 1);
    rows[of.vector] = !of.reductions.empty()  ? kColumnsPerTask
                      : op.getNumLoops() == 1 ? kElementsPerTask
                                              : 0;
    if (transposed)
      rows[*transposed] = kTransposedRows;
    for (unsigned loop : of.reductions)
      rows[loop] = 0;
    // Sums of few columns stay in registers.
    bool areRegisters = !of.reductions.empty() &&
                        !ShapedType::isDynamic(ranges[of.vector]) &&
                        ranges[of.vector] <= kMostVectors * lanes &&
                        ranges[of.vector] % lanes == 0;
    bool isPhase = isa<FunctionOpInterface>(op->getParentOp());
    if (areRegisters && !isPhase) {
      if (fuseInput(rewriter, op, of))
        return success();
      rows[of.vector] = 0;
    }
    auto tileBy = [&](ArrayRef<int64_t> sizes, LoopType type) -> LogicalResult {
      if (llvm::all_of(sizes, [](int64_t size) { return size == 0; }))
        return success();
      FailureOr<linalg::LinalgOp> inner =
          tile(rewriter, op, sizes, type, loops);
      if (succeeded(inner))
        op = *inner;
      return inner;
    };
    if (failed(tileBy(rows, isPhase ? LoopType::ForallOp : LoopType::ForOp)))
      return failure();
    SmallVector<int64_t> sums(op.getNumLoops(), 0);
    for (unsigned loop : of.reductions)
      sums[loop] = 1;
    if (failed(tileBy(sums, LoopType::ForOp)))
      return failure();
    if (areRegisters)
      return success();
    SmallVector<int64_t> vectors(op.getNumLoops(), 0);
    if (transposed) {
      // Squares that fit into the registers.
      Type element = getElementTypeOrSelf(op.getDpsInits().front());
      lanes = std::min<int64_t>(
          lanes,
          vectorBytes * 8 / std::max(element.getIntOrFloatBitWidth(), 32u));
      vectors[*transposed] = lanes;
    }
    vectors[of.vector] = lanes;
    if (failed(tileBy(vectors, LoopType::ForOp)))
      return failure();
    for (LoopLikeOpInterface loop : loops)
      peel(rewriter, loop);
    return success();
  }

  void runOnOperation() override {
    SmallVector<std::pair<linalg::LinalgOp, ElementwiseLoops>> operations;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if ((isTiledElementwise(op) && !isRegisterTile(op)) ||
          isTiledColumnReduction(op))
        operations.push_back({op, *getLoops(op)});
    });
    IRRewriter rewriter(&getContext());
    // Reductions first: they take their inputs along.
    for (bool areReductions : {true, false})
      for (auto &[op, loops] : operations) {
        if (loops.reductions.empty() == areReductions || op->use_empty())
          continue;
        if (areReductions)
          getOperation()->setAttr(kByAllAttrName, rewriter.getUnitAttr());
        if (failed(tileOne(rewriter, op, loops)))
          return signalPassFailure();
      }
  }

private:
  /// Elements of a tensor of one dimension that a task takes.
  static constexpr int64_t kElementsPerTask = 4096;
  /// Columns that a task adds up: rows of so many are read in order.
  static constexpr int64_t kColumnsPerTask = 2048;
  /// Vectors of results that a loop over the rows of a reduction carries.
  static constexpr int64_t kMostVectors = 8;
  /// Rows of a transposed result that a task writes: whole cache lines of the
  /// input.
  static constexpr int64_t kTransposedRows = 64;
};
} // namespace
