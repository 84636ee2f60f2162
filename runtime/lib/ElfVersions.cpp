//===- ElfVersions.cpp - The symbol versions of an ELF file ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElfDynamic.h"

#include <algorithm>

using namespace posenc::runtime;

static constexpr const char *problem = "malformed: symbol versions";

/// Version indices have 15 bits. More entries exist only in damaged files,
/// where following all of them could take very long.
static constexpr int maxVersions = 1 << 15;

/// Returns the index of a version without the bit for hidden symbols.
static uint32_t versionIndex(uint16_t value) { return value & 0x7FFF; }

bool ElfDynamic::checkNeededVersions(uint32_t &last, std::string &error) const {
  if (!has(DT_VERNEED))
    return true;
  uint64_t address = get(DT_VERNEED);
  int budget = maxVersions;
  while (true) {
    Elf64_Verneed entry;
    if (!image.readAt(address, entry) || entry.vn_version != VER_NEED_CURRENT)
      return fail(error, problem);
    // The loader aborts on a file that is not in DT_NEEDED.
    const char *file = string(entry.vn_file);
    auto isFile = [&](uint64_t name) {
      return !std::strcmp(string(name), file);
    };
    if (!file || std::none_of(needed.begin(), needed.end(), isFile))
      return fail(error, problem);
    uint64_t version = address;
    uint32_t step = entry.vn_aux;
    do {
      version += step;
      Elf64_Vernaux aux;
      if (--budget < 0 || !image.readAt(version, aux) || !string(aux.vna_name))
        return fail(error, problem);
      last = std::max(last, versionIndex(aux.vna_other));
      step = aux.vna_next;
    } while (step != 0);
    if (entry.vn_next == 0)
      return true;
    address += entry.vn_next;
  }
}

bool ElfDynamic::checkDefinedVersions(uint32_t &last,
                                      std::string &error) const {
  if (!has(DT_VERDEF))
    return true;
  uint64_t address = get(DT_VERDEF);
  int budget = maxVersions;
  while (true) {
    Elf64_Verdef entry;
    Elf64_Verdaux aux;
    if (--budget < 0 || !image.readAt(address, entry) ||
        entry.vd_version != VER_DEF_CURRENT ||
        !image.readAt(address + entry.vd_aux, aux) || !string(aux.vda_name))
      return fail(error, problem);
    last = std::max(last, versionIndex(entry.vd_ndx));
    if (entry.vd_next == 0)
      return true;
    address += entry.vd_next;
  }
}

bool ElfDynamic::checkVersions(std::string &error) const {
  uint32_t last = VER_NDX_GLOBAL;
  if (!checkNeededVersions(last, error) || !checkDefinedVersions(last, error))
    return false;
  if (!has(DT_VERSYM) || (!has(DT_VERNEED) && !has(DT_VERDEF)))
    return true;
  uint64_t offset;
  if (!image.toOffset(get(DT_VERSYM), symbolCount * sizeof(uint16_t), offset))
    return fail(error, problem);
  // The loader uses each index without a check.
  for (uint64_t i = 0; i < symbolCount; ++i) {
    uint16_t index = 0;
    image.read(offset + i * sizeof(index), index);
    if (versionIndex(index) > last)
      return fail(error, problem);
  }
  return true;
}
