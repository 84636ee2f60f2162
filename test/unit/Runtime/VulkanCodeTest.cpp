//===- VulkanCodeTest.cpp - Reading a library's kernels for Vulkan --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanCode.h"

#include "gtest/gtest.h"

#include <random>
#include <vector>

using posenc::runtime::VulkanCode;

namespace {

using Words = std::vector<uint32_t>;

/// Sets the number of words and the checksum.
void finish(Words &words) {
  words[2] = words.size();
  words[3] = 0x811c9dc5;
  for (size_t i = 4; i < words.size(); ++i)
    words[3] = (words[3] ^ words[i]) * 0x01000193;
}

/// Returns three words of SPIR-V, two constants, and two kernels: "abcde",
/// which takes a tensor of 4-byte elements and an index, and "f" without
/// arguments.
Words makeWords() {
  Words words{0x564e5350, 1,  0, 0, 3,          2,    2,      70, 71, 72,
              80,         81, 5, 2, 0x64636261, 0x65, 0x6934, 1,  0,  0x66};
  finish(words);
  return words;
}

std::string readError(const Words &words) {
  VulkanCode code;
  std::string error;
  bool isGood = code.read(words.data(), words.size(), error);
  EXPECT_EQ(isGood, error.empty()) << error;
  return error;
}

} // namespace

TEST(VulkanCode, IsRead) {
  Words words = makeWords();
  VulkanCode code;
  std::string error;
  ASSERT_TRUE(code.read(words.data(), words.size(), error)) << error;
  ASSERT_EQ(code.numSpirvWords, 3u);
  EXPECT_EQ(code.spirv[0], 70u);
  ASSERT_EQ(code.numConstants, 2u);
  EXPECT_EQ(code.constants[1], 81u);
  EXPECT_EQ(code.kernels,
            (std::map<std::string, std::string>{{"abcde", "4i"}, {"f", ""}}));
}

TEST(VulkanCode, SaysWhatIsWrong) {
  Words words = makeWords();
  words[0] ^= 1;
  EXPECT_EQ(
      readError(words),
      "the kernels for Vulkan are damaged: expected the magic number 'PSNV'");
  words = makeWords();
  words[1] = 2;
  EXPECT_EQ(readError(words), "the kernels for Vulkan are of version 2, not 1");
  words = makeWords();
  words.pop_back();
  EXPECT_EQ(readError(words),
            "the kernels for Vulkan are damaged: 19 words, not 20");
  words = makeWords();
  words[8] ^= 1 << 30;
  EXPECT_EQ(readError(words),
            "the kernels for Vulkan are damaged: their checksum is wrong");
  // Sizes that contradict the number of words.
  for (size_t at : {4, 5, 6, 12, 13, 17, 18})
    for (uint32_t value : {0u, 4u, 7u, 0x7fffffffu, 0xffffffffu}) {
      words = makeWords();
      if (words[at] == value)
        continue;
      words[at] = value;
      finish(words);
      EXPECT_EQ(readError(words), "the kernels for Vulkan are malformed")
          << at << " " << value;
    }
  // An unknown kind of argument, and a control character in a name.
  for (auto [at, value] :
       {std::pair<size_t, uint32_t>{16, 0x6a34}, {14, 0x64630a61}}) {
    words = makeWords();
    words[at] = value;
    finish(words);
    EXPECT_EQ(readError(words), "the kernels for Vulkan are malformed");
  }
}

// Every prefix is an error. Random words may be accepted but must not crash.
TEST(VulkanCode, SurvivesDamage) {
  Words whole = makeWords();
  for (size_t size = 0; size < whole.size(); ++size) {
    // Memory of the exact size, so that a sanitizer detects reads past the end.
    Words part(whole.begin(), whole.begin() + size);
    EXPECT_NE(readError(part), "");
    if (size < 7)
      continue;
    finish(part);
    EXPECT_EQ(readError(part), "the kernels for Vulkan are malformed");
  }
  std::mt19937 random(11);
  for (int i = 0; i < 20000; ++i) {
    Words words = whole;
    for (uint32_t count = random() % 3 + 1; count-- > 0;)
      words[4 + random() % (words.size() - 4)] = random() >> random() % 32;
    finish(words);
    readError(words);
  }
}
