//===- FuzzTest.cpp - mutated inputs end in an error ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A smoke test with the same inputs every time, of which a build without
// assertions runs a quarter. Environment variables for longer runs:
//   POSENC_FUZZ_SEED=N      other inputs
//   POSENC_FUZZ_SCALE=N     N times as many inputs
//   POSENC_FUZZ_INPUTS=DIRS more seeds, from colon-separated folders
//
//===----------------------------------------------------------------------===//

#include "Corpus.h"
#include "KnownFaults.h"
#include "Mutator.h"
#include "Sandbox.h"
#include "Targets.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <memory>

using namespace posenc::fuzz;

namespace {

constexpr size_t numConfigs = 3000, numTexts = 3500, numGeneric = 1500,
                 numStages = 1200, numBytecode = 1500, numGraphs = 3000;
static_assert(numConfigs + numTexts + numGeneric + numStages + numBytecode +
                      numGraphs >=
                  10000,
              "the smoke test has fewer than 10000 inputs");

/// A build without assertions, which finds less, runs one in so many inputs.
#ifdef NDEBUG
constexpr size_t inputsPerRun = 4;
#else
constexpr size_t inputsPerRun = 1;
#endif

uint64_t readNumber(const char *name, uint64_t fallback) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

/// Makes an input from a generator seeded with the input's number, so that it
/// can be made again.
using MakeInput = std::function<std::string(Random &)>;
using RunInput = std::function<Outcome(Targets &, llvm::StringRef, uint64_t)>;

/// Returns the input as printable text that can be pasted into a file.
std::string quote(llvm::StringRef input) {
  if (llvm::all_of(input, [](char c) {
        return llvm::isPrint(c) || c == '\n' || c == '\t';
      }))
    return input.str();
  std::string text = "escaped: ";
  llvm::raw_string_ostream os(text);
  llvm::printEscapedString(input, os);
  return text;
}

void fuzz(llvm::StringRef name, size_t count, const MakeInput &make,
          const RunInput &run, SandboxOptions options = {}) {
  options.isKnown = isKnownFault;
  // Creates the corpus once, before there are child processes.
  (void)getCorpus();
  uint64_t seed = readNumber("POSENC_FUZZ_SEED", 1);
  count = count * readNumber("POSENC_FUZZ_SCALE", 1) / inputsPerRun;
  auto randomOf = [&](size_t input) {
    return Random(seed * 0x100000001b3 + input);
  };
  Summary summary = runSandboxed(
      count,
      [&]() -> Body {
        auto targets = std::make_shared<Targets>();
        return [&, targets](size_t input) {
          Random random = randomOf(input);
          std::string text = make(random);
          return run(*targets, text, random.next());
        };
      },
      options);
  for (const Failure &failure : summary.failures) {
    Random random = randomOf(failure.last);
    ADD_FAILURE() << describe(failure) << "\ninput:\n" << quote(make(random));
  }
  if (summary.failures.empty()) {
    EXPECT_EQ(summary.executed, count);
  }
  const std::vector<size_t> &reached = summary.reached;
  std::printf(
      "%s: %zu inputs: %zu refused, %zu read, %zu lowered to vectors, "
      "%zu to the LLVM dialect, %zu to LLVM IR, %zu to machine code; "
      "%zu hit known faults of LLVM or MLIR; slowest: input %zu, %.1f s\n",
      name.str().c_str(), summary.executed, reached[Refused], reached[Read],
      reached[Vectors], reached[LLVMDialect], reached[LLVMIR], reached[Code],
      summary.upstream, summary.slowest, summary.slowestSeconds);
  for (const auto &[location, times] : summary.upstreamLocations)
    std::printf("%zu times in\n%s", times, location.c_str());
}

TEST(FuzzTest, KnownFaultsMatchByFunction) {
  EXPECT_TRUE(
      isKnownFault("  libMLIR.so+0x1 mlir::BytecodeReader::Impl::f()\n"));
  EXPECT_FALSE(isKnownFault("  libMLIR.so+0x1 mlir::scf::ForOp::verify()\n"));
  EXPECT_FALSE(isKnownFault("  libLLVM.so+0x1 ?\n"));
}

TEST(FuzzTest, CorpusHasSeeds) {
  const Corpus &corpus = getCorpus();
  EXPECT_GE(corpus.configs.size(), 17u);
  EXPECT_GE(corpus.texts.size(), 30u);
  EXPECT_GE(corpus.generic.size(), 30u);
  EXPECT_GE(corpus.bytecode.size(), 30u);
  EXPECT_GE(corpus.stages.size(), 50u);
  EXPECT_GE(corpus.graphs.size(), 50u);
}

/// The unchanged seeds run without a failure; otherwise mutations of them would
/// only repeat it.
TEST(FuzzTest, SeedsRun) {
  const Corpus &corpus = getCorpus();
  std::vector<std::string> modules = corpus.texts;
  for (const auto *more : {&corpus.stages, &corpus.generic, &corpus.bytecode})
    modules.insert(modules.end(), more->begin(), more->end());
  Summary summary = runSandboxed(modules.size(), [&]() -> Body {
    auto targets = std::make_shared<Targets>();
    return [&, targets](size_t input) {
      const std::string &module = modules[input];
      // LLVM's passes are tested on many kernels elsewhere, so most code is
      // not optimized.
      if (input < corpus.texts.size())
        return targets->runModule(module, 0,
                                  input % 4 ? mlir::posenc::OptLevel::O0
                                            : mlir::posenc::OptLevel::O3);
      // The other forms lead to the same code.
      return targets->runModule(module, ~uint64_t(0));
    };
  });
  for (const Failure &failure : summary.failures)
    ADD_FAILURE() << describe(failure) << "\ninput:\n"
                  << quote(modules[failure.last]);
  EXPECT_EQ(summary.upstream, 0u);
}

TEST(FuzzTest, Configs) {
  const Corpus &corpus = getCorpus();
  fuzz(
      "configs", numConfigs,
      [&](Random &random) {
        return mutateText(random, corpus.configs, jsonDictionary);
      },
      [](Targets &targets, llvm::StringRef text, uint64_t) {
        return targets.runConfig(text);
      });
}

Outcome runModule(Targets &targets, llvm::StringRef text, uint64_t choice) {
  return targets.runModule(text, choice);
}

void fuzzModules(llvm::StringRef name, size_t count,
                 const std::vector<std::string> &seeds) {
  fuzz(
      name, count,
      [&](Random &random) { return mutateText(random, seeds, mlirDictionary); },
      runModule);
}

TEST(FuzzTest, Texts) { fuzzModules("texts", numTexts, getCorpus().texts); }

TEST(FuzzTest, Generic) {
  fuzzModules("generic forms", numGeneric, getCorpus().generic);
}

TEST(FuzzTest, Stages) { fuzzModules("stages", numStages, getCorpus().stages); }

/// Graphs of other compilers are imported and raised. One of eight is compiled.
TEST(FuzzTest, Graphs) {
  fuzz(
      "graphs", numGraphs,
      [&](Random &random) {
        return mutateGraph(random, getCorpus().graphs, mlirDictionary);
      },
      [](Targets &targets, llvm::StringRef text, uint64_t choice) {
        return choice % 8 ? targets.readModule(text)
                          : targets.runModule(text, choice / 8);
      });
}

/// Upstream's bytecode reader trusts its input and writes out of bounds, so a
/// later failure says nothing about this project. Each input is therefore only
/// read and printed, in its own process. Passes are tested on the other forms.
TEST(FuzzTest, Bytecode) {
  SandboxOptions options;
  options.batch = 1;
  options.readerCorruptsMemory = true;
  fuzz(
      "bytecode", numBytecode,
      [&](Random &random) { return mutateBytes(random, getCorpus().bytecode); },
      [](Targets &targets, llvm::StringRef bytes, uint64_t) {
        return targets.readModule(bytes);
      },
      options);
}

} // namespace
