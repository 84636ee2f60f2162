//===- SandboxTest.cpp - the sandbox detects every fault ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sandbox.h"
#include "Mutator.h"

#include "posenc/Driver/Guard.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/thread.h"

#include "gtest/gtest.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

using namespace posenc::fuzz;

#if LLVM_ADDRESS_SANITIZER_BUILD
#define SKIP_IF_SANITIZED() GTEST_SKIP() << "a sanitizer reports faults itself"
#else
#define SKIP_IF_SANITIZED() (void)0
#endif

namespace {

constexpr size_t count = 40, culprit = 17;

/// Runs `count` inputs. The input `culprit` calls `harm`.
Summary runWith(const std::function<std::string()> &harm,
                bool readerCorruptsMemory = false) {
  SandboxOptions options;
  options.readerCorruptsMemory = readerCorruptsMemory;
  options.batch = 25;
  options.cpuSeconds = 1;
  options.wallSeconds = 3;
  return runSandboxed(
      count,
      [&]() -> Body {
        return [&](size_t input) {
          return Outcome{input == culprit ? harm() : "", 1};
        };
      },
      options);
}

/// Expects exactly one failure, of the culprit alone, and that all inputs ran.
void expectOne(const Summary &summary, Fault fault) {
  ASSERT_EQ(summary.failures.size(), 1u);
  EXPECT_EQ(summary.failures[0].fault, fault) << describe(summary.failures[0]);
  EXPECT_EQ(summary.failures[0].first, culprit);
  EXPECT_EQ(summary.failures[0].last, culprit);
  EXPECT_EQ(summary.executed, count);
  EXPECT_EQ(summary.upstream, 0u);
}

TEST(SandboxTest, NoFault) {
  Summary summary = runWith([] { return ""; });
  EXPECT_EQ(summary.executed, count);
  EXPECT_TRUE(summary.failures.empty());
  EXPECT_EQ(summary.reached[1], count);
}

TEST(SandboxTest, Signals) {
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGKILL})
    expectOne(runWith([=] {
                raise(signal);
                return "";
              }),
              Fault::Signal);
}

TEST(SandboxTest, BadMemory) {
  expectOne(runWith([] {
              *reinterpret_cast<volatile int *>(uintptr_t(culprit)) = 1;
              return "";
            }),
            Fault::Signal);
}

/// Recurses until the stack overflows, in a way that compilers cannot optimize.
int recurse(volatile char *before) {
  volatile char frame[4096];
  frame[0] = before ? before[0] : 1;
  return frame[0] ? recurse(frame) + frame[1] : 0;
}

TEST(SandboxTest, StackOverflow) {
  expectOne(runWith([] { return std::to_string(recurse(nullptr)); }),
            Fault::Signal);
}

TEST(SandboxTest, Exits) {
  for (int code : {0, 1, 3}) {
    expectOne(runWith([=] {
                std::exit(code);
                return "";
              }),
              Fault::Exit);
    expectOne(runWith([=] {
                _exit(code);
                return "";
              }),
              Fault::Exit);
  }
}

TEST(SandboxTest, HangsBusy) {
  expectOne(runWith([] {
              for (volatile unsigned i = 0;;)
                i = i + 1;
              return "";
            }),
            Fault::Timeout);
}

#ifdef __x86_64__
// Counts down from 40000, without unwind tables.
asm(".text\n"
    ".type countDownUnwindless, @function\n"
    "countDownUnwindless:\n"
    "  mov $40000, %eax\n"
    "0:\n"
    "  dec %eax\n"
    "  jnz 0b\n"
    "  ret\n"
    ".size countDownUnwindless, . - countDownUnwindless\n");
extern "C" void countDownUnwindless();

/// A hang that is mostly in code without unwind tables has a whole backtrace.
TEST(SandboxTest, HangsInCodeWithoutUnwindTables) {
  Summary summary = runWith([] {
    while (true) {
      countDownUnwindless();
      for (volatile unsigned i = 0; i < 2000;)
        i = i + 1;
    }
    return "";
  });
  expectOne(summary, Fault::Timeout);
  ASSERT_EQ(summary.failures.size(), 1u);
  // Three frames lead to the interrupted function, and more from there to the
  // start of the thread.
  EXPECT_GT(llvm::StringRef(summary.failures[0].what).count('\n'), 6u)
      << describe(summary.failures[0]);
}
#endif

TEST(SandboxTest, HangsAsleep) {
  expectOne(runWith([] {
              while (true)
                pause();
              return "";
            }),
            Fault::Timeout);
}

TEST(SandboxTest, FailsSilently) {
  Summary summary = runWith([] { return "no error was emitted"; });
  expectOne(summary, Fault::Wrong);
  EXPECT_NE(describe(summary.failures[0]).find("no error was emitted"),
            std::string::npos);
}

