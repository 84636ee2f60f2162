//===- OutputFiles.cpp - files written whole or not at all ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OutputFiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::posenc;

OutputFiles::~OutputFiles() {
  for (File &file : files)
    llvm::consumeError(file.temporary.discard());
}

static llvm::Error makeError(llvm::StringRef path, const llvm::Twine &reason) {
  return llvm::createStringError("cannot write '" + path + "': " + reason);
}

/// Whether there is something of this name that must not be replaced.
static bool isSpecial(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  return !llvm::sys::fs::status(path, status) &&
         status.type() != llvm::sys::fs::file_type::regular_file &&
         status.type() != llvm::sys::fs::file_type::directory_file;
}

static std::string normalize(llvm::StringRef path) {
  llvm::SmallString<128> normal(path);
  llvm::sys::fs::make_absolute(normal);
  llvm::sys::path::remove_dots(normal);
  return std::string(normal);
}

llvm::Expected<std::string> OutputFiles::reserve(llvm::StringRef path) {
  if (llvm::sys::fs::is_directory(path))
    return makeError(path, "it is a directory");
  if (isSpecial(path))
    return makeError(path, "it is no regular file");
  if (llvm::any_of(files, [&](const File &file) {
        return normalize(file.path) == normalize(path);
      }))
    return makeError(path, "two outputs have this name");
  llvm::Expected<llvm::sys::fs::TempFile> temporary =
      llvm::sys::fs::TempFile::create(path + ".%%%%%%%%.tmp",
                                      llvm::sys::fs::all_read |
                                          llvm::sys::fs::all_write);
  if (!temporary)
    return makeError(path, llvm::toString(temporary.takeError()));
  std::string name = temporary->TmpName;
  files.push_back({std::move(*temporary), path.str()});
  return name;
}

static llvm::Error write(llvm::raw_fd_ostream &stream, llvm::StringRef path,
                         llvm::StringRef content) {
  stream << content;
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  return error ? makeError(path, error.message()) : llvm::Error::success();
}

llvm::Expected<std::string> OutputFiles::add(llvm::StringRef path,
                                             llvm::StringRef content) {
  if (isSpecial(path)) {
    specials.push_back({path.str(), content.str()});
    return "";
  }
  llvm::Expected<std::string> name = reserve(path);
  if (!name)
    return name;
  llvm::raw_fd_ostream stream(files.back().temporary.FD,
                              /*shouldClose=*/false);
  if (llvm::Error error = write(stream, path, content))
    return std::move(error);
  return name;
}

llvm::Error OutputFiles::commit() {
  for (const Special &special : specials) {
    std::error_code error;
    llvm::raw_fd_ostream stream(special.path, error,
                                llvm::sys::fs::CD_OpenExisting);
    if (error)
      return makeError(special.path, error.message());
    if (llvm::Error failure = write(stream, special.path, special.content))
      return failure;
  }
  while (!files.empty()) {
    File file = files.pop_back_val();
    if (llvm::Error error = file.temporary.keep(file.path))
      return makeError(file.path, llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}
