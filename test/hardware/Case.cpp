//===- Case.cpp - reads the cases of a benchmark --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Case.h"

#include "Device.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace posenc::hardware;

static bool parseSizes(const std::string &text, std::vector<int64_t> &sizes) {
  if (text == "-")
    return true;
  std::istringstream stream(text + "x");
  for (std::string word; std::getline(stream, word, 'x');) {
    if (word.empty() || word.size() > 9 ||
        word.find_first_not_of("0123456789") != std::string::npos)
      return false;
    sizes.push_back(std::stoll(word));
  }
  return true;
}

static bool parse(const std::string &line, Case &result) {
  std::istringstream words(line);
  std::string sizes;
  words >> result.name >> result.function >> sizes;
  if (!words || !parseSizes(sizes, result.sizes))
    return false;
  for (std::string word; words >> word;) {
    if (word == "shuffled")
      result.order = Order::Shuffled;
    else if (word == "in-place")
      result.isInPlace = true;
    else if (word == "strided")
      result.isStrided = true;
    else if (word == "graph")
      result.isGraph = true;
    else if (word == "reads")
      result.isRead = true;
    else if (word.compare(0, 6, "bytes=") == 0)
      result.bytes = std::strtod(word.c_str() + 6, nullptr);
    else if (word.compare(0, 4, "ops=") == 0)
      result.operations = std::strtod(word.c_str() + 4, nullptr);
    else if (word.compare(0, 7, "values=") == 0) {
      std::istringstream texts(word.substr(7));
      for (std::string text; std::getline(texts, text, ';');)
        result.values.push_back(text);
    } else if (word == "attention" || word == "causal")
      result.isAttention = true, result.isCausal = word == "causal";
    else if (word.compare(0, 6, "floor=") != 0)
      return false;
  }
  return true;
}

std::vector<Case> posenc::hardware::readCases(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw Failure("cannot read " + path);
  std::vector<Case> cases;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line.resize(std::min(line.size(), line.find('#')));
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    cases.emplace_back();
    if (!parse(line, cases.back()))
      throw Failure(path + ":" + std::to_string(number) +
                    ": expected NAME FUNCTION SIZES [WORD...]");
  }
  return cases;
}
