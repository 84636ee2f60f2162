//===- KernelLibrary.cpp - Opens and closes kernel libraries --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLibrary.h"
#include "Error.h"
#include "HostCpu.h"
#include "posenc/kernel/Symbols.h"

#include <cinttypes>
#include <cstring>
#include <functional>
#include <memory>

using namespace posenc::runtime;

/// Parses the metadata `text` and looks up the symbols that it names. `name`
/// precedes the error texts. `lookup` returns the address of a function, and
/// `lookupData` that of a constant of at least the given number of bytes; both
/// return null if there is none.
static posenc_status
link(posenc_library &library, const char *text, const std::string &name,
     const std::function<void *(const char *)> &lookup,
     const std::function<void *(const char *, uint64_t)> &lookupData) {
  // The text of a damaged library may have no terminating NUL.
  size_t size = text ? strnlen(text, maxMetadataSize + 1) : 0;
  if (!text)
    return fail(POSENC_BAD_LIBRARY, "%smetadata: NULL", name.c_str());
  std::string error;
  Metadata &metadata = library.metadata;
  if (!parseMetadata(text, size, metadata, error))
    return fail(POSENC_BAD_LIBRARY, "%smetadata: %s", name.c_str(),
                error.c_str());
  library.text.assign(text, size);

  if (!metadata.vulkanCode.empty()) {
    const char *symbol = metadata.vulkanCode.c_str();
    library.vulkanCode = lookupData(symbol, metadata.vulkanBytes);
    if (!library.vulkanCode)
      return fail(POSENC_BAD_LIBRARY,
                  "%sno '%s' of %" PRIu64 " bytes, the kernels for Vulkan",
                  name.c_str(), symbol, metadata.vulkanBytes);
  }
  bool supported = hostRunsAnyOf(metadata.targets);
  for (posenc_function &function : metadata.functions) {
    function.supported = supported;
    function.library = &library;
    auto lookupEntry = [&](const std::string &symbol, void *&address) {
      address = symbol.empty() ? nullptr : lookup(symbol.c_str());
      return symbol.empty() || address
                 ? POSENC_OK
                 : fail(POSENC_BAD_LIBRARY,
                        "%sno symbol '%s' for the function '%s'", name.c_str(),
                        symbol.c_str(), function.name.c_str());
    };
    if (posenc_status status = lookupEntry(function.symbol, function.address))
      return status;
    if (posenc_status status =
            lookupEntry(function.cudaSymbol, function.cudaEntry))
      return status;
    if (posenc_status status =
            lookupEntry(function.cudaWorkspaceSymbol, function.cudaWorkspace))
      return status;
    if (posenc_status status =
            lookupEntry(function.vulkanSymbol, function.vulkanEntry))
      return status;
    if (posenc_status status =
            lookupEntry(function.outputSizesSymbol, function.outputSizes))
      return status;
    if (!function.address)
      continue;
    // Another function of the library may have the name "f_workspace".
    auto lookupVariant = [&](const char *suffix) -> void * {
      std::string symbol = function.symbol + suffix;
      for (const posenc_function &other : metadata.functions)
        if (other.symbol == symbol)
          return nullptr;
      return lookup(symbol.c_str());
    };
    function.dlpackEntry = lookupVariant(POSENC_TENSOR_SUFFIX);
    // Only a function that needs a workspace has this symbol.
    function.workspace = lookupVariant(POSENC_WORKSPACE_SUFFIX);
  }
  library.setParallelFor =
      lookup((metadata.prefix + POSENC_SET_PARALLEL_FOR_SUFFIX).c_str());
  return POSENC_OK;
}

