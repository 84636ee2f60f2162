//===- TableErrors.cpp - errors of tables of all positions ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TableErrors.h"

#include "posenc/Reference/Angle.h"
#include "posenc/Reference/Axes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace posenc;
using namespace posenc::test;
using reference::Real;

/// The radians of 2^-128 of a turn.
static constexpr long double kTurn =
    6.283185307179586476925286766559005768L * 0x1p-128L;

/// Returns a frequency in radians as 2^-128 of a turn, without whole turns.
static unsigned __int128 toTurns(const Real &frequency) {
  Real turns = frequency;
  mpfr_t pi;
  mpfr_init2(pi, Real::kPrecision);
  mpfr_const_pi(pi, MPFR_RNDN);
  mpfr_div(turns.get(), turns.get(), pi, MPFR_RNDN);
  mpfr_clear(pi);
  mpfr_div_2ui(turns.get(), turns.get(), 1, MPFR_RNDN);
  mpfr_frac(turns.get(), turns.get(), MPFR_RNDN);
  mpfr_mul_2ui(turns.get(), turns.get(), 128, MPFR_RNDN);
  mpfr_round(turns.get(), turns.get());
  // Digits of 2^32, from the highest.
  unsigned __int128 result = 0;
  for (int digit = 3; digit >= 0; --digit) {
    Real high;
    mpfr_div_2ui(high.get(), turns.get(), 32 * digit, MPFR_RNDN);
    unsigned long value = mpfr_get_ui(high.get(), MPFR_RNDZ);
    result = result << 32 | value;
    mpfr_set_ui(high.get(), value, MPFR_RNDN);
    mpfr_mul_2ui(high.get(), high.get(), 32 * digit, MPFR_RNDN);
    mpfr_sub(turns.get(), turns.get(), high.get(), MPFR_RNDN);
  }
  return result;
}

/// Returns the distance in units in the last place of f32, infinite for NaN.
/// There are a billion of them, so this computes with bits.
static double measure(double element, double exact, ErrorUnit unit) {
  if (!std::isfinite(element))
    return HUGE_VAL;
  if (unit == ErrorUnit::Pair)
    return std::fabs(element - exact) * 0x1p23;
  uint64_t bits;
  std::memcpy(&bits, &exact, sizeof bits);
  constexpr uint64_t kBias = 1023;
  uint64_t exponent = std::max(bits >> 52 & 0x7ff, kBias - 126);
  uint64_t scaleBits = (kBias + 23 + kBias - exponent) << 52;
  double scale;
  std::memcpy(&scale, &scaleBits, sizeof scale);
  return std::fabs(element - exact) * scale;
}

TableErrors::TableErrors(const reference::FrequencySpec &spec)
    : roundsAngles(spec.roundsAngles),
      factor(static_cast<double>(spec.attentionFactor.toLongDouble())),
      exactFactor(spec.attentionFactor) {
  reference::PairTable table(spec, {});
  for (int64_t i = 0; i < table.size(); ++i)
    pairs.push_back({toTurns(table.frequency(i)),
                     static_cast<float>(table.frequency(i).toLongDouble()),
                     table.frequency(i)});
}

TableErrors::Exact TableErrors::evaluate(const Pair &pair,
                                         int64_t position) const {
  if (roundsAngles) {
    double angle = static_cast<float>(position) * pair.rounded;
    return {factor * std::cos(angle), factor * std::sin(angle)};
  }
  unsigned __int128 phase =
      pair.turns * static_cast<unsigned __int128>(position);
  constexpr unsigned __int128 kEighth = static_cast<unsigned __int128>(1)
                                        << 125;
  auto quarter = static_cast<unsigned>((phase + kEighth) >> 126);
  auto rest = static_cast<__int128>(
      phase - (static_cast<unsigned __int128>(quarter) << 126));
  long double angle = static_cast<long double>(rest) * kTurn;
  auto high = static_cast<double>(angle);
  auto low = static_cast<double>(angle - high);
  double cosHigh = std::cos(high), sinHigh = std::sin(high);
  double cos = factor * (cosHigh - low * sinHigh);
  double sin = factor * (sinHigh + low * cosHigh);
  switch (quarter) {
  case 0:
    return {cos, sin};
  case 1:
    return {-sin, cos};
  case 2:
    return {-cos, -sin};
  default:
    return {sin, -cos};
  }
}

TableErrors::Exact TableErrors::evaluateByMpfr(const Pair &pair,
                                               int64_t position) const {
  reference::CosSin exact =
      roundsAngles
          ? reference::cosSin(1,
                              Real(static_cast<double>(
                                  static_cast<float>(position) * pair.rounded)),
                              exactFactor)
          : reference::cosSin(position, pair.frequency, exactFactor);
  return {static_cast<double>(exact.cos), static_cast<double>(exact.sin)};
}

TableError TableErrors::findLargest(int64_t first, int64_t count,
                                    const float *cos, const float *sin,
                                    ErrorUnit unit) const {
  TableError largest;
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t i = 0; i < numPairs(); ++i) {
      Exact exact = evaluate(pairs[i], first + row);
      double ofCos = measure(cos[row * numPairs() + i], exact.cos, unit);
      double ofSin = measure(sin[row * numPairs() + i], exact.sin, unit);
      if (std::max(ofCos, ofSin) > largest.ulp)
        largest = {std::max(ofCos, ofSin), first + row, i, ofSin > ofCos};
    }
  }
  return largest;
}

double TableErrors::measureByMpfr(const TableError &where, float element,
                                  ErrorUnit unit) const {
  Exact exact = evaluateByMpfr(pairs[where.pair], where.position);
  return measure(element, where.isSine ? exact.sin : exact.cos, unit);
}

double
TableErrors::compareWithMpfr(const std::vector<int64_t> &positions) const {
  double largest = 0;
  for (int64_t position : positions) {
    for (const Pair &pair : pairs) {
      Exact found = evaluate(pair, position);
      Exact exact = evaluateByMpfr(pair, position);
      largest =
          std::max({largest, measure(found.cos, exact.cos, ErrorUnit::Element),
                    measure(found.sin, exact.sin, ErrorUnit::Element)});
    }
  }
  return largest;
}
