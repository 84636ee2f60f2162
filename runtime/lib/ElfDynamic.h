//===- ElfDynamic.h - The dynamic table of an ELF file ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_ELFDYNAMIC_H
#define POSENC_RUNTIME_LIB_ELFDYNAMIC_H

#include "ElfImage.h"

#include <map>

namespace posenc::runtime {

/// The dynamic table and the tables that it refers to. The loader follows their
/// offsets and counts without checks, and aborts on some values. Functions that
/// return bool set `error` when they return false.
class ElfDynamic {
public:
  explicit ElfDynamic(const ElfImage &image) : image(image) {}

  /// Reads and checks the dynamic table, the strings and the symbols.
  bool parse(std::string &error);
  bool checkRelocations(std::string &error) const;
  bool checkVersions(std::string &error) const;

  uint64_t numSymbols() const { return symbolCount; }
  bool symbol(uint64_t index, Elf64_Sym &out) const {
    return image.read(symbolOffset + index * sizeof(out), out);
  }
  /// The string at `offset`; null beyond the end of the string table.
  const char *string(uint64_t offset) const {
    if (offset >= stringSize)
      return nullptr;
    return reinterpret_cast<const char *>(image.bytes()) + stringOffset +
           offset;
  }

private:
  bool has(int64_t tag) const { return tags.count(tag) != 0; }
  uint64_t get(int64_t tag) const {
    auto it = tags.find(tag);
    return it == tags.end() ? 0 : it->second;
  }
  bool readTags(std::string &error);
  bool countByGnuHash(std::string &error);
  bool countByHash(std::string &error);
  bool checkSymbols(std::string &error) const;
  bool isConstructorSlot(uint64_t address) const;
  bool checkRela(int64_t table, int64_t size, std::string &error) const;
  bool checkRelr(std::string &error) const;
  bool checkNeededVersions(uint32_t &last, std::string &error) const;
  bool checkDefinedVersions(uint32_t &last, std::string &error) const;

  const ElfImage &image;
  std::map<int64_t, uint64_t> tags;
  std::vector<uint64_t> needed; ///< string offsets of the needed libraries
  uint64_t stringOffset = 0, stringSize = 0;
  uint64_t symbolOffset = 0, symbolCount = 0;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_ELFDYNAMIC_H
