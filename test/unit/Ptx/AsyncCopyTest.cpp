//===- AsyncCopyTest.cpp - cp.async in the PTX interpreter ----------------===//
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

// Thread t copies the 16 bytes t of `in` to %r2, 16 bytes per thread. %r3 is
// the address of a thread of the other warp.
const char *prologue =
    ".shared .align 16 .b8 s[2048];\n"
    "ld.param.b64 %d0, [in]; ld.param.b64 %d1, [out]; mov.u32 %r0, %tid.x;\n"
    "mov.u32 %r1, s; mad.lo.s32 %r2, %r0, 16, %r1; xor.b32 %r4, %r0, 32;\n"
    "mad.lo.s32 %r3, %r4, 16, %r1; mad.wide.u32 %d2, %r0, 16, %d0;\n"
    "mad.wide.u32 %d3, %r0, 16, %d1;\n";
const char *copy = "cp.async.cg.shared.global [%r2], [%d2], 16;";
const char *commit = "cp.async.commit_group;";
const char *await = "cp.async.wait_group 0;";
const char *store = "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r2];"
                    "st.global.v4.b32 [%d3], {%r10, %r11, %r12, %r13};";
const char *useOther = "ld.shared.b32 %r10, [%r3]; add.s32 %r10, %r10, 0;";

struct CopyRun {
  explicit CopyRun(const std::string &body)
      : kernel(makeModule(".param .u64 in, .param .u64 out", prologue + body)),
        in(256), out(256) {
    for (unsigned i = 0; i < in.size(); ++i)
      in[i] = 1000 + i;
    kernel.shape.block = {64, 1, 1};
    arguments = {kernel.memory.add(in, ptx::Access::ReadWrite, "in"),
                 kernel.memory.add(out, ptx::Access::ReadWrite, "out")};
  }
  std::vector<uint32_t> run() {
    kernel.run(arguments);
    return out;
  }
  Kernel kernel;
  std::vector<uint32_t> in, out;
  std::vector<ptx::Argument> arguments;
};

void expectFault(const std::string &body, ptx::FaultKind kind,
                 const std::vector<std::string> &parts) {
  for (uint32_t seed : {0, 1, 2}) {
    CopyRun run(body);
    run.kernel.options.seed = seed;
    run.kernel.expectFault(kind, run.arguments, parts);
  }
}
void expectNone(const std::string &body) {
  for (uint32_t seed : {0, 1, 2, 3}) {
    CopyRun run(body);
    run.kernel.options.seed = seed;
    run.run();
  }
}

} // namespace

TEST(PtxAsyncCopy, Copies) {
  for (const char *form : {"cg.shared.global", "ca.shared::cta.global",
                           "cg.shared.global.L2::128B"}) {
    CopyRun run(std::string("cp.async.") + form + " [%r2], [%d2], 16;" +
                commit + await + store);
    EXPECT_EQ(run.run(), run.in) << form;
    EXPECT_EQ(run.kernel.statistics.loadedBytes, 1024u);
    EXPECT_EQ(run.kernel.statistics.loadSectors, 32u);
  }
  // Both addresses may have an offset.
  CopyRun moved(std::string("cp.async.ca.shared.global [%r2+12], [%d2+4], 4;") +
                "cp.async.ca.shared.global [%r2+0], [%d2+8], 8;"
                "cp.async.ca.shared.global [%r2+8], [%d2], 4;" +
                "cp.async.wait_all;" + store);
  std::vector<uint32_t> out = moved.run();
  for (unsigned i = 0; i < 64; ++i) {
    EXPECT_EQ(out[4 * i], 1000 + 4 * i + 2);
    EXPECT_EQ(out[4 * i + 1], 1000 + 4 * i + 3);
    EXPECT_EQ(out[4 * i + 2], 1000 + 4 * i);
    EXPECT_EQ(out[4 * i + 3], 1000 + 4 * i + 1);
  }
}

// Bytes beyond the source size are zeros. A source of 0 bytes is not read, so
// its address may be anything.
TEST(PtxAsyncCopy, SourceSizes) {
  CopyRun run("and.b32 %r5, %r0, 15; setp.eq.u32 %p0, %r5, 0;"
              "@%p0 mov.b64 %d2, 0x123;"
              "cp.async.cg.shared.global [%r2], [%d2], 16, %r5;" +
              std::string(commit) + await + store);
  std::vector<uint32_t> out = run.run();
  const auto *found = reinterpret_cast<const uint8_t *>(out.data()),
             *in = reinterpret_cast<const uint8_t *>(run.in.data());
  for (unsigned i = 0; i < 64; ++i)
    for (unsigned byte = 0; byte < 16; ++byte)
      EXPECT_EQ(found[16 * i + byte], byte < i % 16 ? in[16 * i + byte] : 0)
          << i << " " << byte;
  // Only the bytes that are read must be in bounds.
  std::string last = "add.s64 %d4, %d0, 1024;"
                     "cp.async.cg.shared.global [%r2], [%d4-16], 16, 16;";
  expectNone(last + "cp.async.wait_all;");
  expectNone("add.s64 %d4, %d0, 1024;"
             "cp.async.cg.shared.global [%r2], [%d4], 16, 0;");
  expectFault("add.s64 %d4, %d0, 1024;"
              "cp.async.cg.shared.global [%r2], [%d4], 16, 1;",
              ptx::FaultKind::OutOfBounds, {"byte 1024 of 'in'"});
  expectFault("cp.async.cg.shared.global [%r2], [%d2], 16, 17;",
              ptx::FaultKind::Undefined, {"reads 17 bytes, but writes 16"});
}

