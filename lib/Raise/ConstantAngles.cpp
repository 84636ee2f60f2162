//===- ConstantAngles.cpp - frequencies of constant tables ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters fold tables of constant positions. Row 1 of such a table has the
// cosines and sines of the frequencies, which are thereby known up to a few
// units in the last place. The candidates are compared with all rows.
//
//===----------------------------------------------------------------------===//

#include "ConstantAngles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::posenc::raise;

/// Candidates are so many numbers of f32 on both sides of the estimate. The
/// errors of cos and sin of row 1 are 2 units in the last place at most.
static constexpr int kMaxDistance = 4;

std::optional<TableColumn> mlir::posenc::raise::getColumn(const Expr *element) {
  if (element->kind != Expr::Kind::Element || !element->type.isF32())
    return std::nullopt;
  auto constant = element->tensor.getDefiningOp<arith::ConstantOp>();
  auto elements =
      constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
  if (!elements || elements.isSplat())
    return std::nullopt;
  TableColumn column;
  int64_t offset = 0, stride = 0, numRows = 0;
  for (auto [index, size] :
       llvm::zip_equal(element->operands, elements.getType().getShape())) {
    offset *= size;
    stride *= size;
    if (std::optional<int64_t> number = index->getIndexConstant()) {
      if (*number < 0 || *number >= size)
        return std::nullopt;
      offset += *number;
      continue;
    }
    if (column.row)
      return std::nullopt;
    column.row = index;
    stride = 1;
    numRows = size;
  }
  if (!column.row)
    return std::nullopt;
  auto values = elements.getValues<float>();
  for (int64_t row = 0; row < numRows; ++row)
    column.values.push_back(values[offset + row * stride]);
  return column;
}

/// Returns the angle of a row as transformers computes it.
static float getAngle(size_t row, float frequency) {
  return static_cast<float>(row) * frequency;
}

std::optional<float>
mlir::posenc::raise::getAngleFrequency(const TableColumn &angles) {
  if (angles.values.size() < 2)
    return std::nullopt;
  float frequency = angles.values[1];
  for (auto [row, angle] : llvm::enumerate(angles.values))
    if (!(angle == getAngle(row, frequency)))
      return std::nullopt;
  return frequency;
}

/// Whether the number is within `units` units in the last place of `expected`.
static bool isNear(float number, double expected, double units) {
  double scale =
      std::max(std::abs(expected), double(std::numeric_limits<float>::min()));
  return std::abs(number - expected) <=
         units * std::ldexp(1.0, std::ilogb(scale) - 23);
}

/// Whether all rows have the cosines and sines of the frequency.
static bool hasFrequency(const TableColumn &cos, const TableColumn &sin,
                         double factor, float frequency) {
  double units = factor == 1 ? 1 : 2;
  for (size_t row = 0; row < cos.values.size(); ++row) {
    double angle = getAngle(row, frequency);
    if (!isNear(cos.values[row], factor * std::cos(angle), units) ||
        !isNear(sin.values[row], factor * std::sin(angle), units))
      return false;
  }
  return true;
}

static std::optional<FrequencyRange>
findFrequency(const TableColumn &cos, const TableColumn &sin, double factor) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  auto candidate =
      static_cast<float>(std::atan2(double(sin.values[1]), cos.values[1]));
  for (int step = 0; step < kMaxDistance; ++step)
    candidate = std::nextafter(candidate, -infinity);
  std::optional<FrequencyRange> range;
  for (int step = 0; step <= 2 * kMaxDistance; ++step) {
    if (hasFrequency(cos, sin, factor, candidate)) {
      if (!range)
        range = {candidate, candidate};
      range->max = candidate;
    } else if (range) {
      break;
    }
    candidate = std::nextafter(candidate, infinity);
  }
  return range;
}

std::optional<SmallVector<FrequencyRange>>
mlir::posenc::raise::getTableFrequencies(ArrayRef<TableColumn> cos,
                                         ArrayRef<TableColumn> sin,
                                         double &factor, std::string &reason) {
  auto miss = [&](const Twine &why) {
    reason = why.str();
    return std::nullopt;
  };
  if (cos.front().values.size() < 2)
    return miss("a table of one row has no frequencies");
  factor = cos.front().values.front();
  if (!(factor > 0) || !std::isfinite(factor))
    return miss("row 0 of the tables is not that of position 0");
  SmallVector<FrequencyRange> frequencies;
  for (auto [lane, c, s] : llvm::enumerate(cos, sin)) {
    if (c.row != s.row || c.values.size() != s.values.size())
      return miss("the tables are read at different rows");
    if (c.values.front() != factor || s.values.front() != 0)
      return miss("row 0 of the tables is not that of position 0");
    std::optional<FrequencyRange> frequency = findFrequency(c, s, factor);
    if (!frequency)
      return miss("no frequency has the cosines and sines of lane " +
                  Twine(lane));
    frequencies.push_back(*frequency);
  }
  return frequencies;
}
