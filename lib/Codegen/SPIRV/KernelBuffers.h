//===- KernelBuffers.h - kernel memory as arrays of integers ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel's buffer is an array of granules: the largest unit of 16, 8, 4, 2 or
// 1 bytes of which all its accesses are multiples, as an integer or a vector of
// integers. Values of bf16 and f16 are 32-bit integers whose upper half is 0.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_SPIRV_KERNELBUFFERS_H
#define POSENC_LIB_CODEGEN_SPIRV_KERNELBUFFERS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVEnums.h"
#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// Returns the type that represents a scalar of `type` in a scalar kernel.
Type getLaneType(Type type);

/// Returns the bytes of an element in memory; 0 if they are not a whole number.
int64_t getElementBytes(Type type);

/// A memref during the conversion: the value that replaces it, and its offset.
struct KernelBuffer {
  Value memref;
  /// The type of an element, and the bytes of one of `memref`.
  Type element;
  int64_t granule = 0;
  /// The offset in elements; null stands for 0.
  Value offset;
  /// Whether it is workgroup memory, whose elements have their own type.
  bool isShared = false;

  SmallVector<Value> load(OpBuilder &builder, Location loc, Value index,
                          int64_t count) const;
  void store(OpBuilder &builder, Location loc, Value index,
             ValueRange lanes) const;

private:
  Value loadPart(OpBuilder &builder, Location loc, Value index,
                 Value granuleIndex) const;
  Value getGranuleIndex(OpBuilder &builder, Location loc, Value index,
                        int64_t perGranule) const;
};

/// Returns the memref type of a buffer of granules of `granule` bytes.
MemRefType getGranulesType(MLIRContext *context, int64_t granule, int64_t size,
                           spirv::StorageClass storage);

/// Returns the largest number of bytes that all accesses through `memref` are
/// multiples of and aligned to. Emits an error at a use that is not an access.
FailureOr<int64_t> findGranule(Value memref);

/// The constants of a module of kernels, one after the other in one buffer.
class KernelConstants {
public:
  /// Fails with an error at a global that has no constant value.
  static FailureOr<KernelConstants> collect(gpu::GPUModuleOp kernels);

  bool isEmpty() const { return words.empty(); }
  ArrayRef<int32_t> getWords() const { return words; }
  /// Returns the offset of a global's words, or nullopt if there is no such
  /// global.
  std::optional<int64_t> find(StringRef symbol) const;

private:
  SmallVector<int32_t> words;
  llvm::StringMap<int64_t> offsets;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_SPIRV_KERNELBUFFERS_H
