//===- Decoder.cpp - a compiled decoder and its caches --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

using namespace posenc::runtime;

/// Allocates a cache of `numRows` rows: sequence, head, row, channel.
bool Decoder::addCache(Argument argument, std::string &error) {
  std::vector<int64_t> shape;
  for (int32_t dim = 0; dim < argument.rank(); ++dim)
    shape.push_back(argument.size(dim));
  if (shape[0] == POSENC_DYNAMIC)
    shape[0] = 1;
  if (shape[2] == POSENC_DYNAMIC)
    shape[2] = numRows;
  for (int64_t size : shape)
    if (size == POSENC_DYNAMIC) {
      error = "'" + argument.name() + "' has type " + argument.type() +
              ", expected a cache with a dynamic number of rows only";
      return false;
    }
  caches.emplace_back();
  if (!Array::allocate(argument.dtype(), shape, caches.back(), error))
    return false;
  rowBytes += static_cast<int64_t>(caches.back().sizeInBytes()) / shape[2];
  return true;
}

bool Decoder::open(const std::string &path, const char *weights, int64_t rows,
                   std::string &error) {
  library = Library::open(path, error, weights);
  if (!library)
    return false;
  function = library.function(0);
  if (library.numFunctions() != 1) {
    error = "'" + path + "' has several functions, expected that of a model";
    return false;
  }
  numRows = rows;
  for (size_t number = 0; number < function.numInputs(); ++number) {
    Argument input = function.input(number);
    bool isIndex = input.dtype() == POSENC_I64 && input.rank() == 2;
    if (isIndex && input.name() == "input_ids") {
      inputs.push_back(kIds);
    } else if (isIndex && input.name() == "attention_mask") {
      inputs.push_back(kMask);
    } else if (input.rank() == 4) {
      inputs.push_back(static_cast<int>(caches.size()));
      if (!addCache(input, error))
        return false;
    } else {
      error =
          "input '" + input.name() + "' of type " + input.type() +
          " is not supported: expected input_ids, attention_mask and caches";
      return false;
    }
  }
  int numPresent = 0;
  for (size_t number = 0; number < function.numOutputs(); ++number) {
    Argument output = function.output(number);
    if (output.rank() == 4) {
      outputs.push_back(numPresent++);
    } else if (output.rank() == 3 && output.dtype() == POSENC_F32 &&
               output.size(2) > 0 && vocabulary == 0) {
      outputs.push_back(kLogits);
      vocabulary = output.size(2);
    } else {
      error = "output '" + output.name() + "' of type " + output.type() +
              " is not supported: expected logits of f32 and caches";
      return false;
    }
  }
  if (vocabulary == 0 || numPresent != static_cast<int>(caches.size())) {
    error = "expected logits, and as many present caches as past ones";
    return false;
  }
  return true;
}

const float *Decoder::append(const std::vector<int64_t> &ids,
                             std::string &error) {
  auto count = static_cast<int64_t>(ids.size());
  if (count == 0 || count > numRows - numTokens) {
    error = "the caches have " + std::to_string(numRows) +
            " rows, too few for " + std::to_string(numTokens + count) +
            " tokens";
    return nullptr;
  }
  // All tokens of the one sequence are visible.
  mask.assign(numTokens + count, 1);
  logits.resize(count * vocabulary);
  const int64_t idsShape[] = {1, count}, maskShape[] = {1, numTokens + count},
                logitsShape[] = {1, count, vocabulary};
  std::vector<posenc_value> inputValues, outputValues;
  for (int input : inputs)
    if (input == kIds)
      inputValues.push_back(
          tensor({const_cast<int64_t *>(ids.data()), POSENC_I64, 2, idsShape}));
    else if (input == kMask)
      inputValues.push_back(tensor({mask.data(), POSENC_I64, 2, maskShape}));
    else
      inputValues.push_back(caches[input].value());
  for (int output : outputs)
    if (output == kLogits)
      outputValues.push_back(
          tensor({logits.data(), POSENC_F32, 3, logitsShape}));
    else // In place of the past cache.
      outputValues.push_back(caches[output].value());
  if (!function.call(inputValues, outputValues, error))
    return nullptr;
  numTokens += count;
  return logits.data() + (count - 1) * vocabulary;
}
