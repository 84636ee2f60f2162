//===- Case.h - what to measure ---------------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_CASE_H
#define POSENC_LIB_DRIVER_BENCH_CASE_H

#include "posenc/Driver/Input.h"
#include "posenc/runtime/types.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// An argument that the tool makes.
struct CaseInput {
  enum Values {
    Random,
    Iota,     ///< along the last dimension
    Shuffled, ///< the same numbers in random order
    Grid,     ///< a half, a quarter ... of them in each row, as in an image
    Constant, ///< always `constant`
    Starts,   ///< from 0 to `constant`, evenly spaced, as cu_seqlens
    Blocks    ///< 0 to `constant` - 1, over and over, as a block table
  };
  posenc_dtype dtype = POSENC_F32;
  std::vector<int64_t> shape;
  Values values = Random;
  int64_t constant = 0;
  /// An integer by value, not an array.
  std::optional<int64_t> scalar = std::nullopt;
};

/// What the time of a kernel is compared with.
enum class LimitKind {
  Auto, ///< what each output needs: in place, copy, or memset; of attention
        ///< the products and sums, or reads if it has one query
  InPlace,
  Copy,
  Memset,
  Read,
  Fma
};

/// A function of a module, config or library, and its arguments.
struct Case {
  /// family/variant/dtype/shape
  std::string name;
  /// The text of a module or, where that is empty, the path of an input.
  std::string module, path;
  std::string function;
  /// As posenc-compile takes it; empty is this machine.
  std::string target;
  /// A file of posenc-tune, if not empty.
  std::string tuning;
  InputOptions inputOptions;
  /// Either of them.
  std::vector<CaseInput> inputs;
  std::vector<std::string> inputTexts;
  /// If neither: about how many bytes the outputs have; 0 is so many that they
  /// go through memory.
  int64_t outputBytes = 0;
  /// Where not empty, the tensors are parts, of so many heads each, of the
  /// first input, a buffer [token, head, dim]; the second one is the positions.
  std::vector<int64_t> viewHeads;
  bool inPlace = true;
  LimitKind limit = LimitKind::Auto;
  /// The name of the case whose time a tile of this attention's is compared
  /// with, if not empty.
  std::string plain;
  std::vector<int> threads = {1};
  /// Where to keep the library that is compiled, if not empty.
  std::string keptLibrary;
  /// A library of the same function to compare with, if not empty. The file
  /// need not exist.
  std::string baselineLibrary;
};

/// One text for several shapes: "1x16x32+8x128" where they differ in one
/// dimension. Equal shapes stand there once or, with `areHeads`, as
/// "1x16x32+32x128".
std::string formatShapes(const std::vector<std::vector<int64_t>> &shapes,
                         bool areHeads);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_CASE_H
