//===- SimplifyReductions.cpp - the pass posenc-simplify-reductions -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's patterns would drop all dimensions of size 1, also those of
// batches. This pass follows the dimensions that reductions kept, from the
// reduction through elementwise operations, so that it changes nothing else.
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/CheckReshapes.h"
#include "posenc/IR/Remarks.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCSIMPLIFYREDUCTIONSPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-simplify-reductions"

//===----------------------------------------------------------------------===//
// Unused results
//===----------------------------------------------------------------------===//

/// Whether `value` is computed from `argument` in the block of the argument.
static bool dependsOn(Value value, BlockArgument argument) {
  SmallVector<Value> worklist{value};
  llvm::SmallPtrSet<Operation *, 16> visited;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (next == argument)
      return true;
    Operation *op = next.getDefiningOp();
    if (!op || op->getBlock() != argument.getOwner() ||
        !visited.insert(op).second)
      continue;
    // Nested regions may read the argument, too.
    op->walk([&](Operation *nested) {
      llvm::append_range(worklist, nested->getOperands());
    });
  }
  return false;
}

/// Makes unused results of a reduction independent of its body, which allows
/// upstream's pattern to drop them. Returns whether there is one.
static bool detachUnusedResults(linalg::GenericOp op) {
  Operation *yield = op.getBody()->getTerminator();
  bool hasChanged = false;
  for (OpResult result : op->getResults()) {
    unsigned number = result.getResultNumber();
    BlockArgument argument = op.getRegionOutputArgs()[number];
    bool isNeeded = llvm::any_of(yield->getOpOperands(), [&](OpOperand &use) {
      return use.getOperandNumber() != number && dependsOn(use.get(), argument);
    });
    if (!result.use_empty() || isNeeded)
      continue;
    yield->setOperand(number, argument);
    hasChanged = true;
  }
  if (hasChanged)
    for (Operation &nested :
         llvm::make_early_inc_range(llvm::reverse(*op.getBody())))
      if (isOpTriviallyDead(&nested))
        nested.erase();
  return hasChanged;
}

//===----------------------------------------------------------------------===//
// Extrema
//===----------------------------------------------------------------------===//

/// Evaluates a condition on two floats for the given numbers. Returns nullopt
/// if it depends on anything else.
static std::optional<bool> evaluate(Value condition,
                                    ArrayRef<std::pair<Value, APFloat>> floats,
                                    unsigned depth = 0) {
  Operation *op = condition.getDefiningOp();
  if (!op || depth > 4)
    return std::nullopt;
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    auto find = [&](Value value) {
      return llvm::find_if(
          floats, [&](const auto &entry) { return entry.first == value; });
    };
    const auto *lhs = find(compare.getLhs()), *rhs = find(compare.getRhs());
    if (lhs == floats.end() || rhs == floats.end())
      return std::nullopt;
    return arith::applyCmpPredicate(compare.getPredicate(), lhs->second,
                                    rhs->second);
  }
  if (!isa<arith::OrIOp, arith::AndIOp>(op))
    return std::nullopt;
  std::optional<bool> lhs = evaluate(op->getOperand(0), floats, depth + 1);
  std::optional<bool> rhs = evaluate(op->getOperand(1), floats, depth + 1);
  if (!lhs || !rhs)
    return std::nullopt;
  return isa<arith::OrIOp>(op) ? *lhs || *rhs : *lhs && *rhs;
}

/// Whether all elements of a tensor are one float that is not NaN.
static bool isSplatNumber(Value tensor) {
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    tensor = fill.getInputs().front();
  FloatAttr number;
  DenseFPElementsAttr elements;
  if (matchPattern(tensor, m_Constant(&number)))
    return !number.getValue().isNaN();
  return matchPattern(tensor, m_Constant(&elements)) && elements.isSplat() &&
         !elements.getSplatValue<APFloat>().isNaN();
}

