//===- gpu.cpp - the kernels of a model on an NVIDIA GPU ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// posenc-compile compiles rope and attention of a model for NVIDIA GPUs, which
// needs neither a GPU nor a CUDA toolkit. If the driver finds a GPU, both run
// there, and their results are compared with those of the oracle.
//
//===----------------------------------------------------------------------===//

#include "demo.h"

#include "posenc/Reference/Compare.h"
#include "posenc/Reference/CompareAttention.h"
#include "posenc/Reference/Ops.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

namespace reference = posenc::reference;
namespace runtime = posenc::runtime;
namespace frontend = posenc::frontend;

namespace {

constexpr const char *kModel = "llama-3.1-8b";
constexpr const char *kTitle = "Llama 3.1 8B, bf16";
constexpr const char *kArchs[] = {"sm_80", "sm_90a"};
constexpr int64_t kTokens = 64;
/// The position of the first token.
constexpr int64_t kFirst = 100000;
/// The error of attention in bf16 on GPUs, relative to the Frobenius norm of
/// the result (docs/numerics.md).
constexpr double kMaxRelativeError = 4e-3;

/// The inputs of rope and attention.
struct Inputs {
  runtime::Array q, k, v, positions;
  reference::Positions flat;
};

} // namespace

/// Returns the text of a file; empty if there is none.
static std::string readFile(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  return file ? (*file)->getBuffer().str() : "";
}

/// Prints the kernels for an architecture and how they are compiled, from the
/// files of --save-temps.
static bool printKernels(const std::string &stem, const std::string &arch) {
  std::string ptx = readFile(stem + "." + arch + ".ptx");
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::SplitString(ptx, lines, "\n");
  std::vector<std::string> names;
  for (llvm::StringRef line : lines)
    if (line.consume_front(".visible .entry "))
      names.push_back(line.take_until([](char c) { return c == '('; }).str());
  if (names.empty())
    return demo::fail("there are no kernels for " + arch);
  llvm::sort(names);
  // The first line is the version and the path of ptxas.
  std::string log = readFile(stem + "." + arch + ".ptxas.txt");
  std::string how =
      log.empty()
          ? "PTX, which the driver compiles"
          : "machine code by " + llvm::StringRef(log).split('\n').first.str();
  llvm::outs() << "  " << arch << ": " << how << "\n";
  for (const std::string &name : names)
    llvm::outs() << "    " << name << "\n";
  return true;
}

static bool fillInputs(const frontend::ModelConfig &model, Inputs &inputs) {
  std::string error;
  if (!demo::fillRandom(inputs.q, POSENC_BF16, kTokens, model.numHeads,
                        model.headDim, 1) ||
      !demo::fillRandom(inputs.k, POSENC_BF16, kTokens, model.numKeyValueHeads,
                        model.headDim, 2) ||
      !demo::fillRandom(inputs.v, POSENC_BF16, kTokens, model.numKeyValueHeads,
                        model.headDim, 3))
    return false;
  if (!runtime::Array::allocate(POSENC_I64, {1, kTokens}, inputs.positions,
                                error))
    return demo::fail(error);
  for (int64_t i = 0; i < kTokens; ++i) {
    static_cast<int64_t *>(inputs.positions.data())[i] = kFirst + i;
    inputs.flat.push_back(kFirst + i);
  }
  return true;
}

/// Calls a function on device 0. Its outputs have the shapes of `like`.
static bool callOnGpu(const runtime::Library &library, llvm::StringRef name,
                      const std::vector<posenc_value> &inputs,
                      llvm::ArrayRef<const runtime::Array *> like,
                      std::vector<runtime::Array> &results) {
  std::string error;
  runtime::Function function = library.find(name.str(), error);
  if (!function)
    return demo::fail(error);
  std::vector<posenc_value> outputs;
  results.resize(like.size());
  for (size_t i = 0; i < like.size(); ++i) {
    if (!runtime::Array::allocate(POSENC_BF16, like[i]->shape(), results[i],
                                  error))
      return demo::fail(error);
    outputs.push_back(results[i].value());
  }
  return function.callOnCuda(/*device=*/0, inputs, outputs, error) ||
         demo::fail(error);
}

