//===- AttentionWorkTest.cpp - FLOPs and KV reads of attention ------------===//
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

/// Makes queries, keys and values of the shape [1, token, head, dim].
std::vector<Input> makeInputs(int64_t queries, int64_t keys) {
  std::vector<Input> inputs;
  inputs.push_back(makeInput(POSENC_F32, {1, queries, kQueryHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {1, keys, kKeyHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {1, keys, kKeyHeads, kValueDim}));
  return inputs;
}

/// Describes the inputs of makeInputs as an attention without masks.
AttentionInfo makeInfo() {
  AttentionInfo info;
  info.query = 0;
  info.key = 1;
  info.value = 2;
  info.queryHeadDim = 2;
  info.queryTokenDim = 1;
  info.keyTokenDim = 1;
  return info;
}

/// Makes queries [batch, 1, head, dim], caches of keys and values [batch, head,
/// `keys`, dim], and the number of valid keys of each sequence.
std::vector<Input> makeCaches(llvm::ArrayRef<int64_t> lengths, int64_t keys) {
  int64_t batch = static_cast<int64_t>(lengths.size());
  std::vector<Input> inputs;
  inputs.push_back(makeInput(POSENC_F32, {batch, 1, kQueryHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {batch, kKeyHeads, keys, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {batch, kKeyHeads, keys, kValueDim}));
  inputs.push_back(makeInput(POSENC_I64, {batch}, lengths));
  return inputs;
}

/// Describes the inputs of makeCaches as a decode.
AttentionInfo makeDecode() {
  AttentionInfo info = makeInfo();
  info.keyTokenDim = 2;
  info.lengths = 3;
  info.isDecode = true;
  return info;
}

int64_t getBytes(const std::vector<StreamStep> &steps) {
  return Stream{"", steps, false}.bytes();
}

/// FLOPs match a count of the visible (query, key) pairs, pair by pair.
TEST(AttentionWorkTest, CountsVisiblePairs) {
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
            AttentionInfo info = makeInfo();
            info.isCausal = isCausal;
            info.windowLeft = left;
            info.windowRight = right;
            EXPECT_EQ(getFlops(info, makeInputs(queries, keys)),
                      double(expected) * kFlopsPerPair)
                << queries << " queries, " << keys << " keys, window "
                << left.value_or(-1) << ", " << right.value_or(-1);
          }
}

/// Tiles of 16 queries x 16 keys count if any of their queries sees any of
/// their keys.
TEST(AttentionWorkTest, CountsVisibleTiles) {
  auto count = [](int64_t queries, int64_t keys, bool isCausal,
                  std::optional<int64_t> left) {
    AttentionInfo info = makeInfo();
    info.isCausal = isCausal;
    info.windowLeft = left;
    return getTiles(info, makeInputs(queries, keys)) / kQueryHeads;
  };
  EXPECT_EQ(count(64, 64, false, std::nullopt), 16);
  EXPECT_EQ(count(64, 64, true, std::nullopt), 4 + 3 + 2 + 1);
  EXPECT_EQ(count(17, 33, false, std::nullopt), 2 * 3);
  EXPECT_EQ(count(0, 33, false, std::nullopt), 0);
  EXPECT_EQ(count(64, 0, false, std::nullopt), 0);
  // Windows that reach into the previous tile of keys, or further.
  EXPECT_EQ(count(64, 64, true, 15), 1 + 2 + 2 + 2);
  EXPECT_EQ(count(64, 64, true, 16), 1 + 2 + 2 + 2);
  EXPECT_EQ(count(64, 64, true, 17), 1 + 2 + 3 + 3);
  EXPECT_EQ(count(64, 64, true, 0), 4);
  // Queries before the first key see none.
  EXPECT_EQ(count(64, 16, true, std::nullopt), 1);
}

TEST(AttentionWorkTest, ReadsAllKeysAndValues) {
  std::vector<Input> inputs = makeInputs(3, 5);
  std::vector<StreamStep> steps = getReadSteps(makeInfo(), inputs);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].from.data, inputs[1].array.dataAs<char>());
  EXPECT_EQ(steps[0].bytes(), 5 * kKeyHeads * kDim * 4);
  EXPECT_EQ(steps[1].from.data, inputs[2].array.dataAs<char>());
  EXPECT_EQ(steps[1].bytes(), 5 * kKeyHeads * kValueDim * 4);
}

/// Keys beyond the length of a sequence are neither counted nor read.
TEST(AttentionWorkTest, RespectsLengthsOfCaches) {
  std::vector<Input> inputs = makeCaches({5, 0, 16}, 16);
  AttentionInfo info = makeDecode();
  EXPECT_EQ(getFlops(info, inputs), 21 * kFlopsPerPair);
  std::vector<StreamStep> steps = getReadSteps(info, inputs);
  EXPECT_EQ(getBytes(steps), 21 * kKeyHeads * (kDim + kValueDim) * 4);
  ASSERT_EQ(steps.size(), 4u);
  const ByteRows &first = steps[0].from, &last = steps[1].from;
  EXPECT_EQ(first.rows, kKeyHeads);
  EXPECT_EQ(first.stride, 16 * kDim * 4);
  EXPECT_EQ(last.data - first.data, 2 * kKeyHeads * 16 * kDim * 4);
}

/// Only the keys of the window are counted and read.
TEST(AttentionWorkTest, RespectsWindowOfCache) {
  std::vector<Input> inputs = makeCaches({10}, 16);
  AttentionInfo info = makeDecode();
  info.windowLeft = 3;
  EXPECT_EQ(getFlops(info, inputs), 4 * kFlopsPerPair);
  std::vector<StreamStep> steps = getReadSteps(info, inputs);
  EXPECT_EQ(getBytes(steps), 4 * kKeyHeads * (kDim + kValueDim) * 4);
  EXPECT_EQ(steps[0].from.data - inputs[1].array.dataAs<char>(), 6 * kDim * 4);
}

/// Two ragged sequences, with 2 queries and 4 keys, and 3 queries and 5 keys.
TEST(AttentionWorkTest, CountsRaggedBatch) {
  std::vector<Input> inputs;
  inputs.push_back(makeInput(POSENC_F32, {5, kQueryHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {9, kKeyHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {9, kKeyHeads, kValueDim}));
  inputs.push_back(makeInput(POSENC_I64, {3}, {0, 2, 5}));
  inputs.push_back(makeInput(POSENC_I64, {3}, {0, 4, 9}));
  AttentionInfo info = makeInfo();
  info.queryHeadDim = 1;
  info.queryTokenDim = info.keyTokenDim = 0;
  info.cuSeqlens = {3, 4};
  EXPECT_EQ(getFlops(info, inputs), (2 * 4 + 3 * 5) * kFlopsPerPair);
  EXPECT_EQ(getBytes(getReadSteps(info, inputs)),
            9 * kKeyHeads * (kDim + kValueDim) * 4);
  info.isCausal = true;
  EXPECT_EQ(getFlops(info, inputs), (3 + 4 + 3 + 4 + 5) * kFlopsPerPair);
}

/// Pages have 4 slots; the sequence fills two and a half of them.
TEST(AttentionWorkTest, CountsPagedKeys) {
  std::vector<Input> inputs;
  inputs.push_back(makeInput(POSENC_F32, {1, 1, kQueryHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {8, 4, kKeyHeads, kDim}));
  inputs.push_back(makeInput(POSENC_F32, {8, 4, kKeyHeads, kValueDim}));
  inputs.push_back(makeInput(POSENC_I64, {1}, {10}));
  AttentionInfo info = makeInfo();
  info.lengths = 3;
  info.blockTable = 3;
  info.isDecode = true;
  EXPECT_EQ(getFlops(info, inputs), 10 * kFlopsPerPair);
  EXPECT_EQ(getBytes(getReadSteps(info, inputs)),
            10 * kKeyHeads * (kDim + kValueDim) * 4);
}

} // namespace
