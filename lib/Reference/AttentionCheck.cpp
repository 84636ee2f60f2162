//===- AttentionCheck.cpp - The operands of an attention --------*- C++ -*-===//
//-*-===//
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
    return std::string(name) + " need rank " + std::to_string(rank);
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
    return "the starts of ragged sequences begin at 0 and do not decrease";
  if (starts.back() > rows)
    return "ragged sequences end beyond their operand";
  return {};
}

static std::string checkKeyLengths(const Sequences &sequences,
                                   const AttentionSpec &spec) {
  const RowMap &keys = sequences.keys;
  if (keys.blocks && int64_t(spec.keyLengths.size()) != sequences.count)
    return "paged keys need a length for every sequence";
  if (int64_t(sequences.keyLengths.size()) != sequences.count)
    return "keys and queries have different numbers of sequences";
  if (keys.starts)
    return spec.keyLengths.empty() ? "" : "ragged keys have no lengths apart";
  int64_t capacity = keys.tokens;
  if (keys.blocks) {
    const BlockTable &table = *keys.blocks;
    if (table.blocks < 0 ||
        int64_t(table.pages.size()) != table.blocks * sequences.count)
      return "the block table does not have its blocks for every sequence";
    capacity *= table.blocks;
  }
  for (int64_t length : sequences.keyLengths)
    if (length < 0 || length > capacity)
      return "a length does not lie within the keys' capacity";
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
  return "there are " + std::to_string(size) + " positions for " +
         std::to_string(shared) + " tokens of a sequence, counted per axis";
}

static std::string checkMask(const AttentionMask &mask,
                             const Sequences &sequences) {
  const Array &array = mask.array;
  if (array.shape.size() > 4)
    return "a mask has at most four dimensions";
  if (int64_t(array.values.size()) != numElements(array.shape))
    return "the mask's values do not fill its shape";
  // A ragged or paged operand has no length that a mask could be cut to.
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
    return "keys are ragged or paged, not both";

  Sequences sequences(queries, keys, values, spec);
  const RowMap &q = sequences.queries, &k = sequences.keys;
  if (q.width != k.width)
    return "queries and keys differ in width";
  if (q.width == 0 && !spec.scale)
    return "rows without channels have no default scale";
  if (k.heads == 0 ? q.heads != 0 : q.heads % k.heads != 0)
    return "the query heads are no multiple of the key heads";
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
    return "there must be one sink per query head";
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
