//===- SpirvKernels.h - interface of SPIR-V kernels -------------*- C++ -*-===//
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
//   bindings 0, 1, ... of descriptor set 0    one buffer per memref argument
//   the next binding                          the constants, if there are any
//   push constants                            32-bit words: the index of the
//                                             first block, then per argument:
//                                             memref: its offset in the buffer,
//                                               in elements (1 word)
//                                             index, i32, f32: 1 word
//                                             i64, f64: 2 words, low word first
//
// A grid with more blocks than the device's limit is launched in slices along
// x; the first word is the block at which a slice begins. If there are more
// than kMaxPushWords words, they are passed in a buffer at the last binding
// instead of as push constants. Indices have 32 bits, so the launch code must
// reject sizes that need more.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_SPIRVKERNELS_H
#define POSENC_CODEGEN_SPIRVKERNELS_H

#include "posenc/kernel/CallLayout.h"

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::posenc {

/// Numbers of buffers and words in the interface of one kernel.
struct SpirvKernelAbi {
  SpirvKernelAbi(FunctionType type, bool hasConstants);

  /// Returns the number of 32-bit words that an argument of this type takes.
  static int64_t countWords(Type type);

  /// Whether the words are push constants; otherwise they are a buffer.
  bool isPushed() const { return numWords <= kMaxPushWords; }
  int64_t numMemRefs = 0, numWords = 0;
  /// Number of bindings: memrefs, plus one for the constants and one for the
  /// words if these are in buffers.
  int64_t numBuffers = 0;
};

} // namespace mlir::posenc

#endif // POSENC_CODEGEN_SPIRVKERNELS_H
