//===- Calls.cpp - calls of the forms of attention ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Calls.h"

#include "Device.h"
#include "Signature.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

using namespace posenc;
using namespace posenc::hardware;
using runtime::Array;

std::vector<FormCall> hardware::readCalls(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw Failure("cannot read " + path);
  const std::string inputs = "// INPUTS: ", function = "func.func @";
  std::vector<FormCall> calls;
  size_t numNamed = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, inputs.size(), inputs) == 0) {
      std::istringstream words(line.substr(inputs.size()));
      calls.emplace_back();
      for (std::string word; words >> word;)
        calls.back().inputs.push_back(word);
    } else if (line.compare(0, function.size(), function) == 0) {
      size_t end = line.find('(');
      for (; numNamed < calls.size(); ++numNamed)
        calls[numNamed].function =
            line.substr(function.size(), end - function.size());
    }
  }
  if (calls.empty())
    throw Failure(path + ": expected lines '// INPUTS: ...'");
  return calls;
}

Array hardware::allocate(posenc_dtype dtype, std::vector<int64_t> shape) {
  Array array;
  std::string error;
  if (!Array::allocate(dtype, std::move(shape), array, error))
    throw Failure(error);
  return array;
}

/// Splits `text` at each `separator`.
static std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

static int64_t parseNumber(const std::string &text) {
  char *end;
  int64_t number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end)
    throw Failure("expected a number, found '" + text + "'");
  return number;
}

/// Stores an integer, or a number of f32, as element `index`.
static void store(const Array &array, int64_t index, double value) {
  switch (array.dtype()) {
  case POSENC_F32:
    array.dataAs<float>()[index] = float(value);
    break;
  case POSENC_F16:
  case POSENC_BF16:
    if (value != 0)
      throw Failure("a 16-bit type has no value but 0");
    break;
  case POSENC_I32:
    array.dataAs<int32_t>()[index] = int32_t(value);
    break;
  case POSENC_I64:
  case POSENC_INDEX:
    array.dataAs<int64_t>()[index] = int64_t(value);
    break;
  default:
    throw Failure("the element type has no values as text");
  }
}

static Array makeList(posenc_dtype dtype, const std::string &text) {
  size_t begin = text.find('[');
  std::vector<std::string> items =
      split(text.substr(begin + 1, text.find(']') - begin - 1), ',');
  Array array = allocate(dtype, {int64_t(items.size())});
  for (size_t i = 0; i < items.size(); ++i)
    store(array, i, double(parseNumber(items[i])));
  return array;
}

static Array makeTensor(posenc_dtype dtype, const std::string &text,
                        uint64_t seed) {
  size_t equals = text.find('=');
  std::vector<std::string> parts = split(text.substr(0, equals), 'x');
  parts.pop_back(); // the element type
  std::vector<int64_t> shape;
  for (const std::string &part : parts)
    shape.push_back(parseNumber(part));
  Array array = allocate(dtype, std::move(shape));
  int64_t count = array.numElements();
  if (equals == std::string::npos) {
    fillNormal(array.data(), dtype, count, seed);
    return array;
  }
  std::string value = text.substr(equals + 1);
  int64_t step = value.compare(0, 5, "iota/") == 0
                     ? parseNumber(value.substr(5))
                     : value == "iota";
  for (int64_t i = 0; i < count; ++i)
    store(array, i,
          step ? double(i / step) : std::strtod(value.c_str(), nullptr));
  return array;
}

CallInputs hardware::makeInputs(const posenc_function &function,
                                const FormCall &call) {
  if (call.inputs.size() != function.inputs.size())
    throw Failure("the call has " + std::to_string(call.inputs.size()) +
                  " inputs, the function " +
                  std::to_string(function.inputs.size()));
  CallInputs result;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const std::string &text = call.inputs[i];
    const posenc_argument &argument = function.inputs[i];
    if (argument.kind == POSENC_SCALAR) {
      result.values.push_back(runtime::scalar(parseNumber(text)));
      continue;
    }
    result.arrays.push_back(text.find('[') != std::string::npos
                                ? makeList(argument.dtype, text)
                                : makeTensor(argument.dtype, text, i + 1));
    result.values.push_back(result.arrays.back().value());
  }
  return result;
}

std::vector<Array> hardware::run(const runtime::Function &function, int device,
                                 const std::vector<posenc_value> &inputs,
                                 int pattern) {
  std::string error;
  std::vector<Array> results;
  std::vector<posenc_value> outputs;
  for (size_t i = 0; i < function.numOutputs(); ++i) {
    std::vector<int64_t> shape;
    if (!function.outputShape(inputs, i, shape, error))
      throw Failure(error);
    results.push_back(allocate(function.output(i).dtype(), std::move(shape)));
    if (size_t size = results.back().sizeInBytes())
      std::memset(results.back().data(), pattern, size);
    outputs.push_back(results.back().value());
  }
  if (device < 0 ? !function.call(inputs, outputs, error)
                 : !function.callOnCuda(device, inputs, outputs, error))
    throw Failure((device < 0 ? "on the CPU: " : "on the GPU: ") + error);
  return results;
}
