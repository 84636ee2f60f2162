//===- ElfCheck.h - Whether a file is a kernel library ----------*- C++ -*-===//
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

/// What is known of a kernel library before it is loaded.
struct ElfSummary {
  std::string metadataSymbol;
  std::vector<std::string> functions; ///< exported, sorted
  /// Exported constants that lie in the file as a whole, and their sizes.
  std::map<std::string, uint64_t> constants;

  bool exports(const std::string &function) const;
};

/// Checks the bytes of a file as far as that goes without running any of it.
bool checkElf(const void *data, size_t size, ElfSummary &out,
              std::string &error);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_ELFCHECK_H
