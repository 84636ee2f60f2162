//===- ByteDots.h - dot products of four bytes ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four integers of 8 bits are one word of 32 bits, the first one in its lowest
// bits. A dot product adds the four products of the bytes at the same place in
// two words, of which one has signed and one unsigned bytes, to a sum. Sums
// wrap around, so every order of the additions gives the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_BYTEDOTS_H
#define POSENC_NUMERICS_BYTEDOTS_H

#include "mlir/IR/Builders.h"

#include <optional>

namespace mlir::posenc {

/// The operands of a dot product: i32, or vectors of i32 of the same type.
struct ByteDot {
  Value signedBytes, unsignedBytes, sum;
};

/// Emits a dot product as integer arithmetic, which every target has.
Value emitByteDot(OpBuilder &builder, Location loc, const ByteDot &dot);

/// Returns the dot product whose sum is `value`, as emitByteDot emits it.
std::optional<ByteDot> matchByteDot(Value value);

/// Emits a dot product of vectors, whose last dimension is a multiple of 16, by
/// the instruction VPDPBUSD of AVX512-VNNI.
Value emitVnniDot(OpBuilder &builder, Location loc, const ByteDot &dot);

/// Emits arithmetic for an operation that is this instruction; returns null for
/// others.
Value expandVnniDot(OpBuilder &builder, Operation *op);

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_BYTEDOTS_H
