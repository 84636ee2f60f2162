//===- MatrixTest.cpp - ldmatrix and stmatrix in the PTX interpreter ------===//
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

// Row r of matrix i is row 8 * i + r of shared memory; rows are 48 bytes apart.
const char *prologue = ".shared .align 16 .b8 s[1536];\n"
                       "ld.param.b64 %d0, [out]; mov.u32 %r0, %tid.x;\n"
                       "mov.u32 %r1, s; mad.lo.s32 %r2, %r0, 48, %r1;\n"
                       "mad.wide.u32 %d1, %r0, 16, %d0;\n";
// Thread t writes the bytes of row t: element c is 16 * t + c.
const char *fill = "shl.b32 %r4, %r0, 4; mad.lo.s32 %r4, %r4, 0x10001, "
                   "0x10000;\n"
                   "add.s32 %r5, %r4, 0x20002; add.s32 %r6, %r4, 0x40004;\n"
                   "add.s32 %r7, %r4, 0x60006;\n"
                   "st.shared.v4.b32 [%r2], {%r4, %r5, %r6, %r7};\n";

std::string getRegisters(unsigned count) {
  std::string text = "{%r10";
  for (unsigned i = 1; i < count; ++i)
    text += ", %r1" + std::to_string(i);
  return text + "}";
}

std::vector<uint16_t> run(const std::string &body) {
  Kernel kernel(makeModule(".param .u64 out", prologue + body));
  std::vector<uint16_t> out(256);
  kernel.shape.block = {32, 1, 1};
  kernel.run({kernel.memory.add(out, ptx::Access::WriteOnly, "out")});
  return out;
}

void expectFault(const std::string &body, ptx::FaultKind kind,
                 const std::string &text, uint32_t threads = 32) {
  Kernel kernel(makeModule(".param .u64 out", prologue + body));
  std::vector<uint16_t> out(256);
  kernel.shape.block = {threads, 1, 1};
  kernel.expectFault(
      kind, {kernel.memory.add(out, ptx::Access::WriteOnly, "out")}, {text});
}

const char *load4 =
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, ";

} // namespace

TEST(PtxMatrix, Loads) {
  for (unsigned count : {1, 2, 4}) {
    for (bool isTransposed : {false, true}) {
      std::string zeros;
      for (unsigned i = count; i < 4; ++i)
        zeros += "mov.b32 %r1" + std::to_string(i) + ", 0;\n";
      std::vector<uint16_t> out =
          run(fill +
              ("bar.sync 0;\n" + zeros + "ldmatrix.sync.aligned.m8n8.x" +
               std::to_string(count)) +
              (isTransposed ? ".trans" : "") + ".shared::cta.b16 " +
              getRegisters(count) + ", [%r2];\n" +
              "st.global.v4.b32 [%d1], {%r10, %r11, %r12, %r13};");
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < 8; ++i) {
          unsigned row = lane / 4, column = 2 * (lane % 4) + i % 2;
          if (isTransposed)
            std::swap(row, column);
          unsigned expected =
              i / 2 < count ? (8 * (i / 2) + row) * 16 + column : 0;
          EXPECT_EQ(out[lane * 8 + i], expected) << lane << " " << i;
        }
      }
    }
  }
}

// The address may have an offset; the addresses of the other lanes are not
// used.
TEST(PtxMatrix, LoadsOfOneMatrix) {
  std::vector<uint16_t> out =
      run(fill + std::string("bar.sync 0; setp.ge.u32 %p0, %r0, 8;\n"
                             "@%p0 mov.b32 %r2, 0x7fffff01;\n"
                             "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, "
                             "[%r2+384];\n"
                             "st.global.b32 [%d1], %r10;"));
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane * 8], (8 + lane / 4) * 16 + 2 * (lane % 4));
}

