//===- WarpTest.cpp - warp-wide instructions in the PTX interpreter -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

using namespace posenc;
using namespace posenc::test;

namespace {

// Runs a kernel with one warp and returns the %r1 that each lane stores.
std::vector<uint32_t> run(const std::string &body) {
  Kernel kernel(makeModule(
      ".param .u64 out", "ld.param.b64 %d0, [out]; mov.u32 %r0, %laneid;\n"
                         "mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;\n" +
                             body + "\nst.global.b32 [%d1], %r1;"));
  std::vector<uint32_t> out(32);
  kernel.shape.block = {32, 1, 1};
  kernel.run({kernel.memory.add(out, ptx::Access::WriteOnly, "out")});
  return out;
}

template <typename F> void expectLanes(const std::string &body, F expected) {
  std::vector<uint32_t> out = run(body);
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], uint32_t(expected(lane))) << body << lane;
}

} // namespace

TEST(PtxWarp, Shuffles) {
  expectLanes("shfl.sync.bfly.b32 %r1, %r0, 4, 31, -1;",
              [](uint32_t lane) { return lane ^ 4; });
  expectLanes("shfl.sync.up.b32 %r1, %r0, 3, 0, -1;",
              [](uint32_t lane) { return lane < 3 ? lane : lane - 3; });
  expectLanes("shfl.sync.down.b32 %r1, %r0, 3, 31, -1;",
              [](uint32_t lane) { return lane > 28 ? lane : lane + 3; });
  expectLanes("shfl.sync.idx.b32 %r1|%p0, %r0, 5, 31, -1;",
              [](uint32_t) { return 5; });
  // Segments of 8 lanes.
  expectLanes("shfl.sync.idx.b32 %r1, %r0, 2, 0x181f, -1;",
              [](uint32_t lane) { return (lane & 24) + 2; });
  expectLanes("shfl.sync.down.b32 %r2|%p0, %r0, 1, 0x181f, -1;"
              "selp.b32 %r1, %r2, 99, %p0;",
              [](uint32_t lane) { return lane % 8 == 7 ? 99 : lane + 1; });
}

TEST(PtxWarp, Votes) {
  std::string small = "setp.lt.u32 %p0, %r0, 5;";
  expectLanes(small + "vote.sync.ballot.b32 %r1, %p0, -1;",
              [](uint32_t) { return 31; });
  expectLanes(small + "vote.sync.any.pred %p1, %p0, -1;"
                      "selp.b32 %r1, 1, 0, %p1;",
              [](uint32_t) { return 1; });
  expectLanes(small + "vote.sync.all.pred %p1, !%p0, -1;"
                      "selp.b32 %r1, 1, 0, %p1;",
              [](uint32_t) { return 0; });
  expectLanes("shr.u32 %r2, %r0, 3; match.any.sync.b32 %r1, %r2, -1;",
              [](uint32_t lane) { return 0xffu << (lane & 24); });
  expectLanes("redux.sync.add.u32 %r1, %r0, -1;", [](uint32_t) { return 496; });
  expectLanes("sub.s32 %r2, %r0, 9; redux.sync.min.s32 %r1, %r2, -1;",
              [](uint32_t) { return -9; });
  expectLanes("elect.sync %r1|%p0, -1;", [](uint32_t) { return 0; });
}

TEST(PtxWarp, ShufflesReconverge) {
  // Lanes reach the shuffle on two paths.
  expectLanes("setp.lt.u32 %p0, %r0, 9; @%p0 bra $A; add.s32 %r2, %r0, 100;"
              "bra.uni $B; $A: add.s32 %r2, %r0, 200;"
              "$B: shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1;",
              [](uint32_t lane) {
                uint32_t other = lane ^ 16;
                return other + (other < 9 ? 200 : 100);
              });
}

TEST(PtxWarp, Faults) {
  auto expectFault = [](const std::string &body, ptx::FaultKind kind,
                        const std::string &text) {
    Kernel kernel(makeModule("", "mov.u32 %r0, %laneid;" + body));
    kernel.shape.block = {32, 1, 1};
    kernel.expectFault(kind, {}, {text});
  };
  expectFault("shfl.sync.bfly.b32 %r1, %r0, 1, 31, 0xff;",
              ptx::FaultKind::Undefined, "disagree on the member mask");
  expectFault("setp.lt.u32 %p0, %r0, 8;"
              "@%p0 shfl.sync.bfly.b32 %r1, %r0, 8, 31, 0xff;",
              ptx::FaultKind::Undefined, "does not take part");
  expectFault("setp.lt.u32 %p0, %r0, 8;"
              "@%p0 shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;",
              ptx::FaultKind::Barrier, "excludes lanes");
}

TEST(PtxWarp, SpecialRegisters) {
  Kernel kernel(makeModule(
      ".param .u64 out",
      "mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %ntid.x;\n"
      "mad.lo.s32 %r3, %r1, %r2, %r0;\n"
      "mov.u32 %r4, %ctaid.y; mov.u32 %r5, %nctaid.y; mov.u32 %r6, %warpid;\n"
      "mov.u32 %r7, %lanemask_lt; popc.b32 %r7, %r7;\n"
      "mov.u32 %r8, %cluster_nctarank; mov.u64 %d5, %gridid;\n"
      "ld.param.b64 %d0, [out]; mul.wide.u32 %d1, %r3, 16;\n"
      "add.s64 %d1, %d0, %d1;\n"
      "mad.lo.s32 %r9, %r4, 100, %r5; mad.lo.s32 %r9, %r6, 10000, %r9;\n"
      "setp.eq.s32 %p0, %r4, 2; @!%p0 ret;\n"
      "st.global.v4.b32 [%d1], {%r1, %r9, %r7, %r8};"));
  std::vector<uint32_t> out(4 * 60);
  kernel.shape.block = {6, 10, 1};
  kernel.shape.grid = {1, 3, 1};
  kernel.run({kernel.memory.add(out, ptx::Access::WriteOnly, "out")});
  for (uint32_t i = 0; i < 60; ++i) {
    EXPECT_EQ(out[4 * i], i / 6);
    EXPECT_EQ(out[4 * i + 1], i / 32 * 10000 + 203);
    EXPECT_EQ(out[4 * i + 2], i % 32);
    EXPECT_EQ(out[4 * i + 3], 1u);
  }
}
