//===- WgmmaTest.cpp - wgmma in the PTX interpreter -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include <random>

using namespace posenc;
using namespace posenc::test;

namespace {

std::string makeHopper(const std::string &params, const std::string &body) {
  std::string text = makeModule(params, body);
  return text.replace(text.find("sm_90"), 5, "sm_90a");
}

// The layout of an operand in shared memory, as the PTX ISA draws it.
struct Layout {
  unsigned swizzleBytes = 128; // 16 without swizzling
  bool isTransposed = false;   // rows are contiguous, instead of columns
  unsigned start = 0, leading = 0, stride = 0;

  // The offset of an element, in bytes.
  unsigned getOffset(unsigned row, unsigned column) const {
    // Contiguous dimension, and the other one.
    unsigned fast = isTransposed ? row : column,
             slow = isTransposed ? column : row;
    unsigned perSpan = swizzleBytes / 2; // elements
    unsigned line = slow % 8, chunk = fast % perSpan / 8;
    if (swizzleBytes == 128)
      chunk ^= line;
    else if (swizzleBytes == 64)
      chunk ^= line / 2;
    else if (swizzleBytes == 32)
      chunk ^= line / 4;
    unsigned inAtom = line * swizzleBytes + chunk * 16 + fast % 8 * 2;
    bool isPlain = swizzleBytes == 16;
    // Without swizzling and with contiguous rows, the strides are exchanged.
    unsigned fastStride = isPlain && isTransposed ? stride : leading,
             slowStride = isPlain && isTransposed ? leading : stride;
    return start + slow / 8 * slowStride + fast / perSpan * fastStride + inAtom;
  }
  uint64_t getDescriptor() const {
    uint64_t mode = swizzleBytes == 128  ? 1
                    : swizzleBytes == 64 ? 2
                    : swizzleBytes == 32 ? 3
                                         : 0;
    return uint64_t(start >> 4) | uint64_t(leading >> 4) << 16 |
           uint64_t(stride >> 4) << 32 | mode << 62;
  }
};

constexpr unsigned sharedBytes = 24576;

std::string list(const char *prefix, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::string(prefix) + std::to_string(i);
  return text + "}";
}

// 128 threads copy `image` to shared memory. Then `body` runs, with the
// accumulators %c, A in %a, descriptors in %d0 and %d1; they are stored to
// `out`.
std::string makeText(unsigned columns, const std::string &body,
                     const std::string &fence = "fence.proxy.async;",
                     const std::string &barrier = "bar.sync 0;") {
  unsigned results = columns / 2;
  std::string text =
      ".shared .align 1024 .b8 s[" + std::to_string(sharedBytes) +
      "];\n.reg .b32 %a<4>; .reg .b32 %c<" + std::to_string(results) +
      ">;\nld.param.b64 %d9, [image]; ld.param.b64 %d8, [a];"
      "ld.param.b64 %d7, [out]; ld.param.b64 %d0, [da];"
      "ld.param.b64 %d1, [db]; ld.param.b32 %r20, [bytes];\n"
      "mov.u32 %r0, %tid.x; mov.u32 %r1, s; shl.b32 %r2, %r0, 4;\n"
      "$L: setp.ge.u32 %p3, %r2, %r20; @%p3 bra $M;"
      "cvt.u64.u32 %d2, %r2; add.s64 %d2, %d9, %d2; add.s32 %r3, %r1, %r2;"
      "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d2];"
      "st.shared.v4.b32 [%r3], {%r4, %r5, %r6, %r7};"
      "add.s32 %r2, %r2, 2048; bra.uni $L; $M:\n"
      "mad.wide.u32 %d8, %r0, 16, %d8;"
      "ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%d8];\n" +
      fence + barrier + "\nsetp.ne.b32 %p0, 0, 0; setp.eq.b32 %p1, 0, 0;\n" +
      body + "\nmad.wide.u32 %d7, %r0, " + std::to_string(4 * results) +
      ", %d7;\n";
  for (unsigned i = 0; i < results; ++i)
    text += "st.global.b32 [%d7+" + std::to_string(4 * i) + "], %c" +
            std::to_string(i) + ";\n";
  return makeHopper(".param .u64 image, .param .u64 a, .param .u64 out, .param "
                    ".u64 da, .param .u64 db, .param .b32 bytes",
                    text);
}

std::string makeProduct(unsigned columns, bool isARegisters,
                        const std::string &predicate, bool isATransposed,
                        bool isBTransposed,
                        const std::string &type = "bf16.bf16",
                        const std::string &scales = "1, 1",
                        const std::string &a = "%a") {
  std::string text = "wgmma.mma_async.sync.aligned.m64n" +
                     std::to_string(columns) + "k16.f32." + type + " " +
                     list("%c", columns / 2) + ", " +
                     (isARegisters ? list(a.c_str(), 4) : "%d0") + ", %d1, " +
                     predicate + ", " + scales;
  if (!isARegisters)
    text += isATransposed ? ", 1" : ", 0";
  return text + (isBTransposed ? ", 1;\n" : ", 0;\n");
}
const char *wgmmaFence = "wgmma.fence.sync.aligned;\n";
const char *commit = "wgmma.commit_group.sync.aligned;\n";
const char *await = "wgmma.wait_group.sync.aligned 0;\n";

// Matrices of small multiples of 1/4 or 1/2, whose sums are exact.
struct Matrices {
  explicit Matrices(unsigned columns)
      : columns(columns), image(sharedBytes / 2), registers(128 * 8),
        out(128 * columns / 2) {
    std::mt19937 random(columns);
    for (auto &row : a)
      for (float &value : row)
        value = (int(random() % 65) - 32) / 4.0f;
    for (auto &row : b)
      for (unsigned i = 0; i < columns; ++i)
        row[i] = (int(random() % 65) - 32) / 2.0f;
  }
  // A number with 7 significant bits, as bf16 or f16.
  uint16_t convert(float value) const {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (!isHalf || value == 0)
      return bits >> 16;
    return (bits >> 16 & 0x8000) | ((bits >> 23 & 255) - 112) << 10 |
           (bits >> 13 & 1023);
  }
  void place(const Layout &left, const Layout &right) {
    descriptorA = left.getDescriptor();
    descriptorB = right.getDescriptor();
    for (unsigned k = 0; k < 16; ++k) {
      for (unsigned row = 0; row < 64; ++row)
        image[left.getOffset(row, k) / 2] = convert(a[row][k]);
      for (unsigned column = 0; column < columns; ++column)
        image[right.getOffset(column, k) / 2] = convert(b[k][column]);
    }
    // A in registers, by the figure of the PTX ISA.
    for (unsigned thread = 0; thread < 128; ++thread)
      for (unsigned i = 0; i < 8; ++i)
        registers[thread * 8 + i] =
            convert(a[thread / 32 * 16 + thread % 32 / 4 + (i / 2 % 2 ? 8 : 0)]
                     [thread % 4 * 2 + i % 2 + (i >= 4 ? 8 : 0)]);
  }
  std::vector<ptx::Argument> prepare(Kernel &kernel) {
    kernel.shape.block = {128, 1, 1};
    kernel.options.instructionLimit = 1000000;
    auto add = [&](auto &values, ptx::Access access, const char *name) {
      return kernel.memory.add(values, access, name);
    };
    return {add(image, ptx::Access::ReadOnly, "image"),
            add(registers, ptx::Access::ReadOnly, "a"),
            add(out, ptx::Access::WriteOnly, "out"),
            descriptorA,
            descriptorB,
            uint32_t(sharedBytes)};
  }
  // Expects `factor` times the product.
  void expectProduct(float factor) {
    for (unsigned thread = 0; thread < 128; ++thread)
      for (unsigned i = 0; i < columns / 2; ++i) {
        unsigned row = thread / 32 * 16 + thread % 32 / 4 + (i % 4 < 2 ? 0 : 8),
                 column = i / 4 * 8 + thread % 4 * 2 + i % 2;
        float sum = 0;
        for (unsigned k = 0; k < 16; ++k)
          sum += a[row][k] * b[k][column];
        ASSERT_EQ(out[thread * columns / 2 + i], factor * sum)
            << row << " " << column;
      }
  }

