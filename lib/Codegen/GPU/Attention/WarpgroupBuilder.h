//===- WarpgroupBuilder.h - code for Hopper's tensor cores ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions of sm_90a: barriers in shared memory, bulk copies of tensor
// tiles, and products of a warpgroup, which is four warps. They are inline
// assembly, as the operations of the NVVM dialect have no products with an
// operand in registers.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ATTENTION_WARPGROUPBUILDER_H
#define POSENC_LIB_CODEGEN_GPU_ATTENTION_WARPGROUPBUILDER_H

#include "GPU/Threads/ThreadBuilder.h"

namespace mlir::posenc {

class WarpgroupBuilder {
public:
  explicit WarpgroupBuilder(ThreadBuilder &builder) : b(builder) {}

  /// Emits PTX. `ties` says that the first operands are also results.
  SmallVector<Value> assembly(const Twine &text, TypeRange results,
                              ValueRange operands, int64_t ties = 0);

  // Barriers, by their address in shared memory, an i32.
  void initBarrier(Value barrier, int64_t count);
  /// Makes initialized barriers visible to bulk copies.
  void publishBarriers();
  void waitFor(Value barrier, Value phase);
  void arrive(Value barrier, Value isArriving);
  /// Arrives, and expects that copies write as many bytes.
  void expectBytes(Value barrier, int64_t bytes);
  /// Waits for `threads` threads at one of the block's 16 numbered barriers.
  void syncThreads(Value number, int64_t threads);
  /// The same; returns whether a condition, an i1, holds for any thread.
  Value anyThread(Value number, int64_t threads, Value condition);
  /// Makes earlier stores visible to bulk copies and products.
  void fenceAsyncProxy();

  /// Raises or lowers the maximum number of the warpgroup's registers.
  void setRegisters(int64_t count, bool raises);

  /// Copies the tile at `coordinates`, i32, innermost first, of a tensor map.
  void loadTile(Value to, Value map, ValueRange coordinates, Value barrier);

  /// Returns the descriptor of a matrix at an address in shared memory with
  /// swizzled rows of 128 bytes, an i64. `leading` is the number of bytes from
  /// 64 columns to the next ones, if they are not the contracted dimension.
  Value describe(Value address, int64_t leading);
  Value advance(Value descriptor, int64_t bytes);

  // Products of the warpgroup's 64 rows. Results must not be used before
  // `waitForProducts`, and then only through `tie`.
  void beginProducts();
  void endProducts();
  void waitForProducts(int64_t pending);
  /// Reads the number of the thread anew.
  Value readThread();
  /// Keeps values in their registers until this point.
  SmallVector<Value> tie(ValueRange values);
  /// Multiplies 64 x 16 by 16 x `columns`, both in shared memory. `sum` is
  /// empty for the first product.
  SmallVector<Value> multiply(int64_t columns, Value a, Value other,
                              ValueRange sum, Type element);
  /// The same with the first operand in four registers, and the second one
  /// stored row by row.
  SmallVector<Value> multiplyRegisters(int64_t columns, ValueRange a,
                                       Value other, ValueRange sum,
                                       Type element);

private:
  ThreadBuilder &b;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_WARPGROUPBUILDER_H
