//===- AttentionDecodeTest.cpp - attention with at most 8 queries ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention with 1 to 8 queries per sequence uses the decode kernel, which
// reads each key and value once for all of them, unless the heads of a group
// are too many and too wide for it. With a dynamic number of queries, the
// compiled function chooses between the decode and the prefill kernel at run
// time. Every case is compiled both ways.
//
//===----------------------------------------------------------------------===//

#include "AttentionVectorCase.h"

using namespace posenc;
using namespace posenc::test;
using namespace posenc::test::vectors;

namespace {

Sizes oneQuery(int64_t keys, int64_t heads, int64_t keyHeads, int64_t dim,
               int64_t valueDim) {
  return decodeSizes(1, keys, heads, keyHeads, dim, valueDim);
}

const Case kCases[] = {
    Case{"OneToken", sized(1, 1)},
    Case{"TwoQueries", sized(2, 200)}.causal(),
    Case{"OneQuery", sized(1, 200)}.causal(),
    Case{"OneQueryNoKeys", sized(1, 0)}.withLogSum(),
    Case{"OneQueryOneHead", oneQuery(101, 1, 1, 128, 128)},
    Case{"OneQueryThreeHeads", oneQuery(7, 3, 1, 40, 24)},
    Case{"OneQueryManyHeads", oneQuery(97, 16, 1, 128, 128)}
        .headMajor()
        .withLogSum(),
    Case{"OneQueryNineHeads", oneQuery(37, 18, 2, 64, 32)}
        .headMajor()
        .withLogSum(),
    Case{"OneQuerySevenHeads", oneQuery(70, 7, 1, 96, 96)},
    Case{"OneQueryWindow", oneQuery(300, 4, 2, 64, 64), "window_left = 150", "",
         "", window(150, std::nullopt)},
    Case{"OneQueryRotation", oneQuery(130, 4, 1, 64, 64), kRotated, "", "",
         setRotated},
    Case{"OneQueryLengths", oneQuery(101, 4, 2, 64, 64), "",
         "lengths(%x0 : tensor<?xi64>)", "", setLengths, makeLengths}
        .causal()
        .headMajor(),
    Case{"OneQuerySinks", oneQuery(100, 4, 2, 64, 64), "",
         "sinks(%x0 : tensor<4xf32>)", "", setSinks, makeSinks}
        .withLogSum(),
    Case{"OneQuerySoftCap", oneQuery(100, 4, 2, 64, 64), "", "", kSoftCap,
         setSoftCap},
    Case{"Speculative", decodeSizes(2, 300, 1, 1, 64, 64)}.causal(),
    Case{"SpeculativeNoKeys", decodeSizes(3, 0, 4, 2, 64, 64)}
        .causal()
        .withLogSum(),
    Case{"SpeculativeFewerKeys", decodeSizes(8, 5, 4, 2, 64, 64)}
        .causal()
        .withLogSum(),
    Case{"SpeculativeTile", decodeSizes(8, 64, 4, 1, 64, 64)}
        .causal()
        .headMajor(),
    Case{"SpeculativeNotCausal", decodeSizes(5, 77, 3, 1, 128, 40)}
        .headMajor()
        .withLogSum(),
    Case{"SpeculativeThreeHeads", decodeSizes(3, 131, 6, 2, 40, 24)}
        .causal()
        .headMajor()
        .withLogSum(),
    Case{"SpeculativeManyHeads", decodeSizes(7, 97, 32, 2, 64, 64)}
        .causal()
        .withLogSum(),
    Case{"SpeculativeBeyondLimit", decodeSizes(8, 50, 34, 2, 256, 256)}
        .causal(),
    Case{"SpeculativeWindow", decodeSizes(8, 300, 4, 2, 64, 64),
         "causal window_left = 150", "", "", window(150, std::nullopt, true)},
    Case{"SpeculativeNarrowWindow", decodeSizes(8, 300, 4, 1, 256, 8),
         "causal window_left = 2", "", "", window(2, std::nullopt, true)}
        .headMajor()
        .withLogSum(),
    Case{"SpeculativeWindowRight", decodeSizes(5, 120, 4, 2, 64, 64),
         "window_left = 40 window_right = 2", "", "", window(40, 2)}
        .headMajor(),
    Case{"SpeculativeRotation", decodeSizes(5, 130, 4, 1, 64, 64), kRotated, "",
         "", setRotated},
    Case{"SpeculativeNorms", decodeSizes(3, 70, 4, 2, 64, 64),
         "norm_eps = 0.01",
         "query_norm(%x0 : tensor<64xf32>) key_norm(%x1 : tensor<64xf32>)", "",
         setNorms, makeNorms}
        .causal(),
    Case{"SpeculativeLengths", decodeSizes(5, 101, 4, 2, 64, 64), "",
         "lengths(%x0 : tensor<?xi64>)", "", setLengths, makeLengths}
        .causal()
        .headMajor(),
    Case{"SpeculativeSinks", decodeSizes(3, 100, 4, 2, 64, 64), "",
         "sinks(%x0 : tensor<4xf32>)", "", setSinks, makeSinks}
        .causal()
        .withLogSum(),
    Case{"PagedOneQuery", paged(1), "causal", kPages, "", setPages, makePages}
        .headMajor(),
    Case{"PagedSpeculative", paged(5), "causal", kPages, "", setPages,
         makePages}
        .withLogSum(),
};

class AttentionDecodeTest : public testing::TestWithParam<Case> {};

TEST_P(AttentionDecodeTest, MatchesOracle) {
  expectMatchesOracle(GetParam(), POSENC_F32, Route::Direct);
}
TEST_P(AttentionDecodeTest, MatchesOracleWithDynamicQueryCount) {
  expectMatchesOracle(GetParam().withDynamicQueries(), POSENC_F32,
                      Route::Direct);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionDecodeTest, testing::ValuesIn(kCases),
                         getCaseName);

} // namespace
