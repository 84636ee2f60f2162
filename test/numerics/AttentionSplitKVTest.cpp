//===- AttentionSplitKVTest.cpp - KV splits and threads -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With few queries and many keys, the keys of a head are divided into KV splits
// (Flash-Decoding). Several tasks compute the splits of a head, or one task
// does where the batch is too large for the buffer of partial results. Neither
// that choice, nor the number of threads, nor the other sequences of a batch
// may change a bit of the results.
//
//===----------------------------------------------------------------------===//

#include "AttentionCase.h"

#include <cstring>
#include <thread>

using namespace posenc;
using namespace posenc::test;

namespace {

struct SplitKVCase {
  const char *name;
  AttentionCase c;
  int64_t keys;
  int64_t queries = 1;
};

void PrintTo(const SplitKVCase &split, std::ostream *os) { *os << split.name; }

AttentionCase getCase(posenc_dtype dtype, int64_t heads, int64_t keyHeads,
                      int64_t dim, bool keyHeadMajor) {
  AttentionCase c;
  c.dtype = dtype;
  c.heads = heads;
  c.keyHeads = keyHeads;
  c.dim = c.valueDim = dim;
  c.keyHeadMajor = keyHeadMajor;
  return c;
}

std::vector<SplitKVCase> getAll() {
  std::vector<SplitKVCase> all = {
      {"Rows", getCase(POSENC_F32, 8, 2, 64, false), 2111},
      {"RowsBF16", getCase(POSENC_BF16, 8, 2, 64, false), 2111},
      {"RowsF16", getCase(POSENC_F16, 16, 4, 32, false), 1500},
      {"SevenHeads", getCase(POSENC_F32, 14, 2, 64, false), 1025},
      {"OneKeyHead", getCase(POSENC_F32, 4, 1, 128, true), 5000},
      {"TwoSplits", getCase(POSENC_F32, 4, 1, 64, true), 513},
      {"OneSplit", getCase(POSENC_F32, 4, 1, 64, true), 511},
      {"Wide", getCase(POSENC_F32, 32, 2, 64, false), 1100},
      {"Window", getCase(POSENC_F32, 4, 2, 64, false), 3000},
      {"Sinks", getCase(POSENC_F32, 4, 2, 64, false), 1600},
      {"Paged", getCase(POSENC_F32, 8, 2, 64, false), 1300},
      {"Rotated", getCase(POSENC_F32, 4, 1, 64, true), 1300},
      {"TwoQueries", getCase(POSENC_F32, 8, 2, 64, false), 2111, 2},
      {"ThreeQueries", getCase(POSENC_BF16, 6, 1, 64, true), 1500, 3},
      {"FiveQueries", getCase(POSENC_F16, 4, 1, 128, true), 1025, 5},
      {"EightQueries", getCase(POSENC_F32, 4, 2, 64, false), 2111, 8},
      {"DynamicOne", getCase(POSENC_F32, 8, 8, 64, false), 2111, 1},
      {"DynamicThree", getCase(POSENC_F32, 2, 2, 64, false), 2111, 3},
      {"SoftCap", getCase(POSENC_F32, 8, 2, 64, false), 2111},
      {"DynamicAlibi", getCase(POSENC_F32, 6, 1, 64, true), 2111, 3},
      {"DynamicEight", getCase(POSENC_BF16, 6, 2, 64, false), 2111, 8},
      {"DynamicTiles", getCase(POSENC_BF16, 10, 2, 32, false), 1300, 3},
  };
  for (SplitKVCase &split : all) {
    bool isDynamic = std::strncmp(split.name, "Dynamic", 7) == 0;
    split.c.staticQueries = isDynamic ? 0 : split.queries;
    if (split.queries > 1 || isDynamic) {
      split.c.causal = split.c.sinks = split.c.logSums = true;
      split.c.left = 1200;
    }
    if (std::strcmp(split.name, "Window") == 0)
      split.c.left = 1999;
    if (std::strcmp(split.name, "Sinks") == 0)
      split.c.sinks = split.c.logSums = true;
    split.c.softCap = std::strcmp(split.name, "SoftCap") == 0;
    split.c.alibi = std::strcmp(split.name, "DynamicAlibi") == 0;
    if (std::strcmp(split.name, "DynamicTiles") == 0)
      split.c.route = Route::AMX;
    if (std::strcmp(split.name, "Paged") == 0)
      split.c.form = Form::Paged;
    if (std::strcmp(split.name, "Rotated") == 0)
      split.c.queryAngles = split.c.keyAngles = Angles::TokenIndices;
  }
  return all;
}

class AttentionSplitKVTest : public testing::TestWithParam<SplitKVCase> {};

/// Expects the bits of `expected` in `results`, which may repeat them, once per
/// sequence.
void expectSame(const std::vector<runtime::Array> &results,
                const std::vector<runtime::Array> &expected) {
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    size_t bytes = expected[i].sizeInBytes();
    ASSERT_EQ(results[i].sizeInBytes() % bytes, 0u);
    for (size_t at = 0; at < results[i].sizeInBytes(); at += bytes)
      EXPECT_EQ(std::memcmp(static_cast<const char *>(results[i].data()) + at,
                            expected[i].data(), bytes),
                0)
          << "result " << i << " from byte " << at << " on";
  }
}

