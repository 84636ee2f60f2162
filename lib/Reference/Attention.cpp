//===- Attention.cpp - attention on plain tensors -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionRows.h"
#include "Fatal.h"
#include "Parallel.h"

#include <cmath>
#include <limits>

namespace posenc::reference {

static constexpr double infinity = std::numeric_limits<double>::infinity();

static std::vector<double> toDouble(const Array &rows) {
  return {rows.values.begin(), rows.values.end()};
}

/// Returns the dot product. Eight partial sums hide the latency of additions.
static double dot(const double *a, const double *b, int64_t width) {
  constexpr int64_t lanes = 8;
  double sums[lanes] = {};
  int64_t d = 0;
  for (; d + lanes <= width; d += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane)
      sums[lane] += a[d + lane] * b[d + lane];
  double sum = 0;
  for (; d < width; ++d)
    sum += a[d] * b[d];
  for (double lane : sums)
    sum += lane;
  return sum;
}

namespace {
/// The attention of one query head of one sequence.
struct Head {
  const AttentionSpec &spec;
  double scale = 1;
  int64_t sequence = 0, head = 0;
  int64_t queries = 0, keys = 0;
  int64_t width = 0, valueWidth = 0;
  std::vector<double> q, k, v; ///< Rows; q and k are normed and rotated.

  explicit Head(const AttentionSpec &spec) : spec(spec) {}

