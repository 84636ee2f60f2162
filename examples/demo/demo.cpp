//===- demo.cpp - checks and times rope of real models --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each model and element type, posenc-compile compiles the config.json to a
// library, and the runtime loads it and rotates the queries and keys of 4,096
// tokens. The results are compared with those of the oracle (lib/Reference,
// arbitrary precision), and the time of the rotation in place is compared with
// that of `x *= a` over the same memory. gpu.cpp does the same on an NVIDIA
// GPU, without the time. With --gpu it is all that the demo does.
//
//===----------------------------------------------------------------------===//

#include "demo.h"

#include "posenc-bench/Pairs.h"
#include "posenc/Interpreter/Frequencies.h"
#include "posenc/Reference/Compare.h"
#include "posenc/Reference/Ops.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <random>

namespace reference = posenc::reference;
namespace runtime = posenc::runtime;
namespace frontend = posenc::frontend;
namespace bench = mlir::posenc;
using namespace demo;

namespace {

constexpr int64_t kTokens = 4096;
/// Number of timed calls of the kernel, each paired with one of the limit.
constexpr int kRepetitions = 31;

struct Model {
  const char *config;
  const char *title;
};

const Model kModels[] = {{"llama-3.1-8b", "Llama 3.1 8B"},
                         {"gpt-j-6b", "GPT-J 6B (interleaved)"},
                         {"phi-2", "Phi-2 (partial)"}};

struct Row {
  double ulp, gigabytesPerSecond, fraction;
};

} // namespace

bool demo::fail(const llvm::Twine &message) {
  llvm::errs() << "demo: " << message << "\n";
  return false;
}

/// Returns the context of the attributes of all configs.
static mlir::MLIRContext &getContext() {
  static mlir::MLIRContext context;
  return context;
}

std::optional<frontend::ModelConfig> demo::readConfig(const Paths &paths,
                                                      llvm::StringRef name) {
  std::string config = paths.configs + "/" + name.str() + ".json";
  auto text = llvm::MemoryBuffer::getFile(config);
  if (!text) {
    fail("cannot read " + config);
    return std::nullopt;
  }
  llvm::SmallVector<frontend::Diagnostic> diagnostics;
  std::optional<frontend::ModelConfig> parsed = frontend::readModelConfig(
      getContext(), (*text)->getBuffer(), config, diagnostics);
  if (!parsed)
    frontend::printDiagnostics(llvm::errs(), diagnostics);
  return parsed;
}

reference::DType demo::getType(posenc_dtype dtype) {
  return dtype == POSENC_F32 ? reference::DType::F32 : reference::DType::BF16;
}

reference::FrequencySpec demo::getSpec(const frontend::ModelConfig &model) {
  using namespace mlir::posenc;
  mlir::Builder builder(&getContext());
  return getFrequencySpec(
      FrequenciesAttr::get(builder.getContext(), model.rotaryDim,
                           builder.getF64FloatAttr(model.ropeTheta),
                           model.scaling, Precision::Exact),
      AxesAttr());
}

bool demo::fillRandom(runtime::Array &array, posenc_dtype dtype, int64_t tokens,
                      int64_t heads, int64_t headDim, uint64_t seed) {
  std::string error;
  if (!runtime::Array::allocate(dtype, {1, tokens, heads, headDim}, array,
                                error))
    return fail(error);
  reference::DType type = getType(dtype);
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  for (int64_t i = 0, e = tokens * heads * headDim; i < e; ++i)
    reference::storeBits(type, array.data(), i,
                         reference::encode(type, normal(generator)));
  return true;
}

bool demo::compile(const Paths &paths, llvm::StringRef name,
                   llvm::ArrayRef<std::string> options,
                   llvm::StringRef library) {
  std::string config = paths.configs + "/" + name.str() + ".json";
  llvm::SmallVector<llvm::StringRef> arguments{paths.compiler, config, "-o",
                                               library};
  arguments.append(options.begin(), options.end());
  std::string message;
  if (llvm::sys::ExecuteAndWait(paths.compiler, arguments, std::nullopt, {}, 0,
                                0, &message) != 0)
    return fail("posenc-compile failed on " + config + " " + message);
  return true;
}

