//===- BarrierTest.cpp - barriers in the PTX interpreter ------------------===//
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

const char *prologue = "mov.u32 %r0, %tid.x; mov.u32 %r9, %laneid;\n";

void expectFault(const std::string &body, const std::string &text,
                 uint32_t threads = 64,
                 ptx::FaultKind kind = ptx::FaultKind::Barrier) {
  Kernel kernel(makeModule("", prologue + body));
  kernel.shape.block = {threads, 1, 1};
  kernel.expectFault(kind, {}, {text});
}
// Expects the kernel to run without a fault.
void expectNone(const std::string &body, uint32_t threads = 64) {
  Kernel kernel(makeModule("", prologue + body));
  kernel.shape.block = {threads, 1, 1};
  kernel.run({});
}

} // namespace

TEST(PtxBarrier, DivergedLanes) {
  // Lanes that wait at different barriers, and lanes excluded by a guard.
  expectFault("setp.lt.u32 %p0, %r9, 7; @%p0 bra $A; bra.uni $B;"
              "$A: bar.sync 0; bra.uni $C; $B: bar.sync 1; $C:",
              "of warp 0 wait at line");
  expectFault("setp.lt.u32 %p0, %r9, 7; @%p0 bar.sync 0;", "excludes lanes");
  // barrier.sync, which is not aligned, allows divergence.
  expectNone("setp.lt.u32 %p0, %r9, 7; @%p0 bra $A; barrier.sync 0;"
             "bra.uni $B; $A: barrier.sync 0; $B:");
}

TEST(PtxBarrier, MissingWarps) {
  expectFault("setp.lt.u32 %p0, %r0, 32; @!%p0 bra $END; bar.sync 0, 64; $END:",
              "deadlock: warp 0 waits");
  expectFault("setp.lt.u32 %p0, %r0, 32; @!%p0 bra $B; bar.sync 0; bra.uni $C;"
              "$B: bar.sync 1; $C:",
              "warp 1 waits");
  // Barriers do not wait for threads that have ended.
  expectNone("setp.lt.u32 %p0, %r0, 32; @!%p0 exit; bar.sync 0;");
  expectNone("setp.lt.u32 %p0, %r0, 40; @!%p0 ret; bar.sync 0;");
}

TEST(PtxBarrier, ThreadCounts) {
  expectNone("bar.sync 2, 64;");
  expectNone("bar.sync 2, 64;", 50);
  expectFault("bar.sync 2, 32; bar.sync 3, 128;", "deadlock");
  expectFault("bar.sync 2, 40;", "not a multiple of 32");
  expectFault("bar.sync 16;", "barrier 16 does not exist");
  expectFault("shr.u32 %r1, %r0, 5; add.s32 %r1, %r1, 2; shl.b32 %r1, %r1, 5;"
              "bar.sync 0, %r1;",
              "expects 96 threads here, but 64");
  expectFault("bar.sync %r9;", "disagree on the barrier");
}

TEST(PtxBarrier, Reductions) {
  Kernel kernel(makeModule(
      ".param .u64 out",
      std::string(prologue) +
          "ld.param.b64 %d0, [out];\n"
          "setp.lt.u32 %p0, %r0, 40; setp.ge.u32 %p1, %r0, 0;\n"
          "bar.red.popc.u32 %r1, 0, %p0; bar.red.and.pred %p2, 0, %p0;\n"
          "bar.red.or.pred %p3, 0, %p0; bar.red.and.pred %p4, 0, 64, %p1;\n"
          "selp.b32 %r2, 1, 0, %p2; selp.b32 %r3, 1, 0, %p3;\n"
          "selp.b32 %r4, 1, 0, %p4;\n"
          "st.global.v4.b32 [%d0], {%r1, %r2, %r3, %r4};"));
  std::vector<uint32_t> out(4);
  kernel.shape.block = {64, 1, 1};
  kernel.run({kernel.memory.add(out, ptx::Access::WriteOnly, "out")});
  EXPECT_EQ(out, (std::vector<uint32_t>{40, 0, 1, 1}));
  EXPECT_EQ(kernel.statistics.barriers, 4u);
}

TEST(PtxBarrier, WarpBarriers) {
  expectNone("setp.lt.u32 %p0, %r9, 7; @%p0 bra $A; bar.warp.sync -128;"
             "bra.uni $B; $A: bar.warp.sync 127; $B: bar.warp.sync -1;");
  expectFault("setp.lt.u32 %p0, %r9, 7; @%p0 bra $A; bar.warp.sync 127; $A:",
              "disagree on the member mask", 32, ptx::FaultKind::Undefined);
  expectFault("setp.lt.u32 %p0, %r9, 7; @%p0 bra $A; bar.warp.sync -1;"
              "bra.uni $B; $A: bar.sync 0; $B:",
              "deadlock", 32);
}