TEST(PtxMatrix, Stores) {
  for (unsigned count : {1, 2, 4}) {
    for (bool isTransposed : {false, true}) {
      // Register i of a lane has the elements 1000 * i + 2 * lane and the next.
      std::string body = "mov.b32 %r4, 0; mov.b32 %r5, 0; mov.b32 %r6, 0;\n"
                         "mov.b32 %r7, 0;\n"
                         "st.shared.v4.b32 [%r2], {%r4, %r5, %r6, %r7};\n"
                         "bar.sync 0; mad.lo.s32 %r4, %r0, 0x20002, 0x10000;\n";
      for (unsigned i = 0; i < count; ++i)
        body += "add.s32 %r1" + std::to_string(i) + ", %r4, " +
                std::to_string(1000 * i * 0x10001) + ";\n";
      body += "stmatrix.sync.aligned.m8n8.x" + std::to_string(count) +
              (isTransposed ? ".trans" : "") + ".shared.b16 [%r2], " +
              getRegisters(count) +
              ";\nbar.sync 0;\n"
              "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2];\n"
              "st.global.v4.b32 [%d1], {%r4, %r5, %r6, %r7};";
      std::vector<uint16_t> out = run(body);
      for (unsigned row = 0; row < 32; ++row) {
        for (unsigned column = 0; column < 8; ++column) {
          unsigned r = row % 8, c = column;
          if (isTransposed)
            std::swap(r, c);
          unsigned expected =
              row / 8 < count ? 1000 * (row / 8) + 8 * r + c : 0;
          EXPECT_EQ(out[row * 8 + column], expected) << row << " " << column;
        }
      }
    }
  }
}

TEST(PtxMatrix, BankConflicts) {
  // Rows of 48 bytes have no conflicts; rows of 128 bytes are in the same
  // banks.
  for (auto [stride, passes] : {std::pair(48, 4), std::pair(128, 32)}) {
    Kernel kernel(
        makeModule("", ".shared .align 16 .b8 s[4096];\n"
                       "mov.u32 %r0, %tid.x; mov.u32 %r1, s;\n"
                       "mad.lo.s32 %r2, %r0, " +
                           std::to_string(stride) +
                           ", %r1;\n"
                           "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r2], "
                           "{%r0, %r0, %r0, %r0};"));
    kernel.shape.block = {32, 1, 1};
    kernel.run({});
    EXPECT_EQ(kernel.statistics.sharedAccesses, 1u);
    EXPECT_EQ(kernel.statistics.sharedPasses, unsigned(passes));
  }
}

TEST(PtxMatrix, Faults) {
  std::string load = load4;
  // Another lane has written the row.
  expectFault(
      fill + ("xor.b32 %r3, %r0, 1; mad.lo.s32 %r2, %r3, 48, %r1;" + load) +
          "[%r2];",
      ptx::FaultKind::Race, "data race");
  expectFault(fill + ("bar.warp.sync -1;" + load) + "[%r2+8];",
              ptx::FaultKind::Misaligned, "multiple of the access size");
  expectFault(fill + ("bar.warp.sync -1;" + load) + "[%r2+48];",
              ptx::FaultKind::OutOfBounds, "shared memory has 1536 bytes");
  expectFault(load + "[%r2];", ptx::FaultKind::Uninitialized,
              "'shared memory' has not been written");
  expectFault(fill + ("bar.sync 0; setp.lt.u32 %p0, %r0, 5; @%p0 " + load) +
                  "[%r2];",
              ptx::FaultKind::Barrier, "excludes lanes");
  expectFault(fill + ("bar.sync 0;" + load) + "[%r2];",
              ptx::FaultKind::Undefined, "all 32 lanes", 24);
  // A store by lane 0 races with the read of another warp.
  expectFault(std::string("and.b32 %r3, %r0, 31; mad.lo.s32 %r2, %r3, 48, %r1;"
                          "mov.b32 %r4, 7;"
                          "setp.lt.u32 %p0, %r0, 32; @%p0 bra $A; exit; $A:") +
                  "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r4};"
                  "ld.shared.b32 %r5, [%r1]; add.s32 %r5, %r5, 1;",
              ptx::FaultKind::Race, "data race");
}

TEST(PtxMatrix, Errors) {
  for (const char *text :
       {"ldmatrix.sync.aligned.m8n8.x4.b16 {%r0, %r1, %r2, %r3}, [%d0];",
        "ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r0, %r1, %r2}, [%r4];",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r0}, [%r4];",
        "ldmatrix.aligned.m8n8.x1.shared.b16 {%r0}, [%r4];",
        "ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r0}, [%d4];",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%r4];",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r0, [%r4];",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, %r4;",
        "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r4], {%r0, %r1, %r2};",
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], %h0;"})
    EXPECT_NE(getInstructionError(text).find("line "), std::string::npos)
        << text;
}
