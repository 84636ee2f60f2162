//===- KnownTables.cpp - tables that were computed before -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KnownTables.h"

#include <algorithm>
#include <cmath>

namespace posenc::reference {

/// The elements of all tables that are kept, and of one of them: 32 MiB and a
/// quarter of it. A key is searched for in a list, so there are few.
static constexpr size_t kMaxElements = size_t(1) << 20;
static constexpr size_t kMaxTableElements = kMaxElements / 4;
static constexpr size_t kMaxTables = 64;

/// Whether the positions have the same table. The sine of -0 is not that of 0,
/// and all NaNs are alike.
static bool areSame(const Positions &a, const Positions &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](long double p, long double q) {
                      return (std::isnan(p) && std::isnan(q)) ||
                             (p == q && std::signbit(p) == std::signbit(q));
                    });
}

static bool areSame(const PairTable &a, const PairTable &b) {
  if (a.size() != b.size() || a.numAxes() != b.numAxes() ||
      a.roundsAngles() != b.roundsAngles())
    return false;
  for (int64_t i = 0; i < a.size(); ++i)
    if (a.axis(i) != b.axis(i) || !(a.frequency(i) == b.frequency(i)))
      return false;
  return true;
}

bool TableKey::operator==(const TableKey &other) const {
  return positionsShape == other.positionsShape && scale == other.scale &&
         areSame(positions, other.positions) && areSame(pairs, other.pairs);
}

std::optional<CosSinTable> KnownTables::find(const TableKey &key) {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto entry = entries.begin(); entry != entries.end(); ++entry)
    if (entry->key == key) {
      entries.splice(entries.begin(), entries, entry);
      return entry->table;
    }
  return std::nullopt;
}

void KnownTables::add(TableKey key, const CosSinTable &table) {
  size_t size = table.cos.values.size();
  if (size > kMaxTableElements)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  entries.push_front({std::move(key), table});
  numElements += size;
  while (entries.size() > kMaxTables || numElements > kMaxElements) {
    numElements -= entries.back().table.cos.values.size();
    entries.pop_back();
  }
}

} // namespace posenc::reference
