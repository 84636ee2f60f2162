//===- CanonicalizeKernels.cpp - canonical forms of large kernels ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three of upstream's patterns are for the values that loops and branches
// carry: MakeRegionBranchOpSuccessorInputsDead replaces those that never
// change, RemoveDuplicateSuccessorInputUses those that equal another one, and
// RemoveDeadRegionBranchOpSuccessorInputs removes those that nothing uses. They
// compare each of these values with each other one, whenever an operation
// changes. Kernels of attention carry hundreds: 13 s of 14 s for two kernels
// were these comparisons. LLVM removes such values later, and on the way to
// SPIR-V upstream's canonicalizer does.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCCANONICALIZEKERNELSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Adds the canonicalization patterns of an operation, without those that
/// upstream has for the values that any operation with regions carries. These
/// are in an anonymous namespace and known by their names alone; a pattern
/// without a name is kept.
static void addPatterns(RegisteredOperationName op,
                        RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  RewritePatternSet own(context), carried(context);
  op.getCanonicalizationPatterns(own, context);
  if (op.hasInterface<RegionBranchOpInterface>())
    populateRegionBranchOpInterfaceCanonicalizationPatterns(carried,
                                                            op.getStringRef());
  for (std::unique_ptr<RewritePattern> &pattern : own.getNativePatterns())
    if (llvm::none_of(carried.getNativePatterns(), [&](const auto &other) {
          return !other->getDebugName().empty() &&
                 other->getDebugName() == pattern->getDebugName();
        }))
      patterns.add(std::move(pattern));
}

namespace {
struct CanonicalizeKernels final
    : mlir::posenc::impl::PosencCanonicalizeKernelsPassBase<
          CanonicalizeKernels> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    for (Dialect *dialect : context->getLoadedDialects())
      dialect->getCanonicalizationPatterns(set);
    for (RegisteredOperationName op : context->getRegisteredOperations())
      addPatterns(op, set);
    patterns = std::move(set);
    return success();
  }

  void runOnOperation() override {
    // Like upstream's canonicalizer, stops after some rounds without an error.
    (void)applyPatternsGreedily(getOperation(), patterns);
  }

  FrozenRewritePatternSet patterns;
};
} // namespace
