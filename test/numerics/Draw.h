//===- Draw.h - the cases that one run of the tests draws -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/Inputs/draw.py in C++. lit sets POSENC_TEST_SEED to the hash of the
// commit. Without it, as in a program that is started by hand, and with
// POSENC_TEST_ALL=1, all cases run.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_NUMERICS_DRAW_H
#define POSENC_TEST_NUMERICS_DRAW_H

#include "gtest/gtest.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

namespace posenc::test {

/// Returns a number of 64 bits. Cases with small ones are drawn.
inline uint64_t rank(const std::string &seed, const std::string &name) {
  uint64_t number = 0xcbf29ce484222325; // FNV-1a
  for (char byte : seed + "/" + name)
    number = (number ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  // The finalizer of MurmurHash3: the last bytes change the high bits, too.
  for (uint64_t factor : {0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53})
    number = (number ^ (number >> 33)) * factor;
  return number ^ (number >> 33);
}

/// Prints a line at the start of the tests.
class Announcement : public testing::Environment {
public:
  explicit Announcement(std::string text) : text(std::move(text)) {}
  void SetUp() override { std::printf("%s\n", text.c_str()); }

private:
  std::string text;
};

/// Returns the indices of one in `share` of the names, rounded up, in their
/// order. All of them if `seed` is null. Names differ.
inline std::vector<size_t> drawIndices(const std::string &title,
                                       const std::vector<std::string> &names,
                                       size_t share, const char *seed) {
  std::vector<size_t> indices(names.size());
  std::iota(indices.begin(), indices.end(), size_t{0});
  if (!seed || names.size() < 2)
    return indices;
  std::vector<uint64_t> ranks;
  for (const std::string &name : names)
    ranks.push_back(rank(seed, title + "/" + name));
  std::sort(indices.begin(), indices.end(),
            [&](size_t a, size_t b) { return ranks[a] < ranks[b]; });
  indices.resize((names.size() + share - 1) / share);
  std::sort(indices.begin(), indices.end());
  return indices;
}

/// Returns the seed, or null if all cases run.
inline const char *findSeed() {
  const char *all = std::getenv("POSENC_TEST_ALL");
  const char *seed = std::getenv("POSENC_TEST_SEED");
  bool runsAll = all && *all && std::string(all) != "0";
  return runsAll || !seed || !*seed ? nullptr : seed;
}

/// Returns one in `share` of the cases of an instantiation, whose names
/// `getName` returns.
template <typename Case, typename GetName>
std::vector<Case> drawCases(const std::string &title, std::vector<Case> cases,
                            size_t share, GetName getName) {
  const char *seed = findSeed();
  if (!seed)
    return cases;
  std::vector<std::string> names;
  for (size_t i = 0; i < cases.size(); ++i)
    names.push_back(getName(testing::TestParamInfo<Case>(cases[i], i)));
  std::vector<Case> drawn;
  for (size_t i : drawIndices(title, names, share, seed))
    drawn.push_back(cases[i]);
  testing::AddGlobalTestEnvironment(new Announcement(
      title + ": " + std::to_string(drawn.size()) + " of " +
      std::to_string(cases.size()) + " cases (POSENC_TEST_SEED=" + seed +
      "; POSENC_TEST_ALL=1 runs all)"));
  return drawn;
}

} // namespace posenc::test

#endif // POSENC_TEST_NUMERICS_DRAW_H
