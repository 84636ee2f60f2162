//===- OutputFiles.cpp - files written whole or not at all ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OutputFiles.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir::posenc;

OutputFiles::~OutputFiles() {
  for (File &file : files)
    llvm::consumeError(file.temporary.discard());
}

llvm::Expected<std::string> OutputFiles::reserve(llvm::StringRef path) {
  if (llvm::sys::fs::is_directory(path))
    return llvm::createStringError("'" + path + "' is a directory");
  llvm::Expected<llvm::sys::fs::TempFile> temporary =
      llvm::sys::fs::TempFile::create(
          path + ".%%%%%%%%.tmp",
          llvm::sys::fs::all_read | llvm::sys::fs::all_write);
  if (!temporary)
    return llvm::createStringError("cannot write '" + path + "': " +
                                   llvm::toString(temporary.takeError()));
  std::string name = temporary->TmpName;
  files.push_back({std::move(*temporary), path.str()});
  return name;
}

llvm::Expected<std::string> OutputFiles::add(llvm::StringRef path,
                                             llvm::StringRef content) {
  llvm::Expected<std::string> name = reserve(path);
  if (!name)
    return name;
  llvm::raw_fd_ostream stream(files.back().temporary.FD,
                              /*shouldClose=*/false);
  stream << content;
  stream.flush();
  if (std::error_code error = stream.error()) {
    stream.clear_error();
    return llvm::createStringError("cannot write '" + path +
                                   "': " + error.message());
  }
  return name;
}

llvm::Error OutputFiles::commit() {
  while (!files.empty()) {
    File file = files.pop_back_val();
    if (llvm::Error error = file.temporary.keep(file.path))
      return llvm::createStringError("cannot write '" + file.path + "': " +
                                     llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}
