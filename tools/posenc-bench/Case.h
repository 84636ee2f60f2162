//===- Case.h - a case to measure -------------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_CASE_H
#define POSENC_TOOLS_BENCH_CASE_H

#include "posenc/Driver/Input.h"
#include "posenc/runtime/types.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// An input that the tool generates.
struct CaseInput {
  enum Values {
    Random,
    Iota,      ///< 0, 1, 2, ... along the last dimension
    Shuffled,  ///< a permutation of the numbers of Iota
    Grid,      ///< row r has i >> r, like the coordinates in an image
    Constant,  ///< every element is `constant`
    CuSeqlens, ///< evenly spaced from 0 to `constant`
    BlockTable ///< 0 to `constant` - 1, repeated
  };
  posenc_dtype dtype = POSENC_F32;
  std::vector<int64_t> shape;
  Values values = Random;
  int64_t constant = 0;
  /// The value of a scalar argument; nullopt for arrays.
  std::optional<int64_t> scalar = std::nullopt;
};

/// The limit that the speed of a kernel is compared with.
enum class LimitKind {
  Auto,    ///< Fma for attention and matrix products, Read for decode; else for
           ///< each output InPlace, Copy or, without an input to copy, Memset
  InPlace, ///< reads and writes the outputs in place
  Copy,    ///< copies an input to each output
  Memset,  ///< writes zeros to the outputs
  Read,    ///< reads the inputs
  Fma      ///< peak rate of FMAs in registers
};

/// A function of a module, a config.json or a library, its inputs, and how to
/// measure it.
struct Case {
  /// family/variant/dtype/shape
  std::string name;
  /// The text of a module or, if that is empty, the path of a file.
  std::string module, path;
  std::string function;
  /// --target of posenc-compile; empty means the host.
  std::string target;
  /// Path of a tuning file for --tuning; empty if there is none.
  std::string tuning;
  InputOptions inputOptions;
  /// The inputs, as descriptions or in the syntax of --input. At most one list
  /// is not empty.
  std::vector<CaseInput> inputs;
  std::vector<std::string> inputTexts;
  /// If there are no inputs: the approximate size of the outputs that inputs
  /// are chosen for; 0 means larger than the caches.
  int64_t outputBytes = 0;
  /// Head counts of the tensors if they are strided views of the first input, a
  /// buffer [token, head, dim]; the second input is the positions. Empty if
  /// each tensor has memory of its own.
  std::vector<int64_t> viewHeads;
  /// Whether results overwrite arguments where the library allows it.
  bool inPlace = true;
  LimitKind limit = LimitKind::Auto;
  /// The name of the case of plain attention that this attention's time per
  /// tile is compared with; empty if there is none.
  std::string plain;
  /// Thread counts to measure.
  std::vector<int> threads = {1};
  /// Path to copy the compiled library to; empty to discard it.
  std::string keptLibrary;
  /// Path of a library with the same function to compare with; empty if there
  /// is none. The file need not exist.
  std::string baselineLibrary;
};

/// Formats the shapes of a case's tensors: "1x16x32+8x128" if they differ in
/// one dimension, else joined by "+". Equal shapes are printed once or, with
/// `areHeads`, as "1x16x32+32x128": the second-to-last dimension is the heads.
std::string formatShapes(const std::vector<std::vector<int64_t>> &shapes,
                         bool areHeads);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_CASE_H
