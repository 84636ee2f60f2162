//===- Tune.cpp - main function of posenc-tune ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-tune/Tune.h"

#include "FunctionInfo.h"
#include "Interrupt.h"
#include "OutputFiles.h"
#include "Search.h"
#include "posenc-run/Kernels.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/Guard.h"
#include "posenc/Driver/Options.h"
#include "posenc/Driver/TuningFile.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir::posenc;
using llvm::StringRef;
using llvm::Twine;

static int failUsage(const Twine &message) {
  getErrorStream() << "posenc-tune: error: " << message
                   << " (see posenc-tune --help)\n";
  return kExitUsage;
}

static int fail(const Twine &message) {
  getErrorStream() << "error: " << message << "\n";
  return kExitError;
}

static std::optional<std::string> parseBudget(StringRef text, double &seconds) {
  constexpr double maxSeconds = 86400;
  double value;
  if (text.getAsDouble(value) || !(value > 0) || value > maxSeconds)
    return "needs a number of seconds greater than 0, at most 86400";
  seconds = value;
  return std::nullopt;
}

static std::optional<int> parseRequest(int argc, char **argv,
                                       TuneRequest &request) {
  OptionParser parser(
      "posenc-tune", "IN.{mlir,json} -o FILE [options]",
      "Measures which tuning parameters are fastest on this machine for the "
      "kernels of a module\nor of a model's config.json, and writes a file for "
      "--tuning of posenc-compile, posenc-run\nand posenc-bench. Prints the "
      "speed of each candidate relative to the best choices so far,\nmeasured "
      "in turn. A choice that is not clearly better stays the default.");
  std::optional<std::string> output, function, target, start;
  parser.add("o", "FILE", "output file", output);
  parser.add("function", "NAME",
             "function to measure (default: all, and kernels that most models "
             "have)",
             function);
  parser.add("start", "CPU",
             "start from the choices for this CPU (default: the target's)",
             start);
  parser.add("target", "CPU",
             "as in posenc-compile; its code must run here (default: host)",
             target);
  parser.add(
      "budget", "SECONDS", "how long to measure (default: 120)",
      [&](StringRef text) { return parseBudget(text, request.budgetSeconds); });
  addInputOptions(parser, request.inputOptions);
  std::vector<std::string> inputs;
  if (std::optional<int> code = parser.parse(argc, argv, inputs))
    return code;
  if (inputs.size() != 1)
    return failUsage("expected one input file, got " + Twine(inputs.size()));
  request.path = inputs.front();
  if (request.path == "-")
    return failUsage("the input is read several times, so it cannot be '-'");
  request.output = output.value_or("");
  if (request.output.empty() || request.output == "-")
    return failUsage("no output file; pass -o FILE");
  if (function)
    request.names = {*function};
  llvm::Expected<TargetSpec> spec = TargetSpec::parse(target.value_or("host"));
  if (!spec)
    return failUsage(llvm::toString(spec.takeError()));
  request.target = std::move(*spec);
  if (start) {
    llvm::Expected<TargetSpec> row = TargetSpec::parse(*start);
    if (!row)
      return failUsage(llvm::toString(row.takeError()));
    if (row->triple != request.target.triple)
      return failUsage("--start and --target have different architectures");
    request.target.tuning = row->tuning;
  }
  return std::nullopt;
}

/// Sets the functions to measure: all functions of the input and the common
/// ones, or the one of --function. Returns false after an error, which is
/// printed.
static bool findFunctions(TuneRequest &request) {
  InputOptions options = request.inputOptions;
  options.kernels = request.names;
  bool isAll = request.names.empty();
  std::optional<std::vector<SourceFunction>> found =
      readSource(request.path, options);
  if (!found)
    return false;
  for (const SourceFunction &function : *found) {
    // --kernels of posenc-compile is a comma-separated list.
    if (llvm::StringRef(function.name).contains(',')) {
      fail("'" + function.name + "' is not a C identifier");
      return false;
    }
    TunedFunction tuned;
    tuned.function.path = request.path;
    tuned.function.function = function.name;
    tuned.function.inputOptions = request.inputOptions;
    tuned.sweepsSizes = !function.info.attention;
    tuned.tunedKernels = function.info.tunedKernels;
    request.functions.push_back(std::move(tuned));
  }
  if (request.functions.empty()) {
    fail("the input has no public function");
    return false;
  }
  if (isAll)
    llvm::append_range(request.functions, getCommonFunctions());
  return true;
}

static int tune(TuneRequest &request) {
  if (isLibraryPath(request.path))
    return fail("'" + request.path +
                "' is a compiled library; posenc-tune needs a module or a "
                "config.json");
  // Checks the output file before measuring, not after.
  if (llvm::Error error = OutputFiles().add(request.output, "").takeError())
    return fail(llvm::toString(std::move(error)));
  if (!findFunctions(request))
    return kExitError;
  deferInterrupts();
  std::optional<Tuning> found = Search(request).run();
  if (isInterrupted())
    return fail("interrupted; '" + request.output + "' was not written");
  if (!found)
    return kExitError;
  request.target.tuning = *found;
  OutputFiles files;
  llvm::Error error =
      files.add(request.output, formatTuningFile(request.target)).takeError();
  if (!error)
    error = files.commit();
  return error ? fail(llvm::toString(std::move(error))) : kExitSuccess;
}

int mlir::posenc::tuneMain(int argc, char **argv) {
  TuneRequest request;
  if (std::optional<int> code = parseRequest(argc, argv, request))
    return *code;
  return runGuarded([&] { return tune(request); });
}
