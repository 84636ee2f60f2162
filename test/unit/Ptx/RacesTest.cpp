//===- RacesTest.cpp - race detection in the PTX interpreter --------------===//
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

const char *prologue =
    ".shared .align 16 .b8 s[1024];\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r9, %ctaid.x; mov.b64 %d0, s;\n"
    "mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;\n"
    "xor.b32 %r1, %r0, 32; mul.wide.u32 %d2, %r1, 4; add.s64 %d2, %d0, %d2;\n"
    "xor.b32 %r1, %r0, 1; mul.wide.u32 %d3, %r1, 4; add.s64 %d3, %d0, %d3;\n";

// Runs a block of two warps in three schedules and expects a race in each.
void expectRace(const std::string &body, const std::string &text) {
  for (uint32_t seed : {0, 1, 2}) {
    Kernel kernel(makeModule("", prologue + body));
    kernel.shape.block = {64, 1, 1};
    kernel.options.seed = seed;
    kernel.expectFault(ptx::FaultKind::Race, {}, {"data race", text});
  }
}
// The same, but expects no race.
void expectNone(const std::string &body) {
  for (uint32_t seed : {0, 1, 2, 3}) {
    Kernel kernel(makeModule("", prologue + body));
    kernel.shape.block = {64, 1, 1};
    kernel.options.seed = seed;
    kernel.run({});
  }
}

} // namespace

TEST(PtxRaces, BetweenWarps) {
  // %d2 is the address of a thread of the other warp.
  expectNone("st.shared.b32 [%d1], %r0; bar.sync 0; ld.shared.b32 %r2, [%d2]; "
             "add.s32 %r2, %r2, 0;");
  expectNone("st.shared.b32 [%d1], %r0; bar.sync 0; ld.shared.b32 %r2, [%d2]; "
             "add.s32 %r2, %r2, 0;"
             "bar.sync 0; st.shared.b32 [%d1], %r9;");
  // The second barrier is missing, so a warp may write before the other reads.
  expectRace("st.shared.b32 [%d1], %r0; bar.sync 0; ld.shared.b32 %r2, [%d2]; "
             "add.s32 %r2, %r2, 0;"
             "st.shared.b32 [%d1], %r9;",
             "shared.b32");
  // All warps may read the same byte.
  expectNone("st.shared.b32 [%d1], %r0; bar.sync 0; ld.shared.b32 %r2, [%d0]; "
             "add.s32 %r2, %r2, 0;"
             "ld.shared.b32 %r3, [%d0]; add.s32 %r3, %r3, 0; bar.sync 0; "
             "st.shared.b32 [%d1], %r9;");
  expectRace("st.shared.b32 [%d1], %r0; bar.sync 0; ld.shared.b32 %r2, [%d0]; "
             "add.s32 %r2, %r2, 0;"
             "st.shared.b32 [%d1], %r9;",
             "another thread read here");
}

TEST(PtxRaces, WithinAWarp) {
  // %d3 is the address of another lane of the warp.
  std::string read = "ld.shared.b32 %r2, [%d3]; add.s32 %r2, %r2, 0;";
  expectRace("st.shared.b32 [%d1], %r0;" + read, "wrote here");
  expectNone("st.shared.b32 [%d1], %r0; bar.warp.sync -1;" + read);
  // bar.warp.sync does not order the accesses of the other warp.
  expectRace("st.shared.b32 [%d1], 1; bar.sync 0; st.shared.b32 [%d1], %r0;"
             "bar.warp.sync -1; ld.shared.b32 %r2, [%d2]; add.s32 %r2, %r2, 0;",
             "shared.b32");
}

TEST(PtxRaces, StoresOfDifferentValues) {
  expectRace("st.shared.b32 [%d0], %r0;", "st.shared.b32");
  expectNone("st.shared.b32 [%d0], 5;");
  expectNone("setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.b32 [%d0], 0;"
             "bar.sync 0; atom.shared.add.u32 %r2, [%d0], 1;");
  // An atomic and a plain access.
  expectRace("setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.b32 [%d0], 0;"
             "bar.sync 0; setp.eq.u32 %p0, %r0, 40; @%p0 bra $PLAIN;"
             "atom.shared.add.u32 %r2, [%d0], 1; bra.uni $END;"
             "$PLAIN: st.shared.b32 [%d0], -1; $END:",
             "shared");
}

TEST(PtxRaces, BarriersOfSomeWarps) {
  // A barrier of warps 0 and 1.
  std::string hand =
      "shr.u32 %r2, %r0, 5; setp.eq.u32 %p0, %r2, 0;"
      "@%p0 st.shared.b32 [%d1], %r0;"
      "setp.gt.u32 %p1, %r2, 1; @%p1 bra $THIRD;"
      "bar.sync 1, 64;"
      "setp.eq.u32 %p2, %r2, 1;"
      "@%p2 ld.shared.b32 %r3, [%d2]; @%p2 add.s32 %r3, %r3, 0; bra.uni $END;";
  auto run = [&](const std::string &third, bool isRace) {
    Kernel kernel(
        makeModule("", prologue + hand + "$THIRD: " + third + "$END:"));
    kernel.shape.block = {96, 1, 1};
    if (isRace)
      kernel.expectFault(ptx::FaultKind::Race, {}, {"data race"});
    else
      kernel.run({});
  };
  run("", false);
  // Warp 2 does not take part in the barrier.
  run("sub.s32 %r4, %r0, 64; mul.wide.u32 %d4, %r4, 4;"
      "add.s64 %d4, %d0, %d4; st.shared.b32 [%d4], 99;",
      true);
}

