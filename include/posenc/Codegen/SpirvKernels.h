//===- SpirvKernels.h - how a kernel in SPIR-V is called --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arguments of a SPIR-V kernel, whose signature differs from that of the
// `gpu.func` it was generated from:
//
//   bindings 0, 1, ... of descriptor set 0    a buffer for each memref
//   the binding after                         the constants, if there are any
//   push constants                            words: the number of the first
//                                             block, then in the order of the
//                                             arguments where a memref begins
//                                             in its buffer, in elements; an
//                                             index, i32 or f32 in one; an i64
//                                             or f64 in two, the lower first
//
// A grid of more blocks than a device takes is launched in parts, along x.
// More words than push constants have room for are in one more buffer, behind
// all others. Indices have 32 bits: a launch must refuse larger ones.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_SPIRVKERNELS_H
#define POSENC_CODEGEN_SPIRVKERNELS_H

#include "posenc/kernel/CallLayout.h"

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::posenc {

/// The interface of a kernel.
struct SpirvKernelAbi {
  SpirvKernelAbi(FunctionType type, bool hasConstants);

  /// The words of an argument.
  static int64_t countWords(Type type);

  bool isPushed() const { return numWords <= kMaxPushWords; }
  int64_t numMemRefs = 0, numWords = 0;
  /// The number of buffers, including those of the constants and of the words.
  int64_t numBuffers = 0;
};

} // namespace mlir::posenc

#endif // POSENC_CODEGEN_SPIRVKERNELS_H
