//===- MBarrierTest.cpp - mbarrier in the PTX interpreter -----------------===//
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

// Thread 0 initializes an mbarrier for the arrivals of 32 threads. %p1 is true
// in the second of two warps; %r2 and %r3 are the addresses of 4 bytes of the
// thread and of the same lane of the other warp.
const char *prologue =
    ".shared .align 8 .b8 m[16]; .shared .align 16 .b8 s[256];\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, s; mov.u32 %r7, m;\n"
    "mad.lo.s32 %r2, %r0, 4, %r1; xor.b32 %r4, %r0, 32;\n"
    "mad.lo.s32 %r3, %r4, 4, %r1; setp.eq.u32 %p0, %r0, 0;\n"
    "setp.ge.u32 %p1, %r0, 32;\n"
    "@%p0 mbarrier.init.shared::cta.b64 [%r7], 32;\n"
    "bar.sync 0;\n";
const char *arrive = "mbarrier.arrive.shared.b64 _, [%r7];\n";
const char *use = "ld.shared.b32 %r8, [%r3]; add.s32 %r8, %r8, 0;\n";

// A loop that waits for the phase with this parity.
std::string makeWait(const std::string &parity, const std::string &name = "W") {
  return "$" + name + ": mbarrier.try_wait.parity.shared.b64 %p2, [%r7], " +
         parity + "; @!%p2 bra $" + name + ";\n";
}
// The first warp runs `producer`, the second one `consumer`.
std::string split(const std::string &producer, const std::string &consumer) {
  return prologue + ("@%p1 bra $CONSUMER;\n" + producer +
                     "bra.uni $END; $CONSUMER:\n" + consumer + "$END:");
}

void expectNone(const std::string &body) {
  for (uint32_t seed : {0, 1, 2, 3, 4}) {
    Kernel kernel(makeModule("", body));
    kernel.shape.block = {64, 1, 1};
    kernel.options.seed = seed;
    kernel.options.instructionLimit = 100000;
    kernel.run({});
  }
}
void expectFault(const std::string &body, ptx::FaultKind kind,
                 const std::vector<std::string> &parts) {
  for (uint32_t seed : {0, 1, 2, 3}) {
    Kernel kernel(makeModule("", body));
    kernel.shape.block = {64, 1, 1};
    kernel.options.seed = seed;
    kernel.options.instructionLimit = 100000;
    kernel.expectFault(kind, {}, parts);
  }
}

} // namespace

TEST(PtxMBarrier, OrdersAccesses) {
  std::string store = "st.shared.b32 [%r2], %r0;";
  expectNone(split(store + arrive, makeWait("0") + use));
  // The wait acquires what precedes the arrivals, and nothing else.
  expectFault(split(arrive + store, makeWait("0") + use), ptx::FaultKind::Race,
              {});
  expectFault(prologue +
                  ("st.shared.b32 [%r2], 1; bar.sync 0;" + store +
                   "@!%p1 mbarrier.arrive.shared.b64 _, [%r7];") +
                  use,
              ptx::FaultKind::Race, {"data race"});
  expectFault(split(store + "mbarrier.arrive.relaxed.cta.shared.b64 _, [%r7];",
                    makeWait("0") + use),
              ptx::FaultKind::Race, {"data race"});
}

TEST(PtxMBarrier, Phases) {
  // The producer writes twice; the consumer frees the bytes in between.
  std::string init = "@%p0 mbarrier.init.shared.b64 [%r7+8], 32; bar.sync 0;";
  std::string free = "mbarrier.arrive.shared.b64 _, [%r7+8];";
  auto wait = [&](const std::string &parity, const std::string &name) {
    return "add.s32 %r7, %r7, 8;" + makeWait(parity, name) +
           "sub.s32 %r7, %r7, 8;";
  };
  auto make = [&](const std::string &first, const std::string &second,
                  const std::string &isFree) {
    std::string producer, consumer;
    for (unsigned i = 0; i < 2; ++i) {
      std::string name = std::to_string(i);
      // The first wait for free bytes succeeds: no phase precedes phase 0.
      producer += wait(i == 0 ? "1" : isFree, "P" + name) +
                  "st.shared.b32 [%r2], " + name + ";" + arrive;
      consumer += makeWait(i == 0 ? first : second, "C" + name) + use + free;
    }
    std::string text = split(producer, consumer);
    size_t at = text.find("bar.sync 0;");
    return text.insert(at, init.substr(0, init.find("bar.sync")));
  };
  expectNone(make("0", "1", "0"));
  // Whether a wrong phase is a race, a read of bytes that are not written, or a
  // deadlock, depends on the schedule.
  for (const std::string &text :
       {make("1", "1", "0"), make("0", "0", "0"), make("0", "1", "1")}) {
    for (uint32_t seed : {0, 1, 2, 3}) {
      Kernel kernel(makeModule("", text));
      kernel.shape.block = {64, 1, 1};
      kernel.options.seed = seed;
      EXPECT_TRUE(kernel.getFault({}).has_value()) << seed << text;
    }
  }
}