TEST(PtxAsyncCopy, Groups) {
  // Two groups; the first is complete when one group may be pending.
  std::string two = std::string(copy) + commit +
                    "cp.async.cg.shared.global [%r2+1024], [%d2], 16;" + commit;
  std::string use1 = "ld.shared.b32 %r10, [%r2];",
              use2 = "ld.shared.b32 %r10, [%r2+1024];";
  expectNone(two + "cp.async.wait_group 1;" + use1 + await + use2);
  expectFault(two + "cp.async.wait_group 2;" + use1, ptx::FaultKind::Race,
              {"ld.shared.b32", "cp.async.cg.shared.global at line",
               "is still writing here"});
  expectFault(two + "cp.async.wait_group 1;" + use2, ptx::FaultKind::Race,
              {"is still writing here"});
  // A copy that is in no group is not waited for, except by wait_all.
  expectFault(std::string(copy) + await + use1, ptx::FaultKind::Race,
              {"is still writing here"});
  expectNone(std::string(copy) + "cp.async.wait_all;" + use1);
  // Empty groups count.
  expectNone(std::string(copy) + commit + commit + "cp.async.wait_group 1;" +
             use1);
}

TEST(PtxAsyncCopy, OtherThreads) {
  std::string issue =
      std::string("st.shared.b32 [%r2], %r0; bar.sync 0;") + copy + commit;
  expectNone(issue + await + "bar.sync 0;" + useOther);
  // The barrier, the wait, or both in the wrong order.
  expectFault(issue + await + useOther, ptx::FaultKind::Race, {});
  expectFault(issue + "bar.sync 0;" + useOther, ptx::FaultKind::Race,
              {"is still writing here"});
  expectFault(issue + "bar.sync 0;" + await + useOther, ptx::FaultKind::Race,
              {});
}

TEST(PtxAsyncCopy, Writes) {
  std::string issue = std::string(copy) + commit;
  expectFault(issue + "st.shared.b32 [%r2], %r0;", ptx::FaultKind::Race,
              {"st.shared.b32", "is still writing here"});
  expectFault(issue + copy, ptx::FaultKind::Race,
              {"cp.async.cg.shared.global", "is still writing here"});
  expectNone(issue + await + issue + await);
  // Other threads must have read the old bytes before they are overwritten.
  std::string again = issue + await + "bar.sync 0;" + useOther;
  expectNone(again + "bar.sync 0;" + issue);
  expectFault(again + issue, ptx::FaultKind::Race, {});
  // The source must not change before the wait.
  expectFault(issue + "st.global.b32 [%d2], 5;" + await, ptx::FaultKind::Race,
              {"the source of cp.async.cg.shared.global at line"});
  expectNone(issue + await + "st.global.b32 [%d2], 5;");
}

TEST(PtxAsyncCopy, MatrixLoads) {
  std::string load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r2];";
  std::string issue = std::string(copy) + commit;
  expectFault(issue + load, ptx::FaultKind::Race,
              {"ldmatrix", "is still writing here"});
  expectNone(issue + await + "bar.warp.sync -1;" + load);
}

TEST(PtxAsyncCopy, Faults) {
  expectFault("cp.async.cg.shared.global [%r2+8], [%d2], 16;",
              ptx::FaultKind::Misaligned, {"multiple of the access size"});
  expectFault("cp.async.cg.shared.global [%r2], [%d2+8], 16;",
              ptx::FaultKind::Misaligned, {});
  expectFault("cp.async.cg.shared.global [%r2], [%d2+8], 16, 4;",
              ptx::FaultKind::Misaligned, {"is not a multiple of 16"});
  expectFault("cp.async.cg.shared.global [%r2+2048], [%d2], 16;",
              ptx::FaultKind::OutOfBounds, {"shared memory has 2048 bytes"});
}

TEST(PtxAsyncCopy, Errors) {
  for (const char *text :
       {"cp.async.cg.shared.global [%r0], [%d0], 8;",
        "cp.async.ca.shared.global [%r0], [%d0], 12;",
        "cp.async.ca.shared.global [%r0], [%d0], %r1;",
        "cp.async.ca.global.shared [%d0], [%r0], 4;",
        "cp.async.shared.global [%r0], [%d0], 16;",
        "cp.async.cg.shared.global [%r0], [%d0];",
        "cp.async.cg.shared.global [%r0], [%d0], 16, %p0;",
        "cp.async.wait_group;", "cp.async.wait_group %r0;",
        "cp.async.commit_group 1;", "cp.cg.shared.global [%r0], [%d0], 16;"})
    EXPECT_NE(getInstructionError(text).find("line "), std::string::npos)
        << text;
}
