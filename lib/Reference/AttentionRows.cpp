//===- AttentionRows.cpp - rows of attention operands ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionRows.h"
#include "Table.h"

#include <cassert>
#include <cmath>

namespace posenc::reference {

RowMap::RowMap(const Array &array, TokenLayout layout)
    : tokenMajor(layout == TokenLayout::TokenMajor) {
  const size_t rank = array.shape.size();
  assert((rank == 3 || rank == 4) && "rows of heads and tokens");
  heads = array.shape[rank - (tokenMajor ? 2 : 3)];
  tokens = array.shape[rank - (tokenMajor ? 3 : 2)];
  width = array.shape[rank - 1];
}

int64_t RowMap::row(int64_t sequence, int64_t token, int64_t head) const {
  if (starts) {
    token += (*starts)[size_t(sequence)];
    sequence = 0;
  } else if (blocks) {
    int64_t block = sequence * blocks->blocks + token / tokens;
    sequence = blocks->pages[size_t(block)];
    token %= tokens;
  }
  return tokenMajor ? (sequence * tokens + token) * heads + head
                    : (sequence * heads + head) * tokens + token;
}

static std::vector<int64_t> differences(const std::vector<int64_t> &starts) {
  std::vector<int64_t> lengths;
  for (size_t i = 1; i < starts.size(); ++i)
    lengths.push_back(starts[i] - starts[i - 1]);
  return lengths;
}

Sequences::Sequences(const Array &queries, const Array &keys,
                     const Array &values, const AttentionSpec &spec)
    : queries(queries, spec.queryLayout), keys(keys, spec.keyLayout),
      values(values, spec.keyLayout) {
  if (spec.queryStarts.empty()) {
    count = queries.shape[0];
    queryLengths.assign(size_t(count), this->queries.tokens);
  } else {
    this->queries.starts = &spec.queryStarts;
    queryLengths = differences(spec.queryStarts);
    count = int64_t(queryLengths.size());
  }
  if (!spec.keyStarts.empty()) {
    this->keys.starts = this->values.starts = &spec.keyStarts;
    keyLengths = differences(spec.keyStarts);
    return;
  }
  if (spec.blockTable)
    this->keys.blocks = this->values.blocks = &*spec.blockTable;
  keyLengths = spec.keyLengths;
  if (keyLengths.empty())
    keyLengths.assign(size_t(count), this->keys.tokens);
}

Positions tokenPositions(const Rotation &rotation, const RowMap &rows,
                         const std::vector<int64_t> &lengths,
                         const std::vector<int64_t> &first) {
  const int64_t sequences = int64_t(lengths.size());
  const int64_t axes = rotation.axes.numAxes();
  int64_t tokens = rows.tokens;
  if (rows.blocks)
    tokens *= rows.blocks->blocks;
  const int64_t perAxis = int64_t(rotation.positions.size()) / axes;
  const bool shared = perAxis == tokens;
  Positions result;
  for (int64_t axis = 0; axis < axes; ++axis)
    for (int64_t b = 0; b < sequences; ++b)
      for (int64_t t = 0; t < lengths[size_t(b)]; ++t) {
        if (rotation.positions.empty()) {
          result.push_back(first[size_t(b)] + t);
          continue;
        }
        int64_t at = rows.starts ? (*rows.starts)[size_t(b)] + t
                     : shared    ? t
                                 : b * tokens + t;
        result.push_back(rotation.positions[size_t(axis * perAxis + at)]);
      }
  return result;
}

RotationTable::RotationTable(const Rotation &rotation,
                             const Positions &positions,
                             const std::vector<int64_t> &lengths) {
  int64_t rows = 0;
  for (int64_t length : lengths) {
    firstRow.push_back(rows);
    rows += length;
  }
  PairTable pairs(rotation.frequencies, rotation.axes);
  Real scale =
      rotation.inverse ? Real(1) / pairs.attention() : pairs.attention();
  table = scaledTable(pairs, scale, positions, {rows});
  options.interleaved = rotation.interleaved;
  options.windowOffset = rotation.windowOffset;
  options.inverse = rotation.inverse;
  options.positionDims = {0};
}

void normalize(Array &rows, const RmsNorm &norm) {
  const size_t width = norm.weight.size();
  for (size_t row = 0; row < rows.values.size(); row += width) {
    long double squares = 0;
    for (size_t d = 0; d < width; ++d)
      squares += rows.values[row + d] * rows.values[row + d];
    long double root = std::sqrt(squares / (long double)(width) + norm.epsilon);
    for (size_t d = 0; d < width; ++d)
      rows.values[row + d] *= norm.weight[d] / root;
  }
}

void normalizeHeads(Array &result, const Array &x, const RowMap &rows,
                    int64_t sequence, int64_t head, const RmsNorm &norm) {
  const int64_t width = rows.width;
  for (int64_t token = 0; token < result.shape[0]; ++token) {
    long double squares = 0;
    for (int64_t h = 0; h < rows.heads; ++h) {
      auto from = x.values.begin() + rows.row(sequence, token, h) * width;
      for (int64_t d = 0; d < width; ++d)
        squares += from[d] * from[d];
    }
    long double count = (long double)(rows.heads * width);
    long double root = std::sqrt(squares / count + norm.epsilon);
    for (int64_t d = 0; d < width; ++d)
      result.values[size_t(token * width + d)] *=
          norm.weight[size_t(head * width + d)] / root;
  }
}

static Array rowsOf(const Array &table, int64_t begin, int64_t count) {
  const int64_t width = table.shape[1];
  assert(begin >= 0 && begin + count <= table.shape[0] &&
         "the table has no such rows");
  auto from = table.values.begin() + begin * width;
  return {{count, width}, {from, from + count * width}, {}};
}

Array rotateRows(const Array &x, const RotationTable &table, int64_t sequence) {
  int64_t begin = table.firstRow[size_t(sequence)], count = x.shape[0];
  return rotate(x, rowsOf(table.table.cos, begin, count),
                rowsOf(table.table.sin, begin, count), table.options);
}

Array gatherRows(const Array &x, const RowMap &rows, int64_t sequence,
                 int64_t head, int64_t length) {
  Array result;
  result.shape = {length, rows.width};
  result.values.reserve(size_t(length * rows.width));
  for (int64_t token = 0; token < length; ++token) {
    auto from = x.values.begin() + rows.row(sequence, token, head) * rows.width;
    result.values.insert(result.values.end(), from, from + rows.width);
  }
  return result;
}

std::string checkRows(int64_t width, int64_t heads,
                      const std::optional<RmsNorm> &norm,
                      const std::optional<Rotation> &rotation) {
  if (norm && int64_t(norm->weight.size()) != width &&
      int64_t(norm->weight.size()) != heads * width)
    return "expected one norm weight per channel, of one head or of all heads";
  if (norm && !(std::isfinite(norm->epsilon) && norm->epsilon >= 0))
    return "the epsilon of a norm must be finite and not negative";
  if (!rotation)
    return {};
  RotateOptions options;
  options.windowOffset = rotation->windowOffset;
  options.inverse = rotation->inverse;
  options.positionDims = {0};
  // An operand without rows checks the channels only.
  return checkRope({{0, width}, {}, {}}, rotation->frequencies, rotation->axes,
                   {}, options);
}

} // namespace posenc::reference
