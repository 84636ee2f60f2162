//===- SizePrograms.h - random modules and what sizes they take -*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A random function of tensor operations, and a model of it that shares no code
// with the compiler: for any sizes it says whether the function takes them, and
// computes the result.
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

/// What an input is. `shape` and `scalar` are the values that the function was
/// made for, and which it takes.
struct SizeInput {
  enum class Kind { Floats, Positions, Lengths, Scalar } kind = Kind::Floats;
  std::vector<int64_t> shape;
  std::vector<bool> isDynamic;
  int64_t scalar = 0;
};

/// The values of a call: each input is a tensor or a scalar.
struct ModelCall {
  std::vector<ModelTensor> inputs;
  std::vector<int64_t> scalars;      // by input
  std::vector<ModelTensor> computed; // the last is the result
};

struct SizeProgram {
  std::string text; // a module with the function @f
  std::vector<SizeInput> inputs;
  /// Each appends a value. False if the sizes do not fit.
  std::vector<std::function<bool(ModelCall &)>> steps;

  /// Runs the model. False if the sizes do not fit.
  bool run(ModelCall &call) const;
};

SizeProgram makeSizeProgram(Random &random);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_SIZEPROGRAMS_H
