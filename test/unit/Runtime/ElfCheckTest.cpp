//===- ElfCheckTest.cpp - Damaged shared libraries ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElfCheck.h"
#include "Support.h"

#include <cstring>
#include <elf.h>
#include <gtest/gtest.h>

using namespace posenc::runtime;
using namespace posenc::test;

namespace {

/// Checks a library and returns the error, or "". The bytes are copied to
/// memory of their exact size, so that a sanitizer detects reads past the end.
std::string check(const std::string &bytes, ElfSummary *out = nullptr) {
  std::vector<char> exact(bytes.begin(), bytes.end());
  ElfSummary summary;
  std::string error;
  bool good = checkElf(exact.data(), exact.size(), summary, error);
  EXPECT_EQ(good, error.empty());
  if (out)
    *out = summary;
  return error;
}

/// The bytes of one library, linked with different hash tables and relocations.
std::vector<std::string> libraries() {
  std::vector<std::string> list;
  std::string paths = POSENC_TEST_LINKED;
  for (size_t begin = 0; begin < paths.size();) {
    size_t end = std::min(paths.find('|', begin), paths.size());
    list.push_back(readFile(paths.substr(begin, end - begin)));
    begin = end + 1;
  }
  return list;
}

template <typename T> T load(const std::string &bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <typename T>
std::string patched(std::string bytes, size_t offset, T value) {
  std::memcpy(&bytes[offset], &value, sizeof(T));
  return bytes;
}

struct Table {
  size_t begin, end;
};

/// The tables that checkElf() or the loader reads: headers, dynamic table,
/// symbols, hashes, relocations and versions.
std::vector<Table> tables(const std::string &bytes) {
  auto header = load<Elf64_Ehdr>(bytes, 0);
  std::vector<Table> list = {
      {0, sizeof(header)},
      {header.e_phoff, header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr)},
      {header.e_shoff, header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr)}};
  for (int i = 0; i < header.e_shnum; ++i) {
    auto section =
        load<Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(Elf64_Shdr));
    switch (section.sh_type) {
    case SHT_DYNAMIC:
    case SHT_DYNSYM:
    case SHT_HASH:
    case SHT_GNU_HASH:
    case SHT_RELA:
    case 19: // SHT_RELR
    case SHT_GNU_versym:
    case SHT_GNU_verneed:
    case SHT_GNU_verdef:
      if (section.sh_size)
        list.push_back(
            {section.sh_offset, section.sh_offset + section.sh_size});
    }
  }
  return list;
}

TEST(ElfCheck, Good) {
  ASSERT_GE(libraries().size(), 1u);
  for (const std::string &bytes : libraries()) {
    ElfSummary summary;
    EXPECT_EQ(check(bytes, &summary), "");
    EXPECT_EQ(summary.metadataSymbol, "fake_metadata");
    EXPECT_TRUE(summary.exports("fake_scale"));
    EXPECT_TRUE(summary.exports("fake_scratch_workspace"));
    EXPECT_TRUE(summary.exports("__tvm_ffi_fake_scale"));
    EXPECT_FALSE(summary.exports("TVMFFIErrorSetRaisedFromCStr"));
    EXPECT_FALSE(summary.exports("body"));
    EXPECT_FALSE(summary.exports("malloc"));
  }
}

TEST(ElfCheck, NotALibrary) {
  std::string bytes = libraries()[0];
  EXPECT_EQ(check(""), "not an ELF file");
  EXPECT_EQ(check("\x7F"
                  "EL"),
            "not an ELF file");
  EXPECT_EQ(check("\x7F"
                  "ELF"),
            "truncated: the ELF header is not complete");
  EXPECT_EQ(check(patched<char>(bytes, EI_CLASS, ELFCLASS32)),
            "not a 64-bit ELF file");
  EXPECT_EQ(check(patched<char>(bytes, EI_DATA, ELFDATA2MSB)),
            "not a little-endian ELF file");
  EXPECT_EQ(
      check(patched<uint16_t>(bytes, offsetof(Elf64_Ehdr, e_machine), EM_MIPS)),
      "built for another processor architecture");
  EXPECT_EQ(check(readFile(POSENC_TEST_NO_KERNELS)),
            "not a posenc kernel library: it has no '..._metadata' function");
}

