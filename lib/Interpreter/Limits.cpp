//===- Limits.cpp - how far results may be off ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Limits.h"

#include "posenc/Reference/Compare.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using reference::DType;

int mlir::posenc::getPrecision(DType type) {
  switch (type) {
  case DType::F64:
    return 53;
  case DType::F32:
    return 24;
  case DType::F16:
    return 11;
  case DType::BF16:
    return 8;
  case DType::I64:
  case DType::I32:
    return 0;
  }
  return 0;
}

double mlir::posenc::getAngleSlack(ArrayRef<int64_t> positions) {
  double farthest = 0;
  for (int64_t position : positions)
    farthest = std::max(farthest, std::fabs(double(position)));
  return farthest > 0x1p31 ? farthest * 0x1p-94 : 0;
}

double mlir::posenc::getInheritedLimit(const ReferenceValue &operand,
                                       DType type) {
  // The operand's rounding may go the other way than the oracle's, a rotation
  // mixes two lanes, and its factor may move the result to where the unit is
  // half as large.
  if (operand.limitUlp == 0)
    return 0;
  return 3 * (operand.limitUlp + 0.5) *
         std::ldexp(1.0, getPrecision(type) - getPrecision(operand.type));
}

double mlir::posenc::getRowLimit(const ReferenceValue &rows, bool isNormed,
                                 ArrayRef<int64_t> positions) {
  DType type = rows.type;
  double limit = double(reference::defaultLimitUlp(
                     reference::ResultKind::Rotated, type, false)) +
                 getInheritedLimit(rows, type);
  // The unit of a lane is at least 2^-precision of what it is measured against.
  limit += std::ldexp(getAngleSlack(positions), getPrecision(type));
  // A sum of squares, a root, a division and a product, in the type of sums.
  if (isNormed)
    limit +=
        std::ldexp(8.0, getPrecision(type) - std::max(getPrecision(type), 24));
  return limit;
}
