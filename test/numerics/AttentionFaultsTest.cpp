//===- AttentionFaultsTest.cpp - wrong attentions are caught ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each fault is put into the source, or into what the portable lowering makes
// of it, compiled and called like any other, and must be beyond the limits that
// the right module keeps.
//
//===----------------------------------------------------------------------===//

#include "AttentionCase.h"

#include <limits>

using namespace posenc;
using namespace posenc::test;

namespace {

/// An attention that has something of everything.
AttentionCase getCase() {
  AttentionCase c;
  c.heads = 6;
  c.causal = c.norms = c.alibi = c.softCap = c.sinks = c.logSums = true;
  c.lengths = true;
  c.left = 30;
  c.scale = 0.25;
  c.queryAngles = c.keyAngles = Angles::Places;
  return c;
}

const Fault kFaults[] = {
    {"Control", "", ""},
    {"Scale", "scale = 0.25", "scale = 0.251"},
    {"NoScale", "scale = 0.25", "scale = 1.0"},
    {"WindowNarrow", "window_left = 30", "window_left = 29"},
    {"WindowWide", "window_left = 30", "window_left = 31"},
    {"NoWindow", "window_left = 30", ""},
    {"NotCausal", " causal", ""},
    {"AlmostCausal", " causal", " window_right = 1"},
    {"Heads", "heads = 6", "heads = 8"},
    {"SwappedPlaces", "alibi(%h, %i, %j)", "alibi(%j, %i, %h)"},
    {"Cap", "%cap = arith.constant 2.5", "%cap = arith.constant 2.4"},
    {"Pairing", "pairing = half", "pairing = interleaved"},
    {"Base", "base = 10000", "base = 10001"},
    {"Window", "offset = 4", "offset = 5"},
    {"Epsilon", "norm_eps = 1.0e-5", "norm_eps = 1.0e-3"},
    {"NoLengths", "lengths(%lengths : tensor<?xi64>)", ""},
    {"NoSinks", "sinks(%sinks : tensor<6xf32>)", ""},
};

/// Faults in what posenc-to-linalg makes.
const Fault kLinalgFaults[] = {
    {"Control", "", ""},
    {"HeadGroup", "(d0 * 3)", "(d0 * -3 + 3)"},
    {"WindowConstant", "constant 30 : index", "constant 29 : index"},
    {"KeysOfTile", "(32, d0 - d1)", "(31, d0 - d1)"},
    {"QueriesOfTile", "* -5 + s0, 5)", "* -5 + s0, 4)"},
    {"Step", "step %c32", "step %c30"},
    {"NoMax", "arith.maximumf", "arith.minimumf"},
    {"NoExp", "math.exp ", "math.exp2 "},
    {"Causal", "arith.cmpi sle", "arith.cmpi slt"},
    {"NoLog", "math.log ", "math.log2 "},
};

void PrintTo(const Fault &fault, std::ostream *os) { *os << fault.name; }

void check(const std::string &module, const AttentionData &data, bool isRight) {
  std::string error = data.check(Kernel(module).call("f", data.getInputs()));
  EXPECT_EQ(error.empty(), isRight) << error << "\n" << module;
}

class AttentionFaultTest : public testing::TestWithParam<Fault> {};
class AttentionLinalgFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(AttentionFaultTest, IsCaught) {
  AttentionCase c = getCase();
  AttentionData data(c, {3, 37, 75}, 5);
  check(replace(getModule(c), GetParam()), data, GetParam().from[0] == '\0');
}
INSTANTIATE_TEST_SUITE_P(Source, AttentionFaultTest, testing::ValuesIn(kFaults),
                         getFaultName);

TEST_P(AttentionLinalgFaultTest, IsCaught) {
  AttentionCase c = getCase();
  AttentionData data(c, {3, 37, 75}, 5);
  std::string code = lowerToText(getModule(c), mlir::posenc::Stage::Linalg, 0);
  check(replace(code, GetParam()), data, GetParam().from[0] == '\0');
}
INSTANTIATE_TEST_SUITE_P(Linalg, AttentionLinalgFaultTest,
                         testing::ValuesIn(kLinalgFaults), getFaultName);

} // namespace
