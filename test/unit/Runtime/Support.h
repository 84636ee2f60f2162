//===- Support.h - Temporary files and mutations ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_UNIT_RUNTIME_SUPPORT_H
#define POSENC_TEST_UNIT_RUNTIME_SUPPORT_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace posenc::test {

/// A temporary directory, which the destructor removes.
class TempDir {
public:
  TempDir() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "posenc-XXXXXX").string();
    if (char *made = ::mkdtemp(&pattern[0]))
      folder = made;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  TempDir(const TempDir &) = delete;
  TempDir &operator=(const TempDir &) = delete;

  std::string path(const std::string &name) const {
    return (folder / name).string();
  }
  size_t numFiles() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder),
                      std::filesystem::directory_iterator()));
  }

private:
  std::filesystem::path folder;
};

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void writeFile(const std::string &path, const std::string &bytes) {
  // Some file systems wait for the disk when a file is truncated and rewritten.
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Changes one to four bytes. The result depends only on the state of `random`.
inline std::string mutate(std::string bytes, std::mt19937 &random) {
  if (bytes.empty())
    return bytes;
  static const unsigned char interesting[] = {0, 1, 0x7F, 0x80, 0xFF, 0xFE};
  for (unsigned i = 0, count = 1 + random() % 4; i < count; ++i) {
    unsigned choice = random() % 12;
    bytes[random() % bytes.size()] =
        static_cast<char>(choice < 6 ? interesting[choice]
                                     : static_cast<unsigned char>(random()));
  }
  return bytes;
}

} // namespace posenc::test

#endif // POSENC_TEST_UNIT_RUNTIME_SUPPORT_H
