//===- ElfImage.cpp - A bounds-checked view of an ELF file ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElfImage.h"

using namespace posenc::runtime;

#if defined(__x86_64__)
static constexpr uint16_t hostMachine = EM_X86_64;
#elif defined(__aarch64__)
static constexpr uint16_t hostMachine = EM_AARCH64;
#else
#error "add the ELF machine number of this host"
#endif

/// The largest address of user space. Larger ones would only overflow.
static constexpr uint64_t addressLimit = uint64_t(1) << 47;

bool ElfImage::parseFileHeader(std::string &error) {
  if (size < SELFMAG || std::memcmp(data, ELFMAG, SELFMAG))
    return fail(error, "not an ELF file");
  if (!read(0, header))
    return fail(error, "truncated: the ELF header is not complete");
  if (header.e_ident[EI_CLASS] != ELFCLASS64)
    return fail(error, "not a 64-bit ELF file");
  if (header.e_ident[EI_DATA] != ELFDATA2LSB)
    return fail(error, "not a little-endian ELF file");
  if (header.e_machine != hostMachine)
    return fail(error, "built for another processor architecture");
  return true;
}

bool ElfImage::parseSegment(const Elf64_Phdr &segment, std::string &error) {
  if (segment.p_type == PT_NULL)
    return true;
  if (segment.p_filesz && !contains(segment.p_offset, segment.p_filesz))
    return fail(error, "truncated: a segment is not within the file");
  if (segment.p_vaddr > addressLimit || segment.p_memsz > addressLimit)
    return fail(error, "malformed: the address of a segment is too large");
  switch (segment.p_type) {
  case PT_LOAD:
    if (segment.p_filesz > segment.p_memsz)
      return fail(error,
                  "malformed: a segment is larger in the file than in memory");
    if (!loads.empty() &&
        segment.p_vaddr < loads.back().p_vaddr + loads.back().p_memsz)
      return fail(error, "malformed: segments overlap or are not in order");
    loads.push_back(segment);
    return true;
  case PT_DYNAMIC:
    dynamicHeader = segment;
    return true;
  case PT_GNU_RELRO:
    relro = segment;
    return true;
  case PT_TLS:
    if (segment.p_filesz > segment.p_memsz ||
        segment.p_align & (segment.p_align - 1))
      return fail(error, "malformed: thread-local segment");
    return true;
  default:
    return true;
  }
}

/// The loader write-protects this range, so it must lie in a loaded segment.
/// Linkers may round its end up to a page.
bool ElfImage::checkRelro(std::string &error) const {
  constexpr uint64_t largestPage = 65536;
  if (relro.p_memsz == 0)
    return true;
  for (const Elf64_Phdr &load : loads)
    if (relro.p_vaddr >= load.p_vaddr &&
        relro.p_vaddr - load.p_vaddr < load.p_memsz &&
        relro.p_vaddr + relro.p_memsz <=
            load.p_vaddr + load.p_memsz + largestPage)
      return true;
  return fail(error, "malformed: range of the read-only data");
}

bool ElfImage::parseHeaders(std::string &error) {
  if (!parseFileHeader(error))
    return false;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
      header.e_phnum == PN_XNUM)
    return fail(error, "malformed: size of the program header table");
  if (!contains(header.e_phoff, uint64_t(header.e_phnum) * sizeof(Elf64_Phdr)))
    return fail(error, "truncated: the program headers are not within the "
                       "file");
  std::vector<Elf64_Phdr> inLoads;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read(header.e_phoff + i * sizeof(segment), segment))
      return fail(error, "truncated: program headers");
    if (!parseSegment(segment, error))
      return false;
    // The loader reads the contents of these segments from loaded memory.
    if ((segment.p_type == PT_DYNAMIC || segment.p_type == PT_TLS ||
         segment.p_type == PT_NOTE || segment.p_type == PT_GNU_PROPERTY) &&
        segment.p_filesz)
      inLoads.push_back(segment);
  }
  // The loader does not use section headers, which a stripped library may lack.
  // But they are at the end of the file, so that their place tells truncation.
  if (header.e_shoff != 0 &&
      (header.e_shnum == 0 ||
       !contains(header.e_shoff,
                 uint64_t(header.e_shnum) * sizeof(Elf64_Shdr))))
    return fail(error, "truncated: the section headers are not within the "
                       "file");
  if (!checkRelro(error))
    return false;
  if (dynamicHeader.p_type != PT_DYNAMIC)
    return fail(error, "malformed: no dynamic table");
  for (const Elf64_Phdr &segment : inLoads) {
    uint64_t offset;
    if (!toOffset(segment.p_vaddr, segment.p_filesz, offset) ||
        offset != segment.p_offset)
      return fail(error, "malformed: a segment is not loaded at the address in "
                         "its header");
  }
  return true;
}

bool ElfImage::toOffset(uint64_t address, uint64_t length,
                        uint64_t &offset) const {
  for (const Elf64_Phdr &load : loads)
    if (address >= load.p_vaddr && address - load.p_vaddr <= load.p_filesz &&
        length <= load.p_filesz - (address - load.p_vaddr)) {
      offset = load.p_offset + (address - load.p_vaddr);
      return true;
    }
  return false;
}

bool ElfImage::inMemory(uint64_t address, uint64_t length,
                        uint32_t flags) const {
  for (const Elf64_Phdr &load : loads)
    if (address >= load.p_vaddr && address - load.p_vaddr <= load.p_memsz &&
        length <= load.p_memsz - (address - load.p_vaddr) &&
        (load.p_flags & flags) == flags)
      return true;
  return false;
}
