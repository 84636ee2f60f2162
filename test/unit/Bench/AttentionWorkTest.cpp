//===- AttentionWorkTest.cpp - operations, bytes of attention ---*- C++ -*-===//
//-*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionWork.h"

#include "gtest/gtest.h"

using namespace mlir::posenc;

namespace {

constexpr int64_t kQueryHeads = 6, kKeyHeads = 2, kDim = 8, kValueDim = 4;
constexpr double kFlopsPerPair = kQueryHeads * 2 * (kDim + kValueDim);

Input makeInput(posenc_dtype dtype, std::vector<int64_t> shape,
                llvm::ArrayRef<int64_t> values = {}) {
  Input input;
  input.array = llvm::cantFail(allocateArray(dtype, std::move(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    input.array.dataAs<int64_t>()[i] = values[i];
  return input;
}

/// Queries (1, token, head, dim), keys and values (1, token, head, dim).
std::vector<Input> makeInputs(int64_t queries, int64_t keys) {
  std::vector<Input> inputs;
  inputs.push_back(makeInput(POSENC_F32, {1, queries, kQueryHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {1, keys, kKeyHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {1, keys, kKeyHeads, kValueDim}));
  return inputs;
}

AttentionMeaning makeMeaning() {
  AttentionMeaning meaning;
  meaning.query = 0;
  meaning.key = 1;
  meaning.value = 2;
  meaning.queryHeadDim = 2;
  meaning.queryTokenDim = 1;
  meaning.keyTokenDim = 1;
  return meaning;
}

/// Of a number of keys, queries (batch, token, head, dim) and caches (batch,
/// head, token, dim).
std::vector<Input> makeCaches(llvm::ArrayRef<int64_t> lengths, int64_t keys) {
  int64_t batch = static_cast<int64_t>(lengths.size());
  std::vector<Input> inputs;
  inputs.push_back(makeInput(POSENC_F32, {batch, 1, kQueryHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {batch, kKeyHeads, keys, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {batch, kKeyHeads, keys, kValueDim}));
  inputs.push_back(makeInput(POSENC_I64, {batch}, lengths));
  return inputs;
}

AttentionMeaning makeDecode() {
  AttentionMeaning meaning = makeMeaning();
  meaning.keyTokenDim = 2;
  meaning.lengths = 3;
  meaning.isDecode = true;
  return meaning;
}

int64_t getBytes(const std::vector<StreamStep> &steps) {
  return Stream{"", steps, false}.bytes();
}

/// As the definition says, pair by pair.
TEST(AttentionWorkTest, CountsPairs) {
  const std::optional<int64_t> windows[] = {std::nullopt, 0, 2, INT64_MAX};
  for (int64_t queries : {0, 1, 4, 7})
    for (int64_t keys : {0, 1, 4, 9})
      for (bool isCausal : {false, true})
        for (std::optional<int64_t> left : windows)
          for (std::optional<int64_t> right : windows) {
            int64_t expected = 0;
            for (int64_t i = keys - queries; i < keys; ++i)
              for (int64_t j = 0; j < keys; ++j)
                expected += (!isCausal || j <= i) &&
                            (!left || i - j <= *left) &&
                            (!right || j - i <= *right);
            AttentionMeaning meaning = makeMeaning();
            meaning.isCausal = isCausal;
            meaning.windowLeft = left;
            meaning.windowRight = right;
            EXPECT_EQ(getFlops(meaning, makeInputs(queries, keys)),
                      double(expected) * kFlopsPerPair)
                << queries << " queries, " << keys << " keys, window "
                << left.value_or(-1) << ", " << right.value_or(-1);
          }
}

/// Of 16 queries and 16 keys, those of which a query sees a key.
TEST(AttentionWorkTest, CountsTiles) {
  auto count = [](int64_t queries, int64_t keys, bool isCausal,
                  std::optional<int64_t> left) {
    AttentionMeaning meaning = makeMeaning();
    meaning.isCausal = isCausal;
    meaning.windowLeft = left;
    return getTiles(meaning, makeInputs(queries, keys)) / kQueryHeads;
  };
  EXPECT_EQ(count(64, 64, false, std::nullopt), 16);
  EXPECT_EQ(count(64, 64, true, std::nullopt), 4 + 3 + 2 + 1);
  EXPECT_EQ(count(17, 33, false, std::nullopt), 2 * 3);
  EXPECT_EQ(count(0, 33, false, std::nullopt), 0);
  EXPECT_EQ(count(64, 0, false, std::nullopt), 0);
  // Its own key and those before it, in the tile before, too.
  EXPECT_EQ(count(64, 64, true, 15), 1 + 2 + 2 + 2);
  EXPECT_EQ(count(64, 64, true, 16), 1 + 2 + 2 + 2);
  EXPECT_EQ(count(64, 64, true, 17), 1 + 2 + 3 + 3);
  EXPECT_EQ(count(64, 64, true, 0), 4);
  // Queries before the first key see none.
  EXPECT_EQ(count(64, 16, true, std::nullopt), 1);
}

TEST(AttentionWorkTest, ReadsAllKeysAndValues) {
  std::vector<Input> inputs = makeInputs(3, 5);
  std::vector<StreamStep> steps = getReadSteps(makeMeaning(), inputs);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].from.data, inputs[1].array.dataAs<char>());
  EXPECT_EQ(steps[0].bytes(), 5 * kKeyHeads * kDim * 4);
  EXPECT_EQ(steps[1].from.data, inputs[2].array.dataAs<char>());
  EXPECT_EQ(steps[1].bytes(), 5 * kKeyHeads * kValueDim * 4);
}

/// What is beyond the length counts for nothing.
TEST(AttentionWorkTest, LengthsOfCaches) {
  std::vector<Input> inputs = makeCaches({5, 0, 16}, 16);
  AttentionMeaning meaning = makeDecode();
  EXPECT_EQ(getFlops(meaning, inputs), 21 * kFlopsPerPair);
  std::vector<StreamStep> steps = getReadSteps(meaning, inputs);
  EXPECT_EQ(getBytes(steps), 21 * kKeyHeads * (kDim + kValueDim) * 4);
  ASSERT_EQ(steps.size(), 4u);
  const ByteRows &first = steps[0].from, &last = steps[1].from;
  EXPECT_EQ(first.rows, kKeyHeads);
  EXPECT_EQ(first.stride, 16 * kDim * 4);
  EXPECT_EQ(last.data - first.data, 2 * kKeyHeads * 16 * kDim * 4);
}

TEST(AttentionWorkTest, WindowOfACache) {
  std::vector<Input> inputs = makeCaches({10}, 16);
  AttentionMeaning meaning = makeDecode();
  meaning.windowLeft = 3;
  EXPECT_EQ(getFlops(meaning, inputs), 4 * kFlopsPerPair);
  std::vector<StreamStep> steps = getReadSteps(meaning, inputs);
  EXPECT_EQ(getBytes(steps), 4 * kKeyHeads * (kDim + kValueDim) * 4);
  EXPECT_EQ(steps[0].from.data - inputs[1].array.dataAs<char>(), 6 * kDim * 4);
}

/// Ragged batches, with 2 and 3 queries that see 4 and 5 keys.
TEST(AttentionWorkTest, PackedTokens) {
  std::vector<Input> inputs;
  inputs.push_back(makeInput(POSENC_F32, {5, kQueryHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {9, kKeyHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {9, kKeyHeads, kValueDim}));
  inputs.push_back(makeInput(POSENC_I64, {3}, {0, 2, 5}));
  inputs.push_back(makeInput(POSENC_I64, {3}, {0, 4, 9}));
  AttentionMeaning meaning = makeMeaning();
  meaning.queryHeadDim = 1;
  meaning.queryTokenDim = meaning.keyTokenDim = 0;
  meaning.starts = {3, 4};
  EXPECT_EQ(getFlops(meaning, inputs), (2 * 4 + 3 * 5) * kFlopsPerPair);
  EXPECT_EQ(getBytes(getReadSteps(meaning, inputs)),
            9 * kKeyHeads * (kDim + kValueDim) * 4);
  meaning.isCausal = true;
  EXPECT_EQ(getFlops(meaning, inputs), (3 + 4 + 3 + 4 + 5) * kFlopsPerPair);
}

/// Pages of 4 slots, of which an entry fills two and a half.
TEST(AttentionWorkTest, PagedKeys) {
  std::vector<Input> inputs;
  inputs.push_back(makeInput(POSENC_F32, {1, 1, kQueryHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {8, 4, kKeyHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {8, 4, kKeyHeads, kValueDim}));
  inputs.push_back(makeInput(POSENC_I64, {1}, {10}));
  AttentionMeaning meaning = makeMeaning();
  meaning.lengths = 3;
  meaning.blockTable = 3;
  meaning.isDecode = true;
  EXPECT_EQ(getFlops(meaning, inputs), 10 * kFlopsPerPair);
  EXPECT_EQ(getBytes(getReadSteps(meaning, inputs)),
            10 * kKeyHeads * (kDim + kValueDim) * 4);
}

} // namespace
