//===- KnownTables.h - tables that were computed before ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An exact angle takes some microseconds, and the tests of many kernels ask for
// the same table: for each element type, each route and each seeded fault. The
// last tables are therefore kept.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_REFERENCE_KNOWNTABLES_H
#define POSENC_LIB_REFERENCE_KNOWNTABLES_H

#include "posenc/Reference/Ops.h"

#include <list>
#include <mutex>
#include <optional>

namespace posenc::reference {

/// All that a table depends on.
struct TableKey {
  PairTable pairs;
  Real scale;
  Positions positions;
  std::vector<int64_t> positionsShape;

  bool operator==(const TableKey &other) const;
};

/// The tables that were asked for last. Threads may share them.
class KnownTables {
public:
  /// Returns a copy of the table; nullopt if it is not known.
  std::optional<CosSinTable> find(const TableKey &key);
  /// Keeps a table, and forgets those that were not asked for longest. Large
  /// tables are not kept.
  void add(TableKey key, const CosSinTable &table);

private:
  struct Entry {
    TableKey key;
    CosSinTable table;
  };
  std::mutex mutex;
  std::list<Entry> entries; ///< The last one that was asked for is the first.
  size_t numElements = 0;
};

} // namespace posenc::reference

#endif // POSENC_LIB_REFERENCE_KNOWNTABLES_H
