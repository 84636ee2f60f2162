//===- Rotate.cpp - rotation of channel pairs -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fatal.h"
#include "Parallel.h"
#include "Table.h"

#include <cmath>

namespace posenc::reference {

/// Checks the operand x of checkRotate() and checkRope(), given the number of
/// pairs.
static std::string checkOperand(const Array &x, int64_t pairs,
                                const RotateOptions &options) {
  const int64_t rank = int64_t(x.shape.size());
  if (rank == 0)
    return "a scalar has no pairs to rotate";
  for (int64_t dim : x.shape)
    if (dim < 0)
      return "a dimension of the operand is negative";
  if (int64_t(x.values.size()) != numElements(x.shape))
    return "the operand's values do not fill its shape";
  if (options.windowOffset < 0 ||
      options.windowOffset > x.shape.back() - 2 * pairs)
    return "the rotated channels exceed the last dimension";
  std::vector<bool> seen(size_t(rank), false);
  for (int64_t dim : options.positionDims) {
    if (dim < 0 || dim >= rank - 1)
      return "a position dimension is out of range";
    if (seen[size_t(dim)])
      return "a position dimension is named twice";
    seen[size_t(dim)] = true;
  }
  return {};
}

static int64_t countPairs(const Array &table, const RotateOptions &options) {
  return options.fullTables ? table.shape.back() / 2 : table.shape.back();
}

std::string checkRotate(const Array &x, const Array &cos, const Array &sin,
                        const RotateOptions &options) {
  if (cos.shape != sin.shape)
    return "the tables of cosines and sines differ in shape";
  if (cos.shape.size() != options.positionDims.size() + 1)
    return "the rank of the tables must be one more than the number of "
           "position "
           "dimensions";
  if (options.fullTables && cos.shape.back() % 2 != 0)
    return "the number of lanes of the tables is odd";
  if (std::string reason = checkOperand(x, countPairs(cos, options), options);
      !reason.empty())
    return reason;
  for (size_t k = 0; k < options.positionDims.size(); ++k)
    if (cos.shape[k] != x.shape[size_t(options.positionDims[k])])
      return "dimension " + std::to_string(k) +
             " of the tables does not match the operand's";
  if (int64_t(cos.values.size()) != numElements(cos.shape) ||
      cos.values.size() != sin.values.size())
    return "the tables' values do not fill their shape";
  return {};
}

/// Returns the stride in table rows of each dimension of x.
static std::vector<int64_t> tableStrides(const Array &x,
                                         const RotateOptions &options) {
  std::vector<int64_t> strides(x.shape.size(), 0);
  int64_t stride = 1;
  for (size_t k = options.positionDims.size(); k-- > 0;) {
    size_t dim = size_t(options.positionDims[k]);
    strides[dim] = stride;
    stride *= x.shape[dim];
  }
  return strides;
}

Array rotate(const Array &x, const Array &cos, const Array &sin,
             const RotateOptions &options) {
  requireEmpty(checkRotate(x, cos, sin, options));
  Array result;
  result.shape = x.shape;
  result.values = x.values;
  result.magnitude.assign(x.values.size(), -1.0L);
  const int64_t width = x.shape.back(), pairs = countPairs(cos, options),
                lanes = cos.shape.back();
  if (x.values.empty() || pairs == 0)
    return result;

  const int64_t step = options.interleaved ? 2 : 1;
  const int64_t partner = options.interleaved ? 1 : pairs;
  const std::vector<int64_t> strides = tableStrides(x, options);
  auto rotateRow = [&](int64_t row) {
    int64_t tableRow = 0, rest = row;
    for (size_t dim = x.shape.size() - 1; dim-- > 0;) {
      tableRow += rest % x.shape[dim] * strides[dim];
      rest /= x.shape[dim];
    }
    for (int64_t i = 0; i < pairs; ++i) {
      size_t a = size_t(row * width + options.windowOffset + i * step);
      size_t b = a + size_t(partner);
      // The elements of the first and of the second lane of the pair.
      size_t inA =
          size_t(tableRow * lanes + (options.fullTables ? i * step : i));
      size_t inB = options.fullTables ? inA + size_t(partner) : inA;
      long double u = x.values[a], v = x.values[b];
      auto set = [&](size_t at, size_t in, long double self, long double other,
                     bool negate) {
        long double c = cos.values[in], t = sin.values[in];
        result.values[at] = self * c + (negate ? -other : other) * t;
        // A long double has enough exponent bits for the square of any double.
        long double size = std::sqrt((u * u + v * v) * (c * c + t * t));
        result.magnitude[at] = std::fmax(std::fabs(result.values[at]), size);
      };
      set(a, inA, u, v, !options.inverse);
      set(b, inB, v, u, options.inverse);
    }
  };
  parallelFor(int64_t(x.values.size()) / width, 256,
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row)
                  rotateRow(row);
              });
  return result;
}

static std::vector<int64_t> positionsShape(const Array &x,
                                           const RotateOptions &options) {
  std::vector<int64_t> shape;
  for (int64_t dim : options.positionDims)
    shape.push_back(x.shape[size_t(dim)]);
  return shape;
}

std::string checkRope(const Array &x, const FrequencySpec &spec,
                      const AxesSpec &axes, const Positions &positions,
                      const RotateOptions &options) {
  if (std::string reason = check(spec, axes); !reason.empty())
    return reason;
  if (std::string reason = checkOperand(x, spec.dim / 2, options);
      !reason.empty())
    return reason;
  if (options.inverse && spec.attentionFactor == Real(0))
    return "a rotation with an attention factor of 0 has no inverse";
  return checkSinCos(spec, axes, positions, positionsShape(x, options));
}

static void multiplyByScale(CosSinTable &table, const PositionScale &scale,
                            bool inverse, const Positions &positions) {
  const size_t pairs = size_t(table.cos.shape.back());
  const bool divides = scale.reciprocal != inverse;
  for (size_t i = 0; i < pairs; ++i) {
    Real gamma(scale.gamma);
    Real zeta =
        (Real(double(i)) / Real(double(pairs)) + gamma) / (Real(1.0) + gamma);
    Real exponent = log(zeta) / Real(divides ? -scale.base : scale.base);
    for (size_t row = 0; row < positions.size(); ++row) {
      Real distance = Real(double(positions[row])) - Real(double(scale.origin));
      long double factor = exp(distance * exponent).toLongDouble();
      table.cos.values[row * pairs + i] *= factor;
      table.sin.values[row * pairs + i] *= factor;
    }
  }
}

Array rope(const Array &x, const FrequencySpec &spec, const AxesSpec &axes,
           const Positions &positions, const RotateOptions &options) {
  requireEmpty(checkRope(x, spec, axes, positions, options));
  PairTable pairs(spec, axes);
  // The inverse scale att / att^2 is simplified to 1 / att before rounding.
  Real scale =
      options.inverse ? Real(1) / pairs.attention() : pairs.attention();
  CosSinTable table =
      scaledTable(pairs, scale, positions, positionsShape(x, options));
  if (options.positionScale)
    multiplyByScale(table, *options.positionScale, options.inverse, positions);
  return rotate(x, table.cos, table.sin, options);
}

} // namespace posenc::reference
