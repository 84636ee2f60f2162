//===- DeclareSharedMemory.cpp - linkage of dynamic shared memory ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDECLARESHAREDMEMORYPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

static bool isDynamicSharedMemory(LLVM::GlobalOp global) {
  auto type = dyn_cast<LLVM::LLVMArrayType>(global.getGlobalType());
  return type && type.getNumElements() == 0 &&
         global.getAddrSpace() ==
             static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared);
}

namespace {
struct DeclareSharedMemory final
    : mlir::posenc::impl::PosencDeclareSharedMemoryPassBase<
          DeclareSharedMemory> {
  using Base::Base;

  void runOnOperation() override {
    for (auto global : getOperation().getOps<LLVM::GlobalOp>())
      if (isDynamicSharedMemory(global))
        global.setLinkage(LLVM::Linkage::External);
  }
};
} // namespace
