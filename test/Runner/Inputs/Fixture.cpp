//===- Fixture.cpp - GoogleTest cases for the test of the runner ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// runner.test selects cases with GTEST_FILTER. With POSENC_FIXTURE_EXIT, the
// executable reports success and then exits with 3, as if a sanitizer had found
// a leak.
//
//===----------------------------------------------------------------------===//

#include <cstdlib>
#include <gtest/gtest.h>

TEST(Fixture, Passes) {
  EXPECT_EQ(1, 1);
  if (std::getenv("POSENC_FIXTURE_EXIT"))
    std::atexit([] { std::_Exit(3); });
}

TEST(Fixture, Fails) { EXPECT_EQ(1, 2) << "why it failed"; }

TEST(Fixture, Skips) { GTEST_SKIP() << "why it was skipped"; }

TEST(Fixture, DISABLED_Never) {}

TEST(Crashes, Aborts) { std::abort(); }

TEST(Crashes, LeavesInSilence) { std::_Exit(0); }

TEST(Later, IsNotReached) {}

struct Parameterized : testing::TestWithParam<int> {};
TEST_P(Parameterized, IsOdd) { EXPECT_EQ(GetParam() % 2, 1); }
INSTANTIATE_TEST_SUITE_P(Numbers, Parameterized, testing::Values(1, 2));
