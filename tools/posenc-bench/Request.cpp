//===- Request.cpp - command line of posenc-bench -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Request.h"

#include "posenc-run/Kernels.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/Options.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::posenc;
using llvm::StringRef;
using llvm::Twine;

using MaybeError = std::optional<std::string>;

static int failUsage(const Twine &message) {
  getErrorStream() << "posenc-bench: error: " << message
                   << " (see posenc-bench --help)\n";
  return kExitUsage;
}

static MaybeError parseThreads(StringRef text, std::vector<int> &threads) {
  constexpr int maxThreads = 1024;
  llvm::SmallVector<StringRef> numbers;
  text.split(numbers, ',');
  for (StringRef number : numbers) {
    int value;
    if (number.getAsInteger(10, value) || value < 1 || value > maxThreads)
      return "needs numbers from 1 to " + std::to_string(maxThreads);
    threads.push_back(value);
  }
  return std::nullopt;
}

static MaybeError parseLimit(StringRef text, LimitKind &kind) {
  auto found = llvm::StringSwitch<std::optional<LimitKind>>(text)
                   .Case("auto", LimitKind::Auto)
                   .Case("inplace", LimitKind::InPlace)
                   .Case("copy", LimitKind::Copy)
                   .Case("memset", LimitKind::Memset)
                   .Case("read", LimitKind::Read)
                   .Case("fma", LimitKind::Fma)
                   .Default(std::nullopt);
  if (!found)
    return "needs inplace, copy, memset, read, fma or auto";
  kind = *found;
  return std::nullopt;
}

/// Moves Google Benchmark's options from `all` to request.benchmarkArguments.
/// Filters, lists and formats are handled or checked here instead: Google
/// Benchmark's filter sees names with the suffix `/manual_time`, and for an
/// unknown format it exits with success. Returns an exit code after an error.
static std::optional<int> takeBenchmarkFlags(std::vector<const char *> &all,
                                             BenchRequest &request) {
  std::vector<const char *> rest;
  for (const char *argument : all) {
    StringRef text = argument;
    if (!text.starts_with("--benchmark_") && !text.starts_with("--v=")) {
      rest.push_back(argument);
      continue;
    }
    auto [name, value] = text.split('=');
    bool isFormat = name == "--benchmark_format";
    if (isFormat || name == "--benchmark_out_format") {
      if (value != "json" && value != "console" &&
          (value != "csv" || !isFormat))
        return failUsage("option '" + name + "' needs json" +
                         (isFormat ? ", csv" : "") + " or console");
      request.hasFormat |= isFormat;
      if (!isFormat)
        request.fileFormat = value.str();
    }
    if (name == "--benchmark_out")
      request.hasFile = !value.empty();
    if (name == "--benchmark_filter") {
      request.filter = value.str();
      std::string error;
      if (!llvm::Regex(value.ltrim('-')).isValid(error) && value != "all")
        return failUsage("option '--benchmark_filter' needs a regular "
                         "expression: " +
                         error);
      continue;
    }
    if (name == "--benchmark_list_tests") {
      request.listTests = value != "false" && value != "0";
      continue;
    }
    request.benchmarkArguments.push_back(text.str());
  }
  all = std::move(rest);
  return std::nullopt;
}

static std::optional<int> checkRequest(BenchRequest &request,
                                       const std::vector<std::string> &inputs,
                                       bool inPlace) {
  if (inPlace && request.outOfPlace)
    return failUsage("--in-place and --out-of-place exclude each other");
  if (request.isSuite) {
    if (!inputs.empty() || !request.inputs.empty() ||
        !request.function.empty() || !request.target.empty())
      return failUsage("--suite excludes an input file, --input, --function "
                       "and --target");
    return std::nullopt;
  }
  if (inputs.size() != 1)
    return failUsage("expected one input file or --suite, got " +
                     Twine(inputs.size()) + " files");
  request.path = inputs.front();
  if (request.path == "-")
    return failUsage("the input is read several times, so it cannot be '-'");
  if (!isLibraryPath(request.path))
    return std::nullopt;
  if (!request.target.empty() || !request.tuning.empty() ||
      !getInputFlags(request.inputOptions).empty()) {
    getErrorStream()
        << "error: --target, --tuning, --dtype, --pairing, --k-cache, "
           "--cache-dtype, --cache-scales, --decode-tokens, --qk-norm, "
           "--index-type, --lse, "
           "--rotation, --causal, --rope-length, --precision and --stack-limit "
           "need a module or config.json, and '"
        << request.path << "' is a compiled library\n";
    return kExitError;
  }
  return std::nullopt;
}

