//===- SizeLinalgOps.cpp - sizes of structured operations -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/SizeAnalysis.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::posenc;

/// Evaluates an affine expression for these dimensions and symbols.
static SizeExpr evaluate(AffineExpr expr, ArrayRef<SizeExpr> dims,
                         ArrayRef<SizeExpr> symbols, Operation *op,
                         SizeAnalysis &analysis) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  SizeExpr left = evaluate(binary.getLHS(), dims, symbols, op, analysis);
  SizeExpr right = evaluate(binary.getRHS(), dims, symbols, op, analysis);
  auto divide = [&](TermKind kind, const SizeExpr &dividend) {
    analysis.requireAtMost(1, right, op);
    return analysis.getSymbols().createTerm(kind, {dividend, right});
  };
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return left + right;
  case AffineExprKind::Mul:
    return left * right;
  case AffineExprKind::FloorDiv:
    return divide(TermKind::Quotient, left);
  case AffineExprKind::CeilDiv:
    return divide(TermKind::Quotient, left + right - 1);
  case AffineExprKind::Mod:
    return divide(TermKind::Remainder, left);
  default:
    llvm_unreachable("not a binary expression");
  }
}

/// Returns the sizes of the loops, from the dimensions that are indexed by a
/// single loop.
static SmallVector<SizeExpr> getLoopSizes(linalg::LinalgOp op,
                                          SizeAnalysis &analysis) {
  SmallVector<std::optional<SizeExpr>> sizes(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<ShapedType>(operand.get().getType()))
      continue;
    SmallVector<SizeExpr> shape = analysis.getShape(operand.get());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape)) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim)
        continue;
      std::optional<SizeExpr> &known = sizes[dim.getPosition()];
      if (known)
        analysis.requireEqual(*known, size, op);
      else
        known = size;
    }
  }
  // The verifier guarantees a dimension for every loop.
  return llvm::map_to_vector(sizes, [](const std::optional<SizeExpr> &size) {
    return size.value_or(SizeExpr(0));
  });
}

/// Sets the elements of results that have one, which a single iteration
/// computes.
static void setElements(linalg::LinalgOp op, SizeAnalysis &analysis) {
  bool isOnce = llvm::all_of(op.getStaticLoopRanges(),
                             [](int64_t size) { return size == 1; });
  if (!isOnce)
    return;
  for (auto [result, value] : llvm::zip(
           op->getResults(), op.getBlock()->getTerminator()->getOperands()))
    if (AbiAttr::isSizeElement(result.getType()))
      analysis.setElement(result, analysis.getInteger(value));
}

static LogicalResult visit(linalg::LinalgOp op, SizeAnalysis &analysis) {
  SmallVector<SizeExpr> sizes = getLoopSizes(op, analysis), loops;
  SmallVector<SizeAnalysis::Guard> guards;
  for (const SizeExpr &size : sizes) {
    loops.push_back(analysis.createLoop(0, size - 1));
    guards.push_back({0, size});
  }
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<ShapedType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [expr, size] :
         llvm::zip_equal(map.getResults(), analysis.getShape(operand.get()))) {
      if (isa<AffineDimExpr>(expr))
        continue;
      SizeExpr index = evaluate(expr, loops, {}, op, analysis);
      analysis.requireAtMost(0, index, op);
      analysis.requireAtMost(index + 1, size, op);
    }
  }
  for (OpResult result : op->getResults())
    analysis.setShape(
        result, analysis.getShape(op.getTiedOpOperand(result)->get()), op);
  for (auto [argument, operand] : llvm::zip_equal(
           op.getBlock()->getArguments(), op.getOpOperandsMatchingBBargs())) {
    if (!argument.getType().isInteger())
      continue;
    std::optional<SizeExpr> element = analysis.getElement(operand->get());
    analysis.setInteger(
        argument, element ? *element : analysis.getSymbols().createUnknown());
  }
  if (failed(analysis.visitRegion(op->getRegion(0), guards, loops)))
    return failure();
  setElements(op, analysis);
  return success();
}

std::optional<LogicalResult>
mlir::posenc::visitLinalgOp(Operation *op, SizeAnalysis &analysis) {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return visit(structured, analysis);
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    analysis.setInteger(index.getResult(), analysis.getLoop(index.getDim()));
    return success();
  }
  auto softmax = dyn_cast<linalg::SoftmaxOp>(op);
  if (!softmax)
    return std::nullopt;
  analysis.requireEqual(softmax.getInput(), softmax.getOutput(), op);
  for (Value result : op->getResults())
    analysis.setShape(result, analysis.getShape(softmax.getOutput()), op);
  return success();
}

//===----------------------------------------------------------------------===//
// Loops and branches
//===----------------------------------------------------------------------===//

/// Creates a symbol of a loop variable in [first, end), and requires a positive
/// step.
static SizeExpr createLoop(const SizeExpr &first, const SizeExpr &end,
                           const SizeExpr &step, Operation *op,
                           SizeAnalysis &analysis) {
  analysis.requireAtMost(1, step, op);
  SizeExpr count = analysis.getSymbols().createTerm(TermKind::Quotient,
                                                    {end - first - 1, step});
  return analysis.createLoop(first, first + count * step);
}

