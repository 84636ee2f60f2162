//===- FinishSpirv.cpp - decorations after the conversion to SPIR-V -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCFINISHSPIRVPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {
struct FinishSpirv final
    : mlir::posenc::impl::PosencFinishSpirvPassBase<FinishSpirv> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (isa<spirv::FAddOp, spirv::FSubOp, spirv::FMulOp, spirv::FDivOp,
              spirv::FNegateOp, spirv::GLFmaOp>(op))
        op->setAttr("no_contraction", UnitAttr::get(&getContext()));
      // Removes the bindings that upstream gives to these variables, which are
      // not buffers.
      auto variable = dyn_cast<spirv::GlobalVariableOp>(op);
      if (variable &&
          variable.storageClass() == spirv::StorageClass::PushConstant) {
        variable.removeBindingAttr();
        variable.removeDescriptorSetAttr();
      }
    });
  }
};
} // namespace
