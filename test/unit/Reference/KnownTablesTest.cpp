//===- KnownTablesTest.cpp - tables that are kept -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference/KnownTables.h"

#include <gtest/gtest.h>

using namespace posenc::reference;

namespace {

TableKey getKey(int64_t number) {
  FrequencySpec spec;
  spec.dim = 2;
  return {PairTable(spec, {}), Real(1), Positions{(long double)number}, {1}};
}

CosSinTable getTable(size_t size) {
  CosSinTable table;
  table.cos.values.resize(size);
  return table;
}

/// 2^20 elements are kept, and 2^18 of one table.
constexpr size_t kLargest = size_t(1) << 18;

TEST(KnownTables, ForgetsThoseNotAskedForLongest) {
  KnownTables tables;
  for (int64_t number = 0; number < 4; ++number)
    tables.add(getKey(number), getTable(kLargest));
  EXPECT_TRUE(tables.find(getKey(0)));
  tables.add(getKey(4), getTable(1));
  EXPECT_TRUE(tables.find(getKey(0)));
  EXPECT_FALSE(tables.find(getKey(1)));
  for (int64_t number = 2; number < 5; ++number)
    EXPECT_TRUE(tables.find(getKey(number))) << number;
  // Another one fits in what was freed.
  tables.add(getKey(5), getTable(kLargest - 1));
  EXPECT_TRUE(tables.find(getKey(0)));
  tables.add(getKey(6), getTable(1));
  EXPECT_FALSE(tables.find(getKey(2)));
  EXPECT_TRUE(tables.find(getKey(3)));
}

TEST(KnownTables, KeepsFewTables) {
  KnownTables tables;
  for (int64_t number = 0; number < 65; ++number)
    tables.add(getKey(number), getTable(1));
  EXPECT_FALSE(tables.find(getKey(0)));
  EXPECT_TRUE(tables.find(getKey(1)));
  EXPECT_TRUE(tables.find(getKey(64)));
}

TEST(KnownTables, LargeTablesAreNotKept) {
  KnownTables tables;
  tables.add(getKey(0), getTable(1));
  tables.add(getKey(1), getTable(kLargest + 1));
  EXPECT_TRUE(tables.find(getKey(0)));
  EXPECT_FALSE(tables.find(getKey(1)));
}

} // namespace
