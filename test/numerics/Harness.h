//===- Harness.h - compiles and runs kernels in tests -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_NUMERICS_HARNESS_H
#define POSENC_TEST_NUMERICS_HARNESS_H

#include "posenc/Reference/Compare.h"
#include "posenc/Reference/Ops.h"
#include "posenc/Target/JitLibrary.h"
#include "posenc/Target/KernelModule.h"
#include "posenc/runtime/Library.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "gtest/gtest.h"

namespace posenc::test {

/// The lowering of a module to machine code. On all routes but Direct, the
/// module is printed at an intermediate stage and parsed again.
enum class Route {
  Direct,     // without an intermediate stage
  Linalg,     // through posenc-to-linalg, an independent lowering
  Vector,     // printed at the vector stage
  LLVM,       // printed at the LLVM stage
  Vectors128, // as Vector, with 16-byte vectors
  Vectors512, // as Vector, with 64-byte vectors
  BF16Dots,   // as Vectors512, with bf16 dot products (VDPBF16PS)
  AMX,        // as Vectors512, with AMX
};
const char *getName(Route route);

/// How attention of bf16 multiplies.
enum class Products { F32, BF16Dots, AMX };

/// A module lowered in memory to a stage for this machine. Failures are test
/// failures.
class LoweredModule {
public:
  /// `vectorBytes` of 0 means the machine's. At Stage::Posenc the module is as
  /// it has been parsed.
  LoweredModule(const std::string &text, mlir::posenc::Stage stage,
                unsigned vectorBytes = 0, Products products = Products::F32);

  /// Null after a failure.
  mlir::OwningOpRef<mlir::ModuleOp> clone() const;

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// A module compiled in memory. Failures are test failures. The first test of
/// each suite and every twelfth, chosen by its name, run optimized code; the
/// others, and those of seeded faults, run what LLVM generates at OptLevel::O0,
/// which has the same bits and is compiled in a third of the time.
class Kernel {
public:
  /// Compiles `module` for this machine or, if `gpus` names any, for GPUs
  /// alone. Within a test, the same text and route are compiled once.
  explicit Kernel(const std::string &module, Route route = Route::Direct,
                  const mlir::posenc::GpuTargets &gpus = {});
  /// Compiles a module at any stage for this machine. The module's context must
  /// outlive the kernel. A null module is a test failure.
  explicit Kernel(mlir::OwningOpRef<mlir::ModuleOp> module);

  /// Calls `function` and returns its results in new arrays; empty after a
  /// failure.
  std::vector<runtime::Array>
  call(const std::string &function,
       const std::vector<posenc_value> &inputs) const;

  const runtime::Library &getLibrary() const { return code->library; }

private:
  struct Code {
    std::unique_ptr<mlir::posenc::JitLibrary> jit;
    /// Null after a failure.
    runtime::Library library;
  };
  static std::shared_ptr<const Code>
  compile(mlir::OwningOpRef<mlir::ModuleOp> module,
          const mlir::posenc::GpuTargets &gpus);

  std::shared_ptr<const Code> code;
};

/// Returns the frequencies of an attribute with these fields. `axes` is the
/// text of the attribute of the position axes, or empty.
reference::FrequencySpec getFrequencies(const std::string &fields,
                                        const std::string &axes = "");

/// Returns the reference implementation's type for `dtype`; f32 for any other.
reference::DType getReferenceType(posenc_dtype dtype);

/// Draws standard normal numbers and rounds them to the type. The same seed
/// gives the same numbers.
runtime::Array makeRandom(posenc_dtype dtype, std::vector<int64_t> shape,
                          uint64_t seed);

/// Makes an array of i64, i32 or index from positions.
runtime::Array makePositions(posenc_dtype dtype, std::vector<int64_t> shape,
                             const std::vector<int64_t> &values);

/// Returns `count` positions within +-2^31: small ones, negative ones, some at
/// the ends of that range, and others of all magnitudes between.
std::vector<int64_t> hardPositions(int64_t count);

reference::Array toReference(const runtime::Array &array);

/// Compares a result with the expected one and returns the error. It is a test
/// failure if the error exceeds `reference::defaultLimitUlp`.
reference::Comparison expectClose(const runtime::Array &result,
                                  const reference::Array &expected,
                                  reference::ResultKind kind,
                                  bool withAttention = false);

} // namespace posenc::test

#endif // POSENC_TEST_NUMERICS_HARNESS_H
