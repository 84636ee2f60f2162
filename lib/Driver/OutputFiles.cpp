//===- OutputFiles.cpp - atomic writing of output files -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OutputFiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir::posenc;

OutputFiles::~OutputFiles() {
  for (File &file : files)
    llvm::consumeError(file.temporary.discard());
}

static llvm::Error makeError(llvm::StringRef path, const llvm::Twine &reason) {
  return llvm::createStringError("cannot write '" + path + "': " + reason);
}

/// Whether the path exists and is neither a regular file nor a directory, so
/// that it must be written to instead of replaced.
static bool isSpecial(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  return !llvm::sys::fs::status(path, status) &&
         status.type() != llvm::sys::fs::file_type::regular_file &&
         status.type() != llvm::sys::fs::file_type::directory_file;
}

/// Returns the path with symbolic links resolved. The file itself need not
/// exist.
static std::string resolve(llvm::StringRef path) {
  llvm::SmallString<128> real;
  if (!llvm::sys::fs::real_path(path, real))
    return std::string(real);
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (llvm::sys::fs::real_path(folder.empty() ? "." : folder, real))
    return path.str();
  llvm::sys::path::append(real, llvm::sys::path::filename(path));
  return std::string(real);
}

llvm::Expected<std::string> OutputFiles::reserve(llvm::StringRef path) {
  if (llvm::sys::fs::is_directory(path))
    return makeError(path, "it is a directory");
  if (isSpecial(path))
    return makeError(path, "it is not a regular file");
  std::string target = resolve(path);
  if (llvm::any_of(files,
                   [&](const File &file) { return file.target == target; }))
    return makeError(path, "two outputs have the same name");
  llvm::Expected<llvm::sys::fs::TempFile> temporary =
      llvm::sys::fs::TempFile::create(target + ".%%%%%%%%.tmp",
                                      llvm::sys::fs::all_read |
                                          llvm::sys::fs::all_write);
  if (!temporary)
    return makeError(path, llvm::toString(temporary.takeError()));
  std::string name = temporary->TmpName;
  files.push_back({std::move(*temporary), path.str(), std::move(target)});
  return name;
}

static llvm::Error write(llvm::raw_fd_ostream &stream, llvm::StringRef path,
                         const OutputFiles::Writer &writer) {
  writer(stream);
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  return error ? makeError(path, error.message()) : llvm::Error::success();
}

llvm::Expected<std::string> OutputFiles::add(llvm::StringRef path,
                                             Writer writer) {
  if (isSpecial(path)) {
    specials.push_back({path.str(), std::move(writer)});
    return "";
  }
  llvm::Expected<std::string> name = reserve(path);
  if (!name)
    return name;
  llvm::raw_fd_ostream stream(files.back().temporary.FD,
                              /*shouldClose=*/false);
  if (llvm::Error error = write(stream, path, writer))
    return std::move(error);
  return name;
}

llvm::Expected<std::string> OutputFiles::add(llvm::StringRef path,
                                             llvm::StringRef content) {
  return add(path, [content = content.str()](llvm::raw_ostream &stream) {
    stream << content;
  });
}

llvm::Error OutputFiles::commit() {
  for (const Special &special : specials) {
    std::error_code error;
    llvm::raw_fd_ostream stream(special.path, error,
                                llvm::sys::fs::CD_OpenExisting);
    if (error)
      return makeError(special.path, error.message());
    if (llvm::Error failure = write(stream, special.path, special.writer))
      return failure;
  }
  while (!files.empty()) {
    File file = files.pop_back_val();
    if (llvm::Error error = file.temporary.keep(file.target))
      return makeError(file.path, llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}