TEST(PtxRaces, ArrivalsDoNotWait) {
  std::string body = "shr.u32 %r2, %r0, 5; setp.eq.u32 %p0, %r2, 0;"
                     "@!%p0 bra $CONSUMER;"
                     "st.shared.b32 [%d1], %r0; bar.arrive 1, 64;";
  std::string consumer = "bra.uni $END;"
                         "$CONSUMER: bar.sync 1, 64;"
                         "ld.shared.b32 %r3, [%d2]; add.s32 %r3, %r3, 0; $END:";
  expectNone(body + consumer);
  expectRace(body + "st.shared.b32 [%d1], -1;" + consumer, "data race");
}

// A racing load is allowed if its value is not used.
TEST(PtxRaces, UnusedValues) {
  std::string load = "st.shared.b32 [%d1], 1; bar.sync 0;"
                     "ld.shared.v2.b32 {%r2, %r3}, [%d4];";
  std::string address = "and.b32 %r4, %r1, 62; mul.wide.u32 %d4, %r4, 4;"
                        "add.s64 %d4, %d0, %d4;";
  std::string store = "st.shared.b32 [%d1], %r0;";
  expectNone(address + load + store);
  expectNone(address + load + store + "mov.b32 %r2, 1; add.s32 %r5, %r2, 1;");
  expectRace(address + load + store + "add.s32 %r5, %r2, 1;",
             "ld.shared.v2.b32: shared byte");
  expectRace(address + load + "add.s32 %r5, %r3, 1;" + store, "shared");
  // A barrier orders earlier loads, whenever their values are used.
  expectNone(address + load + "bar.sync 0;" + store + "add.s32 %r5, %r2, 1;");
  expectRace(address + load + store + "bar.sync 0;", "ld.shared.v2.b32");
}

TEST(PtxRaces, GlobalMemory) {
  const char *start = "ld.param.b64 %d5, [out]; mov.u32 %r0, %tid.x;"
                      "mov.u32 %r9, %ctaid.x;"
                      "mad.lo.s32 %r1, %r9, 64, %r0;"
                      "mul.wide.u32 %d6, %r1, 4; add.s64 %d6, %d5, %d6;";
  auto run = [&](const std::string &body, bool isRace) {
    Kernel kernel(makeModule(".param .u64 out", start + body));
    kernel.shape.block = {64, 1, 1};
    kernel.shape.grid = {3, 1, 1};
    std::vector<uint32_t> out(192, 7);
    uint64_t address = kernel.memory.add(out, ptx::Access::ReadWrite, "out");
    if (isRace)
      kernel.expectFault(ptx::FaultKind::Race, {address}, {"data race"});
    else
      kernel.run({address});
  };
  run("ld.global.b32 %r2, [%d6]; add.s32 %r2, %r2, 0; st.global.b32 [%d6], "
      "%r1;",
      false);
  // Barriers do not order the accesses of different blocks.
  run("st.global.b32 [%d6], %r1; bar.sync 0; ld.global.b32 %r2, [%d5+4]; "
      "add.s32 %r2, %r2, 0;",
      true);
  run("ld.global.b32 %r2, [%d5]; add.s32 %r2, %r2, 0; bar.sync 0; "
      "st.global.b32 [%d6], %r1;",
      true);
  run("st.global.b32 [%d5], %r9;", true);
  run("st.global.b32 [%d5], 3;", false);
  run("atom.global.add.u32 %r2, [%d5], 1;", false);
  // Threads of one block are ordered by its barriers.
  run("xor.b32 %r3, %r1, 32; mul.wide.u32 %d7, %r3, 4; add.s64 %d7, %d5, %d7;"
      "st.global.b32 [%d6], %r1; bar.sync 0; ld.global.b32 %r2, [%d7]; add.s32 "
      "%r2, %r2, 0;",
      false);
  run("xor.b32 %r3, %r1, 32; mul.wide.u32 %d7, %r3, 4; add.s64 %d7, %d5, %d7;"
      "st.global.b32 [%d6], %r1; ld.global.b32 %r2, [%d7]; add.s32 %r2, %r2, "
      "0;",
      true);
}

TEST(PtxRaces, ChecksCanBeDisabled) {
  Kernel kernel(
      makeModule("", std::string(prologue) +
                         "st.shared.b32 [%d0], %r0;"
                         "ld.shared.b32 %r1, [%d0]; add.s32 %r1, %r1, 0;"));
  kernel.shape.block = {64, 1, 1};
  kernel.options.checkRaces = false;
  kernel.run({});
}
