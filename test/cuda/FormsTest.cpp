//===- FormsTest.cpp - CUDA kernels return the bits of the CPU ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"

using namespace posenc;
using namespace posenc::test;

namespace {

class CudaForms : public CudaTest {
protected:
  // Checks all functions of the library.
  void checkAll(const std::vector<int64_t> &sizes, const Layout &layout = {}) {
    for (size_t i = 0; i < library.numFunctions(); ++i)
      check(library.function(i).name(), sizes, layout);
  }
};

} // namespace

// Sizes: batch, tokens, then two numbers of heads.
TEST_F(CudaForms, OneToken) { checkAll({1, 1, 32, 8}); }
TEST_F(CudaForms, SeveralTokens) { checkAll({3, 7, 5, 3}); }
TEST_F(CudaForms, NoTokens) { checkAll({0, 7, 5, 3}); }

TEST_F(CudaForms, PaddedRows) { checkAll({2, 3, 5, 2}, {16, 8}); }

// Layouts that do not allow aligned accesses of 16 bytes.
TEST_F(CudaForms, MisalignedRows) {
  checkAll({2, 3, 5, 2}, {1, 0});
  checkAll({2, 3, 5, 2}, {3, 5});
}

TEST_F(CudaForms, NegativeStrides) {
  checkAll({3, 2, 5, 2}, {0, 0, /*isReversed=*/true});
  checkAll({3, 2, 5, 2}, {3, 5, /*isReversed=*/true});
}

TEST_F(CudaForms, InPlace) {
  for (const char *name :
       {"half_f32", "half_bf16", "interleaved_f16", "interleaved_f64", "window",
        "window_il", "odd", "odd_il", "dyn", "axial", "i32", "scalar",
        "rotate"}) {
    check(name, {2, 3, 5, 2}, {}, /*isInPlace=*/true);
    check(name, {2, 3, 5, 2}, {3, 5}, /*isInPlace=*/true);
  }
}

// More positions than one block handles.
TEST_F(CudaForms, ManyPositions) {
  for (const char *name :
       {"sincos", "sin_sin_cos_f32", "sin_cos_sin_f16", "sin_interleaved_bf16",
        "sin_sin_cos_f64", "sin_zeros_f32", "sin_padding_bf16", "sin_axes_f32",
        "sin_axes_bf16", "sin_axes_interleaved_f16"})
    check(name, {100});
  check("one_head", {5, 67});
  check("axial", {300});
}

// Every byte is written once, in whole sectors of 32 bytes.
TEST_F(CudaForms, AccessesAreCoalesced) {
  for (const char *name :
       {"half_f32", "half_bf16", "half_f16", "half_f64", "interleaved_f32",
        "interleaved_bf16", "window_bf16", "one_head", "sincos", "rotate",
        "sin_sin_cos_f32", "sin_interleaved_bf16", "sin_sin_cos_f64"}) {
    SCOPED_TRACE(name);
    readLog("ran");
    check(name, {4, 8});
    std::vector<std::string> lines = readLog("ran");
    ASSERT_EQ(lines.size(), 1u);
    char kernel[64];
    unsigned long loaded, loads, stored, stores, rewritten;
    ASSERT_EQ(std::sscanf(lines[0].c_str(),
                          "ran %63s loaded %lu in %lu stored %lu in %lu "
                          "rewritten %lu",
                          kernel, &loaded, &loads, &stored, &stores,
                          &rewritten),
              6)
        << lines[0];
    EXPECT_STREQ(kernel, name);
    EXPECT_EQ(stored, 32 * stores);
    EXPECT_EQ(rewritten, 0u);
  }
  // Misaligned rows use the kernel that accesses one element at a time.
  readLog("ran");
  check("half_f32", {4, 8}, {1, 0});
  std::vector<std::string> lines = readLog("ran");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].rfind("ran half_f32_narrow ", 0), 0u) << lines[0];
}
