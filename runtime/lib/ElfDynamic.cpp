//===- ElfDynamic.cpp - The dynamic table of an ELF file ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElfDynamic.h"

#include <algorithm>

using namespace posenc::runtime;

bool ElfDynamic::readTags(std::string &error) {
  const Elf64_Phdr &table = image.dynamic();
  for (uint64_t i = 0;; ++i) {
    Elf64_Dyn entry;
    if ((i + 1) * sizeof(entry) > table.p_filesz ||
        !image.read(table.p_offset + i * sizeof(entry), entry))
      return fail(error, "malformed: the dynamic table has no end");
    if (entry.d_tag == DT_NULL)
      return true;
    if (entry.d_tag == DT_NEEDED)
      needed.push_back(entry.d_un.d_val);
    // The last one of duplicate tags counts, as it does for the loader.
    tags[entry.d_tag] = entry.d_un.d_val;
  }
}

bool ElfDynamic::parse(std::string &error) {
  if (!readTags(error))
    return false;
  stringSize = get(DT_STRSZ);
  if (!has(DT_STRTAB) || stringSize == 0 ||
      !image.toOffset(get(DT_STRTAB), stringSize, stringOffset) ||
      image.bytes()[stringOffset + stringSize - 1] != '\0')
    return fail(error, "malformed: dynamic string table");
  for (int64_t tag : {DT_SONAME, DT_RPATH, DT_RUNPATH})
    if (has(tag) && !string(get(tag)))
      return fail(error, "malformed: a name outside the string table");
  for (uint64_t name : needed)
    if (!string(name))
      return fail(error, "malformed: a name outside the string table");

  if (!has(DT_SYMTAB) || get(DT_SYMENT) != sizeof(Elf64_Sym))
    return fail(error, "malformed: no dynamic symbol table");
  if (!has(DT_GNU_HASH) && !has(DT_HASH))
    return fail(error, "malformed: no hash table of the dynamic symbols");
  // The loader does not read the other table if there is a GNU hash table.
  if (!(has(DT_GNU_HASH) ? countByGnuHash(error) : countByHash(error)))
    return false;
  if (symbolCount > UINT32_MAX ||
      !image.toOffset(get(DT_SYMTAB), symbolCount * sizeof(Elf64_Sym),
                      symbolOffset))
    return fail(error, "truncated: dynamic symbol table");

  for (auto [table, size] :
       {std::pair<int64_t, int64_t>{DT_INIT_ARRAY, DT_INIT_ARRAYSZ},
        {DT_FINI_ARRAY, DT_FINI_ARRAYSZ}})
    if (has(table) && !image.inMemory(get(table), get(size)))
      return fail(error, "malformed: table of constructors");
  for (int64_t tag : {DT_INIT, DT_FINI})
    if (has(tag) && !image.inMemory(get(tag), 1, PF_X))
      return fail(error, "malformed: address of a constructor");
  return checkSymbols(error);
}

/// Follows every chain to its end, because the loader would loop forever in a
/// cycle.
bool ElfDynamic::countByHash(std::string &error) {
  const char *what = "malformed: hash table";
  uint64_t base = get(DT_HASH), offset;
  uint32_t numBuckets, numChains;
  if (!image.readAt(base, numBuckets) || !image.readAt(base + 4, numChains) ||
      numBuckets == 0)
    return fail(error, what);
  uint64_t words = 2 + uint64_t(numBuckets) + numChains;
  if (!image.toOffset(base, words * 4, offset))
    return fail(error, what);
  std::vector<bool> seen(numChains);
  auto word = [&](uint64_t index) {
    uint32_t value = 0;
    image.read(offset + index * 4, value);
    return value;
  };
  for (uint64_t bucket = 0; bucket < numBuckets; ++bucket)
    for (uint32_t index = word(2 + bucket); index != STN_UNDEF;
         index = word(2 + uint64_t(numBuckets) + index)) {
      if (index >= numChains || seen[index])
        return fail(error, what);
      seen[index] = true;
    }
  symbolCount = numChains;
  return true;
}

bool ElfDynamic::countByGnuHash(std::string &error) {
  const char *what = "malformed: GNU hash table";
  uint64_t base = get(DT_GNU_HASH), offset;
  uint32_t head[4];
  if (!image.readAt(base, head))
    return fail(error, what);
  auto [numBuckets, firstSymbol, numBloom, bloomShift] = head;
  // The loader divides by numBuckets and asserts that numBloom is a power of 2.
  if (numBuckets == 0 || numBloom == 0 || numBloom & (numBloom - 1) ||
      bloomShift > 31)
    return fail(error, what);
  uint64_t buckets = sizeof(head) + uint64_t(numBloom) * 8;
  uint64_t chains = buckets + uint64_t(numBuckets) * 4;
  if (!image.toOffset(base, chains, offset))
    return fail(error, what);
  uint64_t last = 0;
  for (uint64_t i = 0; i < numBuckets; ++i) {
    uint32_t bucket = 0;
    image.read(offset + buckets + i * 4, bucket);
    if (bucket != 0 && bucket < firstSymbol)
      return fail(error, what);
    last = std::max<uint64_t>(last, bucket);
  }
  symbolCount = firstSymbol;
  if (last == 0)
    return true;
  // The chains are consecutive in one array in the order of the symbols, and an
  // odd word ends a chain. If the last chain has an end, all others have one.
  uint32_t word = 0;
  do {
    if (!image.readAt(base + chains + (last - firstSymbol) * 4, word))
      return fail(error, what);
    ++last;
  } while (!(word & 1));
  symbolCount = last;
  return true;
}

bool ElfDynamic::checkSymbols(std::string &error) const {
  for (uint64_t i = 0; i < symbolCount; ++i) {
    Elf64_Sym entry;
    if (!symbol(i, entry) || !string(entry.st_name))
      return fail(error, "malformed: a dynamic symbol");
    if (entry.st_shndx != SHN_UNDEF &&
        ELF64_ST_TYPE(entry.st_info) == STT_FUNC &&
        !image.inMemory(entry.st_value, 1, PF_X))
      return fail(error, "malformed: a function outside the code");
  }
  return true;
}
