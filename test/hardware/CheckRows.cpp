//===- CheckRows.cpp - rows of attention on the GPU -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Calls.h"
#include "Checks.h"
#include "Compare.h"
#include "Device.h"
#include "Signature.h"

#include <cstdio>
#include <cstring>
#include <iterator>

using namespace posenc;
using namespace posenc::hardware;
using runtime::Array;

namespace {

/// A function of attention-forms.mlir.
struct Form {
  const char *function;
  bool isCausal; ///< so that a query does not see later keys
  bool isRagged = false;
};

constexpr Form kForms[] = {{"full_bf16", false},
                           {"full_f16", false},
                           {"full_f32", false},
                           {"head_72", true},
                           {"head_80", true},
                           {"head_192", true},
                           {"causal_bf16", true},
                           {"window", true},
                           {"both_windows", false},
                           {"causal_region", true},
                           {"soft_cap", true},
                           {"alibi", true},
                           {"rotated_interleaved", false},
                           {"ragged", true, true}};

/// Tokens of a sequence from `begin` to `end`.
struct Range {
  int64_t begin, end;
};

/// Compares the rows of one function on the GPU.
class Rows {
public:
  Rows(const runtime::Function &function, int device, int64_t tokens)
      : function(function), device(device), tokens(tokens) {
    uint64_t seed = 1;
    for (const posenc_argument &argument : function.get()->inputs) {
      inputs.push_back(
          allocate(argument.dtype, getShape(argument, numSequences, tokens)));
      fillNormal(inputs.back().data(), argument.dtype,
                 inputs.back().numElements(), seed++);
    }
  }

  /// Runs all comparisons. Throws Failure if a call fails or a result differs.
  void compareAll(bool isCausal) {
    const Range all = {0, tokens}, both = {0, numSequences};
    printProgress("two sequences");
    expected = call(both, all, all);
    compareWithCpu();
    compare("a repeated call", both, all, all, expected);
    for (int64_t i = 0; i < numSequences; ++i)
      compare("one sequence alone", {i, i + 1}, all, all, expected);
    compareChunks(isCausal);
  }

  int same = 0;

private:
  static std::vector<int64_t> getShape(const posenc_argument &argument,
                                       int64_t sequences, int64_t count) {
    return {sequences, count, argument.shape[2].value, argument.shape[3].value};
  }

  /// Attends from some queries to some keys of sequences, which are a single
  /// one if they do not have all tokens.
  Array call(Range sequences, Range queries, Range keys) const {
    std::vector<std::vector<int64_t>> shapes;
    std::vector<posenc_value> values;
    for (const Array &input : inputs) {
      Range range = values.empty() ? queries : keys;
      shapes.push_back({sequences.end - sequences.begin,
                        range.end - range.begin, input.shape()[2],
                        input.shape()[3]});
      int64_t offset =
          (sequences.begin * tokens + range.begin) * getRowBytes(input);
      values.push_back(
          runtime::tensor({input.dataAs<char>() + offset, input.dtype(), 4,
                           shapes.back().data()}));
    }
    return std::move(run(function, device, values, 0x55).front());
  }

  static int64_t getRowBytes(const Array &array) {
    return array.shape()[2] * array.shape()[3] *
           posenc_dtype_size(array.dtype());
  }

  /// Compares a call with the rows of `whole`, whose queries end with the
  /// sequence.
  void compare(const char *what, Range sequences, Range queries, Range keys,
               const Array &whole) {
    printProgress(what);
    Array result = call(sequences, queries, keys);
    int64_t numTokens = whole.shape()[1];
    int64_t first =
        sequences.begin * numTokens + queries.begin - (tokens - numTokens);
    const char *rows = whole.dataAs<char>() + first * getRowBytes(whole);
    if (std::memcmp(result.data(), rows, result.sizeInBytes()) != 0)
      throw Failure(std::string(what) + " has other bits (" +
                    std::to_string(queries.end - queries.begin) + " queries)");
    ++same;
  }

  void compareWithCpu() {
    std::vector<posenc_value> values;
    for (const Array &input : inputs)
      values.push_back(input.value());
    Array right = std::move(run(function, -1, values, 0x33).front());
    Distance distance = getDistance(expected, right),
             limit = getLimit(right.dtype());
    if (distance.all <= limit.all && distance.row <= limit.row)
      return;
    char text[128];
    std::snprintf(
        text, sizeof(text), "%.2e from the CPU's result, and %.2e in row %lld",
        distance.all, distance.row, static_cast<long long>(distance.rowIndex));
    throw Failure(text);
  }

