//===- PipelineTest.cpp - seeded faults of a producer and its consumers ---===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include "ptx/TensorMap.h"

using namespace posenc;
using namespace posenc::test;
using ptx::FaultKind;
using ptx::TensorMap;

namespace {

// A producer copies tiles of 16 x 64 elements to two stages; a warpgroup sums
// the products of A and each tile. Each stage has an mbarrier that it is full,
// and one that all four warps have released it.
const char *pipeline = R"(
  .shared .align 1024 .b8 s[4096];
  .shared .align 8 .b8 m[32];
  .reg .b32 %a<4>;
  .reg .b32 %c<32>;
  mov.b64 %d0, map; cvta.param.u64 %d0, %d0;
  ld.param.b64 %d1, [a]; ld.param.b64 %d2, [out]; ld.param.b32 %r20, [tiles];
  mov.u32 %r0, %tid.x; mov.u32 %r1, s; mov.u32 %r2, m;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra $READY;
  mbarrier.init.shared.b64 [%r2], 1;
  mbarrier.init.shared.b64 [%r2+8], 1;
  mbarrier.init.shared.b64 [%r2+16], 4;
  mbarrier.init.shared.b64 [%r2+24], 4;
  fence.mbarrier_init.release.cluster;
$READY:
  bar.sync 0;
  mov.b32 %r3, 0;
  setp.ge.u32 %p1, %r0, 128;
  @%p1 bra $CONSUMER;

  setmaxnreg.dec.sync.aligned.u32 24;
  @%p0 bra $END;
$PRODUCE:
  and.b32 %r4, %r3, 1; shl.b32 %r5, %r4, 3; add.s32 %r5, %r2, %r5;
  bfe.u32 %r6, %r3, 1, 1; xor.b32 %r7, %r6, 1;
$EMPTY: mbarrier.try_wait.parity.shared.b64 %p2, [%r5+16], %r7;
  @!%p2 bra $EMPTY;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 2048;
  shl.b32 %r8, %r4, 11; add.s32 %r8, %r1, %r8; shl.b32 %r9, %r3, 4;
  mov.b32 %r10, 0;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r8], [%d0, {%r10, %r9}], [%r5];
  add.s32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, %r20; @%p3 bra $PRODUCE;
  bra.uni $END;

$CONSUMER:
  setmaxnreg.inc.sync.aligned.u32 160;
  sub.s32 %r11, %r0, 128; mad.wide.u32 %d1, %r11, 16, %d1;
  ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%d1];
  mov.u32 %r12, %laneid; setp.eq.u32 %p4, %r12, 0;
$CONSUME:
  and.b32 %r4, %r3, 1; shl.b32 %r5, %r4, 3; add.s32 %r5, %r2, %r5;
  bfe.u32 %r6, %r3, 1, 1;
$FULL: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], %r6;
  @!%p2 bra $FULL;
  shl.b32 %r8, %r4, 11; add.s32 %r8, %r1, %r8; shr.u32 %r8, %r8, 4;
  cvt.u64.u32 %d3, %r8; or.b64 %d3, %d3, 0x4000004000000000;
  setp.ne.u32 %p5, %r3, 0;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
    {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7, %c8, %c9, %c10, %c11, %c12, %c13,
     %c14, %c15, %c16, %c17, %c18, %c19, %c20, %c21, %c22, %c23, %c24, %c25,
     %c26, %c27, %c28, %c29, %c30, %c31},
    {%a0, %a1, %a2, %a3}, %d3, %p5, 1, 1, 1;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  @%p4 mbarrier.arrive.shared.b64 _, [%r5+16];
  add.s32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, %r20; @%p3 bra $CONSUME;
  mad.wide.u32 %d2, %r11, 128, %d2;
  STORES
$END:
)";

std::string makeText(std::string body) {
  std::string stores;
  for (unsigned i = 0; i < 32; ++i)
    stores += "st.global.b32 [%d2+" + std::to_string(4 * i) + "], %c" +
              std::to_string(i) + ";\n";
  body.replace(body.find("STORES"), 6, stores);
  std::string text = makeModule(".param .align 64 .b8 map[128], .param .u64 a, "
                                ".param .u64 out, .param .b32 tiles",
                                body, ".maxntid 256");
  return text.replace(text.find("sm_90"), 5, "sm_90a");
}

/// A run of the pipeline. `edits` are pairs of a text and its replacement.
class Pipeline {
public:
  using Edits = std::vector<std::pair<std::string, std::string>>;
  static constexpr unsigned tiles = 7;

