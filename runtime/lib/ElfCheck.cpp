//===- ElfCheck.cpp - Checks a library before it is loaded ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// dlopen() checks the file header only. It maps the segments without comparing
// them to the size of the file, so that a library that was cut off raises
// SIGBUS, and it runs the constructors of any library, kernel library or not.
// This file refuses both before dlopen() sees them, and finds the name of the
// metadata function, which the caller does not know.
//
// Flipped bits are not looked for: most of a file is code and constants, where
// damage cannot be recognised without a checksum.
//
//===----------------------------------------------------------------------===//

#include "ElfCheck.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

using namespace posenc::runtime;

#if defined(__x86_64__)
static constexpr uint16_t hostMachine = EM_X86_64;
#elif defined(__aarch64__)
static constexpr uint16_t hostMachine = EM_AARCH64;
#else
#error "add the ELF machine number of this host"
#endif

static const std::string suffix = "_metadata";

/// The longest name of a symbol. Many symbols may share one string, and copies
/// of a long one would fill the memory.
static constexpr size_t maxNameLength = 4096;

bool ElfSummary::exports(const std::string &function) const {
  return std::binary_search(functions.begin(), functions.end(), function);
}

namespace {
/// Reads the parts of an ELF file. Every member function returns false and sets
/// the error if a part is missing or beyond the end of the file.
class Reader {
public:
  Reader(const void *data, size_t size, ElfSummary &summary, std::string &error)
      : data(static_cast<const char *>(data)), size(size), summary(summary),
        error(error) {}

  bool readHeader();
  bool readSegments();
  bool readSections();
  bool readSymbols();

private:
  bool fail(const std::string &text) {
    error = text;
    return false;
  }
  bool contains(uint64_t offset, uint64_t length) const {
    return offset <= size && length <= size - offset;
  }
  /// The entry at `index` of a table that lies within the file. A copy, since
  /// tables in a damaged file may not be aligned.
  template <typename T> T read(uint64_t offset, uint64_t index = 0) const {
    T value;
    std::memcpy(&value, data + offset + index * sizeof(T), sizeof(T));
    return value;
  }
  /// Whether [address, address + length) lies in one loaded segment, in the
  /// part that is read from the file.
  bool isLoaded(uint64_t address, uint64_t length) const {
    return std::any_of(loads.begin(), loads.end(), [&](const Elf64_Phdr &load) {
      uint64_t begin = address - load.p_vaddr;
      return address >= load.p_vaddr && begin <= load.p_filesz &&
             length <= load.p_filesz - begin;
    });
  }
  bool addSymbol(const Elf64_Sym &symbol, const std::string &name);

  const char *data;
  size_t size;
  ElfSummary &summary;
  std::string &error;
  Elf64_Ehdr header = {};
  std::vector<Elf64_Phdr> loads;
  Elf64_Shdr symbols = {}, strings = {};
};
} // namespace

bool Reader::readHeader() {
  if (size < SELFMAG || std::memcmp(data, ELFMAG, SELFMAG))
    return fail("not an ELF file");
  if (!contains(0, sizeof(header)))
    return fail("truncated: the ELF header is not complete");
  header = read<Elf64_Ehdr>(0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64)
    return fail("not a 64-bit ELF file");
  if (header.e_ident[EI_DATA] != ELFDATA2LSB)
    return fail("not a little-endian ELF file");
  if (header.e_ident[EI_VERSION] != EV_CURRENT)
    return fail("unknown ELF version");
  if (header.e_type != ET_DYN)
    return fail("not a shared library");
  if (header.e_machine != hostMachine)
    return fail("built for another processor architecture");
  return true;
}

bool Reader::readSegments() {
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
      header.e_phnum == PN_XNUM)
    return fail("malformed: size of the program header table");
  if (!contains(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)))
    return fail("truncated: the program headers are not within the file");
  Elf64_Phdr dynamic = {};
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    auto segment = read<Elf64_Phdr>(header.e_phoff, i);
    if (segment.p_type != PT_NULL &&
        !contains(segment.p_offset, segment.p_filesz))
      return fail("truncated: a segment is not within the file");
    if (segment.p_type == PT_LOAD)
      loads.push_back(segment);
    if (segment.p_type == PT_DYNAMIC)
      dynamic = segment;
  }
  if (dynamic.p_filesz == 0 || !isLoaded(dynamic.p_vaddr, dynamic.p_filesz))
    return fail("malformed: no dynamic table");
  return true;
}

