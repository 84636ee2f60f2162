//===- Comparison.cpp - how far results are off -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"

#include "DType.h"
#include "posenc/Reference/Compare.h"
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

llvm::Expected<ReferenceValue>
mlir::posenc::convertToReference(const runtime::Array &array) {
  std::optional<DType> type = getOracleType(array.dtype());
  if (!type)
    return llvm::createStringError(llvm::Twine("the reference does not know ") +
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

//===----------------------------------------------------------------------===//
// Measure
//===----------------------------------------------------------------------===//

/// The largest magnitude of a row, for all of its elements. It is at least that
/// of each pair, wherever the pairs are.
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
                              runtime::Function function, size_t number) {
  if (oracle) {
    expected.limitUlp = oracle->limitUlp;
    expected.absoluteSlack = oracle->absoluteSlack;
    // Another shape is a mismatch, whatever the magnitudes.
    if (oracle->array.shape == expected.array.shape)
      expected.array.magnitude = oracle->array.magnitude;
    return;
  }
  // A compiled library does not say what its functions compute. One that reads
  // no numbers but positions makes tables; any other rotates.
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

/// The norm of the error over that of the reference. Lanes that are NaN in
/// both count as equal; any other difference of that kind is a mismatch.
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

bool mlir::posenc::compareResult(size_t number, const runtime::Array &result,
                                 const ReferenceValue &expected,
                                 const Limits &limits) {
  reference::CompareOptions options;
  options.absoluteSlack = expected.absoluteSlack;
  options.shape = result.shape();
  reference::Comparison found =
      reference::compare(expected.type, result.data(), expected.array, options);
  double ulp = found.mismatch ? HUGE_VAL : double(found.maxUlp);
  double absolute = found.mismatch ? HUGE_VAL : double(found.maxAbs);
  llvm::outs() << "result #" << number << ": max error "
               << llvm::format("%.2f ulp (abs %.1e) at [", ulp, absolute);
  llvm::interleave(found.index, llvm::outs(), ",");
  llvm::outs() << "]";
  double relative = 0;
  bool sameShape = expected.array.shape == result.shape();
  if (limits.maxRel) {
    relative = sameShape ? computeRelativeError(expected.type, result.data(),
                                                expected.array)
                         : HUGE_VAL;
    llvm::outs() << llvm::format(" rel %.1e", relative);
  }
  llvm::outs() << "\n";
  llvm::outs().flush();

  auto error = [&]() -> llvm::raw_ostream & {
    return llvm::errs() << "error: result #" << number << ": ";
  };
  double limitUlp = limits.maxUlp.value_or(expected.limitUlp);
  if (found.mismatch)
    error() << found.reason << "\n";
  else if (!found.within(limitUlp))
    error() << llvm::format("off by %.5g ulp; the limit is %g\n", ulp,
                            limitUlp);
  else if (limits.maxRel && !(relative <= *limits.maxRel))
    error() << llvm::format("the relative error is %.3g; the limit is %g\n",
                            relative, *limits.maxRel);
  else
    return true;
  return false;
}
