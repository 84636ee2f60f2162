//===- Table.cpp - cosine and sine tables ---------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Table.h"
#include "Fatal.h"
#include "KnownTables.h"
#include "Parallel.h"
#include "posenc/Reference/Angle.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace posenc::reference {

std::string checkSinCos(const FrequencySpec &spec, const AxesSpec &axes,
                        const Positions &positions,
                        const std::vector<int64_t> &positionsShape) {
  if (std::string reason = check(spec, axes); !reason.empty())
    return reason;
  for (int64_t dim : positionsShape)
    if (dim < 0)
      return "a dimension of the positions is negative";
  int64_t expected = axes.numAxes() * numElements(positionsShape);
  if (int64_t(positions.size()) != expected)
    return "expected " + std::to_string(expected) + " positions, got " +
           std::to_string(positions.size());
  return {};
}

/// Returns for each row the first row with the same positions on all axes. The
/// rows of a batch often repeat, and an exact angle takes microseconds.
static std::vector<int64_t> firstEqualRows(const Positions &positions,
                                           int64_t rows, int64_t axes) {
  auto compare = [&](int64_t a, int64_t b) {
    for (int64_t axis = 0; axis < axes; ++axis) {
      long double p = positions[size_t(axis * rows + a)];
      long double q = positions[size_t(axis * rows + b)];
      // All NaNs are equal, and after the numbers.
      if (std::isnan(p) != std::isnan(q))
        return std::isnan(p) ? 1 : -1;
      if (!std::isnan(p) && p != q)
        return p < q ? -1 : 1;
    }
    return 0;
  };
  std::vector<int64_t> order(size_t(rows), 0);
  std::iota(order.begin(), order.end(), int64_t(0));
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    int sign = compare(a, b);
    return sign != 0 ? sign < 0 : a < b;
  });
  std::vector<int64_t> first(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    bool repeats = i > 0 && compare(order[i - 1], order[i]) == 0;
    first[size_t(order[i])] = repeats ? first[size_t(order[i - 1])] : order[i];
  }
  return first;
}

/// Returns the angle of a position and a frequency of f32, as transformers
/// computes it.
static long double roundAngle(long double position, const Real &frequency) {
  float angle = float(position) * float(frequency.toLongDouble());
  bool isExact = std::fabs(angle) < 0x1p63f;
  return isExact ? angle : std::numeric_limits<long double>::quiet_NaN();
}

static CosSinTable computeTable(const PairTable &pairs, const Real &scale,
                                const Positions &positions,
                                const std::vector<int64_t> &positionsShape) {
  CosSinTable table;
  table.cos.shape = positionsShape;
  table.cos.shape.push_back(pairs.size());
  table.sin.shape = table.cos.shape;
  auto &cosines = table.cos.values, &sines = table.sin.values;
  cosines.resize(size_t(numElements(table.cos.shape)));
  sines.resize(cosines.size());

  const int64_t rows = numElements(positionsShape);
  const std::vector<int64_t> first =
      firstEqualRows(positions, rows, pairs.numAxes());
  const int64_t width = pairs.size();
  const Real one(1);
  parallelFor(rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (first[size_t(row)] != row)
        continue;
      for (int64_t i = 0; i < width; ++i) {
        long double position = positions[size_t(pairs.axis(i) * rows + row)];
        const Real &frequency = pairs.frequency(i);
        CosSin element =
            pairs.roundsAngles()
                ? cosSin(roundAngle(position, frequency), one, scale)
                : cosSin(position, frequency, scale);
        cosines[size_t(row * width + i)] = element.cos;
        sines[size_t(row * width + i)] = element.sin;
      }
    }
  });
  for (int64_t row = 0; row < rows; ++row) {
    int64_t from = first[size_t(row)];
    if (from == row)
      continue;
    std::copy_n(&cosines[size_t(from * width)], width,
                &cosines[size_t(row * width)]);
    std::copy_n(&sines[size_t(from * width)], width,
                &sines[size_t(row * width)]);
  }
  return table;
}

