//===- VectorizeLinalg.cpp - vectorization of static linalg tiles ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCVECTORIZELINALGPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-vectorize-linalg"

bool mlir::posenc::isVectorElement(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.getWidth() >= 8 && integer.getWidth() <= 64 &&
           llvm::isPowerOf2_32(integer.getWidth());
  return isa<BFloat16Type, Float16Type, Float32Type, Float64Type>(type);
}

bool mlir::posenc::computesVectors(linalg::LinalgOp op) {
  auto isVector = [](Value operand) {
    return !isa<ShapedType>(operand.getType()) ||
           isVectorElement(getElementTypeOrSelf(operand.getType()));
  };
  auto isElementwise = [](Operation &inner) {
    return isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) ||
           isa<linalg::IndexOp, affine::AffineApplyOp>(inner);
  };
  return llvm::all_of(op->getOperands(), isVector) &&
         llvm::all_of(op->getRegion(0).front().without_terminator(),
                      isElementwise);
}

/// Maximum number of elements of a tile; larger operations were not tiled.
static constexpr int64_t kMaxTileElements = 2048;

/// Whether LLVM can compile vectors of the operand's rows. It cannot shuffle
/// vectors of 16-bit floats whose length is not a power of two.
static bool hasVectorRows(Value operand) {
  auto type = dyn_cast<RankedTensorType>(operand.getType());
  return !type || type.getRank() == 0 || type.getElementTypeBitWidth() != 16 ||
         llvm::isPowerOf2_64(type.getShape().back());
}

/// Whether the operation is a static tile that earlier passes created: it is in
/// a loop and has at most kMaxTileElements.
static bool isTensorTile(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || !computesVectors(op) ||
      !op->getParentOfType<LoopLikeOpInterface>() ||
      !llvm::all_of(op->getOperands(), hasVectorRows))
    return false;
  int64_t elements = 1;
  for (int64_t size : op.getStaticLoopRanges()) {
    if (ShapedType::isDynamic(size) || size == 0 || size > kMaxTileElements)
      return false;
    elements *= size;
  }
  return elements > 1 && elements <= kMaxTileElements;
}

/// Expands affine.apply in the body to arith operations, which upstream can
/// vectorize.
static void expandIndices(RewriterBase &rewriter, linalg::LinalgOp tile) {
  SmallVector<affine::AffineApplyOp> indices(
      tile.getBlock()->getOps<affine::AffineApplyOp>());
  for (affine::AffineApplyOp op : indices) {
    rewriter.setInsertionPoint(op);
    std::optional<SmallVector<Value>> values = affine::expandAffineMap(
        rewriter, op.getLoc(), op.getAffineMap(), op.getMapOperands());
    if (values)
      rewriter.replaceOp(op, *values);
  }
}

/// Reduces a vector by combining its halves until one element is left. Adding
/// the elements one by one would be one long dependency chain, with a larger
/// rounding error.
static LogicalResult reduceByHalves(vector::ReductionOp op,
                                    PatternRewriter &rewriter) {
  VectorType type = op.getSourceVectorType();
  if (!isa<FloatType>(type.getElementType()) || type.isScalable() ||
      type.getRank() != 1 || !llvm::isPowerOf2_64(type.getNumElements()))
    return rewriter.notifyMatchFailure(
        op, "expected a fixed-length 1-D vector of 2^n floats");
  if (cast<vector::MaskableOpInterface>(op.getOperation()).isMasked())
    return rewriter.notifyMatchFailure(op, "expected an unmasked reduction");
  Location loc = op.getLoc();
  auto combine = [&](Value a, Value b) {
    return vector::makeArithReduction(rewriter, loc, op.getKind(), a, b,
                                      op.getFastmathAttr());
  };
  Value vector = op.getVector();
  for (int64_t half = type.getNumElements() / 2; half > 0; half /= 2) {
    auto slice = [&](int64_t offset) -> Value {
      return vector::ExtractStridedSliceOp::create(rewriter, loc, vector,
                                                   offset, half, 1);
    };
    vector = combine(slice(0), slice(half));
  }
  Value result = vector::ExtractOp::create(rewriter, loc, vector, 0);
  if (Value acc = op.getAcc())
    result = combine(result, acc);
  rewriter.replaceOp(op, result);
  return success();
}

