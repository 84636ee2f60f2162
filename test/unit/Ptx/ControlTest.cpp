//===- ControlTest.cpp - branches and calls in the PTX interpreter --------===//
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

const char *prologue = "ld.param.b64 %d0, [out]; mov.u32 %r0, %tid.x;\n"
                       "mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;\n";

// Runs a kernel with one block and returns the %r1 that each thread stores.
std::vector<uint32_t> run(const std::string &body, unsigned threads,
                          const std::string &functions = "") {
  Kernel kernel(makeModule(".param .u64 out",
                           prologue + body + "\nst.global.b32 [%d1], %r1;", "",
                           functions));
  std::vector<uint32_t> out(threads, ~0u);
  kernel.shape.block = {threads, 1, 1};
  kernel.run({kernel.memory.add(out, ptx::Access::WriteOnly, "out")});
  return out;
}

} // namespace

TEST(PtxControl, DivergedLanesReconverge) {
  // A loop with a trip count that differs between lanes, and a branch.
  std::vector<uint32_t> out = run("mov.b32 %r1, 0; mov.b32 %r2, 0;\n"
                                  "$LOOP: setp.ge.u32 %p0, %r2, %r0;\n"
                                  "@%p0 bra $DONE;\n"
                                  "add.s32 %r1, %r1, %r2;\n"
                                  "add.s32 %r2, %r2, 1;\n"
                                  "bra.uni $LOOP;\n"
                                  "$DONE: and.b32 %r3, %r0, 1;\n"
                                  "setp.eq.s32 %p1, %r3, 0;\n"
                                  "@!%p1 bra $ODD;\n"
                                  "add.s32 %r1, %r1, 1000;\n"
                                  "$ODD:\n"
                                  // All lanes of the warp have reconverged.
                                  "activemask.b32 %r4;\n"
                                  "popc.b32 %r4, %r4;\n"
                                  "shl.b32 %r4, %r4, 16; or.b32 %r1, %r1, %r4;",
                                  40);
  for (uint32_t i = 0; i < 40; ++i)
    EXPECT_EQ(out[i], (i * (i - 1) / 2 + (i % 2 ? 0 : 1000)) |
                          (i < 32 ? 32u : 8u) << 16)
        << i;
}

TEST(PtxControl, BranchTables) {
  std::vector<uint32_t> out = run("and.b32 %r2, %r0, 3;\n"
                                  "$T: .branchtargets $A, $B, $C, $B;\n"
                                  "brx.idx %r2, $T;\n"
                                  "$A: mov.b32 %r1, 10; bra.uni $E;\n"
                                  "$B: mov.b32 %r1, 20; bra.uni $E;\n"
                                  "$C: mov.b32 %r1, 30;\n"
                                  "$E:",
                                  32);
  const uint32_t expected[] = {10, 20, 30, 20};
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], expected[i % 4]);
}

TEST(PtxControl, Calls) {
  const char *functions =
      ".func (.param .b32 result) twice(.param .b32 value)\n{\n"
      ".reg .b32 %r<4>; .reg .pred %p<2>;\n"
      "ld.param.b32 %r0, [value]; setp.gt.u32 %p0, %r0, 20;\n"
      "@%p0 bra $BIG;\n"
      "add.s32 %r1, %r0, %r0; st.param.b32 [result], %r1; ret;\n"
      "$BIG: mov.b32 %r1, 1; st.param.b32 [result], %r1; ret;\n}\n"
      ".func (.param .b32 result) both(.param .align 8 .b8 pair[8])\n{\n"
      ".reg .b32 %r<4>;\n"
      "ld.param.v2.b32 {%r0, %r1}, [pair];\n"
      "{ .param .b32 p; .param .b32 q;\n"
      "st.param.b32 [p], %r0; call.uni (q), twice, (p);\n"
      "ld.param.b32 %r2, [q]; }\n"
      "add.s32 %r3, %r2, %r1; st.param.b32 [result], %r3;\n}\n";
  std::vector<uint32_t> out =
      run("{ .param .align 8 .b8 p[8]; .param .b32 q;\n"
          "st.param.b32 [p], %r0; st.param.b32 [p+4], 100;\n"
          "call.uni (q), both, (p); ld.param.b32 %r1, [q]; }\n"
          "setp.lt.u32 %p0, %r0, 4;\n"
          "@!%p0 bra $END;\n"
          // A call in which only some lanes are active.
          "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;\n"
          "call (q), twice, (p); ld.param.b32 %r1, [q]; }\n"
          "$END:",
          32, functions);
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], i < 4 ? 1 : (i > 20 ? 1 : 2 * i) + 100) << i;
}

TEST(PtxControl, LabelsAndRegistersAreScoped) {
  std::vector<uint32_t> out =
      run("mov.b32 %r1, 0;\n"
          "{ .reg .pred P1; setp.eq.s32 P1, %r0, 0; @P1 bra DONE;\n"
          "add.s32 %r1, %r1, 1; DONE: }\n"
          "{ .reg .pred P1; setp.eq.s32 P1, %r0, 1; @P1 bra DONE;\n"
          "add.s32 %r1, %r1, 2; DONE: }",
          4);
  EXPECT_EQ(out, (std::vector<uint32_t>{2, 1, 3, 3}));
}

TEST(PtxControl, Faults) {
  Kernel trap(makeModule("", "mov.u32 %r0, %tid.x; setp.eq.s32 %p0, %r0, 3;\n"
                             "@%p0 trap;"));
  trap.shape.block = {32, 1, 1};
  trap.expectFault(ptx::FaultKind::Trap, {}, {"thread (3, 0, 0)", "trap"});

  Kernel endless(makeModule("", "$A: bra.uni $A;"));
  endless.options.instructionLimit = 1000;
  endless.expectFault(ptx::FaultKind::Limit, {},
                      {"more than 1000 instructions"});

  Kernel table(makeModule("", "$T: .branchtargets $A, $A;\n"
                              "mov.b32 %r0, 2; brx.idx %r0, $T; $A:"));
  table.expectFault(ptx::FaultKind::Undefined, {},
                    {"branch 2 of a table with 2 targets"});

  Kernel recursion(
      makeModule("", "call again;", "", ".func again()\n{\ncall again;\n}\n"));
  recursion.expectFault(ptx::FaultKind::Undefined, {}, {"calls itself"});
}

TEST(PtxControl, RegistersMustBeWritten) {
  Kernel kernel(makeModule("", "mov.u32 %r0, %tid.x;\n"
                               "setp.eq.s32 %p0, %r0, 5;\n"
                               "@!%p0 mov.b32 %r1, 1;\n"
                               // Moving it is allowed, using it is not.
                               "mov.b32 %r2, %r1;\n"
                               "add.s32 %r3, %r2, 1;"));
  kernel.shape.block = {32, 1, 1};
  kernel.expectFault(ptx::FaultKind::Uninitialized, {},
                     {"add.s32", "thread (5, 0, 0)", "not been written"});
  Kernel guard(makeModule("", "@%p3 mov.b32 %r0, 1;"));
  guard.expectFault(ptx::FaultKind::Uninitialized, {}, {"guard"});
}
