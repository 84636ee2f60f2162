//===- Append.cpp - new rows of KV caches ---------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionRows.h"
#include "Fatal.h"
#include "posenc/Reference/Quantize.h"

#include <algorithm>
#include <cmath>

namespace posenc::reference {

static std::string checkPart(const Array &cache, const Array &rows,
                             const AppendSpec &spec) {
  if (cache.shape.size() != 4)
    return "expected a cache of rank 4";
  if (rows.shape.size() != 3 && rows.shape.size() != 4)
    return "expected new rows of rank 3 or 4";
  for (const Array *array : {&cache, &rows}) {
    for (int64_t dim : array->shape)
      if (dim < 0)
        return "a dimension is negative";
    if (int64_t(array->values.size()) != numElements(array->shape))
      return "the values do not fill their shape";
  }
  RowMap from(rows, spec.rowLayout), to(cache, spec.cacheLayout);
  if (from.heads != to.heads || from.width != to.width)
    return "the heads or channels of new rows do not match the cache";
  int64_t sequences = rows.shape.size() == 4 ? rows.shape[0] : 1;
  if (int64_t(spec.slots.size()) != sequences * from.tokens)
    return "expected one slot per new row of a head";
  for (int64_t slot : spec.slots)
    if (slot >= cache.shape[0] * to.tokens)
      return "a slot lies beyond the cache";
  return {};
}

std::string checkAppend(const Caches &caches, const Array &newKeys,
                        const Array &newValues, const AppendSpec &spec) {
  if (std::string reason = checkPart(caches.keys, newKeys, spec);
      !reason.empty())
    return reason;
  if (std::string reason = checkPart(caches.values, newValues, spec);
      !reason.empty())
    return reason;
  if (!std::equal(caches.keys.shape.begin(), caches.keys.shape.end() - 1,
                  caches.values.shape.begin()) ||
      !std::equal(newKeys.shape.begin(), newKeys.shape.end() - 1,
                  newValues.shape.begin(), newValues.shape.end() - 1))
    return "keys and values differ in more than their width";
  for (auto [cache, scales, given] :
       {std::tuple(&caches.keys, &caches.keyScales, &spec.givenKeyScales),
        std::tuple(&caches.values, &caches.valueScales,
                   &spec.givenValueScales)}) {
    if (!spec.quantized)
      continue;
    RowMap map(*cache, spec.cacheLayout);
    if (!given->empty()) {
      if (given->size() != 1 && int64_t(given->size()) != map.heads)
        return "expected one given scale, or one for each head";
      continue;
    }
    if (scales->shape !=
            std::vector<int64_t>{cache->shape[0], map.heads, map.tokens} ||
        int64_t(scales->values.size()) != numElements(scales->shape))
      return "a quantized cache needs a scale for each of its rows";
  }
  std::vector<int64_t> slots = spec.slots;
  std::sort(slots.begin(), slots.end());
  for (size_t i = 1; i < slots.size(); ++i)
    if (slots[i] >= 0 && slots[i] == slots[i - 1])
      return "two new rows have the same slot";
  if (std::string reason = checkRows(newKeys.shape.back(), /*heads=*/1,
                                     spec.keyNorm, spec.keyRotation);
      !reason.empty())
    return reason;
  if (spec.keyRotation &&
      spec.keyRotation->positions.size() !=
          spec.slots.size() * size_t(spec.keyRotation->axes.numAxes()))
    return "a rotation of new keys needs one position per row and axis";
  return {};
}

/// Returns all new rows of one head, sequence by sequence.
static Array headRows(const Array &rows, const RowMap &map, int64_t head) {
  const int64_t sequences = rows.shape.size() == 4 ? rows.shape[0] : 1;
  Array result{{sequences * map.tokens, map.width}, {}, {}};
  for (int64_t b = 0; b < sequences; ++b) {
    Array part = gatherRows(rows, map, b, head, map.tokens);
    result.values.insert(result.values.end(), part.values.begin(),
                         part.values.end());
  }
  result.magnitude.assign(result.values.size(), -1.0L);
  return result;
}

/// Copies the rows of one head and their magnitudes to their slots.
static void store(Array &cache, const RowMap &map, int64_t head,
                  const Array &rows, const std::vector<int64_t> &slots) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < 0)
      continue;
    int64_t row = map.row(slots[i] / map.tokens, slots[i] % map.tokens, head);
    const int64_t from = int64_t(i) * map.width, to = row * map.width;
    std::copy_n(rows.values.begin() + from, map.width,
                cache.values.begin() + to);
    std::copy_n(rows.magnitude.begin() + from, map.width,
                cache.magnitude.begin() + to);
  }
}