namespace {
struct VectorizeLinalg final
    : mlir::posenc::impl::PosencVectorizeLinalgPassBase<VectorizeLinalg> {
  using Base::Base;

  LogicalResult apply(function_ref<void(RewritePatternSet &)> populate) {
    RewritePatternSet patterns(&getContext());
    populate(patterns);
    GreedyRewriteConfig config;
    // Control flow is structured, so there are no blocks to simplify.
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    return applyPatternsGreedily(getOperation(), std::move(patterns), config);
  }

  /// Lowers f32 transposes of 16 x 16 with upstream's shuffle network; its
  /// general lowering inserts element by element.
  LogicalResult transposeSquares() {
    SmallVector<Operation *> squares;
    getOperation()->walk([&](vector::TransposeOp op) {
      VectorType type = op.getSourceVectorType();
      if (type.getShape() == ArrayRef<int64_t>{16, 16} &&
          type.getElementType().isF32())
        squares.push_back(op);
    });
    RewritePatternSet patterns(&getContext());
    vector::populateVectorTransposeLoweringPatterns(
        patterns, vector::VectorTransposeLowering::Shuffle16x16);
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingOps);
    return applyOpPatternsGreedily(squares, std::move(patterns), config);
  }

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    // Upstream drops unit dimensions of linalg.generic only, not of named
    // operations.
    SmallVector<linalg::TransposeOp> transposes;
    getOperation()->walk([&](linalg::TransposeOp op) {
      if (isTensorTile(cast<linalg::LinalgOp>(op.getOperation())))
        transposes.push_back(op);
    });
    for (linalg::TransposeOp op : transposes) {
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op);
    }
    // Drops unit dimensions, which should not become vector dimensions.
    if (failed(apply([](RewritePatternSet &patterns) {
          linalg::ControlDropUnitDims control;
          control.rankReductionStrategy = linalg::ControlDropUnitDims::
              RankReductionStrategy::ExtractInsertSlice;
          auto dropAll = control.controlFn;
          control.controlFn = [dropAll](Operation *op) {
            auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
            // Contractions keep their unit reduction dimension.
            bool drops = linalgOp && isTensorTile(linalgOp) &&
                         !linalg::isaContractionOpInterface(linalgOp);
            return drops ? dropAll(op) : SmallVector<unsigned>();
          };
          linalg::populateFoldUnitExtentDimsPatterns(patterns, control);
        })))
      return signalPassFailure();

    SmallVector<linalg::LinalgOp> tiles;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (isTensorTile(op))
        tiles.push_back(op);
    });
    for (linalg::LinalgOp op : tiles)
      expandIndices(rewriter, op);
    for (linalg::LinalgOp op : tiles) {
      rewriter.setInsertionPoint(op);
      FailureOr<linalg::VectorizationResult> result =
          linalg::vectorize(rewriter, op);
      // An operation that upstream cannot vectorize becomes a scalar loop
      // later.
      if (succeeded(result))
        rewriter.replaceOp(op, result->replacements);
      else
        reportMissed(op, DEBUG_TYPE,
                     "upstream's vectorizer does not support it; it becomes a "
                     "loop over elements");
    }
    if (failed(apply([&](RewritePatternSet &patterns) {
          vector::populateVectorReductionToContractPatterns(patterns);
          vector::populateVectorTransferPermutationMapLoweringPatterns(
              patterns);
          tensor::populateFoldTensorSubsetIntoVectorTransferPatterns(patterns);
          vector::TransferReadOp::getCanonicalizationPatterns(patterns,
                                                              &getContext());
          tensor::ExtractSliceOp::getCanonicalizationPatterns(patterns,
                                                              &getContext());
        })))
      return signalPassFailure();
    if (failed(transposeSquares()))
      return signalPassFailure();
    // Hoists reads and writes of accumulators out of the reduction loops, which
    // then carry vectors.
    SmallVector<scf::ForOp> reductions;
    getOperation()->walk([&](scf::ForOp loop) {
      // Only in innermost loops: hoisting out of outer loops would copy the
      // tensors that inner loops write.
      bool isInnermost = loop.walk([&](LoopLikeOpInterface inner) {
                               return inner == loop ? WalkResult::advance()
                                                    : WalkResult::interrupt();
                             })
                             .wasInterrupted() == false;
      if (isInnermost && loop.getNumRegionIterArgs() > 0)
        reductions.push_back(loop);
    });
    for (scf::ForOp loop : reductions)
      hoistLoopInvariantSubsets(rewriter,
                                cast<LoopLikeOpInterface>(loop.getOperation()));
    if (failed(apply([](RewritePatternSet &patterns) {
          vector::populateVectorContractLoweringPatterns(
              patterns, vector::VectorContractLowering::OuterProduct);
          vector::populateVectorOuterProductLoweringPatterns(patterns);
          vector::populateVectorMultiReductionLoweringPatterns(
              patterns, vector::VectorMultiReductionLowering::InnerReduction);
          vector::populateVectorTransposeLoweringPatterns(
              patterns, vector::VectorTransposeLowering::Shuffle1D);
        })))
      return signalPassFailure();
    // The lowering above has turned row reductions into vector.reduction.
    if (failed(apply(
            [](RewritePatternSet &patterns) { patterns.add(reduceByHalves); })))
      return signalPassFailure();
    // Upstream lowers vector.fma to llvm.intr.fmuladd, which LLVM may split
    // into a product and a sum with two roundings; math.fma always rounds once.
    getOperation()->walk([&](vector::FMAOp op) {
      rewriter.setInsertionPoint(op);
      rewriter.replaceOpWithNewOp<math::FmaOp>(op, op.getLhs(), op.getRhs(),
                                               op.getAcc());
    });
  }
};
} // namespace
