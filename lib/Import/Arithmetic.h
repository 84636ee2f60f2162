//===- Arithmetic.h - scalars and reductions of both imports ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IMPORT_ARITHMETIC_H
#define POSENC_LIB_IMPORT_ARITHMETIC_H

#include "Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

namespace mlir::posenc {

/// Creates one of two operations on numbers, by the type of the first.
template <typename FloatOp, typename IntOp>
Value createByType(ImplicitLocOpBuilder &b, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return FloatOp::create(b, x, y);
  return IntOp::create(b, x, y);
}

/// Returns the element of a result from those of inputs and the destination.
using ElementBody = function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;

/// Creates a linalg.generic and returns its result. Without `maps`, all are the
/// identity; without `loops`, all are parallel.
Value createGeneric(ImplicitLocOpBuilder &b, ValueRange inputs, Value init,
                    ArrayRef<AffineMap> maps,
                    ArrayRef<utils::IteratorType> loops, ElementBody body);

/// How a reduction combines two numbers.
enum class Combiner { Add, Mul, Max, Min, And, Or };

/// Returns the combination of two scalars. Maxima and minima of floats are NaN
/// if one of them is.
Value combine(ImplicitLocOpBuilder &b, Combiner combiner, Value x, Value y);

/// Returns the number that combined with another one gives the other.
TypedAttr getNeutral(Combiner combiner, Type type);

/// The loops of a reduction over some dimensions of a tensor.
struct ReductionLoops {
  /// Reduces the dimensions `dims`, which must be those of the shape.
  ReductionLoops(MLIRContext *context, ArrayRef<Size> shape,
                 ArrayRef<int64_t> dims);

  SmallVector<utils::IteratorType> kinds;
  /// The maps of the tensor and of the result.
  AffineMap all, kept;
  /// The shape of the result, which lacks the dimensions.
  SmallVector<Size> shape;
};

/// Returns an index that counts from the end if it is negative.
Value wrapIndex(ImplicitLocOpBuilder &b, Value index, Value size);

} // namespace mlir::posenc

#endif // POSENC_LIB_IMPORT_ARITHMETIC_H
