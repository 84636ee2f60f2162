//===- LegalizeBF16.cpp - bf16 as i16 -------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Once the conversions of bf16 are arithmetic on integers, bf16 values are only
// moved. LLVM may still turn moves into conversions: the backend splits a
// vector with an odd number of lanes by converting each lane to f32 and back.
// It does not do so with integers, so this pass replaces bf16 by i16.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/DialectResourceBlobManager.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCLEGALIZEBF16PASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

static bool hasBF16(Type type) {
  return type.walk([](BFloat16Type) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Whether an operation has the same meaning on i16 as on bf16.
static bool onlyMoves(Operation *op) {
  return isa<LLVM::AllocaOp, LLVM::BitcastOp, LLVM::BrOp, LLVM::CallOp,
             LLVM::CondBrOp, LLVM::ConstantOp, LLVM::ExtractElementOp,
             LLVM::ExtractValueOp, LLVM::FreezeOp, LLVM::GEPOp,
             LLVM::InsertElementOp, LLVM::InsertValueOp, LLVM::LoadOp,
             LLVM::MaskedLoadOp, LLVM::MaskedStoreOp, LLVM::PoisonOp,
             LLVM::ReturnOp, LLVM::SelectOp, LLVM::ShuffleVectorOp,
             LLVM::StoreOp, LLVM::SwitchOp, LLVM::UndefOp, LLVM::ZeroOp>(op);
}

namespace {
struct LegalizeBF16 final
    : mlir::posenc::impl::PosencLegalizeBF16PassBase<LegalizeBF16> {
  using Base::Base;

  void runOnOperation() override {
    Operation *root = getOperation();
    // Either all functions are converted or none is, as they may call each
    // other.
    WalkResult computes = root->walk([](Operation *op) {
      bool uses = llvm::any_of(op->getOperandTypes(), hasBF16) ||
                  llvm::any_of(op->getResultTypes(), hasBF16);
      return uses && !onlyMoves(op) ? WalkResult::interrupt()
                                    : WalkResult::advance();
    });
    if (computes.wasInterrupted())
      return;
    Type bits = IntegerType::get(&getContext(), 16);
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](BFloat16Type) { return bits; });
    using Replaced = std::optional<std::pair<Attribute, WalkResult>>;
    // The C signature is still one of bf16. Replacements that are added last
    // are tried first.
    replacer.addReplacement([](Attribute attribute) -> Replaced {
      if (!isa<PosencDialect>(attribute.getDialect()))
        return std::nullopt;
      return {{attribute, WalkResult::skip()}};
    });
    replacer.addReplacement([&](FloatAttr number) -> Replaced {
      if (!number.getType().isBF16())
        return std::nullopt;
      auto value = IntegerAttr::get(bits, number.getValue().bitcastToAPInt());
      return {{value, WalkResult::skip()}};
    });
    replacer.addReplacement([&](DenseFPElementsAttr numbers) -> Replaced {
      if (!numbers.getElementType().isBF16())
        return std::nullopt;
      return {{numbers.bitcast(bits), WalkResult::skip()}};
    });
    replacer.addReplacement([&](DenseResourceElementsAttr numbers) -> Replaced {
      if (!numbers.getElementType().isBF16())
        return std::nullopt;
      auto same = DenseResourceElementsAttr::get(numbers.getType().clone(bits),
                                                 numbers.getRawHandle());
      return {{same, WalkResult::skip()}};
    });
    replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }
};
} // namespace
