//===- OutputFiles.h - files written whole ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_OUTPUTFILES_H
#define POSENC_LIB_DRIVER_OUTPUTFILES_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>

namespace mlir::posenc {

/// Several files that appear together: each is a temporary file in the folder
/// of its final name until commit(), and is removed if that never comes. A link
/// stays one: the file that it names is replaced. A device or a pipe is not
/// replaced but written, by commit().
class OutputFiles {
public:
  OutputFiles() = default;
  ~OutputFiles();

  using Writer = std::function<void(llvm::raw_ostream &)>;
  /// Adds a file with what `writer` writes, at once or in commit(); returns its
  /// temporary name, if it has one.
  llvm::Expected<std::string> add(llvm::StringRef path, Writer writer);
  /// The same with this content, of which a device or a pipe keeps a copy.
  llvm::Expected<std::string> add(llvm::StringRef path,
                                  llvm::StringRef content);
  /// Adds a regular file that someone else will write; returns its temporary
  /// name.
  llvm::Expected<std::string> reserve(llvm::StringRef path);
  /// Renames all files to their names.
  llvm::Error commit();

private:
  struct File {
    llvm::sys::fs::TempFile temporary;
    /// As it was given, and without links.
    std::string path, target;
  };
  struct Special {
    std::string path;
    Writer writer;
  };
  llvm::SmallVector<File, 4> files;
  llvm::SmallVector<Special, 1> specials;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_OUTPUTFILES_H