  void compareChunks(bool isCausal) {
    const Range first = {0, 1};
    // Chunks of several tiles, of a part of one, and of all of the rest.
    const int64_t ends[] = {tokens / 2 - 5, tokens / 2 + 14, tokens};
    int64_t begin = 0;
    for (int64_t end : ends) {
      if (isCausal)
        compare("a chunk", first, {begin, end}, {0, end}, expected);
      else
        compare("a chunk", first, {tokens - (end - begin), tokens}, {0, tokens},
                expected);
      begin = end;
    }
    // Calls of up to 16 queries may have another kernel.
    const int64_t few = 16;
    Array last = call(first, {tokens - few, tokens}, {0, tokens});
    for (int64_t number : {int64_t(1), int64_t(5)})
      compare("a part of few queries", first, {tokens - number, tokens},
              {0, tokens}, last);
  }

  static constexpr int64_t numSequences = 2;
  runtime::Function function;
  int device;
  int64_t tokens;
  std::vector<Array> inputs; // query, key, value
  Array expected;
};

} // namespace

/// Compares each sequence of a ragged batch with the same one alone: queries,
/// keys and values [token, head, channel], and cu_seqlens. Returns their
/// number. Throws Failure if one differs.
static int compareRagged(const runtime::Function &function, int device,
                         int64_t tokens) {
  const int64_t starts[] = {0, tokens / 2, tokens / 2 + 1, tokens};
  const auto &arguments = function.get()->inputs;
  std::vector<Array> inputs;
  for (size_t i = 0; i < 3; ++i) {
    const auto &shape = arguments[i].shape;
    inputs.push_back(
        allocate(arguments[i].dtype, {tokens, shape[1].value, shape[2].value}));
    fillNormal(inputs.back().data(), arguments[i].dtype,
               inputs.back().numElements(), i + 1);
  }
  auto call = [&](const std::vector<int64_t> &sequences) {
    Array list = allocate(arguments[3].dtype, {int64_t(sequences.size())});
    int64_t begin = sequences.front(), count = sequences.back() - begin;
    for (size_t i = 0; i < sequences.size(); ++i)
      list.dataAs<int64_t>()[i] = sequences[i] - begin;
    std::vector<posenc_value> values;
    std::vector<std::vector<int64_t>> shapes;
    shapes.reserve(inputs.size());
    for (const Array &input : inputs) {
      shapes.push_back({count, input.shape()[1], input.shape()[2]});
      char *data = input.dataAs<char>() + begin * input.sizeInBytes() / tokens;
      values.push_back(
          runtime::tensor({data, input.dtype(), 3, shapes.back().data()}));
    }
    values.push_back(list.value());
    return std::move(run(function, device, values, 0x55).front());
  };
  printProgress("all sequences");
  Array all = call({std::begin(starts), std::end(starts)});
  for (size_t i = 0; i + 1 < std::size(starts); ++i) {
    printProgress("sequence " + std::to_string(i) + " alone");
    Array one = call({starts[i], starts[i + 1]});
    const char *rows =
        all.dataAs<char>() + starts[i] * all.sizeInBytes() / tokens;
    if (std::memcmp(one.data(), rows, one.sizeInBytes()) != 0)
      throw Failure("sequence " + std::to_string(i) + " alone has other bits");
  }
  return int(std::size(starts)) - 1;
}

std::vector<std::string> hardware::listRows(const Subject &subject) {
  runtime::Library library = openLibrary(subject.library);
  std::vector<std::string> forms;
  std::string error;
  for (const Form &form : kForms)
    if (library.find(form.function, error))
      forms.push_back(form.function);
  return forms;
}

std::string hardware::checkRows(const Subject &subject,
                                const std::string &name) {
  // Sequences of more tokens fill a GPU, but take long on the CPU.
  int64_t tokens = subject.isSmall ? 150 : 2050;
  runtime::Library library = openLibrary(subject.library);
  runtime::Function function = findFunction(library, name);
  for (const Form &form : kForms) {
    if (name != form.function)
      continue;
    int same = 0;
    if (form.isRagged) {
      same = compareRagged(function, subject.device, tokens);
    } else {
      Rows rows(function, subject.device, tokens);
      rows.compareAll(form.isCausal);
      same = rows.same;
    }
    return std::to_string(same) + " calls of " + std::to_string(tokens) +
           " tokens with the same rows";
  }
  throw Failure("expected a function of attention, found '" + name + "'");
}
