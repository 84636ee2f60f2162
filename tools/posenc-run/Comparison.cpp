//===- Comparison.cpp - errors of results against the oracle --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"

#include "DType.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/Reference/Compare.h"
#include "posenc/Reference/CompareAttention.h"
#include "posenc/Support/Memory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir::posenc;
namespace reference = ::posenc::reference;
namespace runtime = ::posenc::runtime;
using reference::DType;
using reference::ResultKind;

/// Converts i1, whose bytes are true unless 0, and u8 to i32.
static runtime::Array widenBytes(const runtime::Array &array) {
  runtime::Array wide;
  std::string error;
  if (!runtime::Array::allocate(POSENC_I32, array.shape(), wide, error))
    llvm::report_bad_alloc_error(error.c_str());
  bool isBool = array.dtype() == POSENC_I1;
  for (size_t i = 0; i < array.numElements(); ++i) {
    uint8_t byte = array.dataAs<uint8_t>()[i];
    wide.dataAs<int32_t>()[i] = isBool ? byte != 0 : byte;
  }
  return wide;
}

/// The same for expected values. The oracle computes u8 as i8 of the same bits.
static ReferenceValue widenBytes(ReferenceValue value, posenc_dtype dtype) {
  value.type = DType::I32;
  for (long double &element : value.array.values)
    element = dtype == POSENC_I1 ? element != 0
              : element < 0      ? element + 256
                                 : element;
  return value;
}

llvm::Expected<ReferenceValue>
mlir::posenc::convertToReference(const runtime::Array &array) {
  if (array.dtype() == POSENC_I1)
    return convertToReference(widenBytes(array));
  std::optional<DType> type = getOracleType(array.dtype());
  if (!type)
    return llvm::createStringError(
        llvm::Twine("the reference does not support ") +
        posenc_dtype_name(array.dtype()));
  uint64_t bytes = array.numElements() * uint64_t(sizeof(long double));
  if (bytes > ::posenc::getAvailableMemory())
    return llvm::createStringError("the reference needs " +
                                   llvm::Twine(bytes >> 20) +
                                   " MiB of memory for a tensor");
  ReferenceValue value;
  value.type = *type;
  value.array = reference::fromBytes(*type, array.data(), array.shape());
  return value;
}

ReferenceValue mlir::posenc::convertToReference(int64_t scalar,
                                                posenc_dtype dtype) {
  ReferenceValue value;
  value.type = dtype == POSENC_I32 ? DType::I32 : DType::I64;
  value.array.values = {static_cast<long double>(scalar)};
  return value;
}

ReferenceValue mlir::posenc::convertToReference(double scalar,
                                                posenc_dtype dtype) {
  ReferenceValue value;
  value.type = dtype == POSENC_F32 ? DType::F32 : DType::F64;
  value.array.values = {reference::roundTo(value.type, scalar)};
  return value;
}

//===----------------------------------------------------------------------===//
// Limits of the error
//===----------------------------------------------------------------------===//

/// Whether a function of a compiled library looks like attention: it has one
/// result, and at least three tensor inputs of the same rank and type that are
/// at least as wide. Tables of a rotation are narrower than its result.
static bool looksLikeAttention(runtime::Function function) {
  if (function.numOutputs() != 1 || function.output(0).rank() < 3)
    return false;
  runtime::Argument result = function.output(0);
  int32_t last = result.rank() - 1;
  int numHeads = 0;
  for (size_t i = 0; i < function.numInputs(); ++i) {
    runtime::Argument input = function.input(i);
    numHeads += input.dtype() == result.dtype() &&
                input.rank() == result.rank() &&
                input.size(last) >= result.size(last);
  }
  return numHeads >= 3;
}

/// Sets the magnitude of every element to the largest magnitude of its row.
/// This is an upper bound of the magnitude of each rotated pair for every
/// pairing.
static void setRowMagnitudes(reference::Array &array) {
  array.magnitude.clear();
  int64_t width = array.shape.empty() ? 1 : array.shape.back();
  for (size_t row = 0; row < array.values.size(); row += width) {
    long double largest = 0;
    for (int64_t i = 0; i < width; ++i)
      largest = std::fmax(largest, std::fabs(array.values[row + i]));
    array.magnitude.insert(array.magnitude.end(), width, largest);
  }
}

