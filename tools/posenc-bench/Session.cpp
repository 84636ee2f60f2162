//===- Session.cpp - one run of posenc-bench ------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session.h"

#include "Report.h"
#include "posenc-run/Kernels.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/Options.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <thread>

using namespace mlir::posenc;
using llvm::StringRef;
using llvm::Twine;
namespace runtime = ::posenc::runtime;

static int fail(const Twine &message) {
  getErrorStream() << "error: " << message << "\n";
  return kExitError;
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

/// Returns the name of a case for a function of the user's input.
static std::string makeName(const BenchKernel &kernel) {
  const FunctionInfo &info = kernel.getInfo();
  std::string variant = info.variant;
  bool isRotation = info.family == "rope" || info.family == "rotate";
  bool isAttention = info.family == "attention";
  if (isRotation && !kernel.isInPlace())
    variant += "-out";
  StringRef dtype = "none";
  if (kernel.getFunction().numOutputs() > 0)
    dtype = posenc_dtype_name(kernel.getFunction().output(0).dtype());
  return info.family + "/" + variant + "/" + dtype.str() + "/" +
         formatShapes(kernel.getNamedShapes(), isRotation || isAttention);
}

/// Returns the names of all public functions of the input; empty after an
/// error, which is printed.
static std::vector<std::string> listFunctions(const BenchRequest &request) {
  std::vector<std::string> names;
  if (isLibraryPath(request.path)) {
    std::string error;
    runtime::Library library = runtime::Library::open(request.path, error);
    if (!library)
      return fail(error), names;
    for (size_t i = 0; i < library.numFunctions(); ++i)
      names.push_back(library.function(i).name());
  } else {
    std::optional<std::vector<SourceFunction>> found =
        readSource(request.path, request.inputOptions);
    if (!found)
      return names;
    for (const SourceFunction &function : *found)
      names.push_back(function.name);
  }
  if (names.empty())
    fail("the input has no public function");
  return names;
}

bool Session::makeFileCases() {
  Case common;
  common.path = request.path;
  common.target = request.target;
  common.tuning = request.tuning;
  common.inputOptions = request.inputOptions;
  common.inputTexts = request.inputs;
  common.inPlace = !request.outOfPlace;
  common.limit = request.limit;
  if (!request.threads.empty())
    common.threads = request.threads;

  std::vector<std::string> functions = {request.function};
  if (request.function.empty())
    functions = listFunctions(request);
  if (functions.size() > 1 && !request.inputs.empty()) {
    fail("the input has several functions; pass --function with one of " +
         llvm::join(functions, ", "));
    return false;
  }
  for (const std::string &function : functions) {
    Case added = common;
    added.function = function;
    std::unique_ptr<BenchKernel> opened = BenchKernel::create(added);
    if (!opened)
      return false;
    added.name = makeName(*opened);
    cases.push_back(std::move(added));
  }
  return !functions.empty();
}

/// Returns the path of a case's library in `folder`. Each `/` of the case's
/// name becomes a `.`.
static std::string getLibraryPath(StringRef folder, const Case &of) {
  std::string name = of.name;
  llvm::replace(name, '/', '.');
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name + ".so");
  return std::string(path);
}

bool Session::makeCases() {
  if (!request.isSuite)
    return makeFileCases();
  cases = createSuite(request.suiteSize, request.threads);
  if (!request.keptLibraries.empty()) {
    std::error_code error =
        llvm::sys::fs::create_directories(request.keptLibraries);
    if (!error && !llvm::sys::fs::is_directory(request.keptLibraries))
      error = std::make_error_code(std::errc::not_a_directory);
    if (error) {
      fail("cannot create '" + request.keptLibraries + "': " + error.message());
      return false;
    }
  }
  bool hasBaseline = request.baseline.empty();
  for (Case &made : cases) {
    made.limit = request.limit;
    if (made.target.empty())
      made.tuning = request.tuning;
    if (!request.keptLibraries.empty())
      made.keptLibrary = getLibraryPath(request.keptLibraries, made);
    if (request.baseline.empty())
      continue;
    made.baselineLibrary = getLibraryPath(request.baseline, made);
    hasBaseline |= llvm::sys::fs::exists(made.baselineLibrary);
  }
  if (!hasBaseline)
    fail("'" + request.baseline +
         "' has no library of any case of the suite; create them with "
         "--keep-libraries=" +
         request.baseline);
  return hasBaseline;
}

/// As in Google Benchmark, a leading `-` of the filter selects the names that
/// do not match.
bool Session::matches(StringRef name) const {
  StringRef filter = request.filter;
  if (filter.empty() || filter == "all")
    return true;
  bool isNegative = filter.consume_front("-");
  return llvm::Regex(filter).match(name) != isNegative;
}