  unsigned columns;
  bool isHalf = false;
  float a[64][16], b[16][256];
  std::vector<uint16_t> image, registers;
  std::vector<float> out;
  uint64_t descriptorA = 0, descriptorB = 0;
};

// A at 0, B at 8192; atoms are 8 lines of `bytes` bytes.
Layout getA(unsigned bytes, bool isTransposed) {
  Layout layout;
  layout.swizzleBytes = bytes;
  layout.isTransposed = isTransposed;
  bool isPlain = bytes == 16;
  layout.stride = isTransposed && !isPlain ? 1024 : 8 * bytes;
  layout.leading = isPlain ? 4096 : isTransposed ? 2048 : 16;
  return layout;
}
Layout getB(unsigned bytes, bool isTransposed) {
  Layout layout = getA(bytes, isTransposed);
  layout.start = 8192;
  return layout;
}

void expectFault(const std::string &body, ptx::FaultKind kind,
                 const std::vector<std::string> &parts,
                 const std::string &fence = "fence.proxy.async;",
                 const std::string &barrier = "bar.sync 0;",
                 uint32_t threads = 128) {
  for (uint32_t seed : {0, 1, 2, 3}) {
    Matrices matrices(16);
    matrices.place(getA(128, false), getB(128, false));
    Kernel kernel(makeText(16, body, fence, barrier));
    std::vector<ptx::Argument> arguments = matrices.prepare(kernel);
    kernel.shape.block = {threads, 1, 1};
    kernel.options.seed = seed;
    kernel.expectFault(kind, arguments, parts);
  }
}

} // namespace

