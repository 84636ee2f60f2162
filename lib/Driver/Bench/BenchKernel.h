//===- BenchKernel.h - a compiled function and its arguments ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_BENCHKERNEL_H
#define POSENC_LIB_DRIVER_BENCH_BENCHKERNEL_H

#include "CaseLibrary.h"
#include "TensorViews.h"
#include "posenc/Driver/Bench/Limit.h"
#include "posenc/Driver/Run/Inputs.h"

#include <memory>

namespace mlir::posenc {

/// A function of a kernel library, bound to memory, and called as a C or C++
/// program calls it: through its C entry point.
class BenchKernel {
public:
  /// Null after an error, which is printed.
  static std::unique_ptr<BenchKernel> create(const Case &from);

  /// One library's entry point for the function, and the words that it takes.
  struct Call {
    void *entry = nullptr;
    std::vector<int64_t> words;
    /// Those that are floating-point numbers; empty if there are none.
    std::vector<double> reals;
    /// Scratch memory for entry points that take some.
    ::posenc::runtime::Array workspace;
  };
  /// Binds another library's code for the same function to the memory of this
  /// kernel. An error where that code takes other arguments.
  llvm::Expected<Call> bind(const CaseLibrary &other) const;

  /// Whether runs on 1, 2, 3, 5 and again 1 threads write the same bits; these
  /// as a hash. An error where the kernel fails. The memory is left as it was.
  struct Verification {
    bool isStable;
    uint64_t hash;
  };
  llvm::Expected<Verification> verify() const;
  /// The same of other code, which is not called through the runtime.
  llvm::Expected<Verification> verify(const Call &code) const;

  /// Calls the function and returns its status.
  int32_t call() const;
  /// The seconds of this many calls.
  double measure(int64_t calls) const { return measure(calls, own); }
  /// The same of other code, which bind() has returned.
  static double measure(int64_t calls, const Call &code);

  /// The least that any kernel has to do with the memory of this one.
  llvm::Expected<std::vector<StreamStep>> getSteps(LimitKind kind) const;
  /// Bytes that the kernel reads and writes, but for its positions; of
  /// attention, those of its keys and values.
  int64_t getBytes() const;
  double getFlops() const;
  /// Visited tiles of an attention, 0 of others.
  double getTiles() const;

  /// Whether all outputs are written over inputs.
  bool isInPlace() const;
  const Meaning &getMeaning() const { return code.meaning; }
  ::posenc::runtime::Function getFunction() const { return code.function; }
  llvm::ArrayRef<std::vector<int64_t>> getOutputShapes() const {
    return outputShapes;
  }
  /// Those of the results; of attention, of queries and keys or of the cache.
  std::vector<std::vector<int64_t>> getNamedShapes() const;

private:
  /// Memory that a call writes.
  struct Written {
    const ::posenc::runtime::Array *array;
    /// What was there is read.
    bool inPlace;
    ByteRows region;
    /// If not in place: where the same is read.
    std::optional<ByteRows> source;
  };
  /// Part of an input: from this byte on.
  struct Rest {
    size_t input;
    int64_t begin;
  };

  explicit BenchKernel(CaseLibrary code) : code(std::move(code)) {}
  llvm::Error makeInputs(const Case &from);
  llvm::Error makeOutputs(bool wantsInPlace);
  /// Pairs the outputs of a function that reads all of its inputs with inputs
  /// of at least their size, and collects the rest of the inputs.
  void findSources(llvm::ArrayRef<std::optional<size_t>> counterparts);
  llvm::Error makeViews(llvm::ArrayRef<int64_t> heads);
  llvm::Error checkSignature(const CaseLibrary &other) const;
  llvm::Error makeWorkspace(const CaseLibrary &library, size_t numSizes,
                            Call &call) const;
  llvm::Error checkCall() const;
  ByteRows getRegion(size_t output, bool inPlace) const;
  llvm::Expected<std::vector<StreamStep>> getWriteSteps(LimitKind kind) const;
  std::vector<StreamStep> getReadSteps() const;
  StreamStep createReadStep(const Rest &rest) const;

  CaseLibrary code;
  std::vector<Input> inputs;
  /// Without data where the output is in place.
  std::vector<::posenc::runtime::Array> outputs;
  std::vector<std::vector<int64_t>> outputShapes;
  TensorViews views;
  /// Arguments of the entry point for DLPack tensors; empty where the C entry
  /// point is called.
  std::vector<int64_t> tensorWords;
  std::vector<Written> written;
  /// The parts of inputs that have no output beside them.
  std::vector<Rest> rests;
  /// The most threads that it is called on.
  int threads = 1;
  /// This kernel's own code.
  Call own;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_BENCHKERNEL_H
