//===- LinalgOps.cpp - reference evaluation of linalg.softmax -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"
#include "Limits.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::reference::DType;
using ::posenc::reference::numElements;

/// Returns the limit in ulp of a softmax over `size` elements: sums in f32 (f64
/// for f64), exponentials within 4 ulp, and one rounding to the type.
static double getSoftmaxLimit(DType type, int64_t size) {
  DType sums = type == DType::F64 ? DType::F64 : DType::F32;
  double ofSums = 16 + 2 * std::sqrt(static_cast<double>(size));
  if (type == sums)
    return ofSums;
  return 0.51 + std::ldexp(ofSums, getPrecision(type) - getPrecision(sums));
}

static LogicalResult evaluate(linalg::SoftmaxOp op, Evaluator &values) {
  const ReferenceValue &input = values.get(op.getInput());
  const ReferenceValue &exact = values.getExact(op.getInput());
  if (!input.initialized)
    return op.emitError("reads an uninitialized tensor");
  if (op->getNumResults() != 1)
    return op.emitError("the reference supports only tensors, not memrefs");
  if (!::posenc::reference::isFloat(input.type))
    return op.emitError() << "the reference does not support a softmax of "
                          << op.getInput().getType();
  const Shape &shape = input.array.shape;
  if (failed(checkShape(op, shape, op->getResult(0).getType())))
    return failure();
  if (values.getShape(op.getOutput()) != shape)
    return op.emitError("expected a destination with the shape of the input");
  int64_t size = shape[op.getDimension()], stride = 1;
  for (size_t dim = op.getDimension() + 1; dim < shape.size(); ++dim)
    stride *= shape[dim];

  int64_t count = numElements(shape);
  ReferenceValue result;
  result.type = input.type;
  result.array.shape = shape;
  result.array.values.resize(count);
  result.array.magnitude.resize(count);
  long double largestSize = 0;
  for (int64_t outer = 0; outer < count; outer += size * stride)
    for (int64_t first = outer; first < outer + stride; ++first) {
      auto at = [&](int64_t i) { return first + i * stride; };
      long double maximum = -HUGE_VALL, sum = 0;
      for (int64_t i = 0; i < size; ++i) {
        long double x = input.array.values[at(i)];
        // A NaN stays the maximum, so that all elements become NaN.
        if (!(x <= maximum))
          maximum = x;
        if (std::isnan(maximum))
          break;
      }
      for (int64_t i = 0; i < size; ++i)
        sum += std::exp(input.array.values[at(i)] - maximum);
      for (int64_t i = 0; i < size; ++i) {
        long double x = input.array.values[at(i)], below = x - maximum;
        long double value = std::exp(below) / sum;
        result.array.values[at(i)] = value;
        // The difference is rounded as well, with an error proportional to it.
        result.array.magnitude[at(i)] =
            std::isfinite(value) ? value * (1 + std::fabs(below) / 16) : -1.0L;
        if (std::isfinite(x))
          largestSize = std::fmax(largestSize, std::fabs(x));
        // The error of an input is in units in the last place of its magnitude.
        if (!exact.array.magnitude.empty())
          largestSize = std::fmax(largestSize, exact.array.magnitude[at(i)]);
      }
    }
  result.limitUlp = getSoftmaxLimit(input.type, size);
  // An absolute error of an input is a relative error of its exponential.
  result.limitUlp += 2 * static_cast<double>(largestSize) *
                     getInheritedLimit(input, input.type);
  values.set(op->getResult(0), std::move(result));
  return success();
}

std::optional<LogicalResult> mlir::posenc::evaluateLinalg(Operation *op,
                                                          Evaluator &values) {
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op))
    return evaluate(softmax, values);
  return std::nullopt;
}
