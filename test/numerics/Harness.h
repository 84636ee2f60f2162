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
};
const char *getName(Route route);

/// Lowers a module to a stage for this machine and prints it. A `vectorBytes`
/// of 0 means the machine's vector width; `hasBF16Dots` is the field of
/// TargetSpec. Returns an empty string after a failure, which is a test
/// failure.
std::string lowerToText(const std::string &module, mlir::posenc::Stage stage,
                        unsigned vectorBytes, bool hasBF16Dots = false);

/// A module compiled in memory, with its own context. Failures are test
/// failures.
class Kernel {
public:
  /// Compiles `module` for this machine and, if `gpus` names any, for GPUs.
  explicit Kernel(const std::string &module, Route route = Route::Direct,
                  const mlir::posenc::GpuTargets &gpus = {});

  /// Calls `function` and returns its results in new arrays; empty after a
  /// failure.
  std::vector<runtime::Array>
  call(const std::string &function,
       const std::vector<posenc_value> &inputs) const;

  const runtime::Library &getLibrary() const { return library; }

private:
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<mlir::posenc::JitLibrary> jit;
  runtime::Library library;
};

/// A seeded fault: a change of a kernel's source or of the code generated for
/// it, which the checks must detect. An empty `from` is the control without a
/// change. In `from`, `%*` matches any SSA value, `%dim*` one whose name begins
/// with `dim`, and a space matches any white space. In `to`, `$0` is the name
/// that the first `*` matched, `$1` the second, and so on.
struct Fault {
  const char *name;
  const char *from, *to;
};
void PrintTo(const Fault &fault, std::ostream *os);
std::string getFaultName(const testing::TestParamInfo<Fault> &info);

/// Applies the fault at every match, because a call runs only one of several
/// versions of a loop. It is a test failure if nothing matches.
std::string replace(std::string text, const Fault &fault);

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