/// Runs @rope of the library, compares its results with the oracle, and times
/// it.
static bool runModel(const frontend::ModelConfig &model,
                     llvm::StringRef library, posenc_dtype dtype, Row &row) {
  std::string error;
  runtime::Library kernels = runtime::Library::open(library.str(), error);
  if (!kernels)
    return fail(error);
  runtime::Function rope = kernels.find("rope", error);
  if (!rope)
    return fail(error);

  runtime::Array q, k, positions;
  if (!fillRandom(q, dtype, kTokens, model.numHeads, model.headDim, 1) ||
      !fillRandom(k, dtype, kTokens, model.numKeyValueHeads, model.headDim, 2))
    return false;
  if (!runtime::Array::allocate(POSENC_I64, {1, kTokens}, positions, error))
    return fail(error);
  std::vector<int64_t> flat(kTokens);
  for (int64_t i = 0; i < kTokens; ++i)
    flat[i] = static_cast<int64_t *>(positions.data())[i] = i;

  std::vector<runtime::Array> results;
  if (!rope.call({q.value(), k.value(), positions.value()}, results, error))
    return fail(error);
  reference::RotateOptions options;
  options.interleaved = model.interleaved;
  options.windowOffset = model.rotaryOffset;
  options.positionDims = {0, 1};
  reference::DType type = getType(dtype);
  row.ulp = 0;
  for (auto [input, result, heads] :
       {std::tuple(&q, &results[0], model.numHeads),
        std::tuple(&k, &results[1], model.numKeyValueHeads)}) {
    std::vector<int64_t> shape{1, kTokens, heads, model.headDim};
    reference::Array expected =
        reference::rope(reference::fromBytes(type, input->data(), shape),
                        getSpec(model), {}, flat, options);
    reference::Comparison comparison =
        reference::compare(type, result->data(), expected);
    if (!comparison.within(reference::defaultLimitUlp(
            reference::ResultKind::Rotated, type, /*withAttention=*/false)))
      return fail("wrong result: " + comparison.reason + " " +
                  std::to_string(static_cast<double>(comparison.maxUlp)) +
                  " ulp");
    row.ulp = std::max(row.ulp, static_cast<double>(comparison.maxUlp));
  }

  // Times the rotation in place, as a serving engine uses it. Only the channels
  // that are rotated are accessed.
  std::vector<bench::StreamStep> steps;
  int64_t element = static_cast<int64_t>(posenc_dtype_size(dtype));
  for (auto [array, heads] :
       {std::pair(&q, model.numHeads), std::pair(&k, model.numKeyValueHeads)}) {
    bench::StreamStep step;
    step.dtype = dtype;
    step.to = bench::getTouchedLines(
        array->data(), kTokens * heads, model.headDim * element,
        model.rotaryOffset * element, model.rotaryDim * element);
    steps.push_back(std::move(step));
  }
  std::vector<bench::Stream> limits = bench::createStreams(std::move(steps));
  bench::PairedTimes times(limits.size());
  bool called = true;
  for (int i = 0; i < kRepetitions; ++i)
    times.measure(
        [&](int64_t) {
          return bench::measureSeconds([&] {
            called &= rope.call({q.value(), k.value(), positions.value()},
                                std::vector<posenc_value>{q.value(), k.value()},
                                error);
          });
        },
        /*calls=*/1, limits, /*threads=*/1);
  if (!called)
    return fail(error);
  row.gigabytesPerSecond =
      double(limits.front().bytes()) / times.getKernel(0.5) / 1e9;
  row.fraction = times.getFraction();
  return true;
}

/// Compiles, checks and times rope of all models on the CPU.
static bool showCpu(const Paths &paths) {
  llvm::outs() << "model                    q + k, head dim     type   error "
                  "(ulp)    GB/s   of in-place stream\n";
  std::vector<std::string> files;
  for (const Model &model : kModels) {
    std::optional<frontend::ModelConfig> parsed =
        readConfig(paths, model.config);
    if (!parsed)
      return false;
    for (auto [name, dtype] :
         {std::pair("f32", POSENC_F32), std::pair("bf16", POSENC_BF16)}) {
      std::string library =
          paths.libraries + "/lib" + model.config + "-" + name + ".so";
      Row row;
      if (!compile(paths, model.config,
                   {std::string("--dtype=") + name, "--threads=none"},
                   library) ||
          !runModel(*parsed, library, dtype, row))
        return false;
      files.push_back(library);
      std::string shape =
          llvm::formatv("{0} + {1} heads, {2}", parsed->numHeads,
                        parsed->numKeyValueHeads, parsed->headDim);
      llvm::outs() << llvm::left_justify(model.title, 25)
                   << llvm::left_justify(shape, 20)
                   << llvm::left_justify(name, 7)
                   << llvm::format("%9.3f  %9.1f   %9.2f\n", row.ulp,
                                   row.gigabytesPerSecond, row.fraction);
      llvm::outs().flush();
    }
  }
  llvm::outs()
      << "\nEach row is a model's own rope, compiled from its config.json to a "
         "shared library and\nrun on the queries and keys of "
      << kTokens
      << " tokens on one thread. The error is the largest over all\nlanes, "
         "against arbitrary-precision arithmetic, in units in the last place "
         "of the type;\n0.5 is perfect rounding, which bf16 reaches because "
         "products are computed in f32 and\nrounded once. The last column "
         "compares the time in place with that of x *= a over the\nsame "
         "memory, in the same run: 1.00 means that the rotation is as fast as "
         "that loop.\n\nFiles:\n";
  for (const std::string &file : files)
    llvm::outs() << "  " << file << "\n";
  llvm::outs().flush();
  return true;
}

int main(int argc, char **argv) {
  bool isGpuOnly = argc == 2 && llvm::StringRef(argv[1]) == "--gpu";
  if (argc > 1 && !isGpuOnly) {
    llvm::errs() << "usage: posenc-demo [--gpu]\n";
    return 2;
  }
  llvm::SmallString<256> bin(llvm::sys::fs::getMainExecutable(
      argv[0], reinterpret_cast<void *>(&main)));
  llvm::sys::path::remove_filename(bin);
  llvm::SmallString<256> tool(bin), folder(bin);
  llvm::sys::path::append(tool, "posenc-compile");
  llvm::sys::path::remove_filename(folder);
  llvm::sys::path::append(folder, "demo");
  if (llvm::sys::fs::create_directories(folder))
    return fail("cannot create " + folder), 1;
  Paths paths{POSENC_EXAMPLES_DIR, std::string(folder), std::string(tool)};
  return (isGpuOnly || showCpu(paths)) && showGpu(paths) ? 0 : 1;
}
