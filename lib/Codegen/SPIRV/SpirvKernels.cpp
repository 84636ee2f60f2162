//===- SpirvKernels.cpp - interface of SPIR-V kernels ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/SpirvKernels.h"

using namespace mlir;
using namespace mlir::posenc;

int64_t SpirvKernelAbi::countWords(Type type) {
  return type.isIntOrFloat() && type.getIntOrFloatBitWidth() > 32 ? 2 : 1;
}

SpirvKernelAbi::SpirvKernelAbi(FunctionType type, bool hasConstants)
    : numWords(1) {
  for (Type input : type.getInputs()) {
    numMemRefs += isa<MemRefType>(input);
    numWords += countWords(input);
  }
  numBuffers = numMemRefs + hasConstants + !isPushed();
}
