//===- LoadedNames.h - The names under which files are loaded ---*- C++ -*-===//
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

/// Which file it is, whatever its name.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId &other) const {
    return device == other.device && inode == other.inode;
  }
};

/// The system's loader takes a name it knows for the file that it once loaded
/// under that name, even if a new one (a kernel compiled again) has taken its
/// place. So the new one is given another name: "/dir/./libX.so".
class LoadedNames {
public:
  /// The one of this process.
  static LoadedNames &get();

  /// Loads `file`, which is now at the absolute `path`, and returns the
  /// loader's handle; null if that failed. `inside` is an address within it.
  void *load(std::string path, const FileId &file, const void *&inside);
  void unload(void *handle, const FileId &file, const void *inside);

private:
  /// What the loader was told. An entry stays as long as the loader may know
  /// the name, which is until the file is unloaded and not only closed.
  struct Entry {
    std::string name;
    FileId file;
    size_t uses; ///< handles; kept in one entry of a file
  };

  const std::string &chooseName(std::string path, const FileId &file);
  bool isInUse(const FileId &file) const;
  void forget(const FileId &file);

  std::mutex mutex;
  std::vector<Entry> entries;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_LOADEDNAMES_H