/// Visits a loop whose iterations do not change the shapes of carried tensors.
static LogicalResult visitCarried(Operation *op, ValueRange inits,
                                  ValueRange arguments, ValueRange results,
                                  SizeAnalysis &analysis,
                                  ArrayRef<SizeAnalysis::Guard> guards) {
  for (auto [init, argument, result] :
       llvm::zip_equal(inits, arguments, results)) {
    if (!isa<ShapedType>(init.getType()))
      continue;
    SmallVector<SizeExpr> shape = analysis.getShape(init);
    analysis.setShape(argument, shape, op);
    analysis.setShape(result, shape, op);
  }
  return analysis.visitRegion(op->getRegion(0), guards);
}

static LogicalResult visit(scf::ForOp op, SizeAnalysis &analysis) {
  SizeExpr first = analysis.getInteger(op.getLowerBound());
  SizeExpr end = analysis.getInteger(op.getUpperBound());
  analysis.setInteger(
      op.getInductionVar(),
      createLoop(first, end, analysis.getInteger(op.getStep()), op, analysis));
  if (failed(visitCarried(op, op.getInits(), op.getRegionIterArgs(),
                          op.getResults(), analysis, {{first, end}})))
    return failure();
  for (auto [argument, value] :
       llvm::zip_equal(op.getRegionIterArgs(), op.getYieldedValues()))
    if (isa<ShapedType>(argument.getType()))
      analysis.requireEqual(argument, value, op);
  return success();
}

static LogicalResult visit(scf::ForallOp op, SizeAnalysis &analysis) {
  SmallVector<SizeAnalysis::Guard> guards;
  for (auto [variable, first, end, step] : llvm::zip_equal(
           op.getInductionVars(), analysis.getIntegers(op.getMixedLowerBound()),
           analysis.getIntegers(op.getMixedUpperBound()),
           analysis.getIntegers(op.getMixedStep()))) {
    analysis.setInteger(variable, createLoop(first, end, step, op, analysis));
    guards.push_back({first, end});
  }
  return visitCarried(op, op.getOutputs(), op.getRegionIterArgs(),
                      op.getResults(), analysis, guards);
}

static LogicalResult visit(scf::IfOp op, SizeAnalysis &analysis) {
  auto visitBranch = [&](Region &region, bool isTrue) {
    return analysis.visitRegion(region,
                                analysis.getGuards(op.getCondition(), isTrue));
  };
  if (failed(visitBranch(op.getThenRegion(), true)) ||
      failed(visitBranch(op.getElseRegion(), false)))
    return failure();
  if (op.getNumResults() == 0)
    return success();
  for (auto [result, yes, no] :
       llvm::zip_equal(op.getResults(), op.thenYield().getOperands(),
                       op.elseYield().getOperands())) {
    auto choose = [&](const SizeExpr &a, const SizeExpr &b) {
      if (a == b)
        return a;
      return analysis.select(op.getCondition(), a, b)
          .value_or(analysis.getSymbols().createUnknown());
    };
    if (result.getType().isIntOrIndex()) {
      analysis.setInteger(
          result, choose(analysis.getInteger(yes), analysis.getInteger(no)));
      continue;
    }
    if (!isa<ShapedType>(result.getType()))
      continue;
    SmallVector<SizeExpr> shape;
    for (auto [a, b] :
         llvm::zip_equal(analysis.getShape(yes), analysis.getShape(no)))
      shape.push_back(choose(a, b));
    analysis.setShape(result, shape, op);
  }
  return success();
}

std::optional<LogicalResult> mlir::posenc::visitLoopOp(Operation *op,
                                                       SizeAnalysis &analysis) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visit(loop, analysis);
  if (auto loop = dyn_cast<scf::ForallOp>(op))
    return visit(loop, analysis);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return visit(branch, analysis);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

bool mlir::posenc::visitAffineOp(Operation *op, SizeAnalysis &analysis) {
  auto evaluateAll = [&](AffineMap map, ValueRange operands) {
    SmallVector<SizeExpr> values;
    for (Value operand : operands)
      values.push_back(analysis.getInteger(operand));
    ArrayRef<SizeExpr> dims = ArrayRef(values).take_front(map.getNumDims());
    ArrayRef<SizeExpr> symbols = ArrayRef(values).drop_front(map.getNumDims());
    SmallVector<SizeExpr> results;
    for (AffineExpr expr : map.getResults())
      results.push_back(evaluate(expr, dims, symbols, op, analysis));
    return results;
  };
  auto fold = [&](TermKind kind, ArrayRef<SizeExpr> values) {
    SizeExpr result = values.front();
    for (const SizeExpr &value : values.drop_front())
      result = analysis.getSymbols().createTerm(kind, {result, value});
    return result;
  };
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
    analysis.setInteger(
        apply.getResult(),
        evaluateAll(apply.getAffineMap(), apply.getMapOperands()).front());
  else if (auto minOp = dyn_cast<affine::AffineMinOp>(op))
    analysis.setInteger(
        minOp.getResult(),
        fold(TermKind::Min, evaluateAll(minOp.getMap(), minOp.getOperands())));
  else if (auto maxOp = dyn_cast<affine::AffineMaxOp>(op))
    analysis.setInteger(
        maxOp.getResult(),
        fold(TermKind::Max, evaluateAll(maxOp.getMap(), maxOp.getOperands())));
  else
    return false;
  return true;
}
