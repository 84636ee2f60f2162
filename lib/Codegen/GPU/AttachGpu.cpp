//===- AttachGpu.cpp - what GPU kernels may use ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/Posenc.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCATTACHGPUPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {
struct AttachGpu final
    : mlir::posenc::impl::PosencAttachGpuPassBase<AttachGpu> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->setAttr(PosencDialect::kGpuAttrName,
                            GpuAttr::get(&getContext(), functions, attention,
                                         warpgroups, smallSharedMemory));
  }
};
} // namespace
