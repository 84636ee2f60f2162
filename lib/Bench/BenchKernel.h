//===- BenchKernel.h - a compiled function and its arguments ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_BENCH_BENCHKERNEL_H
#define POSENC_LIB_BENCH_BENCHKERNEL_H

#include "Case.h"
#include "Meaning.h"
#include "posenc/Bench/Limit.h"
#include "posenc/Run/Inputs.h"

#include <memory>

namespace mlir::posenc {

/// A function of a kernel library, bound to memory, and called as a C or C++
/// program calls it: through its plain C entry, with OpenMP's threads.
class BenchKernel {
public:
  /// Compiles the case's module with posenc-compile, or opens its library, and
  /// makes the arguments. Null after an error, which is printed.
  static std::unique_ptr<BenchKernel> create(const Case &from);

  /// Whether every run of 1, 2, 3, 5 and again 1 threads writes the same bits;
  /// these as a hash. An error where the kernel fails.
  struct Verification {
    bool isStable;
    uint64_t hash;
  };
  llvm::Expected<Verification> verify();

  /// Calls the function and returns its status.
  int32_t call() const;
  /// The seconds of this many calls.
  double measure(int64_t calls) const;

  /// The least that any kernel has to do with the memory of this one.
  llvm::Expected<std::vector<StreamStep>> getSteps(LimitKind kind) const;
  /// Bytes that the kernel reads and writes, but for its positions.
  int64_t getBytes() const;
  double getFlops() const;

  /// Whether all outputs are written over inputs.
  bool isInPlace() const;
  const Meaning &getMeaning() const { return meaning; }
  ::posenc::runtime::Function getFunction() const { return function; }
  llvm::ArrayRef<std::vector<int64_t>> getOutputShapes() const {
    return outputShapes;
  }

private:
  BenchKernel() = default;
  bool load(const Case &from);
  bool compile(const Case &from, StringRef folder, std::string &library);
  llvm::Error makeInputs(const Case &from);
  llvm::Error makeOutputs(bool wantsInPlace);
  void makeWords();
  /// The steps of LimitKind::Auto.
  std::vector<StreamStep> getOwnSteps() const;
  const ::posenc::runtime::Array &getOutput(size_t number) const {
    return inPlace[number] ? inputs[*inPlace[number]].array : outputs[number];
  }
  Region getRegion(size_t number) const;

  /// Of a compiled library nothing is known.
  Meaning meaning;
  ::posenc::runtime::Library library;
  ::posenc::runtime::Function function;
  std::vector<Input> inputs;
  /// Empty where the output is in place.
  std::vector<::posenc::runtime::Array> outputs;
  std::vector<std::vector<int64_t>> outputShapes;
  /// The input of the same type and shape that an output may be: where it is
  /// written, if in place, and what it is compared with.
  std::vector<std::optional<size_t>> inPlace, counterparts;
  /// What the C entry takes.
  std::vector<int64_t> words;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_BENCH_BENCHKERNEL_H