static std::string addThreads(const std::string &name, int threads) {
  return name + "/threads:" + std::to_string(threads);
}

void Session::add(
    const std::string &name,
    std::function<void(Sampling &, ::benchmark::State &)> measure) {
  if (matches(name))
    benchmarks.push_back({name, std::move(measure), {}});
}

bool Session::findPeers() {
  llvm::Expected<std::unique_ptr<PeerProcess>> process =
      PeerProcess::start(request.python);
  if (!process)
    return fail(llvm::toString(process.takeError())), false;
  peers = std::move(*process);
  peerShapes =
      getPeerShapes(request.suiteSize, getLargeCaseThreads(request.threads));
  llvm::Expected<PeerProcess::List> list = peers->list(peerShapes);
  if (!list)
    return fail(llvm::toString(list.takeError())), false;
  for (const auto &[name, reason] : list->skipped) {
    getErrorStream() << "peer-" << name << ": skipped: " << reason << "\n";
    ::benchmark::AddCustomContext("peer-" + name, "skipped: " + reason);
  }
  for (const auto &[name, numbers] : list->peers)
    for (size_t number : numbers) {
      const PeerShape &shape = peerShapes[number];
      add(addThreads("peer-" + name + "/" + shape.getName(), shape.threads),
          [this, name = name, &shape](Sampling &sampling,
                                      ::benchmark::State &state) {
            measurePeer(name, shape, sampling, state);
          });
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Measurement
//===----------------------------------------------------------------------===//

/// Returns the kernel of a case, and verifies that its results do not depend on
/// the number of threads. Returns null after an error; exitCode is set.
const BenchKernel *Session::open(const Case &wanted) {
  if (kernel && openName == wanted.name)
    return kernel.get();
  // Frees the previous kernel first: there may not be memory for two.
  baseline.reset();
  kernel.reset();
  if (wanted.plain != plainName)
    plainKernel.reset();
  std::unique_ptr<BenchKernel> opened = BenchKernel::create(wanted);
  if (!opened) {
    exitCode = kExitError;
    return nullptr;
  }
  llvm::Expected<BenchKernel::Verification> verification = opened->verify();
  if (!verification) {
    exitCode =
        fail(wanted.name + ": " + llvm::toString(verification.takeError()));
    return nullptr;
  }
  if (!verification->isStable) {
    fail(wanted.name + ": results differ between runs or numbers of threads");
    exitCode = kExitMismatch;
    return nullptr;
  }
  hash = verification->hash;
  openName = wanted.name;
  kernel = std::move(opened);
  return openBaseline(wanted) ? kernel.get() : nullptr;
}

/// Binds the baseline's library to the memory of the open kernel, if the
/// baseline has the case. Returns false after an error; exitCode is set.
bool Session::openBaseline(const Case &wanted) {
  if (wanted.baselineLibrary.empty() ||
      !llvm::sys::fs::exists(wanted.baselineLibrary))
    return true;
  Case old;
  old.path = wanted.baselineLibrary;
  old.function = wanted.function;
  std::optional<CaseLibrary> library = CaseLibrary::open(old);
  if (!library) {
    exitCode = kExitError;
    return false;
  }
  llvm::Expected<BenchKernel::Call> call = kernel->bind(*library);
  llvm::Expected<BenchKernel::Verification> verification =
      call ? kernel->verify(*call) : call.takeError();
  if (!verification) {
    exitCode = fail(old.path + ": " + llvm::toString(verification.takeError()));
    return false;
  }
  baseline = {std::move(*library), std::move(*call),
              verification->isStable && verification->hash == hash};
  return true;
}

/// Returns the kernel of the plain attention with this name. Returns null after
/// an error; exitCode is set.
const BenchKernel *Session::openPlain(const std::string &name) {
  if (plainKernel && plainName == name)
    return plainKernel.get();
  auto found = llvm::find_if(
      cases, [&](const Case &other) { return other.name == name; });
  plainKernel.reset();
  if (found != cases.end())
    plainKernel = BenchKernel::create(*found);
  plainName = name;
  if (!plainKernel)
    exitCode = kExitError;
  return plainKernel.get();
}

static std::string formatHash(uint64_t hash) {
  std::string text;
  llvm::raw_string_ostream(text)
      << "hash " << llvm::format_hex_no_prefix(hash, 16);
  return text;
}

int Session::verifyAll() {
  for (const Case &verified : cases) {
    if (!matches(verified.name))
      continue;
    if (!open(verified))
      return exitCode;
    llvm::outs() << verified.name << " " << formatHash(hash);
    if (!request.baseline.empty())
      llvm::outs() << (!baseline ? ", not in the baseline"
                       : baseline->hasSameBits
                           ? ", same as the baseline"
                           : ", different from the baseline");
    llvm::outs() << "\n";
  }
  return kExitSuccess;
}

void Session::measureCase(const Case &measured, int threads, Sampling &sampling,
                          ::benchmark::State &state) {
  const BenchKernel *opened = exitCode ? nullptr : open(measured);
  if (!opened)
    return state.SkipWithError("not measured because of an error; see stderr");
  llvm::Expected<std::vector<StreamStep>> steps =
      opened->getSteps(measured.limit);
  if (!steps) {
    exitCode = fail(measured.name + ": " + llvm::toString(steps.takeError()));
    return state.SkipWithError("not measured because of an error; see stderr");
  }
  Subject subject;
  subject.time = [opened](int64_t calls) { return opened->measure(calls); };
  subject.limits = createStreams(std::move(*steps));
  subject.bytes = double(opened->getBytes());
  // Attention has operations or bytes, whichever its limit counts.
  if (!opened->getInfo().attention || subject.limits.front().flops() > 0)
    subject.flops = opened->getFlops();
  subject.label = formatHash(hash);
  if (baseline)
    subject.baseline = [this](int64_t calls) {
      return BenchKernel::measure(calls, baseline->call);
    };
  if (!measured.plain.empty()) {
    const BenchKernel *plain = openPlain(measured.plain);
    if (!plain)
      return state.SkipWithError(
          "not measured because of an error; see stderr");
    subject.plain = [plain](int64_t calls) { return plain->measure(calls); };
    subject.tiles = opened->getTiles();
    subject.plainTiles = plain->getTiles();
  }
  if (!measureSubject(subject, threads, sampling, state))
    return;
  if (baseline)
    state.counters[kSameBits] = baseline->hasSameBits;
  done[addThreads(measured.name, threads)] = {state.counters[kMedian],
                                              state.counters[kFraction]};
}

void Session::measurePeer(const std::string &peer, const PeerShape &shape,
                          Sampling &sampling, ::benchmark::State &state) {
  kernel.reset();
  plainKernel.reset();
  std::string error;
  auto skip = [&](llvm::Error why) {
    if (why)
      error = llvm::toString(std::move(why));
  };
  llvm::Expected<PeerMemory> memory = PeerMemory::create(shape);
  skip(memory ? peers->open(peer, shape) : memory.takeError());
  if (!error.empty())
    return state.SkipWithError(error.c_str());
  // The peer's threads and ours spin for a while after each call. They must be
  // asleep before the other side is measured.
  auto settle = [&] {
    if (shape.threads > 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  Subject subject;
  subject.time = [&](int64_t calls) {
    settle();
    llvm::Expected<double> seconds = peers->run(calls);
    settle();
    if (seconds)
      return *seconds;
    skip(seconds.takeError());
    return -1.0;
  };
  subject.limits = createStreams(memory->getSteps());
  subject.bytes = shape.getMovedBytes();
  subject.flops = shape.getFlops();
  if (!measureSubject(subject, shape.threads, sampling, state))
    return state.SkipWithError(error.c_str());
  auto ours = done.find(
      addThreads(shape.family + "/" + shape.getName(), shape.threads));
  if (ours == done.end())
    return;
  // The ratio of the fractions is independent of the machine's speed at the two
  // times, as both have the same limit. Rope has two limits, scaling in place
  // for ours and a copy for the peer's, so its times are compared.
  state.counters[kOverOurs] =
      shape.family == "rope"
          ? state.counters[kMedian] / ours->second.seconds
          : ours->second.fraction / state.counters[kFraction];
}

int Session::run() {
  if (!makeCases())
    return kExitError;
  if (request.verifyOnly)
    return verifyAll();
  for (const Case &added : cases)
    for (int threads : added.threads)
      add(addThreads(added.name, threads),
          [this, &added, threads](Sampling &sampling,
                                  ::benchmark::State &state) {
            measureCase(added, threads, sampling, state);
          });
  if (request.withPeers && !findPeers())
    return kExitError;
  if (benchmarks.empty())
    return fail("no case matches '" + request.filter + "'");
  if (request.listTests) {
    for (const Benchmark &listed : benchmarks)
      llvm::outs() << listed.name << "\n";
    return kExitSuccess;
  }
  for (Benchmark &registered : benchmarks)
    ::benchmark::RegisterBenchmark(registered.name.c_str(),
                                   [&registered](::benchmark::State &state) {
                                     registered.measure(registered.sampling,
                                                        state);
                                   })
        ->UseManualTime();
  runBenchmarks(request);
  return exitCode;
}