TEST(PtxWgmma, SharedA) {
  for (unsigned bytes : {16, 32, 64, 128}) {
    for (bool isATransposed : {false, true}) {
      for (bool isBTransposed : {false, true}) {
        unsigned columns = 64 + bytes / 2; // up to 128
        SCOPED_TRACE(testing::Message()
                     << bytes << isATransposed << isBTransposed);
        Matrices matrices(columns);
        matrices.place(getA(bytes, isATransposed), getB(bytes, isBTransposed));
        Kernel kernel(
            makeText(columns, wgmmaFence +
                                  makeProduct(columns, false, "%p0",
                                              isATransposed, isBTransposed) +
                                  commit + await));
        kernel.run(matrices.prepare(kernel));
        matrices.expectProduct(1);
      }
    }
  }
}

TEST(PtxWgmma, RegisterA) {
  for (bool isHalf : {false, true}) {
    for (unsigned columns : {8, 80, 128}) {
      Matrices matrices(columns);
      matrices.isHalf = isHalf;
      matrices.place(getA(128, false), getB(128, true));
      std::string product = makeProduct(columns, true, "%p0", false, true,
                                        isHalf ? "f16.f16" : "bf16.bf16");
      Kernel kernel(makeText(columns, wgmmaFence + product + commit + await));
      kernel.run(matrices.prepare(kernel));
      matrices.expectProduct(1);
    }
  }
}

TEST(PtxWgmma, Sums) {
  auto make = [](const std::string &predicate, const std::string &scales) {
    return makeProduct(16, true, predicate, false, false, "bf16.bf16", scales);
  };
  auto expect = [&](const std::string &body, float factor) {
    Matrices matrices(16);
    matrices.place(getA(128, false), getB(128, false));
    Kernel kernel(makeText(16, body));
    kernel.run(matrices.prepare(kernel));
    matrices.expectProduct(factor);
  };
  std::string first = wgmmaFence + make("%p0", "1, 1"),
              done = commit + std::string(await);
  // In one group, in two, and after a wait.
  expect(first + make("%p1", "1, 1") + make("%p1", "1, 1") + done, 3);
  expect(first + commit + make("%p1", "1, 1") + done, 2);
  expect(first + done + make("%p1", "1, 1") + done, 2);
  expect(first + make("%p0", "1, 1") + done, 1);
  expect(first + make("%p1", "-1, 1") + done, 0);
  expect(first + make("%p1", "1, -1") + make("%p1", "-1, 1") + done, -1);
  expect(first + make("%p1", "-1, -1") + done, 2);
  // The first of two groups is complete when one may be pending; but the
  // accumulator is still in use by the second.
  expectFault(first + commit + make("%p1", "1, 1") + commit +
                  "wgmma.wait_group.sync.aligned 1; mov.b32 %r9, %c0;" + await,
              ptx::FaultKind::Race, {"which has not been waited for"});
}

