//===- LoadedNames.h - The names of the loaded files ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_LOADEDNAMES_H
#define POSENC_RUNTIME_LIB_LOADEDNAMES_H

#include <mutex>
#include <string>
#include <sys/types.h>
#include <vector>

namespace posenc::runtime {

/// Identifies a file independently of its name.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId &other) const {
    return device == other.device && inode == other.inode;
  }
};

/// Loads a file even if another file is loaded under the same name. dlopen()
/// identifies libraries by their names: while a library is open, it returns
/// that one for its name, even after a recompiled library has replaced the
/// file. The new file is therefore loaded under an equivalent name:
/// "/dir/./libX.so".
class LoadedNames {
public:
  /// The instance of this process.
  static LoadedNames &get();

  /// Loads `file`, which is at the absolute `path`, and returns the handle of
  /// dlopen(), or null with the text of dlerror(). Sets `inside` to an address
  /// within the loaded file.
  void *load(std::string path, const FileId &file, const void *&inside);
  /// Closes a handle of load().
  void unload(void *handle, const FileId &file, const void *inside);

private:
  /// A name that was passed to dlopen(). It is kept as long as the loader may
  /// know it: until the file is unloaded, which may be later than closed.
  struct LoadedName {
    std::string name;
    FileId file;
    size_t numHandles; ///< counted in the first LoadedName of a file
  };

  const std::string &chooseName(std::string path, const FileId &file);
  bool isInUse(const FileId &file) const;
  void forget(const FileId &file);

  std::mutex mutex;
  std::vector<LoadedName> names;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_LOADEDNAMES_H