/// Makes the library run its tasks on `number` threads, each thread from its
/// last task to its first.
void setThreads(const Kernel &kernel, int64_t number) {
  static int64_t threads;
  threads = number;
  posenc_library_set_parallel_for(
      kernel.getLibrary().get(),
      [](void *, void (*body)(void *, int64_t), void *arg, int64_t count) {
        std::vector<std::thread> pool;
        for (int64_t first = 0; first < threads; ++first)
          pool.emplace_back([=] {
            for (int64_t i = count - 1 - first; i >= 0; i -= threads)
              body(arg, i);
          });
        for (std::thread &thread : pool)
          thread.join();
      },
      nullptr);
}

/// Returns a batch of `times` copies of the sequences of `array`.
runtime::Array repeat(const runtime::Array &array, int64_t times) {
  std::vector<int64_t> shape(array.shape().begin(), array.shape().end());
  shape[0] *= times;
  runtime::Array result = makeRandom(array.dtype(), shape, 1);
  for (int64_t i = 0; i < times; ++i)
    std::memcpy(static_cast<char *>(result.data()) + i * array.sizeInBytes(),
                array.data(), array.sizeInBytes());
  return result;
}

} // namespace

TEST_P(AttentionSplitKVTest, ThreadsChangeNoBit) {
  const SplitKVCase &split = GetParam();
  Kernel kernel(getModule(split.c), split.c.route);
  int64_t queries = split.queries;
  AttentionData data(split.c, {1, queries, split.keys}, 11);
  std::vector<runtime::Array> alone = kernel.call("f", data.getInputs());
  EXPECT_EQ(data.check(alone), "");
  for (int64_t threads : {1, 2, 3, 7}) {
    SCOPED_TRACE(threads);
    setThreads(kernel, threads);
    expectSame(kernel.call("f", data.getInputs()), alone);
  }
  // A batch so large that one task computes all splits of a head.
  AttentionData many(split.c, {40, queries, 600}, 12);
  EXPECT_EQ(many.check(kernel.call("f", many.getInputs())), "");
}

INSTANTIATE_TEST_SUITE_P(Code, AttentionSplitKVTest,
                         testing::ValuesIn(getAll()),
                         [](const testing::TestParamInfo<SplitKVCase> &info) {
                           return std::string(info.param.name);
                         });

