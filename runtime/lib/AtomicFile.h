//===- AtomicFile.h - Writes a file completely or not at all ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_ATOMICFILE_H
#define POSENC_RUNTIME_LIB_ATOMICFILE_H

#include <cstddef>
#include <string>

namespace posenc::runtime {

/// A file that is written completely or not at all. A regular file is written
/// under a temporary name in the same directory, which commit() renames;
/// without commit() nothing remains. A device or pipe is written to directly.
/// Functions that fail return false and set `error`.
class AtomicFile {
public:
  AtomicFile() = default;
  ~AtomicFile() { discard(); }
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  bool open(const std::string &path, std::string &error);
  bool write(const void *data, size_t size, std::string &error);
  bool commit(std::string &error);

private:
  bool fail(std::string &error) const;
  void discard();

  int descriptor = -1;
  std::string name;      ///< as the user gave it
  std::string target;    ///< with symbolic links resolved, to preserve them
  std::string temporary; ///< empty if the target is written directly
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_ATOMICFILE_H
