//===- FunctionInfo.cpp - analysis of the functions of a source -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionInfo.h"

#include "posenc/Codegen/Tiling.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Registration/Registration.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::posenc;

/// The rotation of a pair of elements takes four products and two sums.
static constexpr double kFlopsPerElement = 3;

/// Sets the reduction of a matrix product from the first operand that is an
/// argument of the function and has the reduction dimension.
static void readProduct(linalg::LinalgOp op, FunctionInfo::Result &result) {
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
      return; // The second matrix may be packed, with another number of dims.
    }
  }
}

/// Returns the matrix product that `op` is, or whose result `op` processes
/// elementwise, by reshapes or by rope; null if there is none.
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

static void readResult(Operation *op, FunctionInfo &info,
                       FunctionInfo::Result &result) {
  if (auto rope = dyn_cast_or_null<RopeOp>(op)) {
    info.family = "rope";
    info.variant = stringifyPairing(rope.getPairing());
    result.windowOffset = rope.getOffset();
    result.windowSize = rope.getFrequencies().getDim();
    result.flops = kFlopsPerElement;
  } else if (auto rotate = dyn_cast_or_null<RotateOp>(op)) {
    info.family = "rotate";
    info.variant = stringifyPairing(rotate.getPairing());
    result.flops = kFlopsPerElement;
  } else if (auto table = dyn_cast_or_null<SinusoidalOp>(op)) {
    info.family = "sinusoidal";
    info.variant = stringifyTableOrder(table.getOrder());
  } else if (isa_and_nonnull<SincosOp>(op)) {
    info.family = "sincos";
    info.variant = "table";
  } else if (auto attention = dyn_cast_or_null<AttentionOp>(op)) {
    readAttentionInfo(attention, info);
  }
  if (linalg::LinalgOp product = findProduct(op))
    readProduct(product, result);
}

/// Returns whether a function has linalg ops and no ops other than those that
/// read all elements of their operands or move none, so every input is read
/// entirely.
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

static std::vector<std::string> getTunedKernels(FunctionOpInterface function) {
  llvm::SetVector<StringRef> kernels;
  function.getFunctionBody().walk([&](Operation *op) {
    auto product = dyn_cast<linalg::LinalgOp>(op);
    if (product && isTiledContraction(product))
      kernels.insert("product");
    auto attention = dyn_cast<AttentionOp>(op);
    if (!attention)
      return;
    int64_t tokens = cast<ShapedType>(attention.getQuery().getType())
                         .getDimSize(attention.getQueryTokenDim());
    bool isOne = tokens == 1 && !attention.hasRaggedQueries();
    if (!isOne)
      kernels.insert("attention");
    if (isOne || attention.getLengths())
      kernels.insert("decode");
  });
  return std::vector<std::string>(kernels.begin(), kernels.end());
}

static FunctionInfo getInfo(FunctionOpInterface function) {
  FunctionInfo info;
  info.family = function.getName().str();
  info.variant = "kernel";
  info.results.resize(function.getNumResults());
  if (function.isExternal())
    return info;
  info.readsAll = readsAll(function);
  info.tunedKernels = getTunedKernels(function);
  Operation *terminator = function.getFunctionBody().front().getTerminator();
  for (auto [value, result] :
       llvm::zip(terminator->getOperands(), info.results))
    readResult(value.getDefiningOp(), info, result);
  return info;
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
  // Masks that are windows determine the work of attention.
  PassManager manager(&context);
  manager.addPass(createPosencFoldMasksPass());
  if (failed(manager.run(*module)))
    return std::nullopt;
  std::vector<SourceFunction> functions;
  for (auto function : module->getOps<FunctionOpInterface>())
    if (function.isPublic())
      functions.push_back({function.getName().str(), getInfo(function)});
  return functions;
}
