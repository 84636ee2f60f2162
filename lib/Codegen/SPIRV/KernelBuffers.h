//===- KernelBuffers.h - memory of kernels as words -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A buffer of a kernel is an array of what its accesses have in common: of 16,
// 8, 4, 2 or 1 bytes, as integers or vectors of them. Values of bf16 and f16
// are integers of 32 bits with an empty upper half.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_SPIRV_KERNELBUFFERS_H
#define POSENC_LIB_CODEGEN_SPIRV_KERNELBUFFERS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVEnums.h"
#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// The type of a value of `type` in a kernel of scalars.
Type getLaneType(Type type);

/// The bytes of an element in memory; 0 for none that are whole.
int64_t getElementBytes(Type type);

/// A memref on its way: what stands for it, and where in that it begins.
struct KernelBuffer {
  Value memref;
  /// The type of an element, and the bytes of one of `memref`.
  Type element;
  int64_t granule = 0;
  /// In elements; null for 0.
  Value offset;
  /// Memory of the block: elements of the type itself.
  bool isShared = false;

  SmallVector<Value> load(OpBuilder &builder, Location loc, Value index,
                          int64_t count) const;
  void store(OpBuilder &builder, Location loc, Value index,
             ValueRange lanes) const;

private:
  Value loadPart(OpBuilder &builder, Location loc, Value index,
                 Value place) const;
  Value getPlace(OpBuilder &builder, Location loc, Value index,
                 int64_t perGranule) const;
};

/// The memref of a buffer whose elements have `granule` bytes.
MemRefType getGranulesType(MLIRContext *context, int64_t granule, int64_t size,
                           spirv::StorageClass storage);

/// The most bytes that all accesses through `memref` are multiples of and
/// aligned to. Fails with an error at an operation that is no access.
FailureOr<int64_t> findGranule(Value memref);

/// The constants of a module of kernels, one after the other in one buffer.
class KernelConstants {
public:
  /// Fails with an error at a global that has no constant value.
  static FailureOr<KernelConstants> collect(gpu::GPUModuleOp kernels);

  bool isEmpty() const { return words.empty(); }
  ArrayRef<int32_t> getWords() const { return words; }
  /// Where a global's words begin; nothing if there is none of that name.
  std::optional<int64_t> find(StringRef symbol) const;

private:
  SmallVector<int32_t> words;
  llvm::StringMap<int64_t> places;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_SPIRV_KERNELBUFFERS_H
