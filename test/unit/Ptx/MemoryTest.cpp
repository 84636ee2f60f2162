//===- MemoryTest.cpp - loads and stores in the PTX interpreter -----------===//
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
const char *params = ".param .u64 a, .param .u64 b";
const char *addresses = "ld.param.b64 %d0, [a]; ld.param.b64 %d1, [b];\n"
                        "mov.u32 %r0, %tid.x;\n";
} // namespace

TEST(PtxMemory, VectorsAndWidths) {
  Kernel kernel(makeModule(
      params,
      std::string(addresses) +
          "ld.global.v4.b32 {%r1, %r2, %r3, _}, [%d0];\n"
          "ld.global.nc.L1::no_allocate.L2::128B.v2.b64 {%d2, %d3}, [%d0+16];\n"
          "ld.global.s8 %r4, [%d0+3]; ld.global.u8 %h1, [%d0+3];\n"
          "ld.global.v2.b16 {%h2, %h3}, [%d0+4];\n"
          "st.global.v4.b32 [%d1], {%r3, %r2, %r1, %r4};\n"
          "st.global.cs.b64 [%d1+16], %d3;\n"
          "st.global.v2.b16 [%d1+24], {%h3, %h1};\n"
          "st.global.b8 [%d1+28], %r1;"));
  std::vector<uint32_t> a = {0x81020304, 2, 0x30004, 4, 5, 6, 7, 8};
  std::vector<uint32_t> b(8, 0);
  kernel.run({kernel.memory.add(a, ptx::Access::ReadOnly, "a"),
              kernel.memory.add(b, ptx::Access::WriteOnly, "b")});
  EXPECT_EQ(b, (std::vector<uint32_t>{0x30004, 2, 0x81020304, 0xffffff81, 7, 8,
                                      0x00810000, 4}));
}

TEST(PtxMemory, OutOfBounds) {
  for (auto [offset, text] :
       {std::pair("32", "byte 32 of 'a', which has 32"),
        std::pair("-4", "byte -4 of 'a'"), std::pair("1000000", "near")}) {
    Kernel kernel(makeModule(params, std::string(addresses) +
                                         "ld.global.b32 %r1, [%d0+" + offset +
                                         "];"));
    std::vector<uint32_t> a(8, 0), b(8, 0);
    uint64_t pa = kernel.memory.add(a, ptx::Access::ReadOnly, "a");
    kernel.expectFault(ptx::FaultKind::OutOfBounds,
                       {pa, kernel.memory.add(b, ptx::Access::ReadWrite, "b")},
                       {"line 14", "block (0, 0, 0), thread (0, 0, 0)",
                        "ld.global.b32", text});
  }
  // An access of which half is in bounds.
  Kernel kernel(makeModule(params, std::string(addresses) +
                                       "ld.global.b64 %d2, [%d0+8];"));
  std::vector<uint32_t> a(3, 0), b(3, 0);
  kernel.expectFault(ptx::FaultKind::OutOfBounds,
                     {kernel.memory.add(a, ptx::Access::ReadOnly, "a"),
                      kernel.memory.add(b, ptx::Access::ReadWrite, "b")},
                     {"8 bytes"});
}

TEST(PtxMemory, Misaligned) {
  Kernel kernel(makeModule(params, std::string(addresses) +
                                       "ld.global.v4.b32 {%r1, %r2, %r3, %r4},"
                                       "[%d0];"));
  std::vector<uint32_t> a(8, 0), b(8, 0);
  kernel.expectFault(ptx::FaultKind::Misaligned,
                     {kernel.memory.add(a, ptx::Access::ReadOnly, "a", 8),
                      kernel.memory.add(b, ptx::Access::ReadWrite, "b")},
                     {"16 bytes", "not a multiple"});
}