TEST(PtxWgmma, RegistersInFlight) {
  std::string issue =
      wgmmaFence + makeProduct(16, true, "%p0", false, false) + commit;
  auto expectRace = [&](const std::string &body, const std::string &text) {
    expectFault(body, ptx::FaultKind::Race, {text});
  };
  std::string use = "uses a register of wgmma.mma_async.sync.aligned";
  expectRace(issue + "add.rn.f32 %r9, %c3, %c3;" + await, use);
  expectRace(issue + "mov.b32 %c3, 0;" + await, use);
  expectRace(issue + "mov.b32 %a2, 0;" + await, use);
  expectRace(issue + "mov.b32 %r9, %a0;" + await, use);
  expectRace(issue, use); // no wait
  expectRace(wgmmaFence + makeProduct(16, true, "%p0", false, false) + await,
             use); // no commit
  // The accumulator as A of another operation, and one that overlaps.
  expectRace(
      issue + await + issue +
          makeProduct(16, true, "%p0", false, false, "bf16.bf16", "1, 1", "%c"),
      "an A register is in use by");
  expectRace(issue + "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
                     "{%c0, %c1, %c2, %c3}, %d0, %d1, %p0, 1, 1, 0, 0;",
             "an accumulator register is in use by");
  // Registers that were written after the last fence.
  expectRace(makeProduct(16, true, "%p0", false, false) + commit + await,
             "without wgmma.fence in between");
  expectRace(wgmmaFence + std::string("mov.b32 %a1, 0;") +
                 makeProduct(16, true, "%p0", false, false) + commit + await,
             "an A register was written without wgmma.fence");
  expectRace(issue + await + "mov.b32 %c1, 0;" +
                 makeProduct(16, true, "%p1", false, false) + commit + await,
             "an accumulator register was written without wgmma.fence");
  expectFault(wgmmaFence + makeProduct(16, true, "%p1", false, false) + commit +
                  await,
              ptx::FaultKind::Uninitialized,
              {"an accumulator register that has not been written"});
}

TEST(PtxWgmma, SharedMemory) {
  std::string issue =
      wgmmaFence + makeProduct(16, false, "%p0", false, false) + commit;
  // Reads in flight.
  expectFault(issue + "st.shared.b32 [%r1+8192], 7;" + await,
              ptx::FaultKind::Race, {"is still reading here"});
  // Another warp reads the bytes of B until its own wait.
  expectFault(issue + await + "st.shared.b32 [%r1+8192], 0;",
              ptx::FaultKind::Race, {});
  // No proxy fence, or no barrier.
  expectFault(issue + await, ptx::FaultKind::Race,
              {"without fence.proxy.async in between"}, "");
  expectFault(issue + await, ptx::FaultKind::Race, {},
              "bar.sync 0; st.shared.b32 [%r3+-2048], %r4; fence.proxy.async;",
              "");
  // The wrong swizzle reads bytes of other elements; nothing was written there.
  expectFault("mov.b64 %d1, 0x0000004000000700;" + issue + await,
              ptx::FaultKind::OutOfBounds, {"shared memory has 24576 bytes"});
}