  explicit Pipeline(uint32_t seed, const Edits &edits = {},
                    TensorMap::Swizzle swizzle = TensorMap::Swizzle128)
      : a(128 * 8), b(tiles * 16 * 64), out(128 * 32) {
    std::string body = pipeline;
    for (const auto &[from, to] : edits) {
      size_t at = body.find(from);
      EXPECT_NE(at, std::string::npos) << from;
      body.replace(at, from.size(), to);
    }
    kernel.emplace(makeText(body));
    // bf16 of the numbers 1 to 8 of A, and of -8 to 7 of B.
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = toBFloat(1 + i * 5 % 8);
    for (size_t i = 0; i < b.size(); ++i)
      b[i] = toBFloat(float(i * 37 % 61 % 16) - 8);
    TensorMap map;
    map.rank = 2;
    map.elementBytes = 2;
    map.swizzle = swizzle;
    map.address = kernel->memory.add(b, ptx::Access::ReadOnly, "b");
    map.sizes[0] = 64;
    map.sizes[1] = tiles * 16;
    map.strides[0] = 128;
    map.box[0] = 64;
    map.box[1] = 16;
    arguments = {map, kernel->memory.add(a, ptx::Access::ReadOnly, "a"),
                 kernel->memory.add(out, ptx::Access::ReadWrite, "out"),
                 uint32_t(tiles)};
    kernel->shape.block = {256, 1, 1};
    kernel->options.seed = seed;
    kernel->options.instructionLimit = 1000000;
  }

  // Whether the results are those of the formula.
  bool isRight() {
    for (unsigned thread = 0; thread < 128; ++thread)
      for (unsigned i = 0; i < 32; ++i) {
        unsigned column = i / 4 * 8 + thread % 4 * 2 + i % 2;
        // The lane that has the row of A for the accumulator.
        bool isLow = i % 4 >= 2;
        float sum = 0;
        for (unsigned k = 0; k < 16; ++k) {
          unsigned owner = thread / 4 * 4 + k % 8 / 2,
                   element = k % 2 + (isLow ? 2 : 0) + (k >= 8 ? 4 : 0);
          for (unsigned tile = 0; tile < tiles; ++tile)
            sum += toFloat(a[owner * 8 + element]) *
                   toFloat(b[(tile * 16 + k) * 64 + column]);
        }
        if (out[thread * 32 + i] != sum)
          return false;
      }
    return true;
  }

  std::optional<Kernel> kernel;
  std::vector<ptx::Argument> arguments;

private:
  static uint16_t toBFloat(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits >> 16;
  }
  static float toFloat(uint16_t half) {
    uint32_t bits = uint32_t(half) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }

  std::vector<uint16_t> a, b;
  std::vector<float> out;
};

// Expects a fault of one of the kinds in every schedule.
void expectFaults(const Pipeline::Edits &edits,
                  const std::vector<FaultKind> &kinds) {
  for (uint32_t seed = 0; seed < 9; ++seed) {
    Pipeline run(seed, edits);
    std::optional<FaultKind> fault = run.kernel->getFault(run.arguments);
    bool isExpected = false;
    for (FaultKind kind : kinds)
      isExpected |= fault == kind;
    EXPECT_TRUE(isExpected) << edits.front().first << ", seed " << seed
                            << ", fault " << (fault ? int(*fault) : -1);
  }
}

const std::string commit = "wgmma.commit_group.sync.aligned;",
                  productWait = "wgmma.wait_group.sync.aligned 0;",
                  release = "@%p4 mbarrier.arrive.shared.b64 _, [%r5+16];";

} // namespace

TEST(PtxPipeline, IsRight) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    Pipeline run(seed);
    run.kernel->run(run.arguments);
    EXPECT_TRUE(run.isRight()) << seed;
  }
}

TEST(PtxPipeline, MissingWaits) {
  expectFaults({{"@!%p2 bra $FULL;", ""}},
               {FaultKind::Race, FaultKind::Uninitialized});
  expectFaults({{"@!%p2 bra $EMPTY;", ""}},
               {FaultKind::Race, FaultKind::Barrier});
  expectFaults({{productWait, ""}}, {FaultKind::Race});
  expectFaults({{commit, ""}}, {FaultKind::Race});
}

