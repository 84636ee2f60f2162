//===- VectorTarget.h - what vector code asks of its target -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_VECTORTARGET_H
#define POSENC_LIB_CODEGEN_CPU_VECTORTARGET_H

#include "posenc/Target/Tuning.h"

#include "llvm/ADT/StringRef.h"

namespace mlir::posenc {

/// A line of the caches.
constexpr int64_t kLineBytes = 64;

/// The options of the conversions to vectors; all sizes in bytes.
struct VectorTarget : Tuning {
  unsigned vectorBytes;
  /// Whether products of pairs of bf16 are added to f32 by an instruction.
  bool hasBF16Dots = false;
};

/// On an `scf.forall` whose work is what it reads, not what it writes.
constexpr llvm::StringLiteral kByInputsAttrName = "by_inputs";
/// On an `scf.execute_region` that needs what all iterations of the
/// `scf.forall` before have left.
constexpr llvm::StringLiteral kAfterAttrName = "after_all";
/// On a `memref.alloca` that all iterations use.
constexpr llvm::StringLiteral kSharedAttrName = "shared";
/// At most so much is shared.
constexpr int64_t kSharedBytes = 144 << 10;

/// How a row is read and written.
enum class Access {
  Cached,
  /// Reads ask for lines ahead of time.
  Prefetched,
  /// The same, and writes go past the cache.
  Streamed,
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_VECTORTARGET_H