/// Finds the dynamic symbols. Nothing loads the section headers, but they are
/// the last part of a file, so that no prefix of a library is accepted.
bool Reader::readSections() {
  if (header.e_shoff == 0 || header.e_shentsize != sizeof(Elf64_Shdr))
    return fail("no section headers: link without --strip-sections");
  if (!contains(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)))
    return fail("truncated: the section headers are not within the file");
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    auto section = read<Elf64_Shdr>(header.e_shoff, i);
    if (section.sh_type != SHT_NULL && section.sh_type != SHT_NOBITS &&
        !contains(section.sh_offset, section.sh_size))
      return fail("truncated: a section is not within the file");
    if (section.sh_type != SHT_DYNSYM)
      continue;
    symbols = section;
    if (section.sh_link < header.e_shnum)
      strings = read<Elf64_Shdr>(header.e_shoff, section.sh_link);
  }
  if (strings.sh_type != SHT_STRTAB || strings.sh_size == 0 ||
      !contains(strings.sh_offset, strings.sh_size) ||
      data[strings.sh_offset + strings.sh_size - 1] != '\0')
    return fail("malformed: dynamic string table");
  return true;
}

bool Reader::addSymbol(const Elf64_Sym &symbol, const std::string &name) {
  if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT) {
    if (isLoaded(symbol.st_value, symbol.st_size))
      summary.constants[name] = symbol.st_size;
    return true;
  }
  if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC)
    return true;
  if (!isLoaded(symbol.st_value, 1))
    return fail("malformed: the function '" + name + "' is not in the file");
  if (name.size() > suffix.size() &&
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0) {
    if (!summary.metadataSymbol.empty())
      return fail("not a posenc kernel library: it has both '" +
                  summary.metadataSymbol + "' and '" + name + "'");
    summary.metadataSymbol = name;
  }
  summary.functions.push_back(name);
  return true;
}

bool Reader::readSymbols() {
  for (uint64_t i = 0; i < symbols.sh_size / sizeof(Elf64_Sym); ++i) {
    auto symbol = read<Elf64_Sym>(symbols.sh_offset, i);
    unsigned bind = ELF64_ST_BIND(symbol.st_info);
    unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
    if (symbol.st_shndx == SHN_UNDEF ||
        (bind != STB_GLOBAL && bind != STB_WEAK) ||
        (visibility != STV_DEFAULT && visibility != STV_PROTECTED))
      continue;
    if (symbol.st_name >= strings.sh_size)
      return fail("malformed: a dynamic symbol");
    const char *name = data + strings.sh_offset + symbol.st_name;
    size_t length = strnlen(name, maxNameLength + 1);
    if (length > maxNameLength)
      return fail("malformed: the name of a symbol is too long");
    if (!addSymbol(symbol, std::string(name, length)))
      return false;
  }
  if (summary.metadataSymbol.empty())
    return fail("not a posenc kernel library: it has no '..." + suffix +
                "' function");
  std::sort(summary.functions.begin(), summary.functions.end());
  return true;
}

/// Whether at least half of the functions have the prefix of the metadata
/// function. A kernel library X names its functions X_...; in other libraries
/// a function that happens to end in "_metadata" is one of many. Such a
/// function must not be called.
static bool hasCommonPrefix(const ElfSummary &summary) {
  std::string prefix = summary.metadataSymbol.substr(
      0, summary.metadataSymbol.size() - suffix.size() + 1);
  size_t numCommon = 0, numOthers = 0;
  for (const std::string &name : summary.functions) {
    // The linker adds _init and _fini.
    if (name == summary.metadataSymbol || name == "_init" || name == "_fini")
      continue;
    bool isCommon =
        name.rfind(prefix, 0) == 0 || name.rfind("__tvm_ffi_" + prefix, 0) == 0;
    ++(isCommon ? numCommon : numOthers);
  }
  return numCommon > 0 && numCommon >= numOthers;
}

bool posenc::runtime::checkElf(const void *data, size_t size, ElfSummary &out,
                               std::string &error) {
  ElfSummary summary;
  Reader reader(data, size, summary, error);
  if (!reader.readHeader() || !reader.readSegments() ||
      !reader.readSections() || !reader.readSymbols())
    return false;
  if (!hasCommonPrefix(summary)) {
    error = "not a posenc kernel library: it has '" + summary.metadataSymbol +
            "', but its other functions are not named alike";
    return false;
  }
  out = std::move(summary);
  return true;
}
