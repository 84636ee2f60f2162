//===- ElfRelocations.cpp - The relocations of an ELF file ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElfDynamic.h"

using namespace posenc::runtime;

#if defined(__x86_64__)
static constexpr uint32_t relativeType = R_X86_64_RELATIVE;
#elif defined(__aarch64__)
static constexpr uint32_t relativeType = R_AARCH64_RELATIVE;
#endif

/// Returns whether the loader calls the function whose pointer is at the
/// address.
bool ElfDynamic::isConstructorSlot(uint64_t address) const {
  uint64_t init = get(DT_INIT_ARRAY), fini = get(DT_FINI_ARRAY);
  return (address >= init && address - init < get(DT_INIT_ARRAYSZ)) ||
         (address >= fini && address - fini < get(DT_FINI_ARRAYSZ));
}

bool ElfDynamic::checkRela(int64_t table, int64_t size,
                           std::string &error) const {
  uint64_t bytes = get(size), offset;
  if (bytes == 0)
    return true;
  if (!has(table) || bytes % sizeof(Elf64_Rela) ||
      !image.toOffset(get(table), bytes, offset))
    return fail(error, "truncated: relocations");
  for (uint64_t i = 0; i < bytes; i += sizeof(Elf64_Rela)) {
    Elf64_Rela entry;
    if (!image.read(offset + i, entry))
      return fail(error, "truncated: relocations");
    if (ELF64_R_TYPE(entry.r_info) == 0) // does nothing on every machine
      continue;
    if (ELF64_R_SYM(entry.r_info) >= symbolCount ||
        !image.inMemory(entry.r_offset, 8, PF_W))
      return fail(error, "malformed: a relocation");
    if (isConstructorSlot(entry.r_offset) &&
        (ELF64_R_TYPE(entry.r_info) != relativeType ||
         !image.inMemory(static_cast<uint64_t>(entry.r_addend), 1, PF_X)))
      return fail(error, "malformed: a constructor outside the code");
  }
  return true;
}

/// Checks DT_RELR, the compact form of relative relocations: an even word is an
/// address to relocate, an odd one a bit map of the next 63 words.
bool ElfDynamic::checkRelr(std::string &error) const {
  uint64_t bytes = get(DT_RELRSZ), offset, next = 0;
  if (bytes == 0)
    return true;
  if (get(DT_RELRENT) != 8 || bytes % 8 ||
      !image.toOffset(get(DT_RELR), bytes, offset))
    return fail(error, "truncated: relocations");
  for (uint64_t i = 0; i < bytes; i += 8) {
    uint64_t word = 0;
    image.read(offset + i, word);
    bool valid = true;
    if (!(word & 1)) {
      valid = image.inMemory(word, 8, PF_W);
      next = word + 8;
    } else {
      for (uint64_t bit = 0; bit < 63; ++bit)
        if (word >> (bit + 1) & 1)
          valid &= image.inMemory(next + bit * 8, 8, PF_W);
      next += uint64_t(63) * 8;
    }
    if (!valid)
      return fail(error, "malformed: a relocation");
  }
  return true;
}

bool ElfDynamic::checkRelocations(std::string &error) const {
  // x86-64 and AArch64 only have relocations with addends; the loader asserts
  // these conditions.
  if (has(DT_REL) || (has(DT_RELA) && get(DT_RELAENT) != sizeof(Elf64_Rela)) ||
      (has(DT_JMPREL) && get(DT_PLTREL) != DT_RELA))
    return fail(error, "malformed: kind of the relocations");
  return checkRela(DT_RELA, DT_RELASZ, error) &&
         checkRela(DT_JMPREL, DT_PLTRELSZ, error) && checkRelr(error);
}
