//===- BenchKernel.h - a function bound to benchmark inputs -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_BENCHKERNEL_H
#define POSENC_TOOLS_BENCH_BENCHKERNEL_H

#include "CaseLibrary.h"
#include "TensorViews.h"
#include "posenc-bench/Limit.h"
#include "posenc-run/Inputs.h"

#include <memory>

namespace mlir::posenc {

/// A function of a kernel library bound to the memory of its arguments, which
/// this object owns. It is called as a C or C++ program calls it: through its C
/// entry point, or through the entry point for DLPack tensors if the case has
/// strided views.
class BenchKernel {
public:
  /// Compiles or opens the case's library and makes its arguments. Returns null
  /// after an error, which is printed.
  static std::unique_ptr<BenchKernel> create(const Case &from);

  /// An entry point of a library and the arguments of a call.
  struct Call {
    void *entryPoint = nullptr;
    /// Pointers and integers, in the order of the entry point's parameters.
    std::vector<int64_t> words;
    /// Floating-point scalars; empty if the function has none.
    std::vector<double> reals;
    /// Scratch memory; empty if the entry point takes none.
    ::posenc::runtime::Array workspace;
  };
  /// Binds another library's code for the same function to the memory of this
  /// kernel, which must outlive the call. Returns an error if the signatures
  /// differ.
  llvm::Expected<Call> bind(const CaseLibrary &other) const;

  struct Verification {
    /// Whether all runs wrote the same bits.
    bool isStable;
    /// A hash of the written memory.
    uint64_t hash;
  };
  /// Runs the kernel once through the runtime, and on 1, 2, 3, 5 and again 1
  /// threads through its entry point. Inputs that it overwrites are restored.
  /// Returns an error if a call fails.
  llvm::Expected<Verification> verify() const;
  /// Verifies a call that bind() has returned, without the run through the
  /// runtime.
  llvm::Expected<Verification> verify(const Call &code) const;

  /// Calls the function and returns its status.
  int32_t call() const;
  /// Returns the seconds that `calls` calls take.
  double measure(int64_t calls) const { return measure(calls, own); }
  /// Measures a call that bind() has returned.
  static double measure(int64_t calls, const Call &code);

  /// Returns the steps of the limit: the minimum work of any implementation on
  /// the memory of this kernel. Returns an error if `kind` does not apply or no
  /// work is left.
  llvm::Expected<std::vector<StreamStep>> getSteps(LimitKind kind) const;
  /// Returns the bytes that a call reads and writes, without positions. For
  /// attention, only keys and values count.
  int64_t getBytes() const;
  /// Returns the floating-point operations of a call, as far as they are known.
  double getFlops() const;
  /// Returns the number of tiles of an attention (AttentionWork.h), else 0.
  double getTiles() const;

  /// Whether all outputs overwrite inputs.
  bool isInPlace() const;
  const FunctionInfo &getInfo() const { return code.info; }
  ::posenc::runtime::Function getFunction() const { return code.function; }
  llvm::ArrayRef<std::vector<int64_t>> getOutputShapes() const {
    return outputShapes;
  }
  /// Returns the shapes for the case's name: of the results, of queries and
  /// keys for attention, or of the KV cache for decode.
  std::vector<std::vector<int64_t>> getNamedShapes() const;

private:
  /// Memory that a call writes.
  struct Written {
    const ::posenc::runtime::Array *array;
    /// Whether the kernel also reads the previous contents.
    bool inPlace;
    /// The bytes of the array that the kernel touches.
    ByteRows region;
    /// Out of place: the input of the same form that the result is computed
    /// from, if there is one.
    std::optional<ByteRows> source;
  };
  /// The bytes of an input from `begin` on.
  struct InputTail {
    size_t input;
    int64_t begin;
  };

  explicit BenchKernel(CaseLibrary code) : code(std::move(code)) {}
  llvm::Error makeInputs(const Case &from);
  llvm::Error makeOutputs(bool wantsInPlace);
  /// For a function that reads all of its inputs: gives each output that cannot
  /// overwrite an input a source of at least its size, and collects the
  /// remaining bytes of the inputs in `tails`.
  void findSources(llvm::ArrayRef<std::optional<size_t>> counterparts);
  llvm::Error makeViews(llvm::ArrayRef<int64_t> heads);
  llvm::Error checkSignature(const CaseLibrary &other) const;
  llvm::Error makeWorkspace(const CaseLibrary &library, size_t numSizes,
                            Call &call) const;
  llvm::Error checkCall() const;
  ByteRows getRegion(size_t output, bool inPlace) const;
  llvm::Expected<std::vector<StreamStep>> getWriteSteps(LimitKind kind) const;
  std::vector<StreamStep> getReadSteps() const;
  StreamStep createReadStep(const InputTail &tail) const;

  CaseLibrary code;
  std::vector<Input> inputs;
  /// In the order of the function's outputs; without data for outputs in place.
  std::vector<::posenc::runtime::Array> outputs;
  std::vector<std::vector<int64_t>> outputShapes;
  TensorViews views;
  /// Arguments of the entry point for DLPack tensors; empty where the C entry
  /// point is called.
  std::vector<int64_t> tensorWords;
  std::vector<Written> written;
  /// Bytes of inputs that are read in addition to the sources of outputs.
  std::vector<InputTail> tails;
  /// The maximum number of threads of a call.
  int threads = 1;
  /// This kernel's own code.
  Call own;
};

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_BENCHKERNEL_H
