//===- Ops.h - emission of tensor operations --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions that build the operators of a node. Those that return FailureOr
// have emitted a diagnostic at the node if they fail.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IMPORT_ONNX_OPS_H
#define POSENC_LIB_IMPORT_ONNX_OPS_H

#include "../Arithmetic.h"
#include "Importer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::posenc::onnx {

/// Returns a constant, whose elements are those of the attribute unless the
/// storage type of `element` is.
Tensor createConstant(DenseElementsAttr attr, Type element = Type());
/// The same for a constant whose elements are not known here.
Tensor createWeights(DenseResourceElementsAttr attr, Type element = Type());
/// Transposes weights, into memory that the system can write to a file.
DenseResourceElementsAttr transposeWeights(DenseResourceElementsAttr attr,
                                           RankedTensorType type,
                                           ArrayRef<int64_t> permutation);
/// Returns a tensor with the value, whose type is changed by tensor.cast to
/// that of the shape.
Tensor createTensor(NodeImporter &node, Value value, ArrayRef<Size> shape);
/// Returns a tensor of integers that follow from sizes; rank 0 or 1.
Tensor createElements(Type element, ArrayRef<Size> elements, int64_t rank);
/// The same for the results of arithmetic. Constants wrap around in the type.
/// Other results are assumed to fit in it, which entry points check for types
/// of 32 bits. Returns nullopt if that is not plausible, or the type is
/// narrower.
std::optional<Tensor> createResults(NodeImporter &node, Type element,
                                    ArrayRef<Size> elements, int64_t rank);

Value createEmpty(NodeImporter &node, ArrayRef<Size> shape, Type element);
/// A tensor with all elements equal to a scalar.
Value createFilled(NodeImporter &node, ArrayRef<Size> shape, Value scalar);
/// A tensor with all elements equal to `value`, which is converted to the type.
Value createFilled(NodeImporter &node, ArrayRef<Size> shape, Type element,
                   double value);
/// A scalar constant of a float, integer or index type.
Value createScalar(ImplicitLocOpBuilder &b, Type type, double value);
/// Returns the one value of all elements of a constant, or null.
TypedAttr getSplat(const Tensor &tensor);

/// Converts a scalar as the operator Cast does.
Value convertScalar(ImplicitLocOpBuilder &b, Value value, Type type);
/// The type in which floats of a type are computed: f32 for f16 and bf16.
Type getWideType(Type type);

class Scalars;
/// Returns an element of a result from those of the operands. The type of the
/// scalars is that in which the elements of the result are computed, to which
/// the returned one is rounded.
using Body = function_ref<Value(Scalars &, ValueRange)>;

/// Creates a linalg.generic and returns its result, of the shape. Without
/// `loops`, all are parallel. `body` gets the elements of the inputs and of
/// `init`, whose type the scalars have.
Tensor createGeneric(NodeImporter &node, ValueRange inputs, Value init,
                     ArrayRef<AffineMap> maps,
                     ArrayRef<utils::IteratorType> loops, ArrayRef<Size> shape,
                     Body body);

/// Returns the shape that shapes are broadcast to. Sizes that are 1, or at most
/// 1, are broadcast; other sizes are equal, which entry points check.
FailureOr<SmallVector<Size>> broadcastShapes(NodeImporter &node,
                                             ArrayRef<Tensor *> operands);
/// Computes each element from those of the operands, which are broadcast.
FailureOr<Tensor> mapElements(NodeImporter &node, ArrayRef<Tensor *> operands,
                              Type element, Body body);
/// The same with the shape of the result, which operands broadcast to.
Tensor mapElementsTo(NodeImporter &node, ArrayRef<Tensor *> operands,
                     ArrayRef<Size> shape, Type element, Body body);
/// The same if the operands broadcast to the first one, whose shape and type
/// the result has.
FailureOr<Tensor> mapToFirst(NodeImporter &node, ArrayRef<Tensor *> operands,
                             Body body);
/// Computes floats, in the type in which those of the first operand are
/// computed, which `body` gets and returns.
FailureOr<Tensor> mapFloats(NodeImporter &node, ArrayRef<Tensor *> operands,
                            Body body);
