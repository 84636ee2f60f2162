//===- ElfCheck.cpp - Checks that a file is a kernel library --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElfCheck.h"
#include "ElfDynamic.h"
#include "Error.h"
#include "posenc/kernel/Symbols.h"

#include <algorithm>

using namespace posenc::runtime;

static const std::string suffix = POSENC_METADATA_SUFFIX;

/// The longest name of a symbol. Damaged names may share one long string, and
/// copies of it would exhaust memory.
static constexpr size_t maxName = 4096;

bool ElfSummary::exports(const std::string &function) const {
  return std::binary_search(functions.begin(), functions.end(), function);
}

static bool isExported(const Elf64_Sym &symbol, unsigned type) {
  unsigned bind = ELF64_ST_BIND(symbol.st_info);
  unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF &&
         ELF64_ST_TYPE(symbol.st_info) == type &&
         (bind == STB_GLOBAL || bind == STB_WEAK) &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

/// Returns whether most functions share the prefix of the metadata function,
/// which the runtime is going to call. The functions of a kernel library X are
/// called X_...; in other libraries, a function X_metadata is one of many.
static bool haveCommonPrefix(const ElfSummary &summary) {
  std::string prefix = summary.metadataSymbol.substr(
      0, summary.metadataSymbol.size() - suffix.size() + 1);
  size_t alike = 0, others = 0;
  for (const std::string &name : summary.functions) {
    // The linker adds _init and _fini.
    if (name == summary.metadataSymbol || name == "_init" || name == "_fini")
      continue;
    bool isOurs = name.rfind(prefix, 0) == 0 ||
                  name.rfind(POSENC_FFI_PREFIX + prefix, 0) == 0;
    ++(isOurs ? alike : others);
  }
  return alike > 0 && alike >= others;
}

bool posenc::runtime::checkElf(const void *data, size_t size, ElfSummary &out,
                               std::string &error) {
  ElfImage image(data, size);
  if (!image.parseHeaders(error))
    return false;
  ElfDynamic dynamic(image);
  if (!dynamic.parse(error))
    return false;

  ElfSummary summary;
  for (uint64_t i = 0; i < dynamic.numSymbols(); ++i) {
    Elf64_Sym symbol;
    if (!dynamic.symbol(i, symbol))
      continue;
    bool isFunction = isExported(symbol, STT_FUNC);
    if (!isFunction && !isExported(symbol, STT_OBJECT))
      continue;
    const char *text = dynamic.string(symbol.st_name);
    size_t length = strnlen(text, maxName + 1);
    if (length > maxName)
      return fail(error, "malformed: the name of a function is too long");
    std::string name(text, length);
    if (!isFunction) {
      uint64_t offset;
      if (image.toOffset(symbol.st_value, symbol.st_size, offset))
        summary.constants[name] = symbol.st_size;
      continue;
    }
    if (name.size() > suffix.size() &&
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0) {
      if (!summary.metadataSymbol.empty())
        return fail(error, "not a posenc kernel library: it has both '" +
                               summary.metadataSymbol + "' and '" + name + "'");
      summary.metadataSymbol = name;
    }
    summary.functions.push_back(std::move(name));
  }
  if (summary.metadataSymbol.empty())
    return fail(error, "not a posenc kernel library: it has no '..." + suffix +
                           "' function");
  if (!haveCommonPrefix(summary))
    return fail(error,
                "not a posenc kernel library: it has '" +
                    summary.metadataSymbol +
                    "', but its other functions do not share the prefix");
  if (!dynamic.checkRelocations(error) || !dynamic.checkVersions(error))
    return false;
  std::sort(summary.functions.begin(), summary.functions.end());
  out = std::move(summary);
  return true;
}