std::optional<int> mlir::posenc::parseBenchRequest(int argc, char **argv,
                                                   BenchRequest &request) {
  OptionParser parser(
      "posenc-bench",
      "IN.{mlir,json,onnx,so} [options], or posenc-bench --suite [options]",
      "Measures functions of a module, of a model's config.json, of an ONNX "
      "model or of a\ncompiled library as a fraction of the memory bandwidth "
      "or FMA rate that the\nmachine reaches in the same run. Google "
      "Benchmark's options\n(--benchmark_filter, --benchmark_format, "
      "--benchmark_out,\n"
      "--benchmark_repetitions, --benchmark_min_time,\n--benchmark_list_tests, "
      "...) are accepted.");
  std::optional<std::string> function, target, tuning, size, python, kept,
      baseline;
  bool inPlace = false;
  parser.add("function", "NAME", "function to measure (default: all)",
             function);
  parser.add("input", "INPUT",
             "as in posenc-run, one for each argument (default: enough tokens "
             "to exceed the caches)",
             request.inputs);
  parser.add(
      "threads", "N,...", "thread counts (default: 1)",
      [&](StringRef text) { return parseThreads(text, request.threads); });
  parser.add("target", "CPU", "as in posenc-compile (default: host)", target);
  parser.add("tuning", "FILE",
             "tuning file of posenc-tune; with --suite: for its cases that are "
             "compiled for the host",
             tuning);
  parser.add("limit", "LIMIT",
             "limit to compare with: inplace, copy, memset, read, fma or auto "
             "(default: auto, chosen by what the function computes)",
             [&](StringRef text) { return parseLimit(text, request.limit); });
  parser.add("in-place",
             "let results overwrite arguments where possible (the default)",
             inPlace);
  parser.add("out-of-place", "write results to memory of their own",
             request.outOfPlace);
  addInputOptions(parser, request.inputOptions);
  parser.add("suite", "measure the cases of `make bench`", request.isSuite);
  parser.add("size", "SIZE", "size of the suite: full or small (default: full)",
             size);
  parser.add("peers",
             "with --suite: also measure the other implementations that are "
             "installed as Python packages",
             request.withPeers);
  parser.add("python", "FILE",
             "Python interpreter of --peers (default: python3)", python);
  parser.add("keep-libraries", "DIR",
             "with --suite: keep the compiled library of each case in DIR",
             kept);
  parser.add(
      "baseline", "DIR",
      "with --suite: measure the libraries that --keep-libraries kept in "
      "DIR in turn with the new ones, and compare the bits of the results",
      baseline);
  parser.add("verify", "print the hash of each case's results and exit",
             request.verifyOnly);

  std::vector<const char *> arguments(argv + std::min(argc, 1), argv + argc);
  if (std::optional<int> code = takeBenchmarkFlags(arguments, request))
    return code;
  std::vector<std::string> inputs;
  if (std::optional<int> code = parser.parse(arguments, inputs))
    return code;
  request.function = function.value_or("");
  request.target = target.value_or("");
  request.tuning = tuning.value_or("");
  request.keptLibraries = kept.value_or("");
  request.baseline = baseline.value_or("");
  if ((kept || baseline) && !request.isSuite)
    return failUsage("--keep-libraries and --baseline need --suite");
  if (kept && baseline && request.keptLibraries == request.baseline)
    return failUsage("--keep-libraries and --baseline need different folders");
  if (request.withPeers && !request.isSuite)
    return failUsage("--peers needs --suite");
  if (python)
    request.python = *python;
  if (size && !request.isSuite)
    return failUsage("--size needs --suite");
  if (size && *size != "full" && *size != "small")
    return failUsage("option '--size' needs full or small");
  if (size && *size == "small")
    request.suiteSize = SuiteSize::Small;
  return checkRequest(request, inputs, inPlace);
}
