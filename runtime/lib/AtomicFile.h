//===- AtomicFile.h - A file that appears whole or not at all ---*- C++ -*-===//
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

/// A regular file is written under another name in the same folder and renamed
/// by commit(). Without commit() nothing remains.
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
  std::string target;    ///< with links resolved, so that they survive
  std::string temporary; ///< empty when the target is written directly
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_ATOMICFILE_H