static bool runRope(const runtime::Library &library,
                    const frontend::ModelConfig &model, const Inputs &inputs) {
  std::vector<runtime::Array> results;
  if (!callOnGpu(library, "rope",
                 {inputs.q.value(), inputs.k.value(), inputs.positions.value()},
                 {&inputs.q, &inputs.k}, results))
    return false;
  reference::RotateOptions options;
  options.interleaved = model.interleaved;
  options.windowOffset = model.rotaryOffset;
  options.positionDims = {0, 1};
  double ulp = 0;
  for (auto [input, result] :
       {std::pair(&inputs.q, &results[0]), std::pair(&inputs.k, &results[1])}) {
    reference::Array expected =
        reference::rope(reference::fromBytes(reference::DType::BF16,
                                             input->data(), input->shape()),
                        demo::getSpec(model), {}, inputs.flat, options);
    reference::Comparison comparison =
        reference::compare(reference::DType::BF16, result->data(), expected);
    if (!comparison.within(reference::defaultLimitUlp(
            reference::ResultKind::Rotated, reference::DType::BF16,
            /*withAttention=*/false)))
      return demo::fail(
          "wrong result of rope on the GPU: " + comparison.reason + " " +
          std::to_string(static_cast<double>(comparison.maxUlp)) + " ulp");
    ulp = std::max(ulp, static_cast<double>(comparison.maxUlp));
  }
  llvm::outs() << llvm::format("    rope: error %.3f ulp\n", ulp);
  return true;
}

static bool runAttention(const runtime::Library &library,
                         const frontend::ModelConfig &model,
                         const Inputs &inputs) {
  std::vector<runtime::Array> results;
  if (!callOnGpu(library, "attention",
                 {inputs.q.value(), inputs.k.value(), inputs.v.value(),
                  inputs.positions.value()},
                 {&inputs.q}, results))
    return false;
  reference::AttentionSpec spec;
  spec.causal = true;
  spec.queryRotation.emplace();
  spec.queryRotation->frequencies = demo::getSpec(model);
  spec.queryRotation->interleaved = model.interleaved;
  spec.queryRotation->windowOffset = model.rotaryOffset;
  spec.queryRotation->positions = inputs.flat;
  spec.keyRotation = spec.queryRotation;
  auto read = [](const runtime::Array &array) {
    return reference::fromBytes(reference::DType::BF16, array.data(),
                                array.shape());
  };
  reference::AttentionComparison comparison = reference::compareAttention(
      reference::DType::BF16, results[0].data(),
      reference::attention(read(inputs.q), read(inputs.k), read(inputs.v),
                           spec));
  if (comparison.mismatch || !(comparison.relative <= kMaxRelativeError))
    return demo::fail(
        "wrong result of attention on the GPU: " + comparison.reason +
        " error " + std::to_string(comparison.relative));
  llvm::outs() << llvm::format(
      "    attention: error %.1e of the result's norm\n", comparison.relative);
  return true;
}

bool demo::showGpu(const Paths &paths) {
  std::optional<frontend::ModelConfig> model = readConfig(paths, kModel);
  if (!model)
    return false;
  std::string stem = paths.libraries + "/lib" + kModel + "-cuda";
  std::vector<std::string> options{"--dtype=bf16", "--kernels=rope,attention",
                                   "--save-temps"};
  for (const char *arch : kArchs)
    options.push_back(std::string("--target=cuda:") + arch);
  // Files of an earlier run would be listed as those of this one.
  for (const char *arch : kArchs)
    for (const char *suffix : {".ptx", ".cubin", ".ptxas.txt"})
      std::remove((stem + "." + arch + suffix).c_str());
  if (!compile(paths, kModel, options, stem + ".so"))
    return false;
  llvm::outs() << "\nKernels for NVIDIA GPUs, " << kTitle << " (" << stem
               << ".so):\n";
  for (const char *arch : kArchs)
    if (!printKernels(stem, arch))
      return false;

  posenc_cuda_facts facts;
  if (posenc_cuda_query_device(0, &facts)) {
    llvm::outs() << "  They have not run: " << posenc_last_error() << "\n";
    return true;
  }
  std::string error;
  runtime::Library library = runtime::Library::open(stem + ".so", error);
  if (!library)
    return fail(error);
  Inputs inputs;
  if (!fillInputs(*model, inputs))
    return false;
  llvm::outs() << "  Results on " << facts.name << " (sm_" << facts.arch
               << "), " << kTokens << " tokens from position " << kFirst
               << ":\n";
  return runRope(library, *model, inputs) &&
         runAttention(library, *model, inputs);
}