CosSinTable scaledTable(const PairTable &pairs, const Real &scale,
                        const Positions &positions,
                        const std::vector<int64_t> &positionsShape) {
  // Never destroyed: threads may outlive static variables.
  static auto &known = *new KnownTables;
  TableKey key{pairs, scale, positions, positionsShape};
  if (std::optional<CosSinTable> table = known.find(key))
    return std::move(*table);
  CosSinTable table = computeTable(pairs, scale, positions, positionsShape);
  known.add(std::move(key), table);
  return table;
}

CosSinTable sincos(const FrequencySpec &spec, const AxesSpec &axes,
                   const Positions &positions,
                   const std::vector<int64_t> &positionsShape) {
  requireEmpty(checkSinCos(spec, axes, positions, positionsShape));
  PairTable pairs(spec, axes);
  return scaledTable(pairs, pairs.attention(), positions, positionsShape);
}

std::string checkSinusoidal(const FrequencySpec &spec, const AxesSpec &axes,
                            const Positions &positions,
                            const std::vector<int64_t> &positionsShape,
                            const SinusoidalOptions &options) {
  if (axes.kind != AxesKind::Single && axes.kind != AxesKind::Axial)
    return "the axes of a sinusoidal table must be axial";
  if (axes.kind != AxesKind::Single && options.paddingPosition)
    return "a row with several positions has no padding position";
  return checkSinCos(spec, axes, positions, positionsShape);
}

/// Copies a row of d/2 sines and cosines into `to`, one axis after the other.
static void orderRow(const long double *sines, const long double *cosines,
                     const std::vector<int64_t> &sections,
                     SinusoidalOrder order, long double *to) {
  for (int64_t pairs : sections) {
    for (int64_t i = 0; i < pairs; ++i) {
      int64_t sine = i, cosine = pairs + i;
      if (order == SinusoidalOrder::Interleaved) {
        sine = 2 * i;
        cosine = 2 * i + 1;
      } else if (order == SinusoidalOrder::CosSin) {
        std::swap(sine, cosine);
      }
      to[sine] = *sines++;
      to[cosine] = *cosines++;
    }
    to += 2 * pairs;
  }
}

Array sinusoidal(const FrequencySpec &spec, const AxesSpec &axes,
                 const Positions &positions,
                 const std::vector<int64_t> &positionsShape,
                 const SinusoidalOptions &options) {
  requireEmpty(checkSinusoidal(spec, axes, positions, positionsShape, options));
  const int64_t rows = numElements(positionsShape), pairs = spec.dim / 2;
  const int64_t width = spec.dim + (options.zeroPad ? 1 : 0);
  CosSinTable table = sincos(spec, axes, positions, positionsShape);
  std::vector<int64_t> sections{pairs};
  if (axes.kind == AxesKind::Axial)
    sections = axes.sections;
  Array result;
  result.shape = positionsShape;
  result.shape.push_back(width);
  result.values.assign(size_t(rows * width), 0.0L);
  // A negative magnitude requires equal bits.
  result.magnitude.assign(size_t(rows * width), -1.0L);
  for (int64_t row = 0; row < rows; ++row) {
    if (options.paddingPosition == positions[size_t(row)])
      continue;
    long double *to = &result.values[size_t(row * width)];
    orderRow(&table.sin.values[size_t(row * pairs)],
             &table.cos.values[size_t(row * pairs)], sections, options.order,
             to);
    for (int64_t i = 0; i < spec.dim; ++i)
      result.magnitude[size_t(row * width + i)] = std::fabs(to[i]);
  }
  return result;
}

Array sinusoidal(const FrequencySpec &spec, const Positions &positions,
                 SinusoidalOrder order) {
  SinusoidalOptions options;
  options.order = order;
  return sinusoidal(spec, {}, positions, {int64_t(positions.size())}, options);
}

} // namespace posenc::reference