TEST(AttentionBatchTest, SequencesDoNotAffectEachOther) {
  AttentionCase c = getCase(POSENC_F32, 8, 2, 64, false);
  c.staticQueries = 1;
  Kernel kernel(getModule(c));
  std::vector<runtime::Array> arrays;
  for (int64_t heads : {8, 2, 2})
    arrays.push_back(
        makeRandom(POSENC_F32, {1, heads == 8 ? 1 : 2111, heads, 64}, heads));
  auto call = [&](int64_t times) {
    std::vector<runtime::Array> copies;
    std::vector<posenc_value> values;
    for (const runtime::Array &array : arrays)
      copies.push_back(repeat(array, times));
    for (const runtime::Array &copy : copies)
      values.push_back(copy.value());
    return kernel.call("f", values);
  };
  std::vector<runtime::Array> one = call(1);
  ASSERT_EQ(one.size(), 1u);
  // Small batches with several tasks for the splits of a head, and a large one
  // with one task.
  for (int64_t times : {2, 3, 40})
    expectSame(call(times), one);
}

/// One compiled function handles all numbers of queries, in any order of calls.
TEST(AttentionQueryCountTest, DynamicCountMatchesOracle) {
  for (auto [heads, keyHeads] : {std::pair(4, 1), std::pair(2, 2)}) {
    AttentionCase c = getCase(POSENC_F32, heads, keyHeads, 32, keyHeads == 1);
    c.causal = c.lengths = c.logSums = true;
    Kernel kernel(getModule(c));
    for (int64_t queries : {8, 1, 40, 7, 2, 9, 3, 6, 5, 4, 0}) {
      SCOPED_TRACE(queries);
      AttentionData data(c, {3, queries, 331}, 13);
      EXPECT_EQ(data.check(kernel.call("f", data.getInputs())), "");
    }
  }
}

/// In a ragged batch, each sequence uses the kernel for its number of queries.
TEST(AttentionQueryCountTest, RaggedBatchMatchesOracle) {
  for (Form form : {Form::Ragged, Form::RaggedQueries})
    for (auto [heads, keyHeads] : {std::pair(6, 1), std::pair(4, 2)}) {
      AttentionCase c = getCase(POSENC_F32, heads, keyHeads, 32, heads == 6);
      c.form = form;
      c.causal = c.sinks = c.logSums = true;
      c.queryAngles = Angles::Positions;
      Kernel kernel(getModule(c));
      AttentionData data(c, {24, 6, 90}, 17);
      std::vector<runtime::Array> alone = kernel.call("f", data.getInputs());
      EXPECT_EQ(data.check(alone), "");
      for (int64_t threads : {1, 2, 3}) {
        SCOPED_TRACE(threads);
        setThreads(kernel, threads);
        expectSame(kernel.call("f", data.getInputs()), alone);
      }
      data.spoilSome(17);
      EXPECT_EQ(data.check(kernel.call("f", data.getInputs())), "");
    }
}

/// Regions and masks, with NaNs in keys and values that they mask.
TEST(AttentionQueryCountTest, RegionsAndMasksMatchOracle) {
  std::vector<AttentionCase> cases(8, getCase(POSENC_F32, 6, 2, 32, false));
  cases[0].softCap = true;
  cases[1].alibi = cases[1].causal = true;
  cases[2].t5 = cases[2].sinks = true;
  cases[3].where = cases[3].document = true;
  cases[4].mask = Mask::Added;
  cases[5].mask = Mask::AddedToAll;
  cases[6].mask = Mask::Boolean;
  cases[7].mask = Mask::BooleanByKey;
  cases[7].softCap = cases[7].alibi = cases[7].lengths = true;
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].logSums = true;
    Kernel kernel(getModule(cases[i]));
    for (int64_t queries : {1, 3, 8, 20}) {
      SCOPED_TRACE(std::to_string(i) + ": " + std::to_string(queries));
      AttentionData data(cases[i], {2, queries, 131}, 19);
      data.spoilUnseen(19);
      EXPECT_EQ(data.check(kernel.call("f", data.getInputs())), "");
    }
  }
}
