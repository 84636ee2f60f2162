//===- FunctionInfo.h - what a function computes ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_FUNCTIONINFO_H
#define POSENC_TOOLS_BENCH_FUNCTIONINFO_H

#include "posenc/Driver/Input.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// An attention whose tensors are arguments of the function. Tensors are given
/// by their argument numbers.
struct AttentionInfo {
  size_t query = 0, key = 0, value = 0;
  std::optional<size_t> lengths, blockTable;
  /// The cu_seqlens of ragged queries and, if keys are ragged, too, of keys;
  /// empty for batched tensors.
  std::vector<size_t> cuSeqlens;
  /// Dimensions of the tensors.
  unsigned queryHeadDim = 0, queryTokenDim = 0, keyTokenDim = 0;
  /// One query per sequence against a KV cache.
  bool isDecode = false;
  bool isCausal = false;
  std::optional<int64_t> windowLeft, windowRight;
};

/// A description of what a function computes. It comes from the function's
/// source; the metadata of a library does not have it.
struct FunctionInfo {
  struct Result {
    /// The channels of each row that are rotated; all if windowSize is nullopt.
    int64_t windowOffset = 0;
    std::optional<int64_t> windowSize;
    /// Floating-point operations per rotated element.
    double flops = 0;
    /// For matrix products: an input and its dimension that is summed over.
    std::optional<std::pair<size_t, unsigned>> reduction;
  };
  /// The first two words of the case's name: `rope` and `half`, for example.
  /// For functions that are not recognized, the function's name and `kernel`.
  std::string family, variant;
  /// In the order of the function's results.
  std::vector<Result> results;
  std::optional<AttentionInfo> attention;
  /// Whether the function reads all elements of all inputs: linalg on whole
  /// tensors.
  bool readsAll = false;
  /// The kernels of the function that have tuning parameters of their own, by
  /// the first word of these parameters' names: `attention` (prefill),
  /// `decode`, `product`.
  std::vector<std::string> tunedKernels;
};

class AttentionOp;

/// Sets family and variant, and the attention if its tensors are arguments of
/// the function.
void readAttentionInfo(AttentionOp op, FunctionInfo &info);

/// A public function of a module or a config.
struct SourceFunction {
  std::string name;
  FunctionInfo info;
};

/// Returns the public functions of a module or config.json, or those in
/// options.kernels if that is not empty. Returns nullopt after an error, which
/// is printed.
std::optional<std::vector<SourceFunction>>
readSource(StringRef path, const InputOptions &options);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_FUNCTIONINFO_H
