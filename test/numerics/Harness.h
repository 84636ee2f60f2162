//===- Harness.h - compiling and running kernels in tests -------*- C++ -*-===//
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

/// Where the module has been printed and parsed again before it is compiled.
enum class Route {
  Direct,     // posenc to the machine
  Linalg,     // through posenc-to-linalg, which is another lowering
  Vector,     // printed at the vector stage
  LLVM,       // printed at the LLVM stage
  Vectors128, // with vectors of 16 bytes
  Vectors512, // with vectors of 64 bytes
  Dots,       // the same, and by products of pairs of bf16
};
const char *getName(Route route);

/// A module lowered to a stage for this machine and printed; `vectorBytes` of
/// 0 means the machine's, and `hasBF16Dots` what TargetSpec says. Empty after a
/// failure.
std::string lowerToText(const std::string &module, mlir::posenc::Stage stage,
                        unsigned vectorBytes, bool hasBF16Dots = false);

/// A module compiled in memory. Failures are test failures.
class Kernel {
public:
  /// For this machine, or else for GPUs.
  explicit Kernel(const std::string &module, Route route = Route::Direct,
                  const mlir::posenc::GpuTargets &gpus = {});

  /// Calls `function`; empty after a failure.
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

/// A change of a kernel's source, or of the code made from it, that a check
/// must see; none if `from` is empty. In `from`, `%*` stands for any value,
/// `%dim*` for one whose name begins so, and a space for any white space; in
/// `to`, `$0` is the name that the first of them had, and so on.
struct Fault {
  const char *name;
  const char *from, *to;
};
void PrintTo(const Fault &fault, std::ostream *os);
std::string getFaultName(const testing::TestParamInfo<Fault> &info);

/// Puts it in everywhere, as of the ways for small and large tensors only one
/// runs. That it is nowhere is a test failure.
std::string replace(std::string text, const Fault &fault);

/// f32, f16, ... in the spelling of the oracle.
reference::DType getReferenceType(posenc_dtype dtype);

/// Standard normal, rounded to the type; the same for the same seed.
runtime::Array makeRandom(posenc_dtype dtype, std::vector<int64_t> shape,
                          uint64_t seed);

/// Positions as an array of i64, i32 or index.
runtime::Array makePositions(posenc_dtype dtype, std::vector<int64_t> shape,
                             const std::vector<int64_t> &values);

/// `count` positions: small ones, negative ones, the ends of 32 bits, and
/// those between. Never beyond +-2^31.
std::vector<int64_t> hardPositions(int64_t count);

reference::Array toReference(const runtime::Array &array);

/// The error of a result, a test failure if it is beyond `limit`.
reference::Comparison expectClose(const runtime::Array &result,
                                  const reference::Array &expected,
                                  reference::ResultKind kind,
                                  bool withAttention = false);

} // namespace posenc::test

#endif // POSENC_TEST_NUMERICS_HARNESS_H
