//===- AttentionCheck.cpp - checks of attention operands ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionRows.h"

#include <algorithm>

namespace posenc::reference {

static std::string checkFilled(const Array &array, const char *name,
                               size_t rank) {
  if (array.shape.size() != rank)
    return std::string(name) + " must have rank " + std::to_string(rank);
  for (int64_t dim : array.shape)
    if (dim < 0)
      return "a dimension of the " + std::string(name) + " is negative";
  if (int64_t(array.values.size()) != numElements(array.shape))
    return std::string(name) + ": the values do not fill the shape";
  return {};
}

static std::string checkStarts(const std::vector<int64_t> &starts,
                               int64_t rows) {
  if (starts.empty())
    return {};
  if (starts.front() != 0 || !std::is_sorted(starts.begin(), starts.end()))
    return "the starts of ragged sequences must begin at 0 and must not "
           "decrease";
  if (starts.back() > rows)
    return "ragged sequences exceed the rows of their operand";
  return {};
}

static std::string checkKeyLengths(const Sequences &sequences,
                                   const AttentionSpec &spec) {
  const RowMap &keys = sequences.keys;
  if (keys.blocks && int64_t(spec.keyLengths.size()) != sequences.count)
    return "expected a length of every sequence for paged keys";
  if (int64_t(sequences.keyLengths.size()) != sequences.count)
    return "keys and queries have different numbers of sequences";
  if (keys.starts)
    return spec.keyLengths.empty() ? ""
                                   : "ragged keys must not have key lengths";
  int64_t capacity = keys.tokens;
  if (keys.blocks) {
    const BlockTable &table = *keys.blocks;
    if (table.blocks < 0 ||
        int64_t(table.pages.size()) != table.blocks * sequences.count)
      return "the size of the block table is not blocks x sequences";
    capacity *= table.blocks;
  }
  for (int64_t length : sequences.keyLengths)
    if (length < 0 || length > capacity)
      return "a length exceeds the capacity of the keys";
  return {};
}

static std::string checkPages(const Sequences &sequences, int64_t pages) {
  if (!sequences.keys.blocks)
    return {};
  const BlockTable &table = *sequences.keys.blocks;
  for (int64_t b = 0; b < sequences.count; ++b)
    for (int64_t t = 0; t < sequences.keyLengths[size_t(b)];
         t += sequences.keys.tokens) {
      int64_t block = b * table.blocks + t / sequences.keys.tokens;
      int64_t page = table.pages[size_t(block)];
      if (page < 0 || page >= pages)
        return "the block table names a page that does not exist";
    }
  return {};
}

static std::string checkPositions(const std::optional<Rotation> &rotation,
                                  const RowMap &rows, int64_t sequences) {
  if (!rotation || rotation->positions.empty())
    return {};
  int64_t tokens = rows.tokens;
  if (rows.blocks)
    tokens *= rows.blocks->blocks;
  int64_t size = int64_t(rotation->positions.size());
  int64_t shared = rotation->axes.numAxes() * tokens;
  if (size == shared || (!rows.starts && size == shared * sequences))
    return {};
  return "expected " + std::to_string(shared) +
         " positions per sequence, counted per axis, got " +
         std::to_string(size);
}

static std::string checkMask(const AttentionMask &mask,
                             const Sequences &sequences) {
  const Array &array = mask.array;
  if (array.shape.size() > 4)
    return "expected a mask of at most four dimensions";
  if (int64_t(array.values.size()) != numElements(array.shape))
    return "the mask's values do not fill its shape";
  // The lengths of ragged or paged sequences differ, so the mask may be larger
  // than the longest of them.
  auto longest = [](const std::vector<int64_t> &lengths) {
    return lengths.empty() ? 0
                           : *std::max_element(lengths.begin(), lengths.end());
  };
  const RowMap &queries = sequences.queries, &keys = sequences.keys;
  const bool exact[] = {true, true, !queries.starts,
                        !keys.starts && !keys.blocks};
  const int64_t extents[] = {
      sequences.count, queries.heads,
      exact[2] ? queries.tokens : longest(sequences.queryLengths),
      exact[3] ? keys.tokens : longest(sequences.keyLengths)};
  const size_t missing = 4 - array.shape.size();
  for (size_t i = 0; i < array.shape.size(); ++i) {
    int64_t dim = array.shape[i], extent = extents[i + missing];
    if (dim != 1 && dim != extent && (exact[i + missing] || dim < extent))
      return "dimension " + std::to_string(i) +
             " of the mask does not match the scores";
  }
  return {};
}

std::string checkAttention(const Array &queries, const Array &keys,
                           const Array &values, const AttentionSpec &spec) {
  const size_t queryRank = spec.queryStarts.empty() ? 4 : 3;
  const size_t keyRank = spec.keyStarts.empty() ? 4 : 3;
  if (std::string reason = checkFilled(queries, "the queries", queryRank);
      !reason.empty())
    return reason;
  if (std::string reason = checkFilled(keys, "the keys", keyRank);
      !reason.empty())
    return reason;
  if (std::string reason = checkFilled(values, "the values", keyRank);
      !reason.empty())
    return reason;
  if (!std::equal(keys.shape.begin(), keys.shape.end() - 1,
                  values.shape.begin()))
    return "keys and values differ in more than their width";
  if (spec.blockTable && !spec.keyStarts.empty())
    return "keys must not be both ragged and paged";

  Sequences sequences(queries, keys, values, spec);
  const RowMap &q = sequences.queries, &k = sequences.keys;
  if (q.width != k.width)
    return "queries and keys differ in width";
  if (q.width == 0 && !spec.scale)
    return "expected a scale for rows without channels";
  if (k.heads == 0 ? q.heads != 0 : q.heads % k.heads != 0)
    return "the number of query heads must be a multiple of the key heads";
  if (std::string reason = checkStarts(spec.queryStarts, q.tokens);
      !reason.empty())
    return reason;
  if (std::string reason = checkStarts(spec.keyStarts, k.tokens);
      !reason.empty())
    return reason;
  if (keyRank == 4 && !spec.blockTable && keys.shape[0] != sequences.count)
    return "keys and queries have different numbers of sequences";
  if (std::string reason = checkKeyLengths(sequences, spec); !reason.empty())
    return reason;
  if (std::string reason = checkPages(sequences, keys.shape[0]);
      !reason.empty())
    return reason;
  if ((spec.left && *spec.left < 0) || (spec.right && *spec.right < 0))
    return "the window's sides must not be negative";
  if (!spec.sinks.empty() && int64_t(spec.sinks.size()) != q.heads)
    return "expected one sink per query head";
  if (std::string reason =
          checkRows(q.width, q.heads, spec.queryNorm, spec.queryRotation);
      !reason.empty())
    return reason;
  if (std::string reason =
          checkRows(k.width, k.heads, spec.keyNorm, spec.keyRotation);
      !reason.empty())
    return reason;
  if (std::string reason =
          checkPositions(spec.queryRotation, q, sequences.count);
      !reason.empty())
    return reason;
  if (std::string reason = checkPositions(spec.keyRotation, k, sequences.count);
      !reason.empty())
    return reason;
  return spec.mask ? checkMask(*spec.mask, sequences) : "";
}

} // namespace posenc::reference
