//===- posenc-on-gpu.cpp - checks and measures kernels on a GPU -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Runs libraries that posenc-compile has written. Needs neither LLVM nor the
// compiler.

#include "Check.h"
#include "CheckAttention.h"
#include "Measure.h"
#include "Report.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace posenc;
using namespace posenc::hardware;

static const char usage[] =
    "usage: posenc-on-gpu check LIBRARY.so... [OPTION...]\n"
    "       posenc-on-gpu attention {LIBRARY.so MODULE.mlir}... [OPTION...]\n"
    "       posenc-on-gpu bench LIBRARY.so CASES.txt [OPTION...]\n"
    "check compares the bits of the CPU and the GPU; attention, which rounds\n"
    "differently on the two, the numbers of the calls in MODULE, and the bits "
    "of\n"
    "rows on the GPU alone and in batches and chunks.\n"
    "  --device=N          index of the GPU (0)\n"
    "  --small             check, attention: small sizes, for the fake driver\n"
    "  --json=FILE --table=FILE\n"
    "                      bench: write the results after each case\n"
    "  --repetitions=N     bench: measurements of kernel and limit (9)\n"
    "  --seconds=S         bench: device time of a measurement (0.01)\n"
    "  --graph-launches=N  bench: launches per CUDA graph (100)\n"
    "Exit codes: 0 success, 1 failure, 2 wrong usage, 77 no GPU.\n";

namespace {
struct Request {
  std::string mode;
  bool isSmall = false;
  std::vector<std::string> files;
  std::string json, table;
  int device = 0;
  MeasureOptions options;
};
} // namespace

static bool parseOption(const char *text, Request &request) {
  const char *equals = std::strchr(text, '=');
  std::string name(text, equals ? equals - text : std::strlen(text));
  const char *value = equals ? equals + 1 : "";
  char *end = nullptr;
  double number = std::strtod(value, &end);
  bool isNumber = *value && !*end && number >= 0 && number <= 10000;
  if (name == "--small" && !equals)
    request.isSmall = true;
  else if (name == "--json" && *value)
    request.json = value;
  else if (name == "--table" && *value)
    request.table = value;
  else if (name == "--seconds" && isNumber)
    request.options.seconds = number;
  else if (name == "--device" && isNumber)
    request.device = int(number);
  else if (name == "--repetitions" && isNumber && number >= 1)
    request.options.repetitions = int(number);
  else if (name == "--graph-launches" && isNumber && number >= 1)
    request.options.graphLaunches = int(number);
  else
    return false;
  return true;
}

static bool parse(int argc, char **argv, Request &request) {
  for (int i = 2; i < argc; ++i) {
    if (argv[i][0] != '-')
      request.files.push_back(argv[i]);
    else if (!parseOption(argv[i], request)) {
      std::fprintf(stderr, "unknown option or invalid value: %s\n", argv[i]);
      return false;
    }
  }
  request.mode = argc > 1 ? argv[1] : "";
  if (request.mode == "check")
    return !request.files.empty();
  if (request.mode == "attention")
    return !request.files.empty() && request.files.size() % 2 == 0;
  return request.mode == "bench" && request.files.size() == 2;
}

static bool check(const Request &request, const Device &device) {
  std::printf("%s\n", describe(device).c_str());
  bool isRight = true;
  for (const std::string &path : request.files)
    isRight &= checkLibrary(path, device.index, request.isSmall);
  return isRight;
}

static bool checkAttention(const Request &request, const Device &device) {
  std::printf("%s\n", describe(device).c_str());
  // Sequences of more tokens fill a GPU, but take long on the CPU.
  int64_t tokens = request.isSmall ? 150 : 2050;
  bool isRight = true;
  for (size_t i = 0; i < request.files.size(); i += 2) {
    const std::string &library = request.files[i];
    isRight &= checkForms(library, request.files[i + 1], device.index);
    isRight &= checkRows(library, device.index, tokens);
  }
  return isRight;
}

static bool bench(const Request &request, const Device &device) {
  std::string error;
  runtime::Library library = runtime::Library::open(request.files[0], error);
  if (!library)
    throw Failure(error);
  std::vector<Case> cases = readCases(request.files[1]);
  std::vector<Result> results;
  std::printf("%s", formatTable(device, results).c_str());
  bool isRight = !cases.empty();
  for (const Case &measured : cases) {
    Result result;
    try {
      runtime::Function function = library.find(measured.function, error);
      if (!function)
        throw Failure(error);
      result = measure(device, *function.get(), measured, request.options);
    } catch (const Failure &failure) {
      result.name = measured.name + "/cuda:" + std::to_string(device.index);
      result.error = failure.what();
      isRight = false;
    }
    results.push_back(result);
    std::printf("%s", formatRow(result).c_str());
    std::fflush(stdout);
    if (!request.json.empty())
      writeFile(request.json,
                formatJson(device, results, request.options.repetitions));
    if (!request.table.empty())
      writeFile(request.table, formatTable(device, results));
  }
  return isRight;
}

int main(int argc, char **argv) {
  Request request;
  if (!parse(argc, argv, request)) {
    std::fprintf(stderr, "%s", usage);
    return 2;
  }
  try {
    Device device(request.device);
    auto run = request.mode == "check"       ? check
               : request.mode == "attention" ? checkAttention
                                             : bench;
    return run(request, device) ? 0 : 1;
  } catch (const NoDevice &none) {
    std::fprintf(stderr, "skipped: %s\n", none.what());
    return 77;
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
}