TEST(PtxWgmma, WrongLayouts) {
  // Each wrong field of a descriptor makes the product wrong.
  auto compute = [](uint64_t change) {
    Matrices matrices(128);
    matrices.place(getA(128, false), getB(128, true));
    matrices.descriptorB ^= change;
    Kernel kernel(
        makeText(128, wgmmaFence + makeProduct(128, false, "%p0", false, true) +
                          commit + await));
    // Or the descriptor leaves shared memory.
    if (kernel.getFault(matrices.prepare(kernel)))
      matrices.out.clear();
    return matrices.out;
  };
  std::vector<float> right = compute(0);
  ASSERT_FALSE(right.empty());
  EXPECT_NE(compute(uint64_t(3) << 62), right); // 64-byte swizzle
  EXPECT_NE(compute(uint64_t(1) << 62), right); // none
  EXPECT_NE(compute(uint64_t(1024 >> 4) << 16), right);
  EXPECT_NE(compute(uint64_t(3 * 1024 >> 4) << 32), right);
  EXPECT_NE(compute(2), right);
}

TEST(PtxWgmma, Warpgroups) {
  std::string product = makeProduct(16, false, "%p0", false, false);
  std::string issue = wgmmaFence + product + commit + await;
  expectFault(issue, ptx::FaultKind::Undefined,
              {"the warpgroup has fewer than four warps"}, "fence.proxy.async;",
              "bar.sync 0;", 96);
  // One warp does something else, or nothing.
  std::string one = "setp.ge.u32 %p5, %r0, 96; @%p5 bra $ONE;";
  expectFault(one + wgmmaFence + product + commit + await +
                  "bra.uni $END; $ONE:" + wgmmaFence + product + product +
                  commit + await + "$END:",
              ptx::FaultKind::Undefined, {});
  expectFault(one + wgmmaFence + product + commit + await + "$ONE: exit;",
              ptx::FaultKind::Undefined,
              {"some warps of the warpgroup have ended without it"});
  expectFault(wgmmaFence +
                  ("cvt.u64.u32 %d4, %r0; add.s64 %d0, %d0, %d4;" + product),
              ptx::FaultKind::Undefined, {"disagree on a matrix descriptor"});
  expectFault("setp.lt.u32 %p0, %r0, 7;" + issue, ptx::FaultKind::Undefined,
              {"disagree on scale-d"});
}

TEST(PtxWgmma, Errors) {
  auto getHopperError = [](const std::string &instruction) {
    return getError(makeHopper("", instruction));
  };
  std::string accumulator = " {%r0, %r1, %r2, %r3}, ";
  std::string good =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16" + accumulator;
  EXPECT_EQ(getHopperError(good + "%d0, %d1, %p0, 1, 1, 0, 0;"), "");
  EXPECT_NE(getInstructionError(good + "%d0, %d1, %p0, 1, 1, 0, 0;")
                .find("'wgmma' requires sm_90a; the target is sm_90"),
            std::string::npos);
  for (
      const std::string &text : std::vector<std::string>{
          good + "%d0, %d1, %p0, 1, 1, 0;", good + "%d0, %d1, %p0, 2, 1, 0, 0;",
          good + "%d0, %d1, %p0, 1, 1, 0, 2;", good + "%d0, %d1, 1, 1, 0, 0;",
          good + "{%r4, %r5}, %d1, %p0, 1, 1, 0;",
          good + "{%r4, %r5, %r6, 0}, %d1, %p0, 1, 1, 0;",
          "wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16" + accumulator +
              "%d0, %d1, %p0, 1, 1, 0, 0;",
          "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32" + accumulator +
              "%d0, %d1, %p0, 1, 1;",
          "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16" + accumulator +
              "%d0, %d1, %p0, 1, 1, 0, 0;",
          "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r0, %r1, %r2, "
          "_}, %d0, %d1, %p0, 1, 1, 0, 0;",
          std::string("wgmma.wait_group.sync.aligned;"),
          std::string("wgmma.fence.aligned;"),
          std::string("setmaxnreg.inc.sync.aligned.u32 100;"),
          std::string("setmaxnreg.inc.sync.aligned.u32 %r0;"),
          std::string("setmaxnreg.sync.aligned.u32 128;")})
    EXPECT_NE(getHopperError(text).find("line "), std::string::npos) << text;
  EXPECT_EQ(getHopperError("setmaxnreg.dec.sync.aligned.u32 24;"), "");
}
