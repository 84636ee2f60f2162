//===- ElfImage.h - A bounds-checked view of an ELF file --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_ELFIMAGE_H
#define POSENC_RUNTIME_LIB_ELFIMAGE_H

#include "Error.h"

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <string>
#include <vector>

namespace posenc::runtime {

/// The bytes of an ELF file, which this does not own. Every read is checked
/// against the size of the file. Addresses are those in the file, before it is
/// loaded.
class ElfImage {
public:
  ElfImage(const void *data, size_t size)
      : data(static_cast<const uint8_t *>(data)), size(size) {}

  /// Checks the file header, the program headers and the place of the section
  /// headers against the file and the host. Returns false and sets `error` on
  /// failure. Leaves out what dlopen() checks itself: the type of the file,
  /// versions, and the alignment of segments.
  bool parseHeaders(std::string &error);

  bool contains(uint64_t offset, uint64_t length) const {
    return offset <= size && length <= size - offset;
  }

  /// Copies a value, since a damaged file may have misaligned tables. Returns
  /// false if it is not within the file.
  template <typename T> bool read(uint64_t offset, T &value) const {
    if (!contains(offset, sizeof(T)))
      return false;
    std::memcpy(&value, data + offset, sizeof(T));
    return true;
  }

  /// Sets `offset` to the position of [address, address + length) in the file.
  /// Returns false if that is not in the part of one loaded segment that comes
  /// from the file.
  bool toOffset(uint64_t address, uint64_t length, uint64_t &offset) const;

  /// Whether [address, address + length) is in one loaded segment that has all
  /// of the PF_ flags.
  bool inMemory(uint64_t address, uint64_t length, uint32_t flags = 0) const;

  /// Reads a value at an address.
  template <typename T> bool readAt(uint64_t address, T &value) const {
    uint64_t offset;
    return toOffset(address, sizeof(T), offset) && read(offset, value);
  }

  const uint8_t *bytes() const { return data; }
  const Elf64_Phdr &dynamic() const { return dynamicHeader; }

private:
  bool parseFileHeader(std::string &error);
  bool parseSegment(const Elf64_Phdr &segment, std::string &error);
  bool checkRelro(std::string &error) const;

  const uint8_t *data;
  size_t size;
  Elf64_Ehdr header = {};
  Elf64_Phdr dynamicHeader = {}, relro = {};
  std::vector<Elf64_Phdr> loads;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_ELFIMAGE_H
