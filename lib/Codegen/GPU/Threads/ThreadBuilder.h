//===- ThreadBuilder.h - code of a GPU thread -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arithmetic on i32, of which a GPU executes twice as many as on i64, shared
// memory by offsets in bytes, and instructions of warps. Shared memory is one
// array whose size the launch sets, since that may exceed the 48 KiB of static
// arrays.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_THREADS_THREADBUILDER_H
#define POSENC_LIB_CODEGEN_GPU_THREADS_THREADBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::posenc {

/// An address in shared memory, in bytes: a value that a thread computes, and a
/// constant, which becomes part of the instruction. It is relative to the
/// kernel's array unless `isAbsolute`.
struct SharedAddress {
  Value base;
  int64_t offset = 0;
  bool isAbsolute = false;

  SharedAddress plus(int64_t bytes) const {
    return {base, offset + bytes, isAbsolute};
  }
};

class ThreadBuilder : public ImplicitLocOpBuilder {
public:
  /// Emits code at the end of the body of `kernel`.
  explicit ThreadBuilder(gpu::GPUFuncOp kernel);

  // Integers. Operations on constants are folded.
  Value i32(int64_t value);
  Value add(Value a, Value b) { return createOrFold<arith::AddIOp>(a, b); }
  Value add(Value a, int64_t b) { return add(a, integerLike(a, b)); }
  Value sub(Value a, Value b) { return createOrFold<arith::SubIOp>(a, b); }
  Value mul(Value a, Value b) { return createOrFold<arith::MulIOp>(a, b); }
  Value mul(Value a, int64_t b) { return mul(a, integerLike(a, b)); }
  Value div(Value a, int64_t b);
  Value rem(Value a, int64_t b);
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return createOrFold<arith::CmpIOp>(predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return createOrFold<arith::SelectOp>(condition, a, b);
  }
  Value both(Value a, Value b);
  /// Converts an index to i32, which must have its value, and back.
  Value toI32(Value index);
  Value toIndex(Value integer);
  /// Converts an index to i32, clamped to [-2^20, 2^20]: relative positions
  /// beyond are as good as infinite.
  Value toClampedI32(Value index);

  // Floats.
  Value real(Type type, double value);
  Value addf(Value a, Value b) { return arith::AddFOp::create(*this, a, b); }
  Value subf(Value a, Value b) { return arith::SubFOp::create(*this, a, b); }
  Value mulf(Value a, Value b) { return arith::MulFOp::create(*this, a, b); }
  Value fma(Value a, Value b, Value c);
  /// Returns the larger number, or the other one if one is NaN.
  Value max(Value a, Value b) { return arith::MaxNumFOp::create(*this, a, b); }
  /// Returns 2^x; for f32 within 2 units in the last place, 0 for subnormals.
  Value exp2(Value x);
  /// Converts between float types.
  Value convert(Value x, Type type);
  /// Rounds two f32 to a 16-bit type, and packs them into an i32.
  Value pack(Value low, Value high, Type element);

  // Shared memory.
  /// Returns the address of shared memory as an i32.
  Value getSharedAddress();
  Value load(SharedAddress address, Type type, int64_t alignment);
  void store(Value value, SharedAddress address, int64_t alignment);
  /// Copies 16 bytes of global memory, or writes zeros unless `exists`, which
  /// may be null; then the bytes at `from`, an i64, are not read. The copy is
  /// part of the next group.
  void copyAsync(SharedAddress to, Value from, Value exists);
  void commitCopies();
  void waitForCopies();
  /// Loads four 8x8 matrices of 16-bit elements. Lane i gives the address of
  /// row i mod 8 of matrix i / 8.
  SmallVector<Value> loadMatrices(SharedAddress row, bool transposed);

  // Warps and blocks.
  /// Multiplies 16x16 by 16x8 fragments of a 16-bit type and adds the product
  /// to four f32.
  SmallVector<Value> multiply(ValueRange a, ValueRange b, ValueRange sum,
                              Type element);
  /// Returns the value of the lane whose index differs by `mask`, or of lane
  /// `lane`.
  Value shuffleXor(Value value, int64_t mask);
  Value shuffle(Value value, Value lane);
  /// Returns the i32 of the next lane; in the last lane, its own.
  Value shuffleDown(Value value);
  /// Whether a condition, an i1, holds in any lane of the warp.
  Value any(Value condition);
  /// Returns an i32 with the bits of the lanes in which a condition holds.
  Value ballot(Value condition);
  /// Returns the number of the lowest bit of an i32 that is not 0.
  Value countTrailingZeros(Value bits);
  /// Combines the lanes' integers by `combine`, of which the order of operands
  /// and repeated operands do not matter.
  Value reduceLanes(Value value, function_ref<Value(Value, Value)> combine);
  void barrier() { gpu::BarrierOp::create(*this); }

  /// Emits code where a condition holds.
  void emitIf(Value condition, function_ref<void()> body);
  /// Emits a branch that yields values.
  SmallVector<Value> emitIf(Value condition, TypeRange types,
                            function_ref<SmallVector<Value>()> ifTrue,
                            function_ref<SmallVector<Value>()> ifFalse);
  /// Emits a loop over i32 that carries values.
  SmallVector<Value>
  emitLoop(Value begin, Value end, Value step, ValueRange inits,
           function_ref<SmallVector<Value>(Value, ValueRange)> body);
  /// Emits a loop that ends when the condition on its carried values is false.
  SmallVector<Value>
  emitWhile(ValueRange inits, function_ref<Value(ValueRange)> condition,
            function_ref<SmallVector<Value>(ValueRange)> body);

private:
  Value integerLike(Value like, int64_t value);
  Value getPointer(SharedAddress address);
  Value shuffleBits(Value value, Value lane, bool isXor);

  Value shared;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_THREADS_THREADBUILDER_H