/// Opens the weights of a library, if they are in a file.
static posenc_status
openWeights(const Metadata &metadata, const char *weights,
            const std::string &name,
            const std::function<void *(const char *)> &lookup) {
  const std::string &symbol = metadata.weightsSymbol;
  if (symbol.empty())
    return POSENC_OK;
  void *address = lookup(symbol.c_str());
  if (!address)
    return fail(POSENC_BAD_LIBRARY, "%sno symbol '%s', which opens the weights",
                name.c_str(), symbol.c_str());
  char message[4096] = "";
  return reinterpret_cast<int32_t (*)(const char *, char *, size_t)>(address)(
             weights, message, sizeof(message))
             ? fail(POSENC_BAD_LIBRARY, "%sweights: %s", name.c_str(), message)
             : POSENC_OK;
}

static posenc_status open(const char *path, const char *weights,
                          posenc_library &library) {
  ElfSummary summary;
  if (posenc_status status = library.object.open(path, summary))
    return status;
  std::string name = std::string(path) + ": ";
  auto lookup = [&](const char *symbol) -> void * {
    // dlsym() would also find symbols of the libraries that this one needs.
    return summary.exports(symbol) ? library.object.symbol(symbol) : nullptr;
  };
  void *address = lookup(summary.metadataSymbol.c_str());
  if (!address)
    return fail(POSENC_BAD_LIBRARY, "%scannot find '%s'", name.c_str(),
                summary.metadataSymbol.c_str());
  auto metadata = reinterpret_cast<const char *(*)()>(address);
  auto lookupData = [&](const char *symbol, uint64_t bytes) -> void * {
    auto it = summary.constants.find(symbol);
    return it != summary.constants.end() && it->second >= bytes
               ? library.object.symbol(symbol)
               : nullptr;
  };
  if (posenc_status status =
          link(library, metadata(), name, lookup, lookupData))
    return status;
  if (library.metadata.prefix + POSENC_METADATA_SUFFIX !=
      summary.metadataSymbol)
    return fail(POSENC_BAD_LIBRARY,
                "%sthe prefix '%s' does not agree with the symbol '%s'",
                name.c_str(), library.metadata.prefix.c_str(),
                summary.metadataSymbol.c_str());
  return openWeights(library.metadata, weights, name, lookup);
}

posenc_status posenc_library_open(const char *path, posenc_library **out) {
  return posenc_library_open_with_weights(path, nullptr, out);
}

posenc_status posenc_library_open_with_weights(const char *path,
                                               const char *weights,
                                               posenc_library **out) {
  if (out)
    *out = nullptr;
  if (!path || !out)
    return fail(POSENC_INVALID_ARGUMENT, "posenc_library_open: NULL argument");
  return guarded([&] {
    auto library = std::make_unique<posenc_library>();
    posenc_status status = open(path, weights, *library);
    if (status == POSENC_OK)
      *out = library.release();
    return status;
  });
}

posenc_status posenc_library_from_symbols(const char *metadata,
                                          posenc_symbol_lookup lookup,
                                          void *ctx, posenc_library **out) {
  if (out)
    *out = nullptr;
  if (!metadata || !lookup || !out)
    return fail(POSENC_INVALID_ARGUMENT,
                "posenc_library_from_symbols: NULL argument");
  return guarded([&] {
    auto library = std::make_unique<posenc_library>();
    auto find = [&](const char *symbol) { return lookup(ctx, symbol); };
    posenc_status status =
        link(*library, metadata, "", find,
             [&](const char *symbol, uint64_t) { return find(symbol); });
    if (status == POSENC_OK)
      *out = library.release();
    return status;
  });
}

void posenc_library_close(posenc_library *library) { delete library; }

posenc_status posenc_library_set_parallel_for(posenc_library *library,
                                              posenc_parallel_for parallelFor,
                                              void *ctx) {
  if (!library)
    return fail(POSENC_INVALID_ARGUMENT,
                "posenc_library_set_parallel_for: no library");
  if (!library->setParallelFor)
    return fail(POSENC_NOT_FOUND, "the library '%s' has no parallel loops",
                library->metadata.prefix.c_str());
  reinterpret_cast<void (*)(posenc_parallel_for, void *)>(
      library->setParallelFor)(parallelFor, ctx);
  return POSENC_OK;
}
