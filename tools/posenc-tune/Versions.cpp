//===- Versions.cpp - functions compiled with tuning parameters -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Versions.h"

#include "Interrupt.h"
#include "OutputFiles.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/TuningFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir::posenc;
using llvm::Twine;

static std::nullopt_t fail(const Twine &message) {
  getErrorStream() << "error: " << message << "\n";
  return std::nullopt;
}

VersionCompiler::~VersionCompiler() {
  // Loaded libraries stay usable after their files are removed.
  if (!root.empty())
    llvm::sys::fs::remove_directories(root);
}

std::optional<Version::Code>
VersionCompiler::compileFunction(size_t number, const std::string &folder) {
  Case compiled = request.functions[number].function;
  compiled.target = request.target.name;
  compiled.tuning = folder + "/tuning.json";
  compiled.keptLibrary = folder + "/libtune" + std::to_string(number) + ".so";
  std::optional<CaseLibrary> library = CaseLibrary::open(compiled);
  if (!library)
    return std::nullopt;
  auto file = llvm::MemoryBuffer::getFile(compiled.keptLibrary);
  if (!file)
    return fail("cannot read '" + compiled.keptLibrary +
                "': " + file.getError().message());
  uint64_t hash = llvm::xxh3_64bits((*file)->getBuffer());
  return Version::Code{std::move(*library), hash, compiled.keptLibrary};
}

std::optional<Version> VersionCompiler::compile(const Tuning &tuning) {
  if (root.empty()) {
    llvm::SmallString<128> created;
    if (std::error_code error =
            llvm::sys::fs::createUniqueDirectory("posenc-tune", created))
      return fail("cannot create a temporary folder: " + error.message());
    root = std::string(created);
  }
  std::string folder = root + "/" + std::to_string(count++);
  if (std::error_code error = llvm::sys::fs::create_directory(folder))
    return fail("cannot create a temporary folder: " + error.message());
  TargetSpec target = request.target;
  target.tuning = tuning;
  OutputFiles files;
  llvm::Error error =
      files.add(folder + "/tuning.json", formatTuningFile(target)).takeError();
  if (!error)
    error = files.commit();
  if (error)
    return fail(llvm::toString(std::move(error)));

  Version version;
  version.tuning = tuning;
  for (size_t number = 0; number < request.functions.size(); ++number) {
    std::optional<Version::Code> code = compileFunction(number, folder);
    if (!code || isInterrupted())
      return std::nullopt;
    version.functions.push_back(std::move(*code));
  }
  return version;
}
