//===- main.cpp - generates tokens with a compiled decoder ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   posenc-compile model.onnx -o libmodel.so
//   posenc-generate libmodel.so --ids=1,15043,29892 --tokens=64
//
// Prefills the prompt in chunks, decodes one token at a time, and prints the
// new tokens. On standard error, it says how many tokens a second that are, and
// which share of the bandwidth of memory decoding uses: every token reads all
// weights and the rows of the caches once.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "ReadBandwidth.h"
#include "Sampler.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

namespace {
struct Options {
  std::string library, weights;
  std::vector<int64_t> ids;
  int64_t tokens = 64, rows = 0, chunk = 128;
  Sampling sampling;
};
using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;
} // namespace

static int fail(const std::string &error) {
  std::fprintf(stderr, "posenc-generate: %s\n", error.c_str());
  return 1;
}

static int usage() {
  std::fputs(
      "usage: posenc-generate LIBRARY --ids=ID,ID… [options]\n"
      "  --tokens=N       new tokens (default: 64)\n"
      "  --rows=N         rows of the caches (default: as many as are needed)\n"
      "  --chunk=N        tokens of the prompt in a call (default: 128)\n"
      "  --temperature=T  sample from softmax(logits / T); 0 takes the most\n"
      "                   likely token (default: 0)\n"
      "  --top-k=K        sample from the K most likely tokens; 0 means all\n"
      "                   (default: 0)\n"
      "  --seed=S         seed of the samples (default: 0)\n"
      "  --weights=PATH   file of the weights (default: beside the library)\n",
      stderr);
  return 2;
}

/// Reads an integer from `least` on.
static bool parse(const char *text, int64_t least, int64_t &number) {
  char *end;
  number = std::strtoll(text, &end, 10);
  return end != text && !*end && number >= least;
}

static bool parseIds(std::string text, std::vector<int64_t> &ids) {
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    ids.emplace_back();
    if (!parse(text.substr(begin, end - begin).c_str(), 0, ids.back()))
      return false;
  }
  return true;
}

static bool parse(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    size_t equals = argument.find('=');
    if (argument.rfind("--", 0) != 0 || equals == std::string::npos) {
      if (!options.library.empty() || argument[0] == '-')
        return false;
      options.library = argument;
      continue;
    }
    std::string name = argument.substr(2, equals - 2);
    const char *value = argv[i] + equals + 1;
    int64_t number = 0;
    bool isValid = false;
    if (name == "ids") {
      isValid = parseIds(value, options.ids);
    } else if (name == "tokens") {
      isValid = parse(value, 1, options.tokens);
    } else if (name == "rows") {
      isValid = parse(value, 1, options.rows);
    } else if (name == "chunk") {
      isValid = parse(value, 1, options.chunk);
    } else if (name == "top-k") {
      isValid = parse(value, 0, options.sampling.topK);
    } else if (name == "seed") {
      isValid = parse(value, 0, number);
      options.sampling.seed = static_cast<uint64_t>(number);
    } else if (name == "temperature") {
      char *end;
      options.sampling.temperature = std::strtod(value, &end);
      isValid = end != value && !*end && options.sampling.temperature >= 0 &&
                options.sampling.temperature < 1e6;
    } else if (name == "weights") {
      options.weights = value;
      isValid = true;
    }
    if (!isValid)
      return false;
  }
  return !options.library.empty() && !options.ids.empty();
}

/// Returns the bytes of the library's weights: of their file, or of the library
/// if they are in it.
static double getWeightBytes(const Options &options) {
  namespace fs = std::filesystem;
  fs::path library = options.library;
  std::string stem = library.stem().string();
  fs::path weights =
      library.parent_path() /
      ((stem.rfind("lib", 0) == 0 ? stem.substr(3) : stem) + ".safetensors");
  if (!options.weights.empty())
    weights = options.weights;
  std::error_code code;
  auto bytes = fs::file_size(weights, code);
  if (code)
    bytes = fs::file_size(library, code);
  return code ? 0 : static_cast<double>(bytes);
}

/// The number of threads that libgomp uses.
static unsigned getNumThreads() {
  int64_t count;
  const char *given = std::getenv("OMP_NUM_THREADS");
  if (given && parse(given, 1, count))
    return static_cast<unsigned>(count);
  return std::max(1u, std::thread::hardware_concurrency());
}

/// Appends the prompt in chunks.
static const float *prefill(Decoder &decoder, const Options &options,
                            std::string &error) {
  const float *logits = nullptr;
  for (size_t begin = 0; begin < options.ids.size();) {
    size_t end = std::min(options.ids.size(),
                          begin + static_cast<size_t>(options.chunk));
    logits = decoder.append(
        {options.ids.begin() + begin, options.ids.begin() + end}, error);
    if (!logits)
      return nullptr;
    begin = end;
  }
  return logits;
}

int main(int argc, char **argv) {
  Options options;
  if (!parse(argc, argv, options))
    return usage();
  auto numIds = static_cast<int64_t>(options.ids.size());
  if (options.rows == 0)
    options.rows = numIds + options.tokens;
  Decoder decoder;
  std::string error;
  if (!decoder.open(options.library,
                    options.weights.empty() ? nullptr : options.weights.c_str(),
                    options.rows, error))
    return fail(error);
  for (int64_t id : options.ids)
    if (id >= decoder.getVocabulary())
      return fail("token " + std::to_string(id) + " is not one of " +
                  std::to_string(decoder.getVocabulary()));

  auto start = Clock::now();
  const float *logits = prefill(decoder, options, error);
  if (!logits)
    return fail(error);
  Seconds prefilled = Clock::now() - start;
  Sampler sampler(options.sampling);
  double bytes = 0, weightBytes = getWeightBytes(options);
  start = Clock::now();
  for (int64_t number = 0; number < options.tokens; ++number) {
    int64_t id = sampler.choose(logits, decoder.getVocabulary());
    std::printf("%s%" PRId64, number ? "," : "", id);
    std::fflush(stdout);
    if (number + 1 == options.tokens)
      break;
    logits = decoder.append({id}, error);
    if (!logits)
      return fail(error);
    bytes += weightBytes + static_cast<double>(decoder.getCacheBytes());
  }
  Seconds decoded = Clock::now() - start;
  std::puts("");
  std::fprintf(stderr, "prefill: %" PRId64 " tokens, %.1f tokens/s\n", numIds,
               static_cast<double>(numIds) / prefilled.count());
  if (options.tokens == 1)
    return 0;
  unsigned numThreads = getNumThreads();
  double rate = bytes / decoded.count(),
         limit = measureReadBandwidth(numThreads);
  std::fprintf(stderr,
               "decode: %" PRId64
               " tokens, %.1f tokens/s, %.1f GB/s, %.0f %% of "
               "the %.1f GB/s that %u threads read\n",
               options.tokens - 1,
               static_cast<double>(options.tokens - 1) / decoded.count(),
               rate / 1e9, 100 * rate / limit, limit / 1e9, numThreads);
  return 0;
}
