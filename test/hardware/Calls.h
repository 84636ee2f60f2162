//===- Calls.h - calls of the forms of attention ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_CALLS_H
#define POSENC_TEST_HARDWARE_CALLS_H

#include "Arguments.h"

#include <string>
#include <vector>

namespace posenc::hardware {

/// A call of a function, with its arguments as text: `2x5x64xbf16` for random
/// numbers, or `=0`, `=iota`, `=iota/2` behind that; `i64[1,2]` for a list;
/// `7` for a scalar.
struct FormCall {
  std::string function;
  std::vector<std::string> inputs;
};

/// Reads the calls of a module: the `// INPUTS:` lines before each function.
/// Throws Failure if there are none.
std::vector<FormCall> readCalls(const std::string &path);

/// The arguments of a call; the values refer to the arrays.
struct CallInputs {
  std::vector<runtime::Array> arrays;
  std::vector<posenc_value> values;
};

/// Makes the arguments of a call. Throws Failure for a malformed text.
CallInputs makeInputs(const posenc_function &function, const FormCall &call);

/// Throws Failure.
runtime::Array allocate(posenc_dtype dtype, std::vector<int64_t> shape);

/// Calls the function on the GPU, or on the CPU if `device` is negative.
/// `pattern` fills the results before. Throws Failure.
std::vector<runtime::Array> run(const runtime::Function &function, int device,
                                const std::vector<posenc_value> &inputs,
                                int pattern);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_CALLS_H
