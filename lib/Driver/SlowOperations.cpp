//===- SlowOperations.cpp - warnings about slow operations ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SlowOperations.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Transforms/Passes.h"
#include "posenc/Transforms/VectorizableAttention.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::posenc;

static void warnOfAttention(AttentionOp op) {
  if (std::optional<std::string> reason = getVectorUnsupportedReason(op)) {
    op.emitWarning()
        << "attention is not fused, which takes up to 1.4 times as long, or "
           "several times as long for few queries: "
        << *reason;
    return;
  }
  if (op.normsAllKeyHeads() && op.getKeyLayout() == HeadLayout::HeadMajor)
    op.emitWarning()
        << "the norm over all key heads together reads the keys of all "
           "heads once per head; a cache of normalized keys is faster";
}

/// Returns the number of iterations of the loop nest; nullopt if a size is
/// dynamic or the number overflows.
static std::optional<int64_t> countIterations(linalg::LinalgOp op) {
  int64_t iterations = 1;
  for (int64_t size : op.getStaticLoopRanges())
    if (ShapedType::isDynamic(size) ||
        llvm::MulOverflow(iterations, size, iterations))
      return std::nullopt;
  return iterations;
}

// LLVM vectorizes operations that are not tiled if their innermost loop is
// parallel or reduces integers. It does not vectorize floating-point reductions
// along the innermost loop, since another order changes the rounding.
bool mlir::posenc::isScalarLoop(linalg::LinalgOp op) {
  bool sumsInnermost =
      op.getNumLoops() != 0 &&
      op.getIteratorTypesArray().back() == utils::IteratorType::reduction;
  bool isFloat = llvm::any_of(op.getDpsInits(), [](Value init) {
    return isa<FloatType>(getElementTypeOrSelf(init.getType()));
  });
  return sumsInnermost && isFloat && !isTiledContraction(op) &&
         !isTiledReduction(op) && !isTiledColumnReduction(op);
}

/// Warns about linalg operations that become scalar loops.
static void warnOfLinalg(linalg::LinalgOp op) {
  // Smaller loop nests are fast enough.
  constexpr int64_t kFewIterations = 4096;
  if (!isScalarLoop(op) ||
      countIterations(op).value_or(kFewIterations + 1) <= kFewIterations)
    return;
  op.emitWarning() << "'" << op->getName()
                   << "' runs as scalar loops, which are many times slower "
                      "than a library's vectorized kernel";
}

void mlir::posenc::warnOfSlowOperations(ModuleOp module) {
  // Works on a simplified copy: an operation that folds away is not slow.
  OwningOpRef<ModuleOp> copy = module.clone();
  {
    // Errors in the module are reported when it is compiled afterwards.
    ScopedDiagnosticHandler silence(module.getContext(),
                                    [](Diagnostic &) { return success(); });
    PassManager manager(module.getContext());
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
    manager.addPass(createPosencFuseRopesPass());
    manager.addNestedPass<func::FuncOp>(createPosencWidenSumsPass());
    if (failed(manager.run(*copy)))
      return;
  }
  copy->walk([](Operation *op) {
    if (auto attention = dyn_cast<AttentionOp>(op))
      warnOfAttention(attention);
    else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      warnOfLinalg(linalgOp);
    else if (auto append = dyn_cast<KvAppendOp>(op); append && append.getNorm())
      append.emitWarning() << "the norm of appended keys runs as scalar loops";
  });
}
