//===- CompilerDoors.cpp - what the compiler reads ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Doors.h"

#include "Corpus.h"

#include "llvm/Support/xxhash.h"

#include <memory>

using namespace posenc::fuzz;
using llvm::StringRef;

namespace {
/// A context keeps all types, attributes and locations that it has seen, so a
/// new one is made from time to time.
class FreshTargets {
public:
  Targets &get() {
    if (numUses++ % kUses == 0)
      targets = std::make_unique<Targets>();
    return *targets;
  }

private:
  static constexpr size_t kUses = 500;
  size_t numUses = 0;
  std::unique_ptr<Targets> targets;
};
} // namespace

/// Wraps a function that runs an input. The hash of the input selects passes,
/// so that the same input does the same each time.
template <typename Run> static RunInput withTargets(Run run) {
  auto targets = std::make_shared<FreshTargets>();
  return [targets, run](StringRef input) {
    return run(targets->get(), input, llvm::xxh3_64bits(input));
  };
}

RunInput posenc::fuzz::openConfig() {
  return withTargets([](Targets &targets, StringRef input, uint64_t) {
    return targets.runConfig(input);
  });
}

RunInput posenc::fuzz::openModule() {
  return withTargets([](Targets &targets, StringRef input, uint64_t number) {
    // Upstream's reader of bytecode writes out of bounds (known-faults.txt), so
    // bytecode is written and read again, but not damaged.
    if (input.starts_with("ML\xefR"))
      return Outcome{"", Refused};
    Outcome outcome = targets.copyAsBytecode(input.str());
    if (outcome.reached == Refused || !outcome.wrong.empty())
      return outcome;
    return targets.runModule(input, number, mlir::posenc::OptLevel::O0);
  });
}

/// Half of the graphs are only imported and raised.
static Outcome runGraph(Targets &targets, StringRef input, uint64_t number,
                        StringRef name) {
  return number % 2 ? targets.readModule(input, name)
                    : targets.runModule(input, number / 2,
                                        mlir::posenc::OptLevel::O0, name);
}

RunInput posenc::fuzz::openGraph() {
  return withTargets([](Targets &targets, StringRef input, uint64_t number) {
    if (input.starts_with("ML\xefR"))
      return Outcome{"", Refused};
    return runGraph(targets, input, number, "graph.mlir");
  });
}

RunInput posenc::fuzz::openOnnx() {
  return withTargets([](Targets &targets, StringRef input, uint64_t number) {
    return runGraph(targets, input, number, "model.onnx");
  });
}

/// The first line is the pipeline, the others are the module that it runs on.
RunInput posenc::fuzz::openPipeline() {
  return withTargets([](Targets &targets, StringRef input, uint64_t) {
    auto [pipeline, module] = input.split('\n');
    if (module.starts_with("ML\xefR"))
      return Outcome{"", Refused};
    return targets.runPipeline(pipeline, module.str());
  });
}

std::vector<std::string> posenc::fuzz::getPipelineSeeds() {
  std::vector<std::string> seeds;
  const std::vector<std::string> &texts = getCorpus().texts;
  size_t at = 0;
  for (const std::string &pipeline : Targets::getPipelines())
    seeds.push_back(pipeline + "\n" + texts[at++ % texts.size()]);
  return seeds;
}
