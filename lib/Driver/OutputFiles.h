//===- OutputFiles.h - atomic writing of output files -----------*- C++ -*-===//
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

/// Output files that appear together. Each is a temporary file in the folder of
/// its final name until commit() renames it; the destructor removes temporary
/// files that were not committed. For a symbolic link, the file that it refers
/// to is replaced. Devices and pipes are not replaced: commit() writes to them.
class OutputFiles {
public:
  OutputFiles() = default;
  ~OutputFiles();

  using Writer = std::function<void(llvm::raw_ostream &)>;
  /// Adds a file with the content that `writer` writes. For a regular file,
  /// `writer` is called at once and the temporary name is returned; for a
  /// device or pipe, commit() calls it and the name is empty.
  llvm::Expected<std::string> add(llvm::StringRef path, Writer writer);
  /// Adds a file with this content, which is copied.
  llvm::Expected<std::string> add(llvm::StringRef path,
                                  llvm::StringRef content);
  /// Adds a regular file that the caller writes under the returned temporary
  /// name before commit().
  llvm::Expected<std::string> reserve(llvm::StringRef path);
  /// Writes devices and pipes, then renames all files to their final names.
  llvm::Error commit();

private:
  struct File {
    llvm::sys::fs::TempFile temporary;
    /// The path as it was given, and with symbolic links resolved.
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
