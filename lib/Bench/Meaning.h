//===- Meaning.h - what a function computes ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_BENCH_MEANING_H
#define POSENC_LIB_BENCH_MEANING_H

#include "posenc/Tools/Input.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// What only the source of a function tells.
struct Meaning {
  struct Result {
    /// The lanes that change in place, if not all.
    int64_t windowOffset = 0;
    std::optional<int64_t> windowSize;
    /// Of each of these lanes.
    double flops = 0;
  };
  /// `rope` and `half`, for the name. Of a function that does something else,
  /// its name and `kernel`.
  std::string family, variant;
  std::vector<Result> results;
};

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

#endif // POSENC_LIB_BENCH_MEANING_H
