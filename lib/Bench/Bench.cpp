//===- Bench.cpp - posenc-bench ---------------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Bench/Bench.h"

#include "BenchKernel.h"
#include "Report.h"
#include "Request.h"
#include "Threads.h"
#include "posenc/Bench/Pairs.h"
#include "posenc/Run/Kernels.h"
#include "posenc/Tools/Guard.h"
#include "posenc/Tools/Options.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::posenc;
using llvm::StringRef;
using llvm::Twine;
namespace runtime = ::posenc::runtime;

static int fail(const Twine &message) {
  llvm::errs() << "error: " << message << "\n";
  return kExitError;
}

namespace {

/// The cases, of which the kernel and memory of one are kept at a time.
class Session {
public:
  explicit Session(BenchRequest &request) : request(request) {}
  int run();

private:
  bool makeCases();
  bool makeCasesOfFile();
  std::string getName(const Case &of, const BenchKernel &kernel) const;
  bool matches(StringRef name) const;
  BenchKernel *open(const Case &wanted);
  int verifyAll();
  void measure(const Case &measured, int threads, ::benchmark::State &state);
  void stop(ExitCode code, const std::string &why, ::benchmark::State &state);

  BenchRequest &request;
  std::vector<Case> cases;
  std::string openName;
  std::unique_ptr<BenchKernel> kernel;
  uint64_t hash = 0;
  int exitCode = kExitSuccess;
};

} // namespace

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

std::string Session::getName(const Case &of, const BenchKernel &kernel) const {
  const Meaning &meaning = kernel.getMeaning();
  std::vector<std::vector<int64_t>> shapes = kernel.getOutputShapes().vec();
  bool isRope = meaning.family == "rope" || meaning.family == "rotate";
  std::string variant = meaning.variant;
  if (isRope && !kernel.isInPlace())
    variant += "-out";
  StringRef dtype =
      kernel.getFunction().numOutputs()
          ? posenc_dtype_name(kernel.getFunction().output(0).dtype())
          : "none";
  return meaning.family + "/" + variant + "/" + dtype.str() + "/" +
         formatShapes(shapes);
}

bool Session::makeCasesOfFile() {
  Case common;
  common.path = request.path;
  common.target = request.target;
  common.inputOptions = request.inputOptions;
  common.inputTexts = request.inputs;
  common.inPlace = !request.outOfPlace;
  common.limit = request.limit;
  if (!request.threads.empty())
    common.threads = request.threads;

  std::vector<std::string> functions;
  std::string error;
  if (!request.function.empty()) {
    functions = {request.function};
  } else if (isLibraryPath(request.path)) {
    runtime::Library library = runtime::Library::open(request.path, error);
    if (!library)
      return fail(error), false;
    for (size_t i = 0; i < library.numFunctions(); ++i)
      functions.push_back(library.function(i).name());
  } else {
    std::optional<std::vector<SourceFunction>> found =
        readSource(request.path, request.inputOptions);
    if (!found)
      return false;
    for (const SourceFunction &function : *found)
      functions.push_back(function.name);
  }
  if (functions.empty())
    return fail("the input has no public function"), false;
  if (functions.size() > 1 && !request.inputs.empty())
    return fail("--function is missing; the input has " +
                llvm::join(functions, ", ")),
           false;
  for (const std::string &function : functions) {
    Case added = common;
    added.function = function;
    std::unique_ptr<BenchKernel> opened = BenchKernel::create(added);
    if (!opened)
      return false;
    added.name = getName(added, *opened);
    cases.push_back(std::move(added));
  }
  return true;
}

bool Session::makeCases() {
  if (request.isSuite) {
    cases = createSuite(request.suiteSize, request.threads);
    for (Case &made : cases)
      made.limit = request.limit;
    return true;
  }
  return makeCasesOfFile();
}

static std::string addThreads(const std::string &name, int threads) {
  return name + "/threads:" + std::to_string(threads);
}

/// As Google Benchmark's: a leading `-` means those that do not match.
bool Session::matches(StringRef name) const {
  StringRef filter = request.filter;
  if (filter.empty() || filter == "all")
    return true;
  bool isNegative = filter.consume_front("-");
  return llvm::Regex(filter).match(name) != isNegative;
}

//===----------------------------------------------------------------------===//
// Measurement
//===----------------------------------------------------------------------===//

/// Pairs of one kernel and one limit each that a measurement has at least: so
/// many that their median ignores some that something else disturbed.
static constexpr int64_t kPairs = 11;
/// Shorter than this the clock says little.
static constexpr double kSampleSeconds = 200e-6;

