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

/// Reads the number at the start of a system file; nullopt for `max`.
static std::optional<uint64_t> readNumber(const char *path) {
  File file(std::fopen(path, "re"), std::fclose);
  uint64_t number;
  if (!file || std::fscanf(file.get(), "%" SCNu64, &number) != 1)
    return std::nullopt;
  return number;
}

/// Reads the number after `key` in a system file.
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
/// The files of a control group with its limit, its use, and the part of the
/// use that is reclaimable file cache.
struct GroupFiles {
  const char *limit, *usage, *statistics, *cacheKey;
};
} // namespace

uint64_t posenc::getAvailableMemory() {
  uint64_t available = UINT64_MAX;
  if (std::optional<uint64_t> kilobytes =
          readField("/proc/meminfo", "MemAvailable:"))
    available = *kilobytes * 1024;
  // In a container the group is at the root.
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