TEST(PtxMemory, UninitializedAndReadOnlyMemory) {
  std::string load = std::string(addresses) + "ld.global.b32 %r1, [%d1];";
  std::string store = "st.global.b32 [%d1], %r0;\n";
  {
    Kernel kernel(makeModule(params, load));
    std::vector<uint32_t> a(1, 0), b(1, 0);
    kernel.expectFault(ptx::FaultKind::Uninitialized,
                       {kernel.memory.add(a, ptx::Access::ReadOnly, "a"),
                        kernel.memory.add(b, ptx::Access::WriteOnly, "b")},
                       {"'b' has not been written"});
  }
  {
    Kernel kernel(makeModule(params, std::string(addresses) + store +
                                         "ld.global.b32 %r1, [%d1];"));
    std::vector<uint32_t> a(1, 0), b(1, 0);
    kernel.run({kernel.memory.add(a, ptx::Access::ReadOnly, "a"),
                kernel.memory.add(b, ptx::Access::WriteOnly, "b")});
  }
  {
    Kernel kernel(makeModule(params, std::string(addresses) + store));
    std::vector<uint32_t> a(1, 0), b(1, 0);
    kernel.expectFault(ptx::FaultKind::ReadOnly,
                       {kernel.memory.add(a, ptx::Access::ReadOnly, "a"),
                        kernel.memory.add(b, ptx::Access::ReadOnly, "b")},
                       {"'b' is read-only"});
  }
  {
    Kernel kernel(makeModule("", ".shared .align 4 .b8 s[64];\n"
                                 "ld.shared.b32 %r1, [s+4];"));
    kernel.expectFault(ptx::FaultKind::Uninitialized, {}, {"shared memory"});
  }
  {
    Kernel kernel(makeModule("", ".local .align 4 .b8 depot[64];\n"
                                 "mov.b64 %d0, depot;\n"
                                 "st.local.b32 [%d0], 1;\n"
                                 "ld.local.b64 %d1, [depot];"));
    kernel.expectFault(ptx::FaultKind::Uninitialized, {}, {"local memory"});
  }
}

TEST(PtxMemory, GenericAddresses) {
  Kernel kernel(makeModule(
      params, std::string(addresses) +
                  ".local .align 4 .b8 depot[64]; .shared .align 4 .b8 s[16];\n"
                  "mov.b64 %d2, depot; cvta.local.u64 %d3, %d2;\n"
                  "st.b32 [%d3+8], 5; ld.local.b32 %r1, [%d2+8];\n"
                  "mov.b64 %d4, s; cvta.shared.u64 %d5, %d4;\n"
                  "st.b32 [%d5+12], 6; ld.shared.b32 %r2, [s+12];\n"
                  "isspacep.shared %p0, %d5; isspacep.global %p1, %d5;\n"
                  "selp.b32 %r3, 1, 0, %p0; selp.b32 %r4, 1, 0, %p1;\n"
                  "mov.u32 %r5, s; ld.shared.b32 %r6, [%r5+12];\n"
                  "cvta.to.global.u64 %d6, %d1;\n"
                  "st.global.v4.b32 [%d6], {%r1, %r2, %r3, %r4};"));
  std::vector<uint32_t> a(1, 0), b(4, 0);
  kernel.run({kernel.memory.add(a, ptx::Access::ReadOnly, "a"),
              kernel.memory.add(b, ptx::Access::WriteOnly, "b")});
  EXPECT_EQ(b, (std::vector<uint32_t>{5, 6, 1, 0}));

  Kernel outside(makeModule("", ".shared .align 4 .b8 s[16];\n"
                                "st.shared.b32 [s+16], 1;"));
  outside.expectFault(ptx::FaultKind::OutOfBounds, {},
                      {"shared memory has 16"});
}

