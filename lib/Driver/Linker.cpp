//===- Linker.cpp - linking of shared libraries and archives --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Linker.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/InterfaceStub/ELFObjHandler.h"
#include "llvm/InterfaceStub/IFSStub.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir::posenc;

namespace {
/// A stub of a shared library that declares only its symbols. Linking against
/// stubs makes the output independent of the libraries installed on this
/// machine, for its own and for other architectures.
class Stub {
public:
  Stub(llvm::StringRef soname, llvm::ArrayRef<llvm::StringLiteral> symbols,
       const llvm::Triple &triple) {
    stub.SoName = soname.str();
    stub.Target.Arch =
        triple.isAArch64() ? llvm::ELF::EM_AARCH64 : llvm::ELF::EM_X86_64;
    stub.Target.Endianness = llvm::ifs::IFSEndiannessType::Little;
    stub.Target.BitWidth = llvm::ifs::IFSBitWidthType::IFS64;
    for (llvm::StringRef name : symbols) {
      stub.Symbols.emplace_back(name.str());
      stub.Symbols.back().Type = llvm::ifs::IFSSymbolType::Func;
    }
  }

  llvm::Error write() {
    if (std::error_code error =
            llvm::sys::fs::createTemporaryFile("posenc-link", "so", path))
      return llvm::createStringError("cannot create a temporary file: " +
                                     error.message());
    remover.setFile(path);
    return llvm::ifs::writeBinaryStub(path, stub);
  }
  std::string getPath() const { return std::string(path); }

private:
  llvm::ifs::IFSStub stub;
  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};
} // namespace

/// Functions of libc that kernels may call: those that the backend calls by
/// itself, and those that allocations and assertions of the input are lowered
/// to. A call of any other function, for example of libm, is a link error; it
/// would fail only at load time otherwise.
static constexpr llvm::StringLiteral kLibc[] = {
    "abort", "aligned_alloc", "bcmp", "free", "malloc", "memcmp", "memcpy",
    "memmove", "memset", "puts",
    // Called by the kernel support library, with threads, for GPUs and for
    // weights.
    "__cxa_finalize", "__errno_location", "__register_atfork", "close",
    "dl_iterate_phdr", "dlerror", "dlopen", "dlsym", "getpid", "getppid",
    "lseek", "mmap", "munmap", "open", "openat", "read", "readlink",
    "sched_yield"};

/// Functions of libgomp that KernelSupport.c calls.
static constexpr llvm::StringLiteral kLibgomp[] = {
    "GOMP_parallel", "omp_get_max_threads", "omp_get_num_threads",
    "omp_get_thread_num"};

llvm::Error mlir::posenc::linkShared(llvm::StringRef object,
                                     llvm::StringRef output,
                                     llvm::StringRef soname,
                                     llvm::StringRef triple, bool openmp) {
  // The Python wheel has the linker in the folder of the tools.
  static int address;
  llvm::SmallString<128> tool(
      llvm::sys::fs::getMainExecutable("posenc-compile", &address));
  llvm::sys::path::remove_filename(tool);
  llvm::ErrorOr<std::string> lld =
      llvm::sys::findProgramByName("ld.lld", {tool, POSENC_LLVM_TOOLS_DIR});
  for (llvm::StringRef name : {"ld.lld-22", "ld.lld"})
    if (!lld)
      lld = llvm::sys::findProgramByName(name);
  if (!lld)
    return llvm::createStringError(
        "cannot link: ld.lld of LLVM 22 not found; install Debian's package "
        "lld-22");

  llvm::Triple target(triple);
  std::vector<std::string> arguments{*lld,
                                     "-shared",
                                     "-Bsymbolic",
                                     "--hash-style=gnu",
                                     "-z",
                                     "now",
                                     "-z",
                                     "relro",
                                     "-z",
                                     "noexecstack",
                                     "--build-id=none",
                                     "--no-undefined",
                                     "--as-needed",
                                     "-soname",
                                     soname.str(),
                                     "-o",
                                     output.str(),
                                     object.str()};
  // Unloading the last library that needs libgomp would unmap the code in which
  // its idle threads wait.
  if (openmp)
    arguments.insert(arguments.end(), {"-z", "nodelete"});
  Stub libc("libc.so.6", kLibc, target),
      libgomp("libgomp.so.1", kLibgomp, target);
  for (Stub *stub : {&libgomp, &libc}) {
    if (stub == &libgomp && !openmp)
      continue;
    if (llvm::Error error = stub->write())
      return error;
    arguments.push_back(stub->getPath());
  }
  std::vector<llvm::StringRef> references(arguments.begin(), arguments.end());

  llvm::SmallString<128> log;
  int logFile;
  if (llvm::sys::fs::createTemporaryFile("posenc-link", "log", logFile, log))
    return llvm::createStringError("cannot create a temporary file");
  llvm::FileRemover remover(log);
  llvm::sys::fs::closeFile(logFile);
  std::optional<llvm::StringRef> redirects[] = {
      llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(*lld, references, std::nullopt,
                                         redirects, 0, 0, &message);
  if (status == 0)
    return llvm::Error::success();
  if (auto text = llvm::MemoryBuffer::getFile(log))
    message += (*text)->getBuffer().rtrim();
  return llvm::createStringError("cannot link '" + soname + "': " + message);
}

llvm::Expected<std::string>
mlir::posenc::createArchive(llvm::StringRef object,
                            llvm::StringRef memberName) {
  llvm::NewArchiveMember member(llvm::MemoryBufferRef(object, memberName));
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> archive =
      llvm::writeArchiveToBuffer(member, llvm::SymtabWritingMode::NormalSymtab,
                                 llvm::object::Archive::K_GNU,
                                 /*Deterministic=*/true, /*Thin=*/false);
  if (!archive)
    return archive.takeError();
  return (*archive)->getBuffer().str();
}
