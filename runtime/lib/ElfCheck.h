//===- ElfCheck.h - Checks that a file is a kernel library ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_ELFCHECK_H
#define POSENC_RUNTIME_LIB_ELFCHECK_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace posenc::runtime {

/// The properties of a kernel library that are read before it is loaded.
struct ElfSummary {
  std::string metadataSymbol;
  std::vector<std::string> functions; ///< exported, sorted
  /// Exported constants whose bytes are all in the file, and their sizes.
  std::map<std::string, uint64_t> constants;

  bool exports(const std::string &function) const;
};

/// Checks `size` bytes of a shared library without loading it, and sets `out`.
/// Returns false and sets `error` if the file is damaged, is not for this
/// machine, or is not a kernel library.
bool checkElf(const void *data, size_t size, ElfSummary &out,
              std::string &error);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_ELFCHECK_H