  int64_t position(int64_t query) const {
    return query + keys - queries - spec.trailingQueries;
  }
  bool sees(int64_t query, int64_t key) const;
  double score(int64_t query, int64_t key) const;
  /// Computes one row of the output and its magnitudes, and returns the
  /// logarithm of the softmax denominator.
  double attend(int64_t query, long double *output,
                long double *magnitude) const;
};
} // namespace

/// Returns an element of the mask, whose missing dimensions and dimensions of
/// size 1 are broadcast.
static long double maskAt(const Array &mask, int64_t sequence, int64_t head,
                          int64_t query, int64_t key) {
  const int64_t index[] = {sequence, head, query, key};
  const size_t missing = 4 - mask.shape.size();
  int64_t flat = 0;
  for (size_t i = 0; i < mask.shape.size(); ++i)
    flat = flat * mask.shape[i] + (mask.shape[i] == 1 ? 0 : index[i + missing]);
  return mask.values[size_t(flat)];
}

bool Head::sees(int64_t query, int64_t key) const {
  const int64_t position = this->position(query);
  if (spec.causal && key > position)
    return false;
  // Compares relative positions: position - left could overflow.
  if (spec.left && position - key > *spec.left)
    return false;
  if (spec.right && key - position > *spec.right)
    return false;
  if (spec.mask) {
    long double mask = maskAt(spec.mask->array, sequence, head, query, key);
    if (mask == (spec.mask->isBoolean ? 0 : -infinity))
      return false;
  }
  return !spec.sees || spec.sees(sequence, head, position, key);
}

double Head::score(int64_t query, int64_t key) const {
  double score =
      scale * dot(q.data() + query * width, k.data() + key * width, width);
  if (spec.score)
    score = spec.score(score, sequence, head, position(query), key);
  if (spec.mask && !spec.mask->isBoolean)
    score += double(maskAt(spec.mask->array, sequence, head, query, key));
  return score;
}

double Head::attend(int64_t query, long double *output,
                    long double *magnitude) const {
  // A key with a score of -infinity is masked, so its value is not read. A key
  // with a NaN score is not masked.
  std::vector<double> scores(size_t(keys), -infinity);
  double sink = spec.sinks.empty() ? -infinity : spec.sinks[size_t(head)];
  double max = sink;
  bool any = false;
  for (int64_t key = 0; key < keys; ++key) {
    if (!sees(query, key))
      continue;
    double score = scores[size_t(key)] = this->score(query, key);
    any |= score != -infinity;
    if (score > max)
      max = score;
  }
  if (!any) {
    std::fill_n(output, valueWidth, 0.0L);
    std::fill_n(magnitude, valueWidth, -1.0L);
    return sink;
  }

  double denominator = sink == -infinity ? 0 : std::exp(sink - max);
  std::vector<double> acc(size_t(valueWidth), 0), absAcc(size_t(valueWidth), 0);
  for (int64_t key = 0; key < keys; ++key) {
    if (scores[size_t(key)] == -infinity)
      continue;
    double weight = std::exp(scores[size_t(key)] - max);
    denominator += weight;
    const double *value = v.data() + key * valueWidth;
    for (int64_t d = 0; d < valueWidth; ++d) {
      acc[size_t(d)] += weight * value[d];
      absAcc[size_t(d)] += weight * std::fabs(value[d]);
    }
  }
  for (int64_t d = 0; d < valueWidth; ++d) {
    output[d] = acc[size_t(d)] / denominator;
    magnitude[d] = absAcc[size_t(d)] / denominator;
  }
  return max + std::log(denominator);
}

static double largestFinite(const std::vector<double> &values) {
  double largest = 0;
  for (double value : values)
    if (std::isfinite(value))
      largest = std::fmax(largest, std::fabs(value));
  return largest;
}

static std::optional<RotationTable>
makeTable(const std::optional<Rotation> &rotation, const RowMap &rows,
          const std::vector<int64_t> &lengths,
          const std::vector<int64_t> &first) {
  if (!rotation)
    return std::nullopt;
  return RotationTable(
      *rotation, tokenPositions(*rotation, rows, lengths, first), lengths);
}

static std::vector<double> loadHead(const Array &x, const RowMap &rows,
                                    int64_t sequence, int64_t head,
                                    int64_t length,
                                    const std::optional<RmsNorm> &norm,
                                    const std::optional<RotationTable> &table) {
  Array result = gatherRows(x, rows, sequence, head, length);
  if (norm && int64_t(norm->weight.size()) != rows.width)
    normalizeHeads(result, x, rows, sequence, head, *norm);
  else if (norm)
    normalize(result, *norm);
  return toDouble(table ? rotateRows(result, *table, sequence) : result);
}

AttentionResult attention(const Array &queries, const Array &keys,
                          const Array &values, const AttentionSpec &spec) {
  requireEmpty(checkAttention(queries, keys, values, spec));
  const Sequences sequences(queries, keys, values, spec);
  const RowMap &q = sequences.queries, &k = sequences.keys;
  const RowMap &v = sequences.values;
  AttentionResult result;
  result.logSumExp.shape.assign(queries.shape.begin(), queries.shape.end() - 1);
  result.output.shape = result.logSumExp.shape;
  result.output.shape.push_back(v.width);
  // Rows outside of all ragged sequences keep the result of rows without keys.
  const size_t rows = size_t(numElements(result.logSumExp.shape));
  result.logSumExp.values.assign(rows, -infinity);
  for (size_t row = 0; row < rows && !spec.sinks.empty(); ++row) {
    size_t head = q.tokenMajor ? row : row / size_t(q.tokens);
    result.logSumExp.values[row] = spec.sinks[head % size_t(q.heads)];
  }
  result.largestValue.assign(rows, 0);
  result.output.values.assign(rows * size_t(v.width), 0);
  result.output.magnitude.assign(rows * size_t(v.width), -1);

  std::vector<int64_t> first;
  for (int64_t b = 0; b < sequences.count; ++b)
    first.push_back(sequences.keyLengths[size_t(b)] -
                    sequences.queryLengths[size_t(b)]);
  const std::optional<RotationTable> queryTable =
      makeTable(spec.queryRotation, q, sequences.queryLengths, first);
  const std::optional<RotationTable> keyTable =
      makeTable(spec.keyRotation, k, sequences.keyLengths,
                std::vector<int64_t>(first.size(), 0));

  Head head(spec);
  head.scale = spec.scale.value_or(1 / std::sqrt(double(q.width)));
  head.width = q.width;
  head.valueWidth = v.width;
  for (int64_t b = 0; b < sequences.count; ++b) {
    head.sequence = b;
    head.queries = sequences.queryLengths[size_t(b)];
    head.keys = sequences.keyLengths[size_t(b)];
    for (int64_t h = 0; h < q.heads; ++h) {
      const int64_t groupSize = q.heads / k.heads;
      if (h % groupSize == 0) {
        const int64_t keyHead = h / groupSize;
        head.k =
            loadHead(keys, k, b, keyHead, head.keys, spec.keyNorm, keyTable);
        head.v = toDouble(gatherRows(values, v, b, keyHead, head.keys));
      }
      head.head = h;
      head.q =
          loadHead(queries, q, b, h, head.queries, spec.queryNorm, queryTable);
      const double largest = largestFinite(head.v);
      parallelFor(head.queries, 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          size_t row = size_t(q.row(b, i, h));
          size_t at = row * size_t(v.width);
          result.largestValue[row] = largest;
          result.logSumExp.values[row] =
              head.attend(i, result.output.values.data() + at,
                          result.output.magnitude.data() + at);
        }
      });
    }
  }
  return result;
}

} // namespace posenc::reference
