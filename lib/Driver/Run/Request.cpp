//===- Request.cpp - the command line of posenc-run -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Request.h"

#include "posenc/Driver/Options.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir::posenc;
using llvm::StringRef;

using MaybeError = std::optional<std::string>;

/// Reads `@FILE` into a list.
static OptionParser::Setter readPath(std::vector<std::string> &to) {
  return [&to](StringRef text) -> MaybeError {
    if (!text.consume_front("@") || text.empty())
      return "needs a value like @FILE.npy";
    to.push_back(text.str());
    return std::nullopt;
  };
}

static OptionParser::Setter readLimit(std::optional<double> &to) {
  return [&to](StringRef text) -> MaybeError {
    double value;
    // A NaN would let everything pass.
    if (text.getAsDouble(value) || !(value >= 0))
      return "needs a number that is not negative";
    to = value;
    return std::nullopt;
  };
}

/// Reads `cpu` or `KIND[:N]`. Returns an exit code if the program is to end.
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
  llvm::errs() << "posenc-run: error: unknown device '" << device.take_front(80)
               << "': expected cpu, cuda:N or vulkan:N\n";
  return kExitUsage;
}

std::optional<int> mlir::posenc::parseRunRequest(int argc, char **argv,
                                                 RunRequest &request) {
  OptionParser parser(
      "posenc-run", "IN.{mlir,json,so} [--function=F] --input=... [options]",
      "Runs a function of a module, of a model's config.json or of a compiled "
      "library, and\ncompares its results with the reference.");
  std::optional<std::string> function, device, tuning;
  parser.add("function", "NAME", "function to run (default: the only one)",
             function);
  parser.add("device", "DEVICE", "cpu, cuda:N or vulkan:N (default: cpu)",
             device);
  parser.add("input", "INPUT",
             "@FILE.npy, 1x32xbf16=random[:seed=N], =iota or =VALUE, or an "
             "integer; one for each argument",
             request.inputs);
  parser.add("output", "@FILE.npy", "write a result; in the order of results",
             readPath(request.outputs));
  parser.add("expected_output", "@FILE.npy",
             "compare a result; in the order of results",
             readPath(request.expectedOutputs));
  parser.add("reference", "compare the results with the reference",
             request.reference);
  parser.add("max-ulp", "LIMIT",
             "largest error in units in the last place (default: by operation "
             "and type)",
             readLimit(request.limits.maxUlp));
  parser.add("max-rel", "LIMIT",
             "largest relative error of a whole result (default: by type for "
             "attention, else none)",
             readLimit(request.limits.maxRel));
  addInputOptions(parser, request.inputOptions);
  parser.add("tuning", "FILE",
             "for a module or config.json: choices of posenc-tune", tuning);
  std::vector<std::string> inputs;
  if (std::optional<int> code = parser.parse(argc, argv, inputs))
    return code;
  if (inputs.size() != 1) {
    llvm::errs() << "posenc-run: error: expected one input file, got "
                 << inputs.size() << "\n";
    return kExitUsage;
  }
  request.path = inputs.front();
  request.function = function.value_or("");
  request.tuning = tuning.value_or("");
  if (tuning && tuning->empty()) {
    llvm::errs() << "posenc-run: error: --tuning needs a file\n";
    return kExitUsage;
  }
  return readDevice(device.value_or("cpu"), request);
}
