//===- MemoryLibrary.h - Kernel libraries in memory -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_UNIT_RUNTIME_MEMORYLIBRARY_H
#define POSENC_TEST_UNIT_RUNTIME_MEMORYLIBRARY_H

#include "posenc/runtime/Library.h"

#include <cstdint>
#include <map>
#include <string>

namespace posenc::test {

inline std::string tensorJson(const std::string &name, const std::string &dtype,
                              const std::string &shape) {
  return "{\"name\":\"" + name + "\",\"kind\":\"tensor\",\"dtype\":\"" + dtype +
         "\",\"shape\":[" + shape + "]}";
}

inline std::string scalarJson(const std::string &name,
                              const std::string &dtype) {
  return "{\"name\":\"" + name + "\",\"kind\":\"scalar\",\"dtype\":\"" + dtype +
         "\"}";
}

inline std::string functionJson(const std::string &name,
                                const std::string &inputs,
                                const std::string &outputs,
                                const std::string &sizes) {
  return "{\"name\":\"" + name + "\",\"symbol\":\"m_" + name +
         "\",\"inputs\":[" + inputs + "],\"outputs\":[" + outputs +
         "],\"sizes\":[" + sizes + "]}";
}

inline std::string libraryJson(const std::string &functions,
                               const std::string &targets = "") {
  return "{\"posenc\":\"0.1.0\",\"abi\":1,\"prefix\":\"m\",\"llvm\":\"22\","
         "\"targets\":[" +
         targets + "],\"functions\":[" + functions + "]}";
}

using Symbols = std::map<std::string, void *>;

inline void *lookupIn(void *ctx, const char *symbol) {
  auto *symbols = static_cast<Symbols *>(ctx);
  auto it = symbols->find(symbol);
  return it == symbols->end() ? nullptr : it->second;
}

inline runtime::Library openMemory(const std::string &json, Symbols symbols,
                                   std::string &error) {
  return runtime::Library::fromSymbols(json, lookupIn, &symbols, error);
}

template <typename Result, typename... Arguments>
void *addressOf(Result (*function)(Arguments...)) {
  return reinterpret_cast<void *>(function);
}

/// A tensor over `data`, which it does not own. `shape` must outlive it.
inline posenc_value view(const void *data, posenc_dtype dtype,
                         const std::vector<int64_t> &shape) {
  return runtime::tensor({const_cast<void *>(data), dtype,
                          static_cast<int32_t>(shape.size()), shape.data()});
}

} // namespace posenc::test

#endif // POSENC_TEST_UNIT_RUNTIME_MEMORYLIBRARY_H