TEST(PtxPipeline, WrongPhases) {
  expectFaults({{"[%r5], %r6;", "[%r5], %r7;"},
                {"bfe.u32 %r6, %r3, 1, 1;\n$FULL",
                 "bfe.u32 %r6, %r3, 1, 1; xor.b32 %r7, %r6, 1;\n$FULL"}},
               {FaultKind::Race, FaultKind::Uninitialized, FaultKind::Barrier});
  expectFaults({{"[%r5+16], %r7;", "[%r5+16], %r6;"}},
               {FaultKind::Barrier, FaultKind::Race});
  // The phase changes with each tile instead of each round of the stages.
  expectFaults(
      {{"bfe.u32 %r6, %r3, 1, 1;\n$FULL", "and.b32 %r6, %r3, 1;\n$FULL"}},
      {FaultKind::Race, FaultKind::Uninitialized, FaultKind::Barrier});
}

TEST(PtxPipeline, EarlyRelease) {
  // Before the product is complete, and before it begins.
  expectFaults({{release, ""}, {productWait, release + productWait}},
               {FaultKind::Race});
  expectFaults(
      {{release, ""},
       {"wgmma.fence.sync.aligned;", release + "wgmma.fence.sync.aligned;"}},
      {FaultKind::Race});
}

TEST(PtxPipeline, LostRelease) {
  expectFaults({{release, ""}}, {FaultKind::Barrier});
  // More warps than arrive, and fewer.
  expectFaults({{"[%r2+24], 4", "[%r2+24], 5"}}, {FaultKind::Barrier});
  expectFaults({{"[%r2+24], 4", "[%r2+24], 3"}},
               {FaultKind::Barrier, FaultKind::Race});
  expectFaults({{"_, [%r5], 2048", "_, [%r5], 2064"}}, {FaultKind::Barrier});
}

TEST(PtxPipeline, MissingFences) {
  expectFaults({{"wgmma.fence.sync.aligned;", ""}}, {FaultKind::Race});
  expectFaults({{"fence.mbarrier_init.release.cluster;", ""}},
               {FaultKind::Race});
  expectFaults({{"bar.sync 0;", ""}}, {FaultKind::Race, FaultKind::Undefined});
  // The first tile is not copied but written by ordinary stores.
  Pipeline::Edits edits = {{"$PRODUCE:\n",
                            "mov.b32 %r13, 0;\n$S: add.s32 %r14, %r1, %r13;"
                            "st.shared.b32 [%r14], 0; add.s32 %r13, %r13, 4;"
                            "setp.lt.u32 %p6, %r13, 2048; @%p6 bra $S;"
                            "fence.proxy.async.shared::cta;"
                            "mbarrier.arrive.shared.b64 _, [%r2];"
                            "mov.b32 %r3, 1;\n$PRODUCE:\n"}};
  for (uint32_t seed = 0; seed < 9; ++seed) {
    Pipeline run(seed, edits);
    run.kernel->run(run.arguments);
  }
  std::string &text = edits[0].second;
  std::string fence = "fence.proxy.async.shared::cta;";
  text.erase(text.find(fence), fence.size());
  expectFaults(edits, {FaultKind::Race});
}

// A wrong layout makes the results wrong, or reads a stage that is in flight.
TEST(PtxPipeline, WrongSwizzle) {
  auto expectWrong = [](const Pipeline::Edits &edits,
                        TensorMap::Swizzle swizzle) {
    Pipeline run(0, edits, swizzle);
    EXPECT_TRUE(run.kernel->getFault(run.arguments) || !run.isRight())
        << (edits.empty() ? "" : edits[0].second) << int(swizzle);
  };
  // The descriptor has 64 bytes, 32 bytes or none; then it is transposed.
  for (const char *descriptor :
       {"0x8000004000000000", "0xC000004000000000", "0x0000004000000000"})
    expectWrong({{"0x4000004000000000", descriptor}}, TensorMap::Swizzle128);
  expectWrong({{"%d3, %p5, 1, 1, 1;", "%d3, %p5, 1, 1, 0;"}},
              TensorMap::Swizzle128);
  // The tensor map has no swizzle.
  expectWrong({}, TensorMap::None);
}

TEST(PtxPipeline, LostWarp) {
  // One warp skips the last tile.
  expectFaults(
      {{"$CONSUME:\n", "shr.u32 %r15, %r0, 5; setp.eq.u32 %p7, %r15, 7;"
                       "selp.b32 %r20, 6, 7, %p7;\n$CONSUME:\n"}},
      {FaultKind::Undefined, FaultKind::Barrier});
}
