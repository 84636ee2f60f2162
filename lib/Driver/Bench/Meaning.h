//===- Meaning.h - what a function computes ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_MEANING_H
#define POSENC_LIB_DRIVER_BENCH_MEANING_H

#include "posenc/Driver/Input.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// An attention whose tensors are arguments of the function: their numbers, and
/// what tells which query sees which key.
struct AttentionMeaning {
  size_t query = 0, key = 0, value = 0;
  std::optional<size_t> lengths, blockTable;
  /// Where queries and, in a second list, keys of sequences start.
  std::vector<size_t> starts;
  unsigned queryHeadDim = 0, queryTokenDim = 0, keyTokenDim = 0;
  /// One query of each sequence, against a cache.
  bool isDecode = false;
  bool isCausal = false;
  std::optional<int64_t> windowLeft, windowRight;
};

/// What only the source of a function tells.
struct Meaning {
  struct Result {
    /// The lanes that change in place, if not all.
    int64_t windowOffset = 0;
    std::optional<int64_t> windowSize;
    /// Of each of these lanes.
    double flops = 0;
    /// A product of matrices sums along this dimension of this input.
    std::optional<std::pair<size_t, unsigned>> reduction;
  };
  /// `rope` and `half`, for the name. Of a function that does something else,
  /// its name and `kernel`.
  std::string family, variant;
  std::vector<Result> results;
  std::optional<AttentionMeaning> attention;
  /// Whether all elements of all tensors are read: linalg on whole tensors.
  bool readsAll = false;
};

class AttentionOp;

/// Sets the names, and the attention if its tensors are arguments.
void readAttention(AttentionOp op, Meaning &meaning);

/// A public function of a module or a config.
struct SourceFunction {
  std::string name;
  Meaning meaning;
};

/// Reads the functions, which options.kernels may restrict. Nothing after an
/// error, which is printed.
std::optional<std::vector<SourceFunction>>
readSource(StringRef path, const InputOptions &options);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_MEANING_H