TEST(ElfCheck, HeadersBeyondTheFile) {
  std::string bytes = libraries()[0];
  size_t size = bytes.size();
  for (uint64_t offset : {uint64_t(size), uint64_t(size - 1), UINT64_MAX,
                          UINT64_MAX - 63, uint64_t(1) << 63}) {
    EXPECT_NE(check(patched(bytes, offsetof(Elf64_Ehdr, e_phoff), offset)), "");
    EXPECT_NE(check(patched(bytes, offsetof(Elf64_Ehdr, e_shoff), offset)), "");
  }
  for (uint16_t count : {0, 0xFFFF}) {
    EXPECT_NE(check(patched(bytes, offsetof(Elf64_Ehdr, e_phnum), count)), "");
    EXPECT_NE(check(patched(bytes, offsetof(Elf64_Ehdr, e_shnum), count)), "");
  }
  // Section headers are optional.
  EXPECT_EQ(check(patched<uint64_t>(bytes, offsetof(Elf64_Ehdr, e_shoff), 0)),
            "");
}

/// The section headers are last, so every prefix is incomplete.
// An alignment is 0 or a power of two, and a segment is not longer in the file.
TEST(ElfCheck, ThreadLocalSegments) {
  for (const std::string &bytes : libraries()) {
    auto header = load<Elf64_Ehdr>(bytes, 0);
    for (int i = 0; i < header.e_phnum; ++i) {
      size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
      auto segment = load<Elf64_Phdr>(bytes, at);
      if (segment.p_type != PT_GNU_STACK)
        continue;
      segment.p_type = PT_TLS;
      for (uint64_t align : {0, 1, 2, 3, 6, 8, 24}) {
        segment.p_align = align;
        bool isGood = align != 3 && align != 6 && align != 24;
        EXPECT_EQ(check(patched(bytes, at, segment)),
                  isGood ? "" : "malformed: thread-local segment")
            << align;
      }
      segment.p_align = 1;
      for (uint64_t size : {0, 7, 8, 9}) {
        segment.p_memsz = 8;
        segment.p_filesz = size;
        EXPECT_EQ(check(patched(bytes, at, segment)),
                  size <= 8 ? "" : "malformed: thread-local segment")
            << size;
      }
    }
  }
}

TEST(ElfCheck, EveryTruncation) {
  for (const std::string &bytes : libraries())
    for (size_t length = 0; length < bytes.size();
         length += length < 4096 ? 1 : 61)
      ASSERT_NE(check(bytes.substr(0, length)), "") << length;
}

/// Without section headers, truncation is detected by the segments.
TEST(ElfCheck, EveryTruncationWithoutSections) {
  for (std::string bytes : libraries()) {
    bytes = patched<uint64_t>(bytes, offsetof(Elf64_Ehdr, e_shoff), 0);
    auto header = load<Elf64_Ehdr>(bytes, 0);
    size_t needed = 0;
    for (int i = 0; i < header.e_phnum; ++i) {
      auto segment =
          load<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr));
      if (segment.p_type == PT_LOAD)
        needed = std::max<size_t>(needed, segment.p_offset + segment.p_filesz);
    }
    for (size_t length = 0; length < needed; length += length < 4096 ? 1 : 61)
      ASSERT_NE(check(bytes.substr(0, length)), "") << length;
    EXPECT_EQ(check(bytes.substr(0, needed)), "");
  }
}

TEST(ElfCheck, ByteMutationsNeverCrash) {
  for (const std::string &bytes : libraries()) {
    std::vector<Table> list = tables(bytes);
    ASSERT_GE(list.size(), 5u);
    std::mt19937 random(11);
    int refused = 0;
    for (int i = 0; i < 5000; ++i) {
      const Table &table = list[random() % list.size()];
      std::string part = bytes.substr(table.begin, table.end - table.begin);
      std::string changed = bytes;
      changed.replace(table.begin, part.size(), mutate(part, random));
      refused += !check(changed).empty();
    }
    EXPECT_GT(refused, 1000);
  }
}

/// Sets whole fields to values that overflow sums and products.
TEST(ElfCheck, FieldMutationsNeverCrash) {
  const uint64_t values[] = {
      0,          1,          7,         0x7FFFFFFF, 0x80000000,    0xFFFFFFFF,
      1ull << 47, 1ull << 63, INT64_MAX, UINT64_MAX, UINT64_MAX - 7};
  for (const std::string &bytes : libraries())
    for (const Table &table : tables(bytes))
      for (size_t at = table.begin; at + 8 <= table.end; at += 4)
        for (uint64_t value : values) {
          check(patched(bytes, at, value));
          check(patched(bytes, at, static_cast<uint32_t>(value)));
        }
}

TEST(ElfCheck, Garbage) {
  std::mt19937 random(12);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 2048, '\0');
    for (char &c : bytes)
      c = static_cast<char>(random());
    std::memcpy(&bytes[0],
                "\x7F"
                "ELF\2\1\1",
                std::min<size_t>(bytes.size(), 7));
    EXPECT_NE(check(bytes), "");
  }
}

} // namespace
