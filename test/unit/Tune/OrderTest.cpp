//===- OrderTest.cpp - order of tuning parameters -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search.h"

#include "gtest/gtest.h"

using namespace mlir::posenc;

namespace {

std::vector<std::string> getNames(const std::vector<TuningChoice> &choices) {
  std::vector<std::string> names;
  for (const TuningChoice &choice : choices)
    names.push_back(choice.name.str());
  return names;
}

std::vector<std::string> order(std::vector<std::string> kernels) {
  std::vector<TunedFunction> functions(2);
  functions[1].tunedKernels = std::move(kernels);
  return getNames(orderChoices(functions));
}

/// Returns the number of leading names that begin with one of two words.
size_t countFirst(const std::vector<std::string> &names, const char *first,
                  const char *second) {
  size_t count = 0;
  while (count < names.size() &&
         (names[count].find(first) == 0 || names[count].find(second) == 0))
    ++count;
  return count;
}

TEST(OrderTest, KeepsTableOrderWithoutKernels) {
  EXPECT_EQ(order({}), getNames(getTuningChoices().vec()));
}

TEST(OrderTest, MovesParametersOfKernelsToFront) {
  std::vector<std::string> all = order({});
  for (const char *kernel : {"attention", "decode", "product"}) {
    std::string word = std::string(kernel) + "_";
    size_t number = 0;
    for (const std::string &name : all)
      number += name.find(word) == 0;
    EXPECT_GT(number, 1u) << kernel;
    std::vector<std::string> names = order({kernel});
    EXPECT_EQ(countFirst(names, word.c_str(), word.c_str()), number) << kernel;
    // The others keep their order, and none is lost.
    std::vector<std::string> rest(names.begin() + number, names.end());
    std::vector<std::string> expected;
    for (const std::string &name : all)
      if (name.find(word) != 0)
        expected.push_back(name);
    EXPECT_EQ(rest, expected) << kernel;
  }
}

TEST(OrderTest, TakesKernelsOfAllFunctions) {
  std::vector<std::string> names = order({"product", "attention"});
  size_t first = countFirst(names, "attention_", "product_");
  EXPECT_EQ(names[0].find("attention_"), 0u);
  EXPECT_EQ(names[first - 1].find("product_"), 0u);
  EXPECT_EQ(names.size(), getTuningChoices().size());
}

} // namespace
