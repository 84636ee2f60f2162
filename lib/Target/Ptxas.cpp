//===- Ptxas.cpp - assembling of PTX with ptxas ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/Ptxas.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>

using namespace mlir::posenc;

namespace {
/// A temporary file that is removed on destruction.
class ScratchFile {
public:
  std::error_code create(llvm::StringRef suffix) {
    llvm::SmallString<128> name;
    std::error_code error =
        llvm::sys::fs::createTemporaryFile("posenc", suffix, name);
    path = std::string(name);
    remover.setFile(path);
    return error;
  }
  std::string path;

private:
  llvm::FileRemover remover;
};
} // namespace

/// Returns the contents of a file; empty if it cannot be read.
static std::string read(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// Waits for a process, and ends it after that many seconds unless they are 0.
/// Returns its exit code, or another number than 0 and a message.
static int wait(const llvm::sys::ProcessInfo &process, unsigned seconds,
                std::string &message) {
  if (seconds == 0)
    return llvm::sys::Wait(process, std::nullopt, &message).ReturnCode;
  // LLVM's limit is an alarm, which only the main thread gets, and this thread
  // may be another one.
  using Clock = std::chrono::steady_clock;
  Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  while (true) {
    llvm::sys::ProcessInfo done = llvm::sys::Wait(process, 0, &message);
    if (done.Pid != 0)
      return done.ReturnCode;
    if (Clock::now() >= end)
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ::kill(process.Pid, SIGKILL);
  llvm::sys::Wait(process, std::nullopt, &message);
  message = "it took more than " + std::to_string(seconds) + " seconds";
  return -1;
}

/// Runs a program and returns what it prints, to standard output and error; an
/// error with that text if it fails.
static llvm::Expected<std::string> run(llvm::StringRef program,
                                       llvm::ArrayRef<llvm::StringRef> options,
                                       unsigned secondsToWait = 0) {
  ScratchFile log;
  if (std::error_code error = log.create("log"))
    return llvm::createStringError(error, "cannot create a temporary file");
  llvm::SmallVector<llvm::StringRef> arguments{program};
  llvm::append_range(arguments, options);
  std::optional<llvm::StringRef> redirects[] = {"", llvm::StringRef(log.path),
                                                llvm::StringRef(log.path)};
  std::string message;
  bool isFailed = false;
  llvm::sys::ProcessInfo process =
      llvm::sys::ExecuteNoWait(program, arguments, std::nullopt, redirects,
                               /*MemoryLimit=*/0, &message, &isFailed);
  if (isFailed)
    return llvm::createStringError(message);
  int code = wait(process, secondsToWait, message);
  if (code != 0)
    return llvm::createStringError(message.empty() ? read(log.path) : message);
  return read(log.path);
}

/// Returns the value of a variable of the environment; empty if it is not set.
static std::string getVariable(llvm::StringRef name) {
  return llvm::sys::Process::GetEnv(name).value_or("");
}

/// Returns the number of a toolkit's folder in the package `nvidia`: 13 for
/// "cu13". Older packages have a folder per component, such as "cuda_nvcc".
static unsigned getToolkitNumber(llvm::StringRef folder) {
  unsigned number = 0;
  return folder.consume_front("cu") && llvm::to_integer(folder, number) ? number
                                                                        : 0;
}

/// Returns the ptxas of the newest toolkit in a folder of Python packages;
/// empty if there is none.
static std::string findToolkit(llvm::StringRef folder) {
  llvm::SmallString<128> packages(folder);
  llvm::sys::path::append(packages, "nvidia");
  std::pair<unsigned, std::string> newest;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(packages, error), end;
       it != end && !error; it.increment(error)) {
    llvm::SmallString<128> path(it->path());
    unsigned number = getToolkitNumber(llvm::sys::path::filename(path));
    llvm::sys::path::append(path, "bin", "ptxas");
    if (llvm::sys::fs::can_execute(path))
      newest = std::max(newest, {number, std::string(path)});
  }
  return newest.second;
}

/// Returns the ptxas of Triton, which every PyTorch for GPUs has, in a folder
/// of Python packages; empty if there is none.
static std::string findTriton(llvm::StringRef folder) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, "triton", "backends", "nvidia");
  llvm::sys::path::append(path, "bin", "ptxas");
  return llvm::sys::fs::can_execute(path) ? std::string(path) : "";
}

