//===- CaseInputs.cpp - the arguments of a case -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CaseInputs.h"

#include "posenc/Driver/Bench/Limit.h"
#include "posenc/Driver/Run/Fill.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

using namespace mlir::posenc;
namespace runtime = ::posenc::runtime;

static bool isInteger(posenc_dtype dtype) {
  return dtype == POSENC_I64 || dtype == POSENC_I32 || dtype == POSENC_INDEX;
}

/// Random numbers that repeat: to make as many as memory holds takes longer
/// than the measurement.
static llvm::Error fillRepeated(const runtime::Array &array, uint64_t seed) {
  constexpr size_t periodElements = 1 << 16;
  size_t count = std::min<size_t>(array.numElements(), periodElements);
  llvm::Expected<runtime::Array> period =
      allocateArray(array.dtype(), {static_cast<int64_t>(count)});
  if (!period)
    return period.takeError();
  if (llvm::Error error = fillRandom(*period, seed))
    return error;
  char *data = array.dataAs<char>();
  for (size_t done = 0, all = array.sizeInBytes(); done < all;) {
    size_t bytes = std::min(period->sizeInBytes(), all - done);
    std::memcpy(data + done, period->data(), bytes);
    done += bytes;
  }
  return llvm::Error::success();
}

/// Every row is this one, or its numbers halved once more than in the row
/// before.
static void storePositions(const runtime::Array &array,
                           const std::vector<int64_t> &row, bool isHalved) {
  for (size_t i = 0, count = array.numElements(); i < count; ++i) {
    int64_t value = row[i % row.size()] >> (isHalved ? i / row.size() : 0);
    if (array.dtype() == POSENC_I32)
      array.dataAs<int32_t>()[i] = static_cast<int32_t>(value);
    else
      array.dataAs<int64_t>()[i] = value;
  }
}

static llvm::Error fillArray(const runtime::Array &array,
                             const CaseInput &wanted, uint64_t seed) {
  CaseInput::Values values = wanted.values;
  if (values == CaseInput::Constant) {
    storePositions(array, {wanted.constant}, /*isHalved=*/false);
    return llvm::Error::success();
  }
  if (values == CaseInput::Random)
    return fillRepeated(array, seed);
  if (values == CaseInput::Starts || values == CaseInput::Blocks) {
    int64_t count = array.numElements();
    std::vector<int64_t> all(count);
    for (int64_t i = 0; i < count; ++i)
      all[i] = values == CaseInput::Starts
                   ? i * wanted.constant / std::max<int64_t>(count - 1, 1)
                   : i % std::max<int64_t>(wanted.constant, 1);
    if (count)
      storePositions(array, all, /*isHalved=*/false);
    return llvm::Error::success();
  }
  std::vector<int64_t> row(array.shape().empty() ? 1 : array.shape().back());
  for (size_t i = 0; i < row.size(); ++i)
    row[i] = static_cast<int64_t>(i);
  if (values == CaseInput::Shuffled) {
    std::mt19937_64 generator(seed);
    for (size_t i = row.size(); i > 1; --i)
      std::swap(row[i - 1], row[generator() % i]);
  }
  storePositions(array, row, values == CaseInput::Grid);
  return llvm::Error::success();
}

llvm::Expected<std::vector<Input>>
mlir::posenc::createCaseInputs(llvm::ArrayRef<CaseInput> inputs) {
  std::vector<Input> created;
  for (auto [number, wanted] : llvm::enumerate(inputs)) {
    Input input;
    input.isScalar = wanted.scalar.has_value();
    if (input.isScalar) {
      input.scalar = *wanted.scalar;
      input.real = static_cast<double>(*wanted.scalar);
      input.isReal = wanted.dtype == POSENC_F64 || wanted.dtype == POSENC_F32;
    } else {
      llvm::Expected<runtime::Array> array =
          allocateArray(wanted.dtype, wanted.shape);
      if (!array)
        return array.takeError();
      if (llvm::Error error = fillArray(*array, wanted, number))
        return std::move(error);
      input.array = std::move(*array);
    }
    created.push_back(std::move(input));
  }
  return created;
}

//===----------------------------------------------------------------------===//
// Defaults
//===----------------------------------------------------------------------===//

