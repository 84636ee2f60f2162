//===- Memory.cpp - how much memory there is to have ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Support/Memory.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

using File = std::unique_ptr<FILE, int (*)(FILE *)>;

/// The number that a system file begins with; nothing for `max`.
static std::optional<uint64_t> readNumber(const char *path) {
  File file(std::fopen(path, "re"), std::fclose);
  uint64_t number;
  if (!file || std::fscanf(file.get(), "%" SCNu64, &number) != 1)
    return std::nullopt;
  return number;
}

/// The number behind `key` on a line of a system file.
static std::optional<uint64_t> readField(const char *path, const char *key) {
  File file(std::fopen(path, "re"), std::fclose);
  char line[256];
  uint64_t number;
  size_t length = std::strlen(key);
  while (file && std::fgets(line, sizeof(line), file.get()))
    if (std::strncmp(line, key, length) == 0 &&
        std::sscanf(line + length, "%" SCNu64, &number) == 1)
      return number;
  return std::nullopt;
}

namespace {
/// Where a control group tells its limit, its use, and how much of that is a
/// cache of files, which the system takes back at need.
struct GroupFiles {
  const char *limit, *usage, *statistics, *cacheKey;
};
} // namespace

uint64_t posenc::getAvailableMemory() {
  uint64_t available = UINT64_MAX;
  if (std::optional<uint64_t> kilobytes =
          readField("/proc/meminfo", "MemAvailable:"))
    available = *kilobytes * 1024;
  // A container sees its own group at the root.
  for (const GroupFiles &group :
       {GroupFiles{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
                   "/sys/fs/cgroup/memory.stat", "file "},
        GroupFiles{"/sys/fs/cgroup/memory/memory.limit_in_bytes",
                   "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                   "/sys/fs/cgroup/memory/memory.stat", "total_cache "}}) {
    std::optional<uint64_t> limit = readNumber(group.limit);
    if (!limit)
      continue;
    uint64_t used = readNumber(group.usage).value_or(0);
    uint64_t cache = readField(group.statistics, group.cacheKey).value_or(0);
    used -= std::min(used, cache);
    available = std::min(available, *limit - std::min(*limit, used));
  }
  return available;
}