/// The kernel of a case, which has shown that its results do not depend on the
/// number of threads. Null after an error, which is in exitCode.
BenchKernel *Session::open(const Case &wanted) {
  if (kernel && openName == wanted.name)
    return kernel.get();
  // The memory of two need not fit.
  kernel.reset();
  std::unique_ptr<BenchKernel> opened = BenchKernel::create(wanted);
  if (!opened) {
    exitCode = kExitError;
    return nullptr;
  }
  llvm::Expected<BenchKernel::Verification> verification = opened->verify();
  if (!verification) {
    exitCode = fail(llvm::toString(verification.takeError()));
    return nullptr;
  }
  hash = verification->hash;
  if (!verification->isStable) {
    llvm::errs() << "error: " << wanted.name
                 << ": results differ between runs or numbers of threads\n";
    exitCode = kExitMismatch;
    return nullptr;
  }
  openName = wanted.name;
  kernel = std::move(opened);
  return kernel.get();
}

static std::string formatHash(uint64_t hash) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format_hex_no_prefix(hash, 16);
  return text;
}

int Session::verifyAll() {
  for (const Case &verified : cases) {
    if (!matches(verified.name))
      continue;
    if (!open(verified))
      return exitCode;
    llvm::outs() << verified.name << " hash " << formatHash(hash) << "\n";
  }
  return kExitSuccess;
}

void Session::stop(ExitCode code, const std::string &why,
                   ::benchmark::State &state) {
  exitCode = code;
  state.SkipWithError(why.c_str());
}

void Session::measure(const Case &measured, int threads,
                      ::benchmark::State &state) {
  if (exitCode != kExitSuccess || !open(measured))
    return state.SkipWithError("not measured: see the error above");
  llvm::Expected<std::vector<StreamStep>> steps =
      kernel->getSteps(measured.limit);
  if (!steps)
    return stop(kExitError, llvm::toString(steps.takeError()), state);
  std::vector<Stream> streams = createStreams(std::move(*steps));

  setKernelThreads(threads);
  // Warms up threads and caches, and tells how many calls a sample needs.
  kernel->measure(1);
  int64_t calls = static_cast<int64_t>(
      kSampleSeconds / std::max(kernel->measure(1), 1e-9) + 1);
  PairedTimes times(streams.size());
  while (state.KeepRunningBatch(kPairs * calls)) {
    double before = times.getTotal();
    for (int64_t pair = 0; pair < kPairs; ++pair)
      times.measure([&](int64_t count) { return kernel->measure(count); },
                    calls, streams, threads);
    state.SetIterationTime((times.getTotal() - before) * double(calls));
  }

  double bytes = double(kernel->getBytes());
  double limitBytes = double(streams[times.getFastest()].bytes());
  double seconds = times.getKernel(0.5);
  state.counters[kBytesPerSecond] = bytes / seconds;
  if (double flops = kernel->getFlops(); flops > 0)
    state.counters[kFlopsPerSecond] = flops / seconds;
  state.counters[kLimit] = limitBytes / times.getLimit();
  state.counters[kFraction] = times.getFraction() * bytes / limitBytes;
  state.counters[kMedian] = seconds;
  state.counters[kSlowest] = times.getKernel(0.99);
  state.SetLabel("hash " + formatHash(hash));
}

int Session::run() {
  if (!makeCases())
    return kExitError;
  if (request.verifyOnly)
    return verifyAll();

  bool any = false;
  for (const Case &registered : cases)
    for (int threads : registered.threads) {
      std::string name = addThreads(registered.name, threads);
      if (!matches(name))
        continue;
      any = true;
      if (request.listTests) {
        llvm::outs() << name << "\n";
        continue;
      }
      ::benchmark::RegisterBenchmark(
          name.c_str(),
          [this, &registered, threads](::benchmark::State &state) {
            measure(registered, threads, state);
          })
          ->UseManualTime();
    }
  if (!any)
    return fail("no case matches '" + request.filter + "'");
  if (request.listTests)
    return kExitSuccess;

  ::benchmark::AddCustomContext("posenc_version", POSENC_VERSION);
  std::unique_ptr<::benchmark::BenchmarkReporter> display =
      request.hasFormat ? createDefaultReporter() : createTable();
  std::unique_ptr<::benchmark::BenchmarkReporter> file =
      request.hasFile ? createReporter(request.fileFormat) : nullptr;
  ::benchmark::RunSpecifiedBenchmarks(display.get(), file.get());
  return exitCode;
}

int mlir::posenc::benchMain(int argc, char **argv) {
  BenchRequest request;
  if (std::optional<int> code = parseBenchRequest(argc, argv, request))
    return *code;
  std::vector<char *> arguments = {argv[0]};
  for (std::string &argument : request.benchmarkArguments)
    arguments.push_back(argument.data());
  int count = static_cast<int>(arguments.size());
  ::benchmark::Initialize(&count, arguments.data());
  if (count > 1) {
    llvm::errs() << "posenc-bench: error: bad option '" << arguments[1]
                 << "'\n";
    return kExitUsage;
  }
  return runGuarded([&] { return Session(request).run(); });
}