/// An input that fails only because of an earlier one.
TEST(SandboxTest, FindsInputsThatAFailureDependsOn) {
  Summary summary = runSandboxed(count, []() -> Body {
    auto poisoned = std::make_shared<bool>(false);
    return [poisoned](size_t input) {
      *poisoned |= input == culprit - 3;
      return Outcome{*poisoned && input == culprit ? "poisoned" : "", 0};
    };
  });
  ASSERT_EQ(summary.failures.size(), 1u);
  EXPECT_EQ(summary.failures[0].first, culprit - 4);
  EXPECT_EQ(summary.failures[0].last, culprit);
}

/// Faults of MLIR are counted separately from faults of this project.
TEST(SandboxTest, UpstreamFaultsAreCounted) {
  Summary summary = runWith([] {
    // The pointer refers to no operation.
    (void)mlir::verify(reinterpret_cast<mlir::Operation *>(uintptr_t(4096)));
    return "";
  });
  EXPECT_TRUE(summary.failures.empty());
  EXPECT_EQ(summary.upstream, 1u);
  EXPECT_EQ(summary.executed, count);
}

/// Faults of malloc and free count as upstream faults only with
/// `readerCorruptsMemory`.
TEST(SandboxTest, HeapFaultsAreCounted) {
  SKIP_IF_SANITIZED();
  auto harm = [] {
    void *volatile block = std::malloc(2000);
    std::free(block);
    std::free(block);
    return "";
  };
  expectOne(runWith(harm), Fault::Signal);
  Summary summary = runWith(harm, /*readerCorruptsMemory=*/true);
  EXPECT_TRUE(summary.failures.empty());
  EXPECT_EQ(summary.upstream, 1u);
  auto assertion = [] {
    std::abort();
    return "";
  };
  expectOne(runWith(assertion, /*readerCorruptsMemory=*/true), Fault::Signal);
}

/// The tools end with exit code 1 and a message on the same faults.
class GuardTest : public testing::Test {
protected:
  void SetUp() override { SKIP_IF_SANITIZED(); }

  Summary run(const std::function<int()> &body) {
    return runWith([&]() -> std::string {
      return "returns " + std::to_string(mlir::posenc::runGuarded(body));
    });
  }

  void expectError(const std::function<void()> &harm, llvm::StringRef text) {
    Summary summary = run([&] {
      harm();
      return 0;
    });
    expectOne(summary, Fault::Exit);
    if (summary.failures.size() != 1)
      return;
    EXPECT_EQ(summary.failures[0].what, "exits with 1");
    EXPECT_TRUE(
        llvm::StringRef(summary.failures[0].log).ends_with(text.str() + "\n"))
        << summary.failures[0].log;
  }
  void expectInternalError(const std::function<void()> &harm) {
    expectError(harm, "error: internal error");
  }
};

TEST_F(GuardTest, Signals) {
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGTRAP})
    expectInternalError([=] { raise(signal); });
}

TEST_F(GuardTest, FatalErrors) {
  expectInternalError([] { llvm::report_fatal_error("on purpose"); });
}

TEST_F(GuardTest, FileIsCutOff) {
  expectError(
      [] {
        std::FILE *file = std::tmpfile();
        constexpr size_t bytes = 4096;
        if (!file || ftruncate(fileno(file), bytes))
          return;
        void *data =
            mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fileno(file), 0);
        if (data != MAP_FAILED && !ftruncate(fileno(file), 0))
          (void)*static_cast<volatile char *>(data);
      },
      "error: a file that is mapped, such as that of weights, was cut off or "
      "cannot be read");
}

TEST_F(GuardTest, StackOverflow) {
  expectInternalError([] { recurse(nullptr); });
}

TEST_F(GuardTest, OtherThreads) {
  expectInternalError([] { llvm::thread([] { raise(SIGSEGV); }).join(); });
}

TEST_F(GuardTest, ReturnsWhatTheBodyReturns) {
  Summary summary = run([] { return 3; });
  expectOne(summary, Fault::Wrong);
  ASSERT_EQ(summary.failures.size(), 1u);
  EXPECT_EQ(summary.failures[0].what, "returns 3");
}

TEST(MutatorTest, IsDeterministic) {
  // The first numbers of SplitMix64 for the seed 0, as published.
  Random random(0);
  EXPECT_EQ(random.next(), 0xe220a8397b1dcdafu);
  EXPECT_EQ(random.next(), 0x6e789e6aa1b965f4u);

  std::vector<std::string> texts{"func.func @f(%a: tensor<4x?xf32>) {\n}\n",
                                 "{\"a\": [1, 2.5e+3], \"b\": null}\n"};
  size_t changed = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random first(seed), second(seed);
    std::string text = mutateText(first, texts, mlirDictionary);
    EXPECT_EQ(text, mutateText(second, texts, mlirDictionary));
    changed += text != texts[0] && text != texts[1];
    (void)mutateBytes(first, texts);
  }
  EXPECT_GE(changed, 900u);
}

/// Mutations may leave an empty text.
TEST(MutatorTest, TakesEmptyTexts) {
  std::vector<std::string> texts{"", "\n", "x", "\""};
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    (void)mutateText(random, texts, jsonDictionary);
    (void)mutateBytes(random, texts);
  }
}

} // namespace