TEST(PtxMBarrier, States) {
  // A state names the phase of its arrival.
  std::string state = "mbarrier.arrive.shared.b64 %d0, [%r7];"
                      "mbarrier.test_wait.shared.b64 %p3, [%r7], %d0;"
                      "$S: mbarrier.test_wait.shared.b64 %p2, [%r7], %d0;"
                      "@!%p2 bra $S;";
  expectNone(prologue + ("@%p1 exit;" + state));
  expectFault(prologue + ("@%p1 exit; mov.b64 %d0, 1;" +
                          std::string("mbarrier.test_wait.shared.b64 %p2, "
                                      "[%r7], %d0;")),
              ptx::FaultKind::Undefined, {"not that of the current"});
  // One thread may arrive for several.
  expectNone(split("@!%p0 bra $SKIP; mbarrier.arrive.shared.b64 _, [%r7], 32;"
                   "$SKIP:",
                   makeWait("0")));
}

// A random schedule lets try_wait fail in some lanes of a warp only, so that a
// branch on its result must not claim to be uniform.
TEST(PtxMBarrier, LanesDisagree) {
  std::string wait = makeWait("0"), uniform = wait;
  uniform.replace(uniform.find("bra"), 3, "bra.uni");
  for (uint32_t seed : {0, 1, 2, 3}) {
    Kernel kernel(makeModule("", split(arrive, uniform)));
    kernel.shape.block = {64, 1, 1};
    kernel.options.seed = seed;
    if (seed)
      kernel.expectFault(ptx::FaultKind::Undefined, {},
                         {"the lanes disagree on a branch with .uni"});
    else
      kernel.run({});
  }
  expectNone(split(arrive, wait));
}

TEST(PtxMBarrier, Deadlocks) {
  expectFault(split("", makeWait("0")), ptx::FaultKind::Barrier,
              {"deadlock: warp 1 polls mbarrier.try_wait.parity.shared.b64 at "
               "line",
               "phase 0 lacks 32 arrivals and 0 bytes"});
  expectFault(split("@%p0 exit;" + std::string(arrive), makeWait("0")),
              ptx::FaultKind::Barrier, {"phase 0 lacks 1 arrivals"});
  expectFault(split("@%p0 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r7], 64;"
                    "bar.warp.sync -1;" +
                        std::string(arrive),
                    makeWait("0")),
              ptx::FaultKind::Barrier,
              {"phase 0 lacks 0 arrivals and 64 bytes"});
  // Lanes of one warp that wait for each other.
  expectNone(prologue +
             ("@%p1 exit; @%p0 bra $WAIT;" + std::string(arrive) +
              "bra.uni $END; $WAIT:" + arrive + makeWait("0") + "$END:"));
}

TEST(PtxMBarrier, Faults) {
  expectFault(prologue +
                  std::string("mbarrier.arrive.shared.b64 _, [%r7], 20;"),
              ptx::FaultKind::Barrier, {"more arrivals than the 32"});
  expectFault(prologue + std::string("mbarrier.arrive.shared.b64 _, [%r7+8];"),
              ptx::FaultKind::Undefined, {"no mbarrier has been initialized"});
  expectFault(prologue + std::string("mbarrier.arrive.shared.b64 _, [%r7+4];"),
              ptx::FaultKind::Misaligned, {});
  expectFault(prologue + std::string("ld.shared.b32 %r8, [%r7+4];"),
              ptx::FaultKind::Undefined,
              {"the bytes are those of an mbarrier"});
  expectFault(prologue + std::string("@%p0 mbarrier.init.shared.b64 [%r7], 1;"),
              ptx::FaultKind::Undefined,
              {"the bytes are those of an mbarrier"});
  expectNone(prologue + std::string("@%p0 mbarrier.inval.shared.b64 [%r7];"
                                    "@%p0 st.shared.b32 [%r7], 0;"));
  expectFault(prologue +
                  std::string("@%p0 mbarrier.init.shared.b64 [%r7+8], 0;"),
              ptx::FaultKind::Undefined, {"the number of arrivals is 0"});
  expectFault(prologue + makeWait("2"), ptx::FaultKind::Undefined,
              {"the parity of a phase is 0 or 1"});
  expectFault(prologue + std::string("mbarrier.expect_tx.relaxed.cta.shared.b64"
                                     " [%r7], 0x100000;"),
              ptx::FaultKind::Undefined, {"cannot expect more than 1048575"});
  // Thread 0 initialized the mbarrier, without a barrier in between.
  std::string text = prologue;
  text.resize(text.find("bar.sync"));
  expectFault(text + "@%p1 exit;" + arrive, ptx::FaultKind::Race,
              {"data race: thread 0 initialized the mbarrier"});
}

TEST(PtxMBarrier, Errors) {
  for (const char *text :
       {"mbarrier.init.shared.b32 [%r0], 1;", "mbarrier.shared.b64 [%r0];",
        "mbarrier.init.global.b64 [%d0], 1;", "mbarrier.init.shared.b64 [%r0];",
        "mbarrier.arrive.shared.b64 [%r0];",
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r0];",
        "mbarrier.arrive.noComplete.shared.b64 %d0, [%r0], 1;",
        "mbarrier.try_wait.parity.shared.b64 %r1, [%r0], 0;",
        "mbarrier.try_wait.parity.shared.b64 %p1, [%r0];",
        "mbarrier.test_wait.shared.b64 %p1, [%r0], %r1;"})
    EXPECT_NE(getInstructionError(text).find("line "), std::string::npos)
        << text;
}
