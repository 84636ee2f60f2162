//===- Outputs.cpp - results to files, all or none --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Outputs.h"

#include "posenc/runtime/npy.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"

using namespace mlir::posenc;
namespace fs = llvm::sys::fs;

Outputs::~Outputs() {
  for (const File &file : files)
    fs::remove(file.temporary);
}

llvm::Error Outputs::add(llvm::StringRef path, const posenc_tensor &tensor) {
  // Behind a link stands the file that is to change.
  llvm::SmallString<128> target(path);
  if (fs::exists(path) && fs::real_path(path, target))
    target = path;
  std::string error;
  if (fs::exists(target) && !fs::is_regular_file(target)) {
    if (!::posenc::runtime::writeNpy(target.str().str(), tensor, error))
      return llvm::createStringError(error);
    return llvm::Error::success();
  }
  std::string temporary =
      (target + ".part" + llvm::Twine(llvm::sys::Process::getProcessId()) +
       "-" + llvm::Twine(files.size()))
          .str();
  if (!::posenc::runtime::writeNpy(temporary, tensor, error))
    return llvm::createStringError(error);
  files.push_back({std::move(temporary), target.str().str()});
  return llvm::Error::success();
}

llvm::Error Outputs::commit() {
  while (!files.empty()) {
    if (std::error_code error =
            fs::rename(files.front().temporary, files.front().path))
      return llvm::createStringError(files.front().path + ": " +
                                     error.message());
    files.erase(files.begin());
  }
  return llvm::Error::success();
}