/// Replaces a select that yields the only result of a reduction by a maximum or
/// minimum of the element and the result so far. Fails if there is none with
/// the same result for NaN.
static LogicalResult simplifyExtremum(RewriterBase &rewriter,
                                      linalg::GenericOp op) {
  Operation *yield = op.getBody()->getTerminator();
  auto select = yield->getOperand(0).getDefiningOp<arith::SelectOp>();
  BlockArgument result = op.getRegionOutputArgs()[0];
  if (!select || !isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(
                     select.getType()))
    return failure();
  bool takesElement = select.getFalseValue() == result;
  Value element = takesElement ? select.getTrueValue() : select.getFalseValue();
  if ((!takesElement && select.getTrueValue() != result) ||
      dependsOn(element, result))
    return failure();
  const auto &semantics = cast<FloatType>(select.getType()).getFloatSemantics();
  APFloat one(semantics, 1), two(semantics, 2);
  APFloat nan = APFloat::getNaN(semantics);
  bool isKnown = true;
  // Whether the element replaces the result so far.
  auto replaces = [&](const APFloat &x, const APFloat &r) {
    std::optional<bool> holds =
        evaluate(select.getCondition(), {{element, x}, {result, r}});
    isKnown &= holds.has_value();
    return holds.value_or(false) == takesElement;
  };
  bool takesLarger = replaces(two, one), takesSmaller = replaces(one, two);
  bool takesNaN = replaces(nan, one), leavesNaN = replaces(one, nan);
  if (!isKnown || takesLarger == takesSmaller)
    return failure();
  // Without takesNaN, a result that is a number to begin with remains one. With
  // takesNaN and leavesNaN, only numbers behind the last NaN would count.
  if (takesNaN ? leavesNaN : !isSplatNumber(op.getDpsInits()[0]))
    return failure();
  rewriter.setInsertionPoint(select);
  auto replace = [&](auto extremum) {
    rewriter.replaceOpWithNewOp<decltype(extremum)>(select, result, element);
  };
  if (takesLarger)
    takesNaN ? replace(arith::MaximumFOp()) : replace(arith::MaxNumFOp());
  else
    takesNaN ? replace(arith::MinimumFOp()) : replace(arith::MinNumFOp());
  return success();
}

//===----------------------------------------------------------------------===//
// Kept dimensions
//===----------------------------------------------------------------------===//

namespace {
/// Drops the dimensions that reductions of a function kept.
class KeptDims {
public:
  explicit KeptDims(RewriterBase &rewriter) : rewriter(rewriter) {}

  /// Visits an operation after the producers of its operands. It may be
  /// replaced.
  void visit(Operation *op);
  bool hasChanged() const { return changed; }

private:
  void visitGeneric(linalg::GenericOp op);
  void visitExpansion(tensor::ExpandShapeOp op);

  RewriterBase &rewriter;
  /// Results of reductions, and of elementwise operations on them.
  DenseSet<Value> reduced;
  /// The dimensions of size 1 of a tensor that a reduction kept.
  DenseMap<Value, llvm::SmallBitVector> kept;
  bool changed = false;
};
} // namespace

/// Whether the operation combines elements of its inputs, but is no product of
/// matrices and no convolution.
static bool isReduction(linalg::LinalgOp op) {
  return op.getNumReductionLoops() > 0 &&
         !linalg::isaContractionOpInterface(op) &&
         !linalg::isaConvolutionOpInterface(op);
}

/// Whether dimension `dim` has size 1 and is indexed by the constant 0.
static bool isConstantDim(RankedTensorType type, AffineMap map, unsigned dim) {
  auto constant = dyn_cast<AffineConstantExpr>(map.getResult(dim));
  return constant && constant.getValue() == 0 && type.getDimSize(dim) == 1;
}

void KeptDims::visitExpansion(tensor::ExpandShapeOp op) {
  if (!reduced.contains(op.getSrc()))
    return;
  RankedTensorType type = op.getResultType();
  llvm::SmallBitVector dims(type.getRank());
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    size_t numOthers = group.size();
    for (int64_t dim : llvm::reverse(group))
      if (type.getDimSize(dim) == 1 && --numOthers > 0)
        dims.set(dim);
  }
  // An expansion of a scalar has no groups.
  if (op.getReassociationIndices().empty())
    dims.set();
  reduced.insert(op.getResult());
  kept[op.getResult()] = dims;
}