/// The arguments where each dynamic size has this value.
static std::vector<CaseInput>
getInputs(runtime::Function function,
          const std::map<std::string, int64_t> &sizes) {
  std::vector<CaseInput> inputs;
  for (size_t i = 0; i < function.numInputs(); ++i) {
    runtime::Argument argument = function.input(i);
    CaseInput input;
    input.dtype = argument.dtype();
    input.values = isInteger(input.dtype) ? CaseInput::Iota : CaseInput::Random;
    if (argument.isScalar())
      input.scalar = argument.isReal() ? 1 : sizes.at(argument.name());
    for (int32_t dim = 0; dim < argument.rank(); ++dim) {
      std::string name = argument.sizeName(dim);
      input.shape.push_back(name.empty() ? argument.size(dim) : sizes.at(name));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

/// The bytes of all outputs, or of the windows of them that change in place; 0
/// if they do not follow from the inputs.
static int64_t getOutputBytes(runtime::Function function,
                              const Meaning &meaning,
                              const std::vector<CaseInput> &inputs) {
  std::vector<posenc_value> values;
  for (const CaseInput &input : inputs) {
    if (input.scalar)
      values.push_back(runtime::scalar(*input.scalar));
    else
      values.push_back(runtime::tensor(
          {nullptr, input.dtype, static_cast<int32_t>(input.shape.size()),
           input.shape.data()}));
  }
  int64_t total = 0;
  for (size_t i = 0; i < function.numOutputs(); ++i) {
    std::vector<int64_t> shape;
    std::string error;
    if (!function.outputShape(values, i, shape, error))
      return 0;
    int64_t bytes =
        static_cast<int64_t>(posenc_dtype_size(function.output(i).dtype()));
    if (std::optional<int64_t> window = meaning.results[i].windowSize)
      shape.back() = *window;
    for (int64_t size : shape)
      bytes = llvm::SaturatingMultiply<uint64_t>(bytes, size) & INT64_MAX;
    total += bytes;
  }
  return total;
}

std::optional<AttentionMeaning>
mlir::posenc::guessAttention(runtime::Function function) {
  auto find = [&](std::initializer_list<llvm::StringRef> names) {
    for (size_t i = 0; i < function.numInputs(); ++i)
      if (llvm::is_contained(names, llvm::StringRef(function.input(i).name())))
        return std::optional<size_t>(i);
    return std::optional<size_t>();
  };
  std::optional<size_t> query = find({"q", "query"}),
                        key = find({"k", "key", "k_cache", "k_pages"}),
                        value = find({"v", "value", "v_cache", "v_pages"});
  if (!query || !key || !value)
    return std::nullopt;
  // The first dimension behind the batch that is dynamic, else that is 1.
  auto findTokenDim = [&](size_t number) -> unsigned {
    runtime::Argument argument = function.input(number);
    int32_t isBatched = argument.rank() > 3;
    for (int64_t size : {int64_t(POSENC_DYNAMIC), int64_t(1)})
      for (int32_t dim = isBatched; dim < argument.rank(); ++dim)
        if (argument.size(dim) == size)
          return dim;
    return isBatched;
  };
  AttentionMeaning guessed;
  guessed.query = *query;
  guessed.key = *key;
  guessed.value = *value;
  guessed.queryTokenDim = findTokenDim(*query);
  guessed.keyTokenDim = findTokenDim(*key);
  // Heads and tokens are the dimensions between the batch and the lanes.
  int32_t isBatched = function.input(*query).rank() > 3;
  guessed.queryHeadDim = 2 * isBatched + 1 - guessed.queryTokenDim;
  guessed.lengths = find({"lengths"});
  guessed.blockTable = find({"block_table"});
  if (std::optional<size_t> starts = find({"cu_seqlens"}))
    guessed.starts.push_back(*starts);
  guessed.isDecode = guessed.lengths && guessed.starts.empty() &&
                     function.input(*query).size(guessed.queryTokenDim) == 1;
  return guessed;
}

/// Chooses the dynamic numbers of queries and keys, where others are 1.
static std::vector<CaseInput>
getAttentionInputs(runtime::Function function, const AttentionMeaning &meaning,
                   std::map<std::string, int64_t> sizes) {
  constexpr int64_t tokens = 1024, mostBytes = int64_t(256) << 20;
  auto choose = [&](size_t argument, unsigned dim, int64_t size) {
    std::string name =
        function.input(argument).sizeName(static_cast<int32_t>(dim));
    if (!name.empty())
      sizes[name] = size;
  };
  int64_t keys = tokens;
  if (meaning.isDecode) {
    int64_t bytes = 0;
    for (size_t argument : {meaning.key, meaning.value}) {
      CaseInput input = getInputs(function, sizes)[argument];
      int64_t token = static_cast<int64_t>(posenc_dtype_size(input.dtype));
      input.shape[meaning.keyTokenDim] = 1;
      for (int64_t size : input.shape)
        token = llvm::SaturatingMultiply<uint64_t>(token, size) & INT64_MAX;
      bytes += token;
    }
    int64_t wanted = std::min(4 * getLastLevelCacheBytes(), mostBytes);
    keys = std::max<int64_t>(
        llvm::bit_floor(uint64_t(wanted / std::max<int64_t>(bytes, 1))), 1);
  }
  choose(meaning.query, meaning.queryTokenDim, tokens);
  choose(meaning.key, meaning.keyTokenDim, keys);
  // One sequence, and pages that no two blocks share.
  for (size_t starts : meaning.starts)
    choose(starts, 0, 2);
  if (meaning.blockTable) {
    constexpr int64_t slots = 16;
    choose(meaning.key, meaning.keyTokenDim, slots);
    int64_t ofPage =
        getInputs(function, sizes)[meaning.key].shape[meaning.keyTokenDim];
    int64_t blocks = llvm::divideCeil(keys, std::max<int64_t>(ofPage, 1));
    choose(*meaning.blockTable, 1, blocks);
    choose(meaning.key, 0, blocks);
  }
  std::vector<CaseInput> inputs = getInputs(function, sizes);
  int64_t capacity = inputs[meaning.key].shape[meaning.keyTokenDim];
  if (meaning.blockTable) {
    CaseInput &table = inputs[*meaning.blockTable];
    table.values = CaseInput::Blocks;
    table.constant = inputs[meaning.key].shape[0];
    capacity *= table.shape.back();
  }
  if (meaning.lengths) {
    inputs[*meaning.lengths].values = CaseInput::Constant;
    inputs[*meaning.lengths].constant = capacity;
  }
  for (auto [number, starts] : llvm::enumerate(meaning.starts)) {
    inputs[starts].values = CaseInput::Starts;
    inputs[starts].constant =
        number == 0 ? inputs[meaning.query].shape[meaning.queryTokenDim]
                    : inputs[meaning.key].shape[meaning.keyTokenDim];
  }
  return inputs;
}

std::vector<CaseInput>
mlir::posenc::getDefaultInputs(runtime::Function function,
                               const Meaning &meaning, int64_t outputBytes) {
  // Sizes are named in order: batch, sequence. All but the last are 1.
  std::map<std::string, int64_t> sizes;
  std::string last;
  auto see = [&](const std::string &name) {
    if (!name.empty() && sizes.try_emplace(name, 1).second)
      last = name;
  };
  for (size_t i = 0; i < function.numInputs(); ++i) {
    runtime::Argument argument = function.input(i);
    if (argument.isScalar() && !argument.isReal())
      see(argument.name());
    for (int32_t dim = 0; dim < argument.rank(); ++dim)
      see(argument.sizeName(dim));
  }
  std::optional<AttentionMeaning> attention =
      meaning.attention ? meaning.attention : guessAttention(function);
  if (attention)
    return getAttentionInputs(function, *attention, std::move(sizes));
  constexpr int64_t least = 4096, most = int64_t(1) << 24;
  int64_t bytes = std::max<int64_t>(
      getOutputBytes(function, meaning, getInputs(function, sizes)), 1);
  int64_t needed = 4 * getLastLevelCacheBytes() / bytes;
  sizes[last] = outputBytes ? std::clamp<int64_t>(outputBytes / bytes, 1, most)
                            : std::clamp<int64_t>(llvm::PowerOf2Ceil(needed),
                                                  least, most);
  return getInputs(function, sizes);
}