/// Quantizes the rows of one head and stores them, and their scales if none are
/// given. The scale of an inexact row
/// is inexact as well. Inexact rows with a tiny scale, near the subnormals of
/// f32, are not compared.
static void storeQuantized(Array &cache, Array &scales, const RowMap &map,
                           int64_t head, const Array &rows, DType type,
                           bool isInexact, const std::vector<int64_t> &slots,
                           const std::vector<long double> &given) {
  Array quantized = rows;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < 0)
      continue;
    const size_t first = i * size_t(map.width);
    const long double *elements = rows.values.data() + first;
    QuantizedRow row =
        given.empty()
            ? quantizeRow(type, elements, map.width, isInexact)
            : quantizeRowBy(type, elements, map.width,
                            given[given.size() == 1 ? 0 : size_t(head)],
                            isInexact);
    const bool isInexactRow = isInexact && row.hasQuotients;
    const bool isTiny = row.scale < smallestNormal(DType::F32) * 0x1p24L;
    auto magnitude = [&](long double value) {
      if (!isInexactRow)
        return -1.0L;
      return isTiny ? kUnknownMagnitude : std::fabs(value);
    };
    for (size_t d = 0; d < size_t(map.width); ++d) {
      quantized.values[first + d] = row.values[d];
      quantized.magnitude[first + d] = magnitude(row.values[d]);
    }
    if (!given.empty())
      continue;
    const int64_t sequence = slots[i] / map.tokens,
                  token = slots[i] % map.tokens;
    const size_t at =
        size_t((sequence * map.heads + head) * map.tokens + token);
    scales.values[at] = row.scale;
    scales.magnitude[at] = magnitude(row.scale);
  }
  store(cache, map, head, quantized, slots);
}

Caches append(const Caches &caches, const Array &newKeys,
              const Array &newValues, const AppendSpec &spec) {
  requireEmpty(checkAppend(caches, newKeys, newValues, spec));
  Caches result = caches;
  for (Array *cache :
       {&result.keys, &result.values, &result.keyScales, &result.valueScales})
    cache->magnitude.assign(cache->values.size(), -1.0L);
  const RowMap keys(newKeys, spec.rowLayout), values(newValues, spec.rowLayout);
  const RowMap keyCache(caches.keys, spec.cacheLayout);
  const RowMap valueCache(caches.values, spec.cacheLayout);
  std::optional<RotationTable> table;
  if (spec.keyRotation)
    table.emplace(*spec.keyRotation, spec.keyRotation->positions,
                  std::vector<int64_t>{int64_t(spec.slots.size())});
  for (int64_t head = 0; head < keys.heads; ++head) {
    Array rows = headRows(newKeys, keys, head);
    if (spec.keyNorm)
      normalize(rows, *spec.keyNorm);
    if (table)
      rows = rotateRows(rows, *table, 0);
    // Normed elements are computed, even outside of the rotated channels.
    for (size_t i = 0; spec.keyNorm && i < rows.values.size(); ++i)
      if (rows.magnitude[i] < 0)
        rows.magnitude[i] = std::fabs(rows.values[i]);
    Array valueRows = headRows(newValues, values, head);
    if (spec.quantized) {
      const bool isChanged = spec.keyNorm || spec.keyRotation;
      storeQuantized(result.keys, result.keyScales, keyCache, head, rows,
                     *spec.quantized, isChanged || spec.hasInexactKeys,
                     spec.slots, spec.givenKeyScales);
      storeQuantized(result.values, result.valueScales, valueCache, head,
                     valueRows, *spec.quantized, spec.hasInexactValues,
                     spec.slots, spec.givenValueScales);
      continue;
    }
    store(result.keys, keyCache, head, rows, spec.slots);
    store(result.values, valueCache, head, valueRows, spec.slots);
  }
  return result;
}

} // namespace posenc::reference
