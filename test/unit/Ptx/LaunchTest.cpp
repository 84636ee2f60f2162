//===- LaunchTest.cpp - launches in the PTX interpreter -------------------===//
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

void expectRefused(const std::string &text, const ptx::LaunchShape &shape,
                   const std::vector<ptx::Argument> &arguments,
                   const std::string &message) {
  Kernel kernel(text);
  kernel.shape = shape;
  kernel.expectFault(ptx::FaultKind::Launch, arguments, {message});
}

} // namespace

TEST(PtxLaunch, Shapes) {
  std::string limited = makeModule("", "", ".maxntid 64, 2, 1");
  expectRefused(limited, {{1, 1, 1}, {129, 1, 1}, 0}, {}, "at most 64 x 2 x 1");
  Kernel fits(limited);
  fits.shape.block = {128, 1, 1};
  fits.run({});
  std::string exact = makeModule("", "", ".reqntid 64\n.minnctapersm 2");
  expectRefused(exact, {{1, 1, 1}, {32, 1, 1}, 0}, {}, "requires blocks");
  std::string any = makeModule("", "");
  expectRefused(any, {{0, 1, 1}, {32, 1, 1}, 0}, {}, "is empty");
  expectRefused(any, {{1, 65536, 1}, {32, 1, 1}, 0}, {}, "grid");
  expectRefused(any, {{1, 1, 1}, {1025, 1, 1}, 0}, {}, "block of 1025");
  expectRefused(makeModule("", "", ".reqnctapercluster 2, 1, 1"),
                {{2, 1, 1}, {32, 1, 1}, 0}, {}, "clusters");
}

TEST(PtxLaunch, Arguments) {
  std::string text = makeModule(".param .u64 a, .param .u32 b", "");
  expectRefused(text, {}, {uint64_t(1)}, "has 2 parameters, not 1");
  expectRefused(text, {}, {uint64_t(1), uint64_t(2)}, "'b' has 4 bytes, not 8");
  Kernel kernel(text);
  kernel.run({uint64_t(1), uint32_t(2)});
}

TEST(PtxLaunch, SharedMemory) {
  std::string text = makeModule("",
                                "st.shared.b32 [s+4], 1;\n"
                                "st.shared.b32 [t], 1;\n"
                                "st.shared.b32 [dynamic+12], 1;",
                                "",
                                ".extern .shared .align 16 .b8 dynamic[];\n"
                                ".shared .align 4 .b8 s[20];\n"
                                ".shared .align 8 .b8 t[40000];\n"
                                ".shared .align 8 .b8 unused[40000];\n");
  // s is at 0 to 20, t at 24 to 40024, and dynamic memory starts at 40032.
  Kernel kernel(text);
  kernel.shape.dynamicShared = 9000;
  kernel.run({});
  EXPECT_EQ(kernel.statistics.staticShared, 40032u);
  expectRefused(text, {{1, 1, 1}, {1, 1, 1}, 10000}, {},
                "needs 50032 bytes of shared memory; the limit is 49152");
  Kernel small(text);
  small.shape.dynamicShared = 8;
  small.expectFault(ptx::FaultKind::OutOfBounds, {}, {"shared memory has"});
  Kernel large(text);
  large.shape.dynamicShared = 10000;
  large.options.sharedLimit = 64 << 10;
  large.run({});
}

// Dynamic shared memory has the declared alignment, and no more.
TEST(PtxLaunch, AlignmentOfDynamicShared) {
  for (uint32_t align : {4, 16, 1024}) {
    for (uint32_t staticBytes : {4, 2048}) {
      Kernel kernel(makeModule(
          ".param .u64 out",
          "st.shared.b32 [t], 1; mov.u32 %r0, d; ld.param.b64 %d0, [out];\n"
          "st.shared.b32 [d+96], 2; st.global.b32 [%d0], %r0;",
          "",
          ".shared .align 4 .b8 t[" + std::to_string(staticBytes) +
              "];\n.extern .shared .align " + std::to_string(align) +
              " .b8 d[];\n"));
      std::vector<uint32_t> out(1);
      kernel.shape.dynamicShared = 100;
      kernel.run({kernel.memory.add(out, ptx::Access::WriteOnly, "out")});
      EXPECT_GE(out[0], staticBytes);
      EXPECT_EQ(out[0] % (2 * align), align);
    }
  }
}

TEST(PtxLaunch, NoSuchKernel) {
  ptx::Memory memory;
  auto module = llvm::cantFail(ptx::Module::parse(makeModule("", "")));
  llvm::Error error = module.launch("other", {}, {}, memory);
  EXPECT_EQ(llvm::toString(std::move(error)), "no kernel 'other'");
  EXPECT_EQ(module.getKernels(), std::vector<std::string>{"k"});
  EXPECT_EQ(module.getTarget(), "sm_90");
}

TEST(PtxLaunch, ResultsDoNotDependOnTheSchedule) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    Kernel kernel(makeModule(
        ".param .u64 out",
        ".shared .align 4 .b8 s[1024]; mov.b64 %d3, s;\n"
        "ld.param.b64 %d0, [out]; mov.u32 %r0, %tid.x;\n"
        "mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d3, %d1;\n"
        "add.s64 %d1, %d0, %d1;\n"
        "mul.lo.s32 %r1, %r0, 3; st.shared.b32 [%d2], %r1; bar.sync 0;\n"
        "xor.b32 %r2, %r0, 255; mul.wide.u32 %d4, %r2, 4;\n"
        "add.s64 %d4, %d3, %d4; ld.shared.b32 %r3, [%d4];\n"
        "st.global.b32 [%d1], %r3;"));
    std::vector<uint32_t> out(256);
    kernel.shape.block = {256, 1, 1};
    kernel.options.seed = seed;
    kernel.run({kernel.memory.add(out, ptx::Access::WriteOnly, "out")});
    for (uint32_t i = 0; i < 256; ++i)
      EXPECT_EQ(out[i], 3 * (i ^ 255));
  }
}
