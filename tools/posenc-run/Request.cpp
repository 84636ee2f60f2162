//===- Request.cpp - command line of posenc-run ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Request.h"

#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/Options.h"

#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir::posenc;
using llvm::StringRef;

using MaybeError = std::optional<std::string>;

/// Returns a setter that appends the path of a value `@FILE` to `to`.
static OptionParser::Setter readPath(std::vector<std::string> &to) {
  return [&to](StringRef text) -> MaybeError {
    if (!text.consume_front("@") || text.empty())
      return "needs a value like @FILE.npy";
    to.push_back(text.str());
    return std::nullopt;
  };
}

/// Returns a setter that stores a non-negative number in `to`.
static OptionParser::Setter readLimit(std::optional<double> &to) {
  return [&to](StringRef text) -> MaybeError {
    double value;
    // Rejects NaN, with which every comparison would pass.
    if (text.getAsDouble(value) || !(value >= 0))
      return "needs a non-negative number";
    to = value;
    return std::nullopt;
  };
}

/// Returns a setter that stores a finite non-negative number in `to`.
static OptionParser::Setter readTolerance(std::optional<double> &to) {
  return [&to](StringRef text) -> MaybeError {
    std::optional<double> value;
    if (readLimit(value)(text) || !std::isfinite(*value))
      return "needs a finite non-negative number";
    to = value;
    return std::nullopt;
  };
}

/// Parses `cpu`, `cuda[:N]` or `vulkan[:N]`. Returns an exit code if the
/// program must end.
static std::optional<int> readDevice(StringRef device, RunRequest &request) {
  if (device == "cpu")
    return std::nullopt;
  auto [kind, number] = device.split(':');
  int32_t index = 0;
  bool isNumbered = kind.size() == device.size() ||
                    (!number.getAsInteger(10, index) && index >= 0);
  if (isNumbered && (kind == "cuda" || kind == "vulkan")) {
    request.device.kind =
        kind == "cuda" ? Device::Kind::Cuda : Device::Kind::Vulkan;
    request.device.number = index;
    return std::nullopt;
  }
  getErrorStream() << "posenc-run: error: unknown device '"
                   << device.take_front(80)
                   << "': expected cpu, cuda:N or vulkan:N\n";
  return kExitUsage;
}

std::optional<int> mlir::posenc::parseRunRequest(int argc, char **argv,
                                                 RunRequest &request) {
  OptionParser parser(
      "posenc-run",
      "IN.{mlir,json,onnx,so} [--function=F] --input=... [options]",
      "Runs a function of a module, a model's config.json, an ONNX model or a "
      "compiled\nlibrary, and can compare its results with the reference or "
      "with files.");
  std::optional<std::string> function, device, tuning;
  parser.add("function", "NAME", "function to run (default: the only one)",
             function);
  parser.add("device", "DEVICE", "cpu, cuda:N or vulkan:N (default: cpu)",
             device);
  parser.add("input", "INPUT",
             "argument of the function, once for each, in order: @FILE.npy, "
             "1x32xbf16=random[:seed=N], 1x32xbf16=iota, 1x32xbf16=VALUE, or a "
             "number",
             request.inputs);
  parser.add("output", "@FILE.npy",
             "write a result to a file, once for each result, in order",
             readPath(request.outputs));
  parser.add("expected_output", "@FILE.npy",
             "compare a result with a file, once for each result, in order",
             readPath(request.expectedOutputs));
  parser.add("reference",
             "evaluate the function with the reference implementation, and "
             "compare the results with it",
             request.reference);
  parser.add("verify-weights",
             "for a library: read the file of its weights, compare the bytes "
             "with the digest in it, and exit",
             request.verifyWeights);
  parser.add("max-ulp", "LIMIT",
             "maximum error of an element in units in the last place (default: "
             "depends on operation and type)",
             readLimit(request.limits.maxUlp));
  parser.add(
      "max-rel", "LIMIT",
      "maximum relative error of a whole result (default: depends on the "
      "type for attention, no limit otherwise)",
      readLimit(request.limits.maxRel));
  std::optional<double> atol, rtol;
  parser.add("atol", "A",
             "compare with expected outputs by a tolerance instead: |x-y| <= A "
             "+ R|y|, where y is expected (default: 0 if --rtol is given)",
             readTolerance(atol));
  parser.add("rtol", "R",
             "the relative part of that tolerance (default: 0 if --atol is "
             "given)",
             readTolerance(rtol));
  addInputOptions(parser, request.inputOptions);
  parser.add("tuning", "FILE",
             "for a module or config.json: parameters measured by posenc-tune",
             tuning);
  addOptLevelOption(parser, request.optLevel);
  std::vector<std::string> inputs;
  if (std::optional<int> code = parser.parse(argc, argv, inputs))
    return code;
  if (inputs.size() != 1) {
    getErrorStream() << "posenc-run: error: expected one input file, got "
                     << inputs.size() << "\n";
    return kExitUsage;
  }
  if (atol || rtol) {
    const char *problem = nullptr;
    if (request.expectedOutputs.empty())
      problem = "--atol and --rtol need --expected_output";
    else if (!request.reference &&
             (request.limits.maxUlp || request.limits.maxRel))
      problem = "--max-ulp and --max-rel do not apply to outputs that are "
                "compared by --atol and --rtol; omit them or add --reference";
    if (problem) {
      getErrorStream() << "posenc-run: error: " << problem << "\n";
      return kExitUsage;
    }
    request.tolerance = {atol.value_or(0), rtol.value_or(0)};
  }
  request.path = inputs.front();
  request.function = function.value_or("");
  request.tuning = tuning.value_or("");
  if (tuning && tuning->empty()) {
    getErrorStream() << "posenc-run: error: --tuning needs a file\n";
    return kExitUsage;
  }
  return readDevice(device.value_or("cpu"), request);
}
