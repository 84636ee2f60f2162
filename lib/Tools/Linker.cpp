//===- Linker.cpp - objects to libraries ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Linker.h"

#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir::posenc;

/// The dynamic library of this name in the folders of Debian's multiarch, or
/// nothing: when cross-compiling it may not be installed.
static std::string findLibrary(llvm::StringRef name,
                               const llvm::Triple &triple) {
  std::string multiarch = (triple.getArchName() + "-linux-gnu").str();
  for (std::string folder : {"/lib/" + multiarch, "/usr/lib/" + multiarch,
                             "/usr/" + multiarch + "/lib"}) {
    std::string path = folder + "/" + name.str();
    if (llvm::sys::fs::exists(path))
      return path;
  }
  return "";
}

llvm::Error mlir::posenc::linkShared(llvm::StringRef object,
                                     llvm::StringRef output,
                                     llvm::StringRef soname,
                                     llvm::StringRef triple, bool openmp) {
  llvm::ErrorOr<std::string> lld =
      llvm::sys::findProgramByName("ld.lld", {POSENC_LLVM_TOOLS_DIR});
  for (llvm::StringRef name : {"ld.lld-22", "ld.lld"})
    if (!lld)
      lld = llvm::sys::findProgramByName(name);
  if (!lld)
    return llvm::createStringError(
        "cannot link: no ld.lld of LLVM 22 (Debian's package lld-22)");

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
                                     "--as-needed",
                                     "-soname",
                                     soname.str(),
                                     "-o",
                                     output.str(),
                                     object.str()};
  // The threads of libgomp wait in its code, which unloading the last library
  // that needs it would take away from under them.
  if (openmp)
    arguments.insert(arguments.end(), {"-z", "nodelete"});
  bool hasAll = true;
  for (llvm::StringRef name : {"libgomp.so.1", "libc.so.6"}) {
    if (!openmp && name == "libgomp.so.1")
      continue;
    std::string path = findLibrary(name, target);
    hasAll &= !path.empty();
    if (!path.empty())
      arguments.push_back(path);
  }
  // A kernel that calls something else, as libm, would fail when it is loaded.
  if (hasAll)
    arguments.push_back("--no-undefined");
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
