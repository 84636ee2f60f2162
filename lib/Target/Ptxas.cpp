//===- Ptxas.cpp - assembling of PTX with ptxas ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/CudaCode.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::posenc;

std::string mlir::posenc::findPtxas() {
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"}) {
    std::optional<std::string> home = llvm::sys::Process::GetEnv(variable);
    if (!home || home->empty())
      continue;
    llvm::SmallString<128> path(*home);
    llvm::sys::path::append(path, "bin", "ptxas");
    if (llvm::sys::fs::can_execute(path))
      return std::string(path);
  }
  llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName("ptxas");
  return path ? *path : "";
}

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

llvm::Expected<std::string>
mlir::posenc::assemblePtx(llvm::StringRef ptx, const CudaTarget &target) {
  std::string program = findPtxas();
  if (program.empty())
    return llvm::createStringError(
        "ptxas not found: install the CUDA toolkit or set CUDA_HOME");
  ScratchFile input, output, log;
  for (auto [file, suffix] :
       {std::pair(&input, "ptx"), std::pair(&output, "cubin"),
        std::pair(&log, "log")})
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
  llvm::StringRef arguments[] = {program,    arch, "-O3",
                                 input.path, "-o", output.path};
  std::optional<llvm::StringRef> redirects[] = {"", llvm::StringRef(log.path),
                                                llvm::StringRef(log.path)};
  std::string message;
  int code = llvm::sys::ExecuteAndWait(program, arguments, std::nullopt,
                                       redirects, /*SecondsToWait=*/0,
                                       /*MemoryLimit=*/0, &message);
  if (code != 0)
    return llvm::createStringError(
        program + " fails for " + target.chip + ": " +
        (message.empty() ? read(log.path) : message));
  return read(output.path);
}
