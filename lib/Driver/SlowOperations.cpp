//===- SlowOperations.cpp - warnings of what runs slowly --------*- C++ -*-===//
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
        << "attention is not fused and takes up to 1.4 times as long, or "
           "several times with few queries: "
        << *reason;
    return;
  }
  if (op.normsAllKeyHeads() && op.getKeyLayout() == HeadLayout::HeadMajor)
    op.emitWarning() << "the norm of all key heads together reads the keys of "
                        "all heads for each head: a cache of normed keys is "
                        "faster";
}

/// How often the innermost body runs, or nothing where a size is dynamic.
static std::optional<int64_t> countSteps(linalg::LinalgOp op) {
  int64_t steps = 1;
  for (int64_t size : op.getStaticLoopRanges())
    if (ShapedType::isDynamic(size) || llvm::MulOverflow(steps, size, steps))
      return std::nullopt;
  return steps;
}

/// Of what is not tiled, LLVM vectorizes loops whose innermost one is parallel,
/// and sums of integers. Sums of floats along the innermost loop it leaves as
/// they are, since another order rounds otherwise.
static void warnOfLinalg(linalg::LinalgOp op) {
  constexpr int64_t kFewSteps = 4096;
  bool sumsInnermost =
      op.getNumLoops() != 0 &&
      op.getIteratorTypesArray().back() == utils::IteratorType::reduction;
  bool isFloat = llvm::any_of(op.getDpsInits(), [](Value init) {
    return isa<FloatType>(getElementTypeOrSelf(init.getType()));
  });
  if (!sumsInnermost || !isFloat || isTiledContraction(op) ||
      isTiledReduction(op) || isTiledColumnReduction(op) ||
      countSteps(op).value_or(kFewSteps + 1) <= kFewSteps)
    return;
  op.emitWarning() << "'" << op->getName()
                   << "' runs as scalar loops, one sum at a time, many times "
                      "slower than a library's";
}

void mlir::posenc::warnOfSlowOperations(ModuleOp module) {
  // What folds away is not slow.
  OwningOpRef<ModuleOp> copy = module.clone();
  {
    // Whoever compiles the module next reports what is wrong with it.
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
