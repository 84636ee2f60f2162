//===- Meaning.cpp - what a function computes -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Meaning.h"

#include "posenc/Codegen/Tiling.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Registration/Registration.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;

/// A pair is rotated with four products and two sums.
static constexpr double kFlopsPerLane = 3;

/// Sets what is summed, if an argument of the function has it.
static void readProduct(linalg::LinalgOp op, Meaning::Result &result) {
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  AffineExpr loop = getAffineDimExpr(loops.front(), op->getContext());
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto argument = dyn_cast<BlockArgument>(input->get());
    std::optional<unsigned> dim =
        op.getMatchingIndexingMap(input).getResultPosition(loop);
    if (argument && dim &&
        isa<FunctionOpInterface>(argument.getOwner()->getParentOp())) {
      result.reduction = {argument.getArgNumber(), *dim};
      return; // the second matrix may be packed
    }
  }
}

/// The product of matrices that a value is, or from which it is computed
/// element by element or rotated; null if there is none.
static linalg::LinalgOp findProduct(Operation *op) {
  if (!op)
    return nullptr;
  auto product = dyn_cast<linalg::LinalgOp>(op);
  if (product && isTiledContraction(product))
    return product;
  bool isPassed = (product && isTiledElementwise(product)) ||
                  isa<RopeOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                      tensor::CastOp>(op);
  return isPassed ? findProduct(op->getOperand(0).getDefiningOp()) : nullptr;
}

static void readResult(Operation *op, Meaning &meaning,
                       Meaning::Result &result) {
  if (auto rope = dyn_cast_or_null<RopeOp>(op)) {
    meaning.family = "rope";
    meaning.variant = stringifyPairing(rope.getPairing());
    result.windowOffset = rope.getOffset();
    result.windowSize = rope.getFrequencies().getDim();
    result.flops = kFlopsPerLane;
  } else if (auto rotate = dyn_cast_or_null<RotateOp>(op)) {
    meaning.family = "rotate";
    meaning.variant = stringifyPairing(rotate.getPairing());
    result.flops = kFlopsPerLane;
  } else if (auto table = dyn_cast_or_null<SinusoidalOp>(op)) {
    meaning.family = "sinusoidal";
    meaning.variant = stringifyTableOrder(table.getOrder());
  } else if (isa_and_nonnull<SincosOp>(op)) {
    meaning.family = "sincos";
    meaning.variant = "table";
  } else if (auto attention = dyn_cast_or_null<AttentionOp>(op)) {
    readAttention(attention, meaning);
  }
  if (linalg::LinalgOp product = findProduct(op))
    readProduct(product, result);
}

/// Whether a function has operations of linalg that read all of their operands,
/// and of others such as move no elements.
static bool readsAll(FunctionOpInterface function) {
  bool hasLinalg = false;
  WalkResult result = function.getFunctionBody().walk([&](Operation *op) {
    hasLinalg |= isa<linalg::LinalgDialect>(op->getDialect());
    bool isKnown =
        isa<linalg::LinalgDialect, arith::ArithDialect, math::MathDialect>(
            op->getDialect()) ||
        isa<tensor::EmptyOp, tensor::DimOp, tensor::CastOp,
            tensor::ExpandShapeOp, tensor::CollapseShapeOp, RopeOp,
            SinusoidalOp, func::ReturnOp>(op);
    return isKnown ? WalkResult::advance() : WalkResult::interrupt();
  });
  return hasLinalg && !result.wasInterrupted();
}

static Meaning getMeaning(FunctionOpInterface function) {
  Meaning meaning;
  meaning.family = function.getName().str();
  meaning.variant = "kernel";
  meaning.results.resize(function.getNumResults());
  if (function.isExternal())
    return meaning;
  meaning.readsAll = readsAll(function);
  Operation *terminator = function.getFunctionBody().front().getTerminator();
  for (auto [value, result] :
       llvm::zip(terminator->getOperands(), meaning.results))
    readResult(value.getDefiningOp(), meaning, result);
  return meaning;
}

std::optional<std::vector<SourceFunction>>
mlir::posenc::readSource(StringRef path, const InputOptions &options) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  DiagnosticPrinter diagnostics(context);
  OwningOpRef<ModuleOp> module = loadModule(path, options, context);
  if (!module)
    return std::nullopt;
  std::vector<SourceFunction> functions;
  for (auto function : module->getOps<FunctionOpInterface>())
    if (function.isPublic())
      functions.push_back({function.getName().str(), getMeaning(function)});
  return functions;
}