void KeptDims::visitGeneric(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || linalg::isaContractionOpInterface(op))
    return;
  unsigned numLoops = op.getNumLoops();
  bool isElementwise = op.getNumParallelLoops() == numLoops;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  llvm::SmallBitVector loops(numLoops);
  bool hasConstantDims = false, isReduced = isReduction(op);
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    auto dims = kept.find(operand.get());
    isReduced |= reduced.contains(operand.get()) && map.isPermutation();
    for (unsigned dim = 0; type && dim < map.getNumResults(); ++dim) {
      hasConstantDims |= isConstantDim(type, map, dim);
      auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
      if (isElementwise && loop && dims != kept.end() && dims->second[dim] &&
          ranges[loop.getPosition()] == 1)
        loops.set(loop.getPosition());
    }
  }
  auto markResults = [&](ValueRange results) {
    for (auto [number, result] : llvm::enumerate(results)) {
      if (!isReduced)
        return;
      reduced.insert(result);
      auto type = cast<RankedTensorType>(result.getType());
      AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(number));
      llvm::SmallBitVector &dims = kept[result];
      dims.resize(type.getRank());
      for (unsigned dim = 0; dim < map.getNumResults(); ++dim) {
        auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
        if (isConstantDim(type, map, dim) ||
            (loop && loops[loop.getPosition()]))
          dims.set(dim);
      }
    }
  };
  // Upstream drops dimensions of the constant 0 only if there are loops that
  // may be dropped. Loops of another number of iterations stay.
  SmallVector<unsigned> allowed(loops.set_bits());
  for (unsigned loop = 0; loop < numLoops && hasConstantDims; ++loop)
    if (ranges[loop] != 1)
      allowed.push_back(loop);
  linalg::ControlDropUnitDims control;
  control.controlFn = [&](Operation *) { return allowed; };
  rewriter.setInsertionPoint(op);
  FailureOr<linalg::DropUnitDimsResult> dropped = failure();
  if (!allowed.empty())
    dropped = linalg::dropUnitDims(rewriter, op, control);
  if (failed(dropped)) {
    markResults(op->getResults());
    return;
  }
  reportChoice(op, DEBUG_TYPE, "dimensions of size 1 are dropped");
  markResults(dropped->replacements);
  rewriter.replaceOp(op, dropped->replacements);
  changed = true;
}

void KeptDims::visit(Operation *op) {
  if (auto expansion = dyn_cast<tensor::ExpandShapeOp>(op))
    return visitExpansion(expansion);
  if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    auto dims = kept.find(cast.getSource());
    if (dims != kept.end()) {
      llvm::SmallBitVector copy = dims->second;
      kept[cast.getResult()] = copy;
      reduced.insert(cast.getResult());
    }
    return;
  }
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return visitGeneric(generic);
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      linalgOp && isReduction(linalgOp))
    reduced.insert(op->result_begin(), op->result_end());
}

namespace {
struct SimplifyReductions final
    : mlir::posenc::impl::PosencSimplifyReductionsPassBase<SimplifyReductions> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(checkReshapes(getOperation())))
      return signalPassFailure();
    MLIRContext *context = &getContext();
    IRRewriter rewriter(context);
    SmallVector<Operation *> unused;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (op.hasPureTensorSemantics() && op->getNumResults() > 1 &&
          op.getNumReductionLoops() > 0 && detachUnusedResults(op))
        unused.push_back(op);
    });
    RewritePatternSet results(context);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(results);
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    if (failed(applyOpPatternsGreedily(unused, std::move(results), config)))
      return signalPassFailure();
    getOperation()->walk([&](linalg::GenericOp op) {
      if (op.hasPureTensorSemantics() && op->getNumResults() == 1 &&
          isReduction(op))
        (void)simplifyExtremum(rewriter, op);
    });

    SmallVector<Operation *> operations;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      operations.push_back(op);
      return isa<linalg::LinalgOp>(op) ? WalkResult::skip()
                                       : WalkResult::advance();
    });
    KeptDims keptDims(rewriter);
    for (Operation *op : operations)
      keptDims.visit(op);
    if (!keptDims.hasChanged())
      return;
    // Folds pairs of collapses and expansions between operations.
    RewritePatternSet reshapes(context);
    linalg::FillOp::getCanonicalizationPatterns(reshapes, context);
    tensor::CollapseShapeOp::getCanonicalizationPatterns(reshapes, context);
    tensor::ExpandShapeOp::getCanonicalizationPatterns(reshapes, context);
    tensor::populateFoldTensorEmptyPatterns(reshapes);
    if (failed(applyPatternsGreedily(getOperation(), std::move(reshapes))))
      return signalPassFailure();
  }
};
} // namespace