TEST(PtxMemory, VariablesAndInitializers) {
  Kernel kernel(makeModule(
      params,
      std::string(addresses) +
          "mov.b64 %d2, table; ld.const.b32 %r1, [%d2+4];\n"
          "ld.const.b32 %r2, [table+12];\n"
          "ld.global.b64 %d3, [pointers+8]; ld.b32 %r3, [%d3];\n"
          "ld.global.b64 %d4, [bytes]; ld.global.b32 %r4, [%d4+4];\n"
          "atom.global.add.u32 %r5, [values+4], 1;\n"
          "st.global.v4.b32 [%d1], {%r1, %r2, %r3, %r4};",
      "",
      ".const .align 4 .b8 table[16] = {1, 0, 0, 0, 2};\n"
      ".global .align 4 .u32 values[3] = {7, 8};\n"
      ".global .align 8 .u64 pointers[2] = {0, generic(values)+4};\n"
      ".global .align 8 .u8 bytes[8] = {0xFF(values), 0xFF00(values),"
      "0xFF0000(values), 0xFF000000(values), 0xFF00000000(values),"
      "0xFF0000000000(values), 0xFF000000000000(values),"
      "0xFF00000000000000(values)};\n"));
  std::vector<uint32_t> a(1, 0), b(4, 0);
  std::vector<ptx::Argument> arguments = {
      kernel.memory.add(a, ptx::Access::ReadOnly, "a"),
      kernel.memory.add(b, ptx::Access::WriteOnly, "b")};
  kernel.run(arguments);
  EXPECT_EQ(b, (std::vector<uint32_t>{2, 0, 8, 8}));
  // Variables keep their values between launches.
  kernel.run(arguments);
  EXPECT_EQ(b, (std::vector<uint32_t>{2, 0, 9, 9}));

  Kernel write(makeModule("", "mov.b64 %d0, table; st.b32 [%d0], 1;", "",
                          ".const .align 4 .b8 table[16] = {1};\n"));
  write.expectFault(ptx::FaultKind::ReadOnly, {}, {"'table' is read-only"});
  Kernel space(makeModule("", "ld.global.b32 %r0, [table];", "",
                          ".const .align 4 .b8 table[16] = {1};\n"));
  space.expectFault(ptx::FaultKind::OutOfBounds, {}, {"another state space"});
}

TEST(PtxMemory, AggregateParameters) {
  Kernel kernel(makeModule(
      ".param .u64 out, .param .align 16 .b8 pair[16], .param .u8 byte",
      "ld.param.b64 %d0, [out]; ld.param.v2.b64 {%d1, %d2}, [pair];\n"
      "mov.b64 %d3, pair; ld.param.b32 %r0, [%d3+8];\n"
      "ld.param.s8 %r1, [byte]; cvta.param.u64 %d4, %d3;\n"
      "ld.b64 %d5, [%d4];\n"
      "add.s64 %d6, %d2, %d5; st.global.b64 [%d0], %d6;\n"
      "st.global.v2.b32 [%d0+8], {%r0, %r1};"));
  std::vector<uint32_t> out(4, 0);
  struct {
    uint64_t first = 1, second = 20;
  } pair;
  kernel.run({kernel.memory.add(out, ptx::Access::WriteOnly, "out"), pair,
              uint8_t(0xfe)});
  EXPECT_EQ(out, (std::vector<uint32_t>{21, 0, 20, 0xfffffffe}));
}

TEST(PtxMemory, Atomics) {
  Kernel kernel(
      makeModule(params, std::string(addresses) +
                             "atom.global.add.u32 %r1, [%d1], 2;\n"
                             "red.relaxed.gpu.global.max.s32 [%d1+4], %r0;\n"
                             "atom.global.or.b32 %r2, [%d1+8], %r0;\n"
                             "atom.global.cas.b32 %r3, [%d1+12], 0, 77;\n"
                             "atom.global.inc.u32 %r4, [%d1+16], 5;\n"
                             "atom.global.add.f32 %r5, [%d1+20], 0f3F800000;\n"
                             "atom.global.exch.b64 %d2, [%d1+24], %d1;"));
  std::vector<uint32_t> a(1, 0), b(8, 0);
  kernel.shape.block = {64, 1, 1};
  kernel.shape.grid = {2, 1, 1};
  uint64_t pb = kernel.memory.add(b, ptx::Access::ReadWrite, "b");
  kernel.run({kernel.memory.add(a, ptx::Access::ReadOnly, "a"), pb});
  EXPECT_EQ(b, (std::vector<uint32_t>{256, 63, 63, 77, 128 % 6, 0x43000000,
                                      uint32_t(pb), uint32_t(pb >> 32)}));
}
