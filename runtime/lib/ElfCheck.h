//===- ElfCheck.h - Checks a library before it is loaded --------*- C++ -*-===//
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

/// The symbols of a kernel library, known before it is loaded.
struct ElfSummary {
  std::string metadataSymbol;         ///< of the function X_metadata()
  std::vector<std::string> functions; ///< exported, sorted
  /// The exported constants and their sizes in bytes.
  std::map<std::string, uint64_t> constants;

  bool exports(const std::string &function) const;
};

/// Checks that the `size` bytes at `data` are a complete shared library for
/// this machine, and that its symbols are those of a kernel library. Returns
/// false and sets `error` otherwise. Runs none of its code.
bool checkElf(const void *data, size_t size, ElfSummary &out,
              std::string &error);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_ELFCHECK_H