/// Returns the ptxas of the first folder of Python packages that has one:
/// Triton's only if there is no toolkit.
static std::optional<Ptxas>
findInPackages(llvm::ArrayRef<std::string> folders) {
  for (auto [find, package] :
       {std::pair(&findToolkit, "the Python package nvidia-cuda-nvcc"),
        std::pair(&findTriton, "the Python package triton")})
    for (llvm::StringRef folder : folders)
      if (std::string path = folder.empty() ? "" : find(folder); !path.empty())
        return Ptxas{path, package};
  return std::nullopt;
}

namespace {
/// The folders of setPackageFolders(); nullopt without a call.
struct PackageFolders {
  std::mutex mutex;
  std::optional<std::vector<std::string>> folders;
};
} // namespace

static PackageFolders &getPackageFolders() {
  static PackageFolders folders;
  return folders;
}

void mlir::posenc::setPackageFolders(std::vector<std::string> folders) {
  std::lock_guard<std::mutex> lock(getPackageFolders().mutex);
  getPackageFolders().folders = std::move(folders);
}

/// Returns the ptxas of a Python package. Python itself tells where its
/// packages are.
static std::optional<Ptxas> findByPython() {
  llvm::SmallString<128> python(getVariable("VIRTUAL_ENV"));
  if (!python.empty()) {
    llvm::sys::path::append(python, "bin", "python3");
  } else if (auto found = llvm::sys::findProgramByName("python3")) {
    python = *found;
  } else {
    return std::nullopt;
  }
  llvm::Expected<std::string> folders =
      run(python, {"-c", "import sys; print(*sys.path, sep='\\n')"},
          /*secondsToWait=*/10);
  if (!folders) {
    llvm::consumeError(folders.takeError());
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (llvm::StringRef folder : llvm::split(*folders, '\n'))
    names.push_back(folder.str());
  return findInPackages(names);
}

static std::optional<Ptxas> findInPython() {
  PackageFolders &known = getPackageFolders();
  {
    std::lock_guard<std::mutex> lock(known.mutex);
    if (known.folders)
      return findInPackages(*known.folders);
  }
  // Starting Python takes time, so this is done once.
  static const std::optional<Ptxas> ptxas = findByPython();
  return ptxas;
}

std::optional<Ptxas> mlir::posenc::findPtxas() {
  std::string chosen = getVariable("POSENC_PTXAS");
  if (chosen == "off")
    return std::nullopt;
  if (!chosen.empty())
    return Ptxas{chosen, "POSENC_PTXAS"};
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"}) {
    llvm::SmallString<128> path(getVariable(variable));
    if (path.empty())
      continue;
    llvm::sys::path::append(path, "bin", "ptxas");
    if (llvm::sys::fs::can_execute(path))
      return Ptxas{std::string(path), variable};
  }
  if (auto path = llvm::sys::findProgramByName("ptxas"))
    return Ptxas{*path, "PATH"};
  return findInPython();
}

std::string Ptxas::describe() const {
  std::string version = "unknown version";
  if (llvm::Expected<std::string> text = run(path, {"--version"})) {
    // "Cuda compilation tools, release 13.0, V13.0.88"
    llvm::StringRef rest = llvm::StringRef(*text).split(", V").second;
    llvm::StringRef number =
        rest.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
    if (!number.empty())
      version = number.str();
  } else {
    llvm::consumeError(text.takeError());
  }
  return "ptxas " + version + ", " + path + ", found by " + origin;
}

llvm::Expected<AssembledPtx>
mlir::posenc::assemblePtx(const Ptxas &ptxas, llvm::StringRef ptx,
                          const CudaTarget &target) {
  ScratchFile input, output;
  for (auto [file, suffix] :
       {std::pair(&input, "ptx"), std::pair(&output, "cubin")})
    if (std::error_code error = file->create(suffix))
      return llvm::createStringError(error, "cannot create a temporary file");
  {
    std::error_code error;
    llvm::raw_fd_ostream os(input.path, error);
    os << ptx;
    os.close();
    if (error || os.has_error()) {
      os.clear_error();
      return llvm::createStringError("cannot write " + input.path);
    }
  }
  std::string arch = "-arch=" + target.chip;
  llvm::Expected<std::string> log =
      run(ptxas.path, {arch, "-O3", "-v", input.path, "-o", output.path});
  if (!log)
    return llvm::createStringError(ptxas.path + " fails for " + target.chip +
                                   ": " + llvm::toString(log.takeError()));
  return AssembledPtx{read(output.path), std::move(*log)};
}
