//===- LegalizeI1.cpp - i1 in memory as bytes -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCLEGALIZEI1PASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;

/// Returns the i8 type in memory of an i1 or of a vector of i1; null for other
/// types.
static Type getByteType(Type type) {
  Type byte = IntegerType::get(type.getContext(), 8);
  auto vector = dyn_cast<VectorType>(type);
  if (!getElementTypeOrSelf(type).isInteger(1))
    return nullptr;
  return vector ? Type(vector.clone(byte)) : byte;
}

/// Loads bytes and compares them with 0: any other byte is true.
static void legalizeLoad(LLVM::LoadOp op, Type bytes) {
  OpBuilder builder(op);
  auto load = cast<LLVM::LoadOp>(builder.clone(*op));
  load.getResult().setType(bytes);
  Value zero = LLVM::ZeroOp::create(builder, op.getLoc(), bytes);
  Value isTrue = LLVM::ICmpOp::create(builder, op.getLoc(),
                                      LLVM::ICmpPredicate::ne, load, zero);
  op.replaceAllUsesWith(isTrue);
  op.erase();
}

static void legalizeStore(LLVM::StoreOp op, Type bytes) {
  OpBuilder builder(op);
  Value value =
      LLVM::ZExtOp::create(builder, op.getLoc(), bytes, op.getValue());
  op.getValueMutable().assign(value);
}

namespace {
struct LegalizeI1 final
    : mlir::posenc::impl::PosencLegalizeI1PassBase<LegalizeI1> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
        if (Type bytes = getByteType(load.getType()))
          legalizeLoad(load, bytes);
      } else if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
        if (Type bytes = getByteType(store.getValue().getType()))
          legalizeStore(store, bytes);
      }
    });
  }
};
} // namespace
