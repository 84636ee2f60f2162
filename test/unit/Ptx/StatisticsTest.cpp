//===- StatisticsTest.cpp - statistics of the PTX interpreter -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "ptx/LoadTrips.h"

using namespace posenc;
using namespace posenc::test;

namespace {

// Returns the statistics of a load by each of 32 lanes from addresses `stride`
// bytes apart.
ptx::Statistics load(const std::string &type, const std::string &to,
                     unsigned stride, uint64_t offset = 0) {
  Kernel kernel(makeModule(
      ".param .u64 in", "ld.param.b64 %d0, [in]; mov.u32 %r0, %tid.x;\n"
                        "mul.wide.u32 %d1, %r0, " +
                            std::to_string(stride) +
                            "; add.s64 %d1, %d0, %d1;\nld.global" + type + " " +
                            to + ", [%d1+" + std::to_string(offset) + "];"));
  std::vector<uint8_t> in(8192);
  kernel.shape.block = {32, 1, 1};
  kernel.run({kernel.memory.add(in, ptx::Access::ReadOnly, "in")});
  return kernel.statistics;
}

// Returns the passes of a store to shared memory by each of 32 lanes to
// addresses `stride` bytes apart.
uint64_t countPasses(const std::string &type, const std::string &from,
                     unsigned stride) {
  Kernel kernel(makeModule(
      "", ".shared .align 16 .b8 s[8192]; mov.b64 %d0, s;\n"
          "mov.u32 %r0, %tid.x; mov.b64 %d2, 0; mov.b64 %d3, 0;\n"
          "mul.wide.u32 %d1, %r0, " +
              std::to_string(stride) + "; add.s64 %d1, %d0, %d1;\nst.shared" +
              type + " [%d1], " + from + ";"));
  kernel.shape.block = {32, 1, 1};
  kernel.run({});
  EXPECT_EQ(kernel.statistics.sharedAccesses, 1u);
  return kernel.statistics.sharedPasses;
}

} // namespace

TEST(PtxStatistics, GlobalTransactions) {
  ptx::Statistics dense = load(".b32", "%r1", 4);
  EXPECT_EQ(dense.loads, 1u);
  EXPECT_EQ(dense.loadedBytes, 128u);
  EXPECT_EQ(dense.loadSectors, 4u);
  EXPECT_EQ(dense.loadLines, 1u);
  ptx::Statistics vector = load(".v4.b32", "{%r1, %r2, %r3, %r4}", 16);
  EXPECT_EQ(vector.loadSectors, 16u);
  EXPECT_EQ(vector.loadLines, 4u);
  ptx::Statistics strided = load(".b32", "%r1", 128);
  EXPECT_EQ(strided.loadSectors, 32u);
  EXPECT_EQ(strided.loadLines, 32u);
  ptx::Statistics shifted = load(".b32", "%r1", 4, 16);
  EXPECT_EQ(shifted.loadSectors, 5u);
  EXPECT_EQ(shifted.loadLines, 2u);
  ptx::Statistics one = load(".b32", "%r1", 0);
  EXPECT_EQ(one.loadSectors, 1u);
}

TEST(PtxStatistics, SharedMemoryBanks) {
  EXPECT_EQ(countPasses(".b32", "%r0", 4), 1u);
  EXPECT_EQ(countPasses(".b32", "%r0", 8), 2u);
  EXPECT_EQ(countPasses(".b32", "%r0", 128), 32u);
  EXPECT_EQ(countPasses(".b32", "%r0", 132), 1u);
  EXPECT_EQ(countPasses(".b64", "%d2", 8), 2u);
  EXPECT_EQ(countPasses(".v2.b64", "{%d2, %d3}", 16), 4u);
}

TEST(PtxStatistics, Instructions) {
  Kernel kernel(
      makeModule(".param .u64 out",
                 "ld.param.b64 %d0, [out]; mov.u32 %r0, %tid.x;\n"
                 "setp.lt.u32 %p0, %r0, 8; @%p0 bra $A; add.s32 %r1, %r0, 1;\n"
                 "add.s32 %r1, %r1, 1; $A: st.global.b32 [%d0], 1;"));
  std::vector<uint32_t> out(1);
  kernel.shape.block = {40, 1, 1};
  kernel.shape.grid = {2, 1, 1};
  kernel.run({kernel.memory.add(out, ptx::Access::WriteOnly, "out")});
  const ptx::Statistics &statistics = kernel.statistics;
  EXPECT_EQ(statistics.instructions.at("add.s32").warps, 8u);
  EXPECT_EQ(statistics.instructions.at("add.s32").threads, 2u * 2 * 32);
  EXPECT_EQ(statistics.countThreads("st.global"), 80u);
  EXPECT_EQ(statistics.divergentBranches, 2u);
  EXPECT_EQ(statistics.storedBytes, 320u);
  EXPECT_EQ(statistics.rewrittenBytes, 4u * 79);
  EXPECT_EQ(statistics.threadInstructions, 80u * 5 + 2 * 8 + 2 * 2 * 32);
}

// A thread waits for loads at the first use of a register that one of them
// writes; moves are no uses.
TEST(PtxStatistics, RoundTrips) {
  auto countTrips = [](const std::string &body) {
    Kernel kernel(
        makeModule(".param .u64 in", "ld.param.b64 %d0, [in];\n" + body));
    std::vector<uint64_t> in(16);
    kernel.shape.block = {32, 1, 1};
    kernel.run({kernel.memory.add(in, ptx::Access::ReadOnly, "in")});
    return kernel.statistics.roundTrips;
  };
  const std::string first = "ld.global.b64 %d1, [%d0];\n",
                    second = "ld.global.b64 %d2, [%d0+8];\n",
                    useFirst = "add.s64 %d3, %d1, 1;\n",
                    useSecond = "add.s64 %d3, %d2, 1;\n";
  EXPECT_EQ(countTrips(first), 0u);
  EXPECT_EQ(countTrips(first + second + useFirst + useSecond), 1u);
  EXPECT_EQ(countTrips(first + useFirst + second + useSecond), 2u);
  EXPECT_EQ(countTrips(first + "mov.b64 %d3, %d1;\n" + second + useSecond +
                       "add.s64 %d3, %d3, 1;\n"),
            1u);
  EXPECT_EQ(countTrips(first + "mov.b64 %d1, 0;\n" + useFirst), 0u);
  // An address that was loaded.
  EXPECT_EQ(countTrips(first +
                       "add.s64 %d1, %d0, %d1;\n"
                       "ld.global.b64 %d2, [%d1];\n" +
                       useSecond),
            2u);
  // More trips than 16 bits count.
  EXPECT_EQ(countTrips("mov.b32 %r0, 0;\n$LOOP:\n" + first + useFirst +
                       "add.s32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 70000;\n"
                       "@%p0 bra $LOOP;\n"),
            70000u);
}

// Another launch of the same warps begins without loads, also if its kernel has
// fewer registers.
TEST(PtxStatistics, RoundTripsOfAnotherKernel) {
  ptx::LoadTrips trips;
  trips.reset(100);
  trips.addLoad(99, 3);
  trips.reset(2);
  trips.addLoad(1, 0);
  EXPECT_EQ(trips.use({1}, ~ptx::LaneMask(0)), 1u);
  trips.reset(100);
  EXPECT_EQ(trips.use({99}, ~ptx::LaneMask(0)), 0u);
}