void mlir::posenc::setMeasure(ReferenceValue &expected,
                              const ReferenceValue *oracle,
                              runtime::Function function) {
  if (oracle) {
    expected.limitUlp = oracle->limitUlp;
    expected.absoluteSlack = oracle->absoluteSlack;
    expected.isAttention = oracle->isAttention;
    // Results of another shape are a mismatch anyway.
    if (oracle->array.shape == expected.array.shape) {
      expected.array.magnitude = oracle->array.magnitude;
      expected.largest = oracle->largest;
    }
    return;
  }
  if (looksLikeAttention(function)) {
    expected.isAttention = true;
    setRowMagnitudes(expected.array);
    expected.largest.assign(expected.array.magnitude.begin(),
                            expected.array.magnitude.end());
    return;
  }
  // The metadata of a library does not tell what a function computes. Assumes
  // that functions with only integer inputs compute tables of cos and sin, and
  // that all others compute rotations.
  bool isTable = true;
  for (size_t i = 0; i < function.numInputs(); ++i) {
    std::optional<DType> type = getOracleType(function.input(i).dtype());
    isTable &= type && !reference::isFloat(*type);
  }
  ResultKind kind = isTable ? ResultKind::Table : ResultKind::Rotated;
  expected.limitUlp = double(
      reference::defaultLimitUlp(kind, expected.type, /*withAttention=*/true));
  if (isTable)
    expected.absoluteSlack = expected.type == DType::F64 ? 0x1p-60 : 0x1p-61;
  else
    setRowMagnitudes(expected.array);
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// Returns the norm of the error over that of the expected values. Elements
/// that are not finite are skipped: where only one of both is, the comparison
/// in units in the last place reports a mismatch.
static double computeRelativeError(DType type, const void *result,
                                   const reference::Array &expected) {
  long double error = 0, norm = 0;
  for (auto [i, value] : llvm::enumerate(expected.values)) {
    long double given =
        reference::decode(type, reference::loadBits(type, result, int64_t(i)));
    if (!std::isfinite(value) || !std::isfinite(given))
      continue;
    error += (given - value) * (given - value);
    norm += value * value;
  }
  if (error == 0)
    return 0;
  return norm == 0 ? HUGE_VAL : double(std::sqrt(error / norm));
}

namespace {
/// The errors of a result.
struct Measured {
  double ulp = 0, absolute = 0, relative = 0;
  /// For attention: the largest ratio of an element's error to its bound.
  double ratio = 0;
  /// The index of the element with the largest error or the mismatch.
  std::vector<int64_t> index;
  /// Describes a mismatch that is not an error of a number, such as another
  /// shape or an unexpected NaN; empty if there is none.
  std::string mismatch;

  void setMismatch(std::string reason, std::vector<int64_t> where) {
    ulp = absolute = HUGE_VAL;
    mismatch = std::move(reason);
    index = std::move(where);
  }
};
} // namespace

/// Measures a result of attention, whose errors are relative to sum p|v|.
static Measured measureAttention(const runtime::Array &result,
                                 const ReferenceValue &expected) {
  Measured measured;
  reference::AttentionResult attended;
  attended.output = expected.array;
  // Compares rows of one element each, as the result may have been sliced or
  // reshaped since.
  attended.output.shape = {int64_t(expected.array.values.size()), 1};
  attended.largestValue = expected.largest;
  bool sameShape = result.shape() == expected.array.shape;
  reference::AttentionComparison found;
  if (sameShape)
    found = reference::compareAttention(expected.type, result.data(), attended);
  measured.relative = found.relative;
  measured.ratio = found.maxRatio;
  auto unflatten = [&](const std::vector<int64_t> &index) {
    return index.empty() ? index
                         : reference::unflatten(expected.array.shape, index[0]);
  };
  if (!sameShape)
    measured.setMismatch("the shapes differ", {});
  else if (found.mismatch)
    measured.setMismatch(found.reason, unflatten(found.index));
  if (!measured.mismatch.empty())
    return measured;
  // Elements with a negative magnitude, as in rows that see no key, were found
  // to be equal above.
  for (long double &magnitude : attended.output.magnitude)
    magnitude = std::fmax(magnitude, 0.0L);
  reference::Comparison units =
      reference::compare(expected.type, result.data(), attended.output);
  measured.ulp = double(units.maxUlp);
  measured.absolute = double(units.maxAbs);
  measured.index = unflatten(units.index);
  return measured;
}

static Measured measure(const runtime::Array &result,
                        const ReferenceValue &expected, bool relative) {
  if (expected.isAttention)
    return measureAttention(result, expected);
  reference::CompareOptions options;
  options.absoluteSlack = expected.absoluteSlack;
  options.shape = result.shape();
  reference::Comparison found =
      reference::compare(expected.type, result.data(), expected.array, options);
  Measured measured;
  measured.ulp = double(found.maxUlp);
  measured.absolute = double(found.maxAbs);
  measured.index = found.index;
  if (found.mismatch)
    measured.setMismatch(found.reason, found.index);
  if (relative)
    measured.relative =
        expected.array.shape == result.shape()
            ? computeRelativeError(expected.type, result.data(), expected.array)
            : HUGE_VAL;
  return measured;
}

bool mlir::posenc::compareResult(size_t number, const runtime::Array &result,
                                 const ReferenceValue &expected,
                                 const Limits &limits, llvm::StringRef note) {
  if (result.dtype() == POSENC_I1 || result.dtype() == POSENC_U8)
    return compareResult(number, widenBytes(result),
                         widenBytes(expected, result.dtype()), limits, note);
  bool isAttention = expected.isAttention;
  std::optional<double> limitRel = limits.maxRel, limitUlp = limits.maxUlp;
  if (isAttention && !limitRel)
    limitRel = reference::defaultLimitRelative(expected.type);
  // Elements of attention have a bound of their own instead of a limit in ulp.
  if (!isAttention && !limitUlp)
    limitUlp = expected.limitUlp;
  Measured found = measure(result, expected, limitRel.has_value());
  llvm::outs() << "result #" << number << ": max error "
               << llvm::format("%.2f ulp (abs %.1e) at [", found.ulp,
                               found.absolute);
  llvm::interleave(found.index, llvm::outs(), ",");
  llvm::outs() << "]";
  if (limitRel)
    llvm::outs() << llvm::format(" rel %.1e", found.relative);
  llvm::outs() << "\n";
  llvm::outs().flush();

  auto error = [&]() -> llvm::raw_ostream & {
    return getErrorStream() << "error: result #" << number << note << ": ";
  };
  if (!found.mismatch.empty())
    error() << found.mismatch << "\n";
  else if (limitUlp && !(found.ulp <= *limitUlp))
    error() << llvm::format("off by %.5g ulp; the limit is %g\n", found.ulp,
                            *limitUlp);
  else if (!limitUlp && !(found.ratio <= 1))
    error() << llvm::format("an element is off by %.5g times its bound\n",
                            found.ratio);
  else if (limitRel && !(found.relative <= *limitRel))
    error() << llvm::format("the relative error is %.3g; the limit is %g\n",
                            found.relative, *limitRel);
  else
    return true;
  return false;
}
