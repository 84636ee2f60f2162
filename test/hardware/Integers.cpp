//===- Integers.cpp - contents of integer tensors of a case ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Integers.h"

#include "Arguments.h"
#include "Device.h"

#include <cstdlib>
#include <numeric>
#include <sstream>

using namespace posenc;
using namespace posenc::hardware;

static int64_t parseNumber(const std::string &text) {
  char *end = nullptr;
  int64_t number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end || number < 0)
    throw Failure("expected a number, found '" + text + "'");
  return number;
}

static std::vector<int64_t> parseRuns(const std::string &text) {
  std::vector<int64_t> numbers;
  std::istringstream stream(text);
  for (std::string run; std::getline(stream, run, ',');) {
    size_t star = run.find('*');
    int64_t count =
        star == std::string::npos ? 1 : parseNumber(run.substr(0, star));
    numbers.insert(
        numbers.end(), count,
        parseNumber(star == std::string::npos ? run : run.substr(star + 1)));
  }
  return numbers;
}

/// Pages are in the order of a linear congruential sequence of all of them.
static std::vector<int64_t> makeTable(const std::vector<int64_t> &counts,
                                      const std::vector<int64_t> &shape) {
  if (shape.size() != 2 || int64_t(counts.size()) != shape[0])
    throw Failure("expected a block table with a row for each number");
  int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t(0));
  int64_t step = std::max<int64_t>(total * 5 / 8, 1);
  while (total && std::gcd(step, total) != 1)
    ++step;
  std::vector<int64_t> table(shape[0] * shape[1]);
  int64_t page = 0;
  for (int64_t row = 0; row < shape[0]; ++row) {
    if (counts[row] > shape[1])
      throw Failure("a row of the block table has too many pages");
    for (int64_t i = 0; i < counts[row]; ++i, page += step)
      table[row * shape[1] + i] = page % total;
  }
  return table;
}

std::vector<int64_t>
posenc::hardware::makeIntegers(const std::string &text,
                               const std::vector<int64_t> &shape) {
  int64_t count = countElements(shape);
  std::vector<int64_t> elements;
  if (text == "iota") {
    elements.resize(count);
    std::iota(elements.begin(), elements.end(), int64_t(0));
  } else if (text.compare(0, 7, "starts:") == 0) {
    elements.push_back(0);
    for (int64_t number : parseRuns(text.substr(7)))
      elements.push_back(elements.back() + number);
  } else if (text.compare(0, 6, "pages:") == 0) {
    elements = makeTable(parseRuns(text.substr(6)), shape);
  } else {
    elements = parseRuns(text);
    if (elements.size() == 1)
      elements.resize(count, elements.front());
  }
  if (int64_t(elements.size()) != count)
    throw Failure("'" + text + "' has " + std::to_string(elements.size()) +
                  " elements, expected " + std::to_string(count));
  return elements;
}
