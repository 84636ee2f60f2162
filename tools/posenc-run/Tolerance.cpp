//===- Tolerance.cpp - comparison by --atol and --rtol --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For results of other systems: their rounding errors beside zero are many
// units in the last place.
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"

#include "posenc/Driver/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir::posenc;
namespace reference = ::posenc::reference;

namespace {
/// The error of an element, absolute and as a multiple of its tolerance.
struct ElementError {
  long double absolute = 0, ratio = 0;
};
} // namespace

static ElementError measure(long double value, long double expected,
                            const Tolerance &tolerance) {
  // Equal infinities differ by NaN.
  if (value == expected || (std::isnan(value) && std::isnan(expected)))
    return {};
  if (!std::isfinite(value) || !std::isfinite(expected))
    return {HUGE_VALL, HUGE_VALL};
  long double absolute = std::fabs(value - expected);
  return {absolute, absolute / (tolerance.absolute +
                                tolerance.relative * std::fabs(expected))};
}

bool mlir::posenc::compareWithTolerance(size_t number,
                                        const ::posenc::runtime::Array &result,
                                        const ReferenceValue &expected,
                                        const Tolerance &tolerance,
                                        llvm::StringRef note) {
  auto error = [&]() -> llvm::raw_ostream & {
    return getErrorStream() << "error: result #" << number << note << ": ";
  };
  bool isU8 = result.dtype() == POSENC_U8;
  auto load = [&](size_t i) -> long double {
    if (result.dtype() == POSENC_I1)
      return result.dataAs<uint8_t>()[i] != 0;
    if (isU8)
      return result.dataAs<uint8_t>()[i];
    return reference::decode(
        expected.type,
        reference::loadBits(expected.type, result.data(), int64_t(i)));
  };
  std::vector<long double> wanted = expected.array.values;
  // Expected values of u8 are i8 of the same bits.
  if (isU8)
    for (long double &value : wanted)
      value += value < 0 ? 256 : 0;
  bool sameShape = result.shape() == expected.array.shape;
  size_t worst = 0, numWrong = 0;
  ElementError largest;
  if (!sameShape)
    largest = {HUGE_VALL, HUGE_VALL};
  else
    for (size_t i = 0; i < wanted.size(); ++i) {
      ElementError found = measure(load(i), wanted[i], tolerance);
      numWrong += !(found.ratio <= 1);
      if (found.ratio > largest.ratio) {
        largest = found;
        worst = i;
      }
    }
  llvm::outs() << "result #" << number << ": max error "
               << llvm::format("%.2f of the tolerance (abs %.1e) at [",
                               double(largest.ratio), double(largest.absolute));
  if (sameShape && !wanted.empty())
    llvm::interleave(reference::unflatten(expected.array.shape, worst),
                     llvm::outs(), ",");
  llvm::outs() << "]\n";
  llvm::outs().flush();

  int digits = expected.type == reference::DType::F64 ? 17 : 9;
  if (!sameShape)
    error() << "the shapes differ\n";
  else if (numWrong)
    error() << llvm::format(
        "expected %.*g, got %.*g; %zu of %zu elements are beyond the tolerance "
        "%g + %g|y|\n",
        digits, double(wanted[worst]), digits, double(load(worst)), numWrong,
        wanted.size(), tolerance.absolute, tolerance.relative);
  return sameShape && !numWrong;
}
