//===- Sandbox.cpp - runs inputs in child processes -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sandbox.h"

#include "Backtrace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/thread.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace posenc::fuzz;
using Clock = std::chrono::steady_clock;

namespace {

/// A child's report to its parent, in shared memory.
struct Report {
  size_t current;
  bool done;
  int signal;
  int numFrames;
  void *frames[maxFrames];
  char message[2048];
  double slowestSeconds;
  size_t slowest;
  size_t reached[maxReached];
};

struct Range {
  size_t begin, end;
};

struct Child {
  pid_t pid;
  Range range;
  Report *report;
  int log;
};

} // namespace

/// The report of this process, if it is a child, for its signal handlers.
static Report *ownReport;

/// Number of frames below the body that runs an input.
static int numOuterFrames;

static void onSignal(int signal) {
  ownReport->signal = signal;
  ownReport->numFrames = captureFrames(ownReport->frames);
  _exit(1);
}

/// As `onSignal`, for the timers. A timer may interrupt code that has no unwind
/// tables, such as the stubs (.plt) by which a library linked by lld calls
/// another one. The backtrace then ends there, and the handler lets the input
/// run on for a moment until it is interrupted elsewhere.
static void onTimer(int signal) {
  static int triesLeft = 100;
  int error = errno;
  ownReport->numFrames = captureFrames(ownReport->frames);
  if (ownReport->numFrames > numOuterFrames || triesLeft-- == 0) {
    ownReport->signal = signal;
    _exit(1);
  }
  ownReport->numFrames = 0;
  itimerval moment = {};
  moment.it_value.tv_usec = 10000;
  setitimer(signal == SIGPROF ? ITIMER_PROF : ITIMER_REAL, &moment, nullptr);
  errno = error;
}

static void installHandlers() {
  struct sigaction action = {};
  action.sa_handler = onSignal;
  // The handler has its own stack, for stack overflows.
  action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
    sigaction(signal, &action, nullptr);
  action.sa_handler = onTimer;
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  // A handler within the other one would count the frames of both.
  sigaddset(&action.sa_mask, SIGPROF);
  sigaddset(&action.sa_mask, SIGALRM);
  for (int signal : {SIGPROF, SIGALRM})
    sigaction(signal, &action, nullptr);
}

static void setTimers(const SandboxOptions &options) {
  itimerval timer = {};
  timer.it_value.tv_sec = options.cpuSeconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
  alarm(options.wallSeconds);
}

static void runBatch(Report &report, Range range, const MakeBody &makeBody,
                     const SandboxOptions &options) {
  // Static, because the process exits in this thread.
  static char signalStack[1 << 16];
  stack_t stack = {};
  stack.ss_sp = signalStack;
  stack.ss_size = sizeof(signalStack);
  sigaltstack(&stack, nullptr);
  report.current = range.begin;
  numOuterFrames = captureFrames(report.frames);
  setTimers(options);
  Body body = makeBody();
  for (size_t input = range.begin; input < range.end; ++input) {
    report.current = input;
    setTimers(options);
    auto start = Clock::now();
    Outcome outcome = body(input);
    ++report.reached[std::min(outcome.reached, maxReached - 1)];
    if (!outcome.wrong.empty()) {
      std::strncpy(report.message, outcome.wrong.c_str(),
                   sizeof(report.message) - 1);
      _exit(1);
    }
    double seconds =
        std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds > report.slowestSeconds) {
      report.slowestSeconds = seconds;
      report.slowest = input;
    }
  }
  report.done = true;
  _exit(0);
}

