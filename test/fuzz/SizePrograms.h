//===- SizePrograms.h - random functions and their models -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A random function of tensor ops, and a model of it that shares no code with
// the compiler. For any sizes, the model says whether they are valid and, if
// so, computes the result.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_SIZEPROGRAMS_H
#define POSENC_TEST_FUZZ_SIZEPROGRAMS_H

#include "Mutator.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace posenc::fuzz {

struct ModelTensor {
  std::vector<int64_t> shape;
  std::vector<double> data;
};

/// An input of the function. `shape` and `scalar` are valid values, those of
/// the call that the function is built for. An element is the scalar of a
/// tensor that has no other.
struct SizeInput {
  enum class Kind {
    Floats,
    Positions,
    Lengths,
    Scalar,
    Element
  } kind = Kind::Floats;
  std::vector<int64_t> shape;
  std::vector<bool> isDynamic;
  int64_t scalar = 0;

  /// Whether the call's scalar is the input's value.
  bool hasScalar() const {
    return kind == Kind::Scalar || kind == Kind::Element;
  }
};

/// The values of a call. Each input has a tensor and a scalar, one of them
/// unused except by elements.
struct ModelCall {
  std::vector<ModelTensor> inputs;
  std::vector<int64_t> scalars;      // by input
  std::vector<ModelTensor> computed; // the last is the result
};

struct SizeProgram {
  std::string text; // a module with the function @f
  std::vector<SizeInput> inputs;
  /// The model of each op: appends its result to `computed`, or returns false
  /// if the sizes are invalid.
  std::vector<std::function<bool(ModelCall &)>> steps;

  /// Runs the model. Returns false if the sizes are invalid.
  bool run(ModelCall &call) const;
};

/// Builds a random function.
SizeProgram makeSizeProgram(Random &random);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_SIZEPROGRAMS_H
