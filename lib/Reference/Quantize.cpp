//===- Quantize.cpp - quantized rows of KV caches -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Reference/Quantize.h"

#include "AttentionRows.h"
#include "Fatal.h"

#include <algorithm>
#include <cmath>

namespace posenc::reference {

long double quantizedLimit(DType type) { return largestFinite(type); }

/// Returns the full shape of the scales: [sequences x] heads x tokens.
static std::vector<int64_t> scaleShape(const Array &rows, TokenLayout layout) {
  RowMap map(rows, layout);
  std::vector<int64_t> shape{map.heads, map.tokens};
  if (rows.shape.size() == 4)
    shape.insert(shape.begin(), rows.shape[0]);
  return shape;
}

std::string checkScales(const Array &rows, TokenLayout layout,
                        const Array &scales) {
  std::vector<int64_t> shape = scaleShape(rows, layout);
  if (scales.shape.size() != shape.size())
    return "the rank of the scales must be one less than that of the rows";
  if (int64_t(scales.values.size()) != numElements(scales.shape))
    return "the scales do not fill their shape";
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (scales.shape[dim] != 1 && scales.shape[dim] != shape[dim])
      return "dimension " + std::to_string(dim) +
             " of the scales does not match the rows";
  return {};
}

Array scaleRows(const Array &rows, TokenLayout layout, const Array &scales) {
  requireEmpty(checkScales(rows, layout, scales));
  std::vector<int64_t> shape = scaleShape(rows, layout);
  const RowMap map(rows, layout);
  Array result{rows.shape, rows.values, {}};
  for (int64_t i = 0; i < numElements(shape); ++i) {
    std::vector<int64_t> index = unflatten(shape, i);
    int64_t at = 0;
    for (size_t dim = 0; dim < index.size(); ++dim)
      at = at * scales.shape[dim] + (scales.shape[dim] == 1 ? 0 : index[dim]);
    const int64_t sequence = index.size() == 3 ? index[0] : 0;
    const int64_t row = map.row(sequence, index.back(), index.end()[-2]);
    for (int64_t d = 0; d < map.width; ++d)
      result.values[size_t(row * map.width + d)] *= scales.values[size_t(at)];
  }
  return result;
}

QuantizedRow quantizeRow(DType type, const long double *row, int64_t width,
                         bool isInexact) {
  QuantizedRow result;
  result.values.assign(size_t(width), 0.0L);
  long double largest = 0;
  for (int64_t d = 0; d < width; ++d) {
    if (std::isnan(row[d]))
      largest = row[d];
    else if (!std::isnan(largest))
      largest = std::fmax(largest, std::fabs(row[d]));
  }
  const long double limit = quantizedLimit(type);
  auto toF32 = [&](long double value) {
    return isInexact ? value : roundTo(DType::F32, value);
  };
  result.scale = toF32(largest / limit);
  if (!(result.scale > 0) || !std::isfinite(result.scale))
    return result;
  result.hasQuotients = true;
  for (int64_t d = 0; d < width; ++d) {
    long double quotient = toF32(row[d] / result.scale);
    quotient = std::clamp(quotient, -limit, limit);
    result.values[size_t(d)] = isInexact ? quotient : roundTo(type, quotient);
  }
  return result;
}

QuantizedRow quantizeRowBy(DType type, const long double *row, int64_t width,
                           long double scale, bool isInexact) {
  QuantizedRow result;
  result.scale = scale;
  result.hasQuotients = true;
  const long double limit = quantizedLimit(type);
  for (int64_t d = 0; d < width; ++d) {
    long double quotient = row[d] / scale;
    if (!isInexact)
      quotient = roundTo(DType::F32, quotient);
    if (std::isnan(quotient))
      quotient = type == DType::I8 ? 0 : quotient;
    else
      quotient = std::clamp(quotient, -limit, limit);
    result.values.push_back(isInexact ? quotient : roundTo(type, quotient));
  }
  return result;
}

} // namespace posenc::reference