static Child startChild(Range range, const MakeBody &makeBody,
                        const SandboxOptions &options) {
  Child child;
  child.range = range;
  child.report = static_cast<Report *>(mmap(nullptr, sizeof(Report),
                                            PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  child.log = memfd_create("log", MFD_CLOEXEC);
  child.pid = fork();
  if (child.pid != 0)
    return child;
  ownReport = child.report;
  dup2(child.log, STDOUT_FILENO);
  dup2(child.log, STDERR_FILENO);
  rlimit none = {};
  setrlimit(RLIMIT_CORE, &none);
#if !LLVM_ADDRESS_SANITIZER_BUILD
  rlimit memory = {options.memory, options.memory};
  setrlimit(RLIMIT_AS, &memory);
#endif
  installHandlers();
  // The worker thread must handle the timers' signals, so that the backtrace is
  // its own.
  sigset_t timers;
  sigemptyset(&timers);
  sigaddset(&timers, SIGALRM);
  sigaddset(&timers, SIGPROF);
  pthread_sigmask(SIG_BLOCK, &timers, nullptr);
  // The tools have the same stack size.
  llvm::thread worker(std::optional<unsigned>(256u << 20), [&] {
    pthread_sigmask(SIG_UNBLOCK, &timers, nullptr);
    runBatch(*child.report, range, makeBody, options);
  });
  worker.join();
  _exit(1);
}

/// Reads the end of a child's output.
static std::string readLog(int file) {
  constexpr off_t limit = 4096;
  off_t size = lseek(file, 0, SEEK_END);
  std::string text(std::min(size, limit), '\0');
  ssize_t got = pread(file, text.data(), text.size(), size - text.size());
  text.resize(std::max<ssize_t>(got, 0));
  return text;
}

/// Waits for a child and returns its failure, if any.
static Failure finishChild(const Child &child, const SandboxOptions &options,
                           bool &isUpstream) {
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR)
    ;
  const Report &report = *child.report;
  Failure failure;
  isUpstream = false;
  if (report.done)
    return failure;
  failure.first = failure.last = report.current;
  if (report.signal || WIFSIGNALED(status)) {
    int signal = report.signal ? report.signal : WTERMSIG(status);
    bool isTimeout = signal == SIGALRM || signal == SIGPROF;
    failure.fault = isTimeout ? Fault::Timeout : Fault::Signal;
    Backtrace trace = explainFrames({report.frames, size_t(report.numFrames)});
    isUpstream = (trace.isUpstream || (options.readerCorruptsMemory &&
                                       trace.isInUpstreamOrAllocator)) &&
                 options.isKnown(trace.text);
    failure.location = (isTimeout ? "hangs\n" : "") + trace.location;
    failure.what = std::string(isTimeout ? "hangs" : strsignal(signal)) + "\n" +
                   trace.text;
  } else if (report.message[0]) {
    failure.fault = Fault::Wrong;
    failure.what = report.message;
  } else {
    failure.fault = Fault::Exit;
    failure.what = "exits with " + std::to_string(WEXITSTATUS(status));
  }
  failure.log = readLog(child.log);
  return failure;
}

static void releaseChild(const Child &child) {
  munmap(child.report, sizeof(Report));
  close(child.log);
}

/// Whether a new child reproduces the failure with the inputs of a range.
static bool isReproduced(Range range, const Failure &failure,
                         const MakeBody &makeBody,
                         const SandboxOptions &options) {
  Child child = startChild(range, makeBody, options);
  bool isUpstream;
  Failure again = finishChild(child, options, isUpstream);
  releaseChild(child);
  return again.fault == failure.fault && again.last == failure.last;
}

/// Finds how many inputs before the failing one are needed to reproduce the
/// failure, doubling their number.
static void isolate(Failure &failure, size_t begin, const MakeBody &makeBody,
                    const SandboxOptions &options) {
  size_t last = failure.last;
  for (size_t before = 0;; before = before ? 2 * before : 1) {
    size_t first = last - std::min(before, last - begin);
    failure.first = first;
    if (first == begin ||
        isReproduced({first, last + 1}, failure, makeBody, options))
      return;
  }
}

Summary posenc::fuzz::runSandboxed(size_t count, const MakeBody &makeBody,
                                   const SandboxOptions &options) {
  Summary summary;
  summary.reached.resize(maxReached);
  std::deque<Range> waiting;
  for (size_t begin = 0; begin < count; begin += options.batch)
    waiting.push_back({begin, std::min(begin + options.batch, count)});
  std::vector<Child> running;
  while (!waiting.empty() || !running.empty()) {
    while (!waiting.empty() && running.size() < options.children) {
      running.push_back(startChild(waiting.front(), makeBody, options));
      waiting.pop_front();
    }
    // Waits for the oldest child: batches take similar time.
    Child child = running.front();
    running.erase(running.begin());
    bool isUpstream;
    Failure failure = finishChild(child, options, isUpstream);
    if (child.report->slowestSeconds > summary.slowestSeconds) {
      summary.slowestSeconds = child.report->slowestSeconds;
      summary.slowest = child.report->slowest;
    }
    for (auto [total, own] :
         llvm::zip_equal(summary.reached, child.report->reached))
      total += own;
    releaseChild(child);
    if (failure.fault == Fault::None) {
      summary.executed += child.range.end - child.range.begin;
      continue;
    }
    summary.executed += failure.last + 1 - child.range.begin;
    if (failure.last + 1 < child.range.end)
      waiting.push_front({failure.last + 1, child.range.end});
    if (isUpstream) {
      ++summary.upstream;
      ++summary.upstreamLocations[failure.location];
      continue;
    }
    isolate(failure, child.range.begin, makeBody, options);
    summary.failures.push_back(std::move(failure));
    if (summary.failures.size() >= options.maxFailures)
      waiting.clear();
  }
  return summary;
}

std::string posenc::fuzz::describe(const Failure &failure) {
  std::string text = "input " + std::to_string(failure.last);
  if (failure.first != failure.last)
    text += " (after inputs from " + std::to_string(failure.first) + " on)";
  text += ": " + failure.what;
  if (!failure.log.empty())
    text += "\noutput:\n" + failure.log;
  return text;
}
