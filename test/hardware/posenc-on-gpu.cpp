//===- posenc-on-gpu.cpp - checks and measures kernels on a GPU -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Runs libraries that posenc-compile has written. Needs neither LLVM nor the
// compiler.

#include "Checks.h"
#include "Each.h"
#include "Measure.h"
#include "Process.h"
#include "Report.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

using namespace posenc;
using namespace posenc::hardware;

static const char usage[] =
    "usage: posenc-on-gpu device [OPTION...]\n"
    "       posenc-on-gpu bits|rows|strides LIBRARY.so... [OPTION...]\n"
    "       posenc-on-gpu calls {LIBRARY.so MODULE.mlir}... [OPTION...]\n"
    "       posenc-on-gpu bench LIBRARY.so CASES.txt [OPTION...]\n"
    "       posenc-on-gpu limit SECONDS COMMAND...\n"
    "device describes the GPU. bits, calls, rows and strides check forms of\n"
    "kernels (see Checks.h), bench measures cases; limit ends a command after\n"
    "some seconds, with exit code 124.\n"
    "  --device=N          index of the GPU (0)\n"
    "  --each              each form or case in a process of its own\n"
    "  --list              print the forms; needs no GPU\n"
    "  --form=NAME,...     only these forms\n"
    "  --first=NAME,...    with --each: these before the others\n"
    "  --calls=N           calls: the first ones of each form\n"
    "  --form-seconds=S    with --each: the time of a form (10)\n"
    "  --total-seconds=S   with --each: forms after that are skipped\n"
    "  --small             small sizes, for the fake driver\n"
    "  --table=FILE        append the results as tables\n"
    "  --json=FILE         bench: write the results after each case\n"
    "  --case=NAME         bench: only this case\n"
    "  --match=TEXT        bench: only cases with this in their names\n"
    "  --repetitions=N     bench: measurements of kernel and limit (9)\n"
    "  --seconds=S         bench: device time of a measurement (0.01)\n"
    "  --graph-launches=N  bench: launches per CUDA graph (100)\n"
    "Exit codes: 0 success, 1 failure, 2 wrong usage, 77 no GPU.\n";

namespace {
struct Request {
  std::string mode;
  bool isSmall = false, isEach = false, isList = false;
  std::vector<std::string> files, forms;
  std::string json, onlyCase, match;
  int device = 0;
  int64_t maxCalls = INT64_MAX;
  EachOptions each;
  MeasureOptions options;
  /// Options of bench, for the processes of cases.
  std::vector<std::string> benchOptions;
};
} // namespace

static std::vector<std::string> splitNames(const std::string &text) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin)
      names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

static bool parseOption(const char *text, Request &request) {
  const char *equals = std::strchr(text, '=');
  std::string name(text, equals ? equals - text : std::strlen(text));
  const char *value = equals ? equals + 1 : "";
  char *end = nullptr;
  double number = std::strtod(value, &end);
  bool isNumber = *value && !*end && number >= 0 && number <= 10000;
  if (name == "--small" && !equals)
    request.isSmall = true;
  else if (name == "--each" && !equals)
    request.isEach = true;
  else if (name == "--list" && !equals)
    request.isList = true;
  else if (name == "--json" && *value)
    request.json = value;
  else if (name == "--table" && *value)
    request.each.table = value;
  else if (name == "--form" && *value)
    request.forms = splitNames(value);
  else if (name == "--first" && equals)
    request.each.first = splitNames(value);
  else if (name == "--case" && *value)
    request.onlyCase = value;
  else if (name == "--match" && equals)
    request.match = value;
  else if (name == "--form-seconds" && isNumber)
    request.each.formSeconds = number;
  else if (name == "--total-seconds" && isNumber)
    request.each.seconds = number;
  else if (name == "--calls" && isNumber && number >= 1)
    request.maxCalls = int64_t(number);
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
  if (name == "--seconds" || name == "--device" || name == "--repetitions" ||
      name == "--graph-launches")
    request.benchOptions.emplace_back(text);
  return true;
}

static const CheckKind *findCheckKind(const std::string &mode) {
  for (const CheckKind &kind : getCheckKinds())
    if (mode == kind.name)
      return &kind;
  return nullptr;
}