/// Adds tensors of one type in the type in which their elements are computed.
FailureOr<Tensor> addTensors(NodeImporter &node, ArrayRef<Tensor *> operands);
/// Repeats elements along the dimensions in which the shape is larger.
Tensor broadcast(NodeImporter &node, Tensor &tensor, ArrayRef<Size> shape);
/// The same, also along dimensions whose size is dynamic, where it is 1. Entry
/// points check that it is 1 or that of the shape.
FailureOr<Tensor> expand(NodeImporter &node, Tensor &tensor,
                         ArrayRef<Size> shape);
/// Converts the elements as the operator Cast does.
Tensor convertTensor(NodeImporter &node, Tensor &tensor, Type element);

/// Changes the shape, in row-major order.
FailureOr<Tensor> reshape(NodeImporter &node, Tensor &tensor,
                          ArrayRef<Size> shape);
Tensor transpose(NodeImporter &node, Tensor &tensor,
                 ArrayRef<int64_t> permutation);
/// Returns `sizes` elements of each dimension from `offsets`. Without strides,
/// all are 1.
Tensor slice(NodeImporter &node, Tensor &tensor, ArrayRef<Size> offsets,
             ArrayRef<Size> sizes, ArrayRef<int64_t> strides = {});
/// Joins at least one tensor, of equal type but for `axis`.
FailureOr<Tensor> concat(NodeImporter &node, ArrayRef<Tensor *> tensors,
                         int64_t axis);
/// The treatment of negative indices: they count from the end, fail, or read
/// index 0.
enum class NegativeIndex { Wraps, Fails, IsZero };
/// Returns the parts of the data at indices of any shape along the axis, which
/// the dimensions of the indices replace. Calls fail if an index is out of
/// range.
FailureOr<Tensor> gather(NodeImporter &node, Tensor &data, Tensor &indices,
                         int64_t axis, NegativeIndex negative);

/// Returns what `read` computes from a row at each of the indices and from the
/// numbers of the other dimensions of the result, which have the shape. Calls
/// fail if an index is not one of `numRows` rows.
FailureOr<Tensor>
readRows(NodeImporter &node, Tensor &indices, const Size &numRows,
         ArrayRef<Size> shape, Type element, NegativeIndex negative,
         function_ref<Value(Scalars &s, Value row, ValueRange others)> read);

/// Reduces the axes, which are dropped. `transform` is applied to elements
/// first, which have the type `element`; null for none.
Tensor reduce(NodeImporter &node, Tensor &tensor, ArrayRef<int64_t> axes,
              Combiner combiner, Type element, Body transform = nullptr);
/// Returns the number of elements along the axes, as an element of that float
/// type.
Value createCount(NodeImporter &node, const Tensor &tensor,
                  ArrayRef<int64_t> axes, Type element);

/// Divides rows of the last dimension by the root of the mean of their squares.
FailureOr<Tensor> normalizeRows(NodeImporter &node, Tensor &tensor,
                                Tensor &weight, double epsilon);

/// Assigns the result, or fails if it is a failure.
inline LogicalResult assign(Tensor &tensor, FailureOr<Tensor> result) {
  if (succeeded(result))
    tensor = std::move(*result);
  return result;
}

/// Returns the number of elements of a shape.
Size getProduct(ArrayRef<Size> sizes);

/// Whether the sizes are equal, or may be equal at run time.
inline bool mayBeEqual(NodeImporter &node, const Size &left,
                       const Size &right) {
  return !node.sizes.areDifferent(left, right);
}

// These require something of sizes. They return false if it never holds; entry
// points check what is not known to hold.

bool requireEqual(NodeImporter &node, const Size &left, const Size &right);
bool requireAtMost(NodeImporter &node, const Size &left, const Size &right);
/// Requires that a size is 1, or the size of the dimension that it is broadcast
/// to.
bool requireBroadcast(NodeImporter &node, const Size &size, const Size &to);

/// Whether a size is dynamic and at most 1.
bool isAtMostOne(NodeImporter &node, const Size &size);

} // namespace mlir::posenc::onnx

#endif // POSENC_LIB_IMPORT_ONNX_OPS_H