static bool parse(int argc, char **argv, Request &request) {
  for (int i = 2; i < argc; ++i) {
    if (argv[i][0] != '-')
      request.files.emplace_back(argv[i]);
    else if (!parseOption(argv[i], request)) {
      std::fprintf(stderr, "unknown option or invalid value: %s\n", argv[i]);
      return false;
    }
  }
  request.mode = argc > 1 ? argv[1] : "";
  size_t count = request.files.size();
  if (const CheckKind *kind = findCheckKind(request.mode))
    return count > 0 && (!kind->hasModule || count % 2 == 0);
  return request.mode == "device" ? count == 0
                                  : request.mode == "bench" && count == 2;
}

/// Checks forms in this process. Later ones fail after a fault of the device.
static int checkHere(const CheckKind &kind,
                     const std::vector<Subject> &subjects,
                     const std::vector<std::string> &forms) {
  // Throws NoDevice before the first form.
  int32_t device = subjects.front().device;
  printProgress(describe(Device(device)));
  int failed = 0, right = 0;
  for (const Subject &subject : subjects)
    for (const std::string &form : forms.empty() ? kind.list(subject) : forms) {
      printProgress(form);
      try {
        printProgress(kind.check(subject, form));
        ++right;
      } catch (const Failure &failure) {
        printProgress(failure.what());
        ++failed;
      }
    }
  return failed || (kind.needsForms && !right);
}

static int check(const CheckKind &kind, const Request &request) {
  std::vector<Subject> subjects;
  for (size_t i = 0; i < request.files.size(); i += kind.hasModule ? 2 : 1)
    subjects.push_back({request.files[i],
                        kind.hasModule ? request.files[i + 1] : "",
                        request.device, request.isSmall, request.maxCalls});
  if (request.isList) {
    for (const Subject &subject : subjects)
      for (const std::string &form : kind.list(subject))
        std::printf("%s\n", form.c_str());
    return 0;
  }
  if (request.isEach)
    return checkEach(kind, subjects, request.forms, request.each);
  return checkHere(kind, subjects, request.forms);
}

static int describeDevice(const Request &request) {
  std::string title = "# " + describe(Device(request.device)) + "\n";
  std::printf("%s", title.c_str());
  TableFile(request.each.table).write(title);
  return 0;
}

static int bench(const Request &request) {
  if (request.isEach)
    return measureEach(request.files[0], request.files[1], request.match,
                       request.benchOptions, request.each);
  Device device(request.device);
  runtime::Library library = openLibrary(request.files[0]);
  TableFile table(request.each.table);
  std::string header = formatTableHeader();
  std::printf("%s", header.c_str());
  table.write(header);
  std::vector<Result> results;
  bool isRight = true;
  for (const Case &measured : readCases(request.files[1])) {
    bool isSelected =
        request.onlyCase.empty()
            ? measured.name.find(request.match) != std::string::npos
            : measured.name == request.onlyCase;
    if (!isSelected)
      continue;
    Result result;
    try {
      std::string error;
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
    std::string row = formatRow(result);
    std::printf("%s", row.c_str());
    std::fflush(stdout);
    table.write(row);
    if (!request.json.empty())
      writeFile(request.json,
                formatJson(device, results, request.options.repetitions));
  }
  return isRight && !results.empty() ? 0 : 1;
}

/// Runs limit SECONDS COMMAND...
static int limit(int argc, char **argv) {
  char *end = nullptr;
  double seconds = argc > 3 ? std::strtod(argv[2], &end) : -1;
  if (!end || *end || !(seconds >= 0)) {
    std::fprintf(stderr, "%s", usage);
    return 2;
  }
  Ending ending = runProcess({argv + 3, argv + argc}, seconds, 3, false);
  return ending.kind == Ending::Late       ? 124
         : ending.kind == Ending::Signaled ? 128 + ending.code
                                           : ending.code;
}

int main(int argc, char **argv) {
  try {
    if (argc > 1 && std::strcmp(argv[1], "limit") == 0)
      return limit(argc, argv);
    Request request;
    if (!parse(argc, argv, request)) {
      std::fprintf(stderr, "%s", usage);
      return 2;
    }
    if (const CheckKind *kind = findCheckKind(request.mode))
      return check(*kind, request);
    return request.mode == "bench" ? bench(request) : describeDevice(request);
  } catch (const NoDevice &none) {
    std::fprintf(stderr, "skipped: %s\n", none.what());
    return 77;
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
}
