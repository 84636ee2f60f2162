//===- Converter.h - conversion of one operation to linalg ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IMPORT_HLO_CONVERTER_H
#define POSENC_IMPORT_HLO_CONVERTER_H

#include "../Arithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/ScopedPrinter.h"

namespace mlir::posenc::hlo {

/// Whether the name is one of an elementwise operation.
bool isElementwise(StringRef name);

/// Returns the comparison of two numbers, or two tensors of them, by a
/// direction such as LT; null if there is none for the direction or the type.
Value createComparison(ImplicitLocOpBuilder &b, StringRef direction, Value x,
                       Value y, bool isUnsigned);
/// Returns the predicate of a direction for integers, or nullopt.
std::optional<arith::CmpIPredicate> getPredicate(StringRef direction,
                                                 bool isUnsigned);
/// Returns the direction of a comparison: EQ or the like, of the attribute
/// EQ or #stablehlo<comparison_direction EQ>. Empty if there is none.
StringRef getDirection(Operation *op);
/// Whether a comparison of floats orders zeros by sign, and NaN, too.
bool hasTotalOrder(Operation *op);

/// Returns the name of the operation of arith or math that an elementwise
/// operation is on scalars of a type, if it is one.
std::optional<StringRef> getScalarOperation(StringRef name, Type type);
/// Whether the name is one of an elementwise operation with two operands.
bool isBinaryOperation(StringRef name);

/// Unit attribute of operations whose first operand had an unsigned type, of
/// those whose second one, or the start indices, had, and of those with any
/// value of such a type.
inline constexpr llvm::StringLiteral kUnsignedOperand = "unsigned_operand";
inline constexpr llvm::StringLiteral kUnsignedIndex = "unsigned_index";
inline constexpr llvm::StringLiteral kUnsigned = "unsigned";

using Shape = SmallVector<Size>;

/// Sizes that the conversion of a function knows.
class FunctionSizes {
public:
  /// Creates symbols for the dynamic sizes of the arguments in the block, or
  /// knows no dynamic size if it is null.
  explicit FunctionSizes(Block *entry);

  /// Returns the sizes of a tensor, which are invalid where they are unknown.
  Shape getShape(Value tensor);
  void setShape(Value tensor, ArrayRef<Size> shape);
  /// Returns the elements of a small tensor of integers or i1, in order, if
  /// they are constants or follow from sizes.
  std::optional<Shape> getElements(Value tensor);
  void setElements(Value tensor, ArrayRef<Size> elements);
  /// Returns a value of type index that dominates `op`.
  OpFoldResult getMixed(Operation *op, const Size &size);

  /// Returns the size that is 1 if the comparison is true, else 0.
  Size createCondition(arith::CmpIPredicate predicate, const Size &left,
                       const Size &right);
  /// A comparison that a size of `createCondition` stands for.
  struct Condition {
    arith::CmpIPredicate predicate;
    Size left, right;
  };
  std::optional<Condition> getCondition(const Size &size);

  SizeTable table;

private:
  Block *entry;
  llvm::DenseMap<Value, Shape> shapes, elements;
};

/// Returns the elements of a result of an operation on small tensors of
/// integers, if they are constants or follow from sizes.
std::optional<Shape> evaluateElements(Operation *op, StringRef name,
                                      FunctionSizes &sizes);

/// Converts an operation of a region, if it is one of StableHLO or TTIR.
LogicalResult convertNested(Operation *op, FunctionSizes &sizes);

/// Whether a tensor of this shape is known to be empty.
inline bool hasNoElements(llvm::ArrayRef<Size> shape) {
  return llvm::any_of(shape,
                      [](const Size &size) { return size.isConstant(0); });
}

/// The result of a function that has emitted an error.
struct Failed {
  operator Value() const { return {}; }
  template <typename T> operator FailureOr<T>() const { return failure(); }
};

/// Converts an operation that is known by its name. Functions that create
/// values return null after an error, which they have emitted.
class Converter {
public:
  Converter(Operation *op, FunctionSizes &sizes)
      : op(op), builder(op->getLoc(), op), sizes(sizes) {}

  /// Converts an operation of StableHLO, or of TTIR, whose name without the
  /// dialect is `name`. Returns its results; fails after an error.
  FailureOr<SmallVector<Value>> convertStableHlo(StringRef name);
  FailureOr<SmallVector<Value>> convertTtir(StringRef name);
  /// Converts a tm_tensor.scan, which may have dynamic sizes.
  FailureOr<SmallVector<Value>> convertScan();
  /// Returns a tensor of elements that follow from sizes.
  Value createElements(RankedTensorType type, ArrayRef<Size> elements);
  /// Casts a result to a type that has the static sizes of both types.
  Value refine(Value value, RankedTensorType type);
  /// Whether a size was too large an expression.
  bool hasInvalidSize() const { return isInvalid; }
  /// Returns the numbers of a list in the text of an attribute, as in
  /// `#stablehlo.dot<lhs_contracting_dimensions = [2], ...>`.
  static SmallVector<int64_t> getListInText(StringRef text, StringRef key);

private:
  //===--------------------------------------------------------------------===//
  // Operands and attributes
  //===--------------------------------------------------------------------===//

  Value getOperand(unsigned number) { return op->getOperand(number); }
  RankedTensorType getType(Value value) {
    return cast<RankedTensorType>(value.getType());
  }
  RankedTensorType getResultType(unsigned number = 0) {
    return cast<RankedTensorType>(op->getResult(number).getType());
  }
  Attribute getAttribute(StringRef name);
  /// Returns the numbers of an array attribute, of any form; nothing if it is
  /// absent.
  std::optional<SmallVector<int64_t>> getNumbers(StringRef name);
  std::optional<int64_t> getNumber(StringRef name);
  /// Whether the first operand had an unsigned type.
  bool hasUnsignedOperand() { return op->hasAttr(kUnsignedOperand); }
  /// Returns an operand of start indices. Unsigned ones become i64.
  Value getStarts(unsigned number);
  Failed fail(const Twine &why) {
    op->emitError() << "'" << op->getName() << "' " << why;
    return {};
  }

  /// Returns the elements of an operand, all of which are constants.
  std::optional<SmallVector<int64_t>> getConstantElements(unsigned number);
  /// Returns the shape of the result, whose dynamic sizes are elements of an
  /// operand, if there is one of that number.
  FailureOr<Shape> getResultShape(std::optional<unsigned> operand = {});

  //===--------------------------------------------------------------------===//
  // Sizes
  //===--------------------------------------------------------------------===//

  Shape getShape(Value value) { return sizes.getShape(value); }
  static Shape toShape(ArrayRef<int64_t> shape) {
    return Shape(shape.begin(), shape.end());
  }
  static RankedTensorType getTypeOf(ArrayRef<Size> shape, Type element);
  OpFoldResult getMixed(const Size &size);
  SmallVector<OpFoldResult> getMixed(ArrayRef<Size> shape);
  Value getIndex(const Size &size);
  Value withShape(Value value, ArrayRef<Size> shape) {
    sizes.setShape(value, shape);
    return value;
  }

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  /// Returns an operation of a name on tensors of equal shapes.
  Value createElementwise(StringRef name, Type type, ValueRange operands,
                          ArrayRef<NamedAttribute> attributes = {});
  template <typename Op> Value apply(Type type, ValueRange operands) {
    return createElementwise(Op::getOperationName(), type, operands);
  }
  /// Returns the constant of the attribute `value`.
  Value createConstant(RankedTensorType type);
  /// Returns a tensor of the type with a number in all elements.
  Value createSplat(RankedTensorType type, double number);
  /// Returns a tensor of rank 0 with the neutral element of the combiner.
  Value createNeutral(Combiner combiner, Type element);
  Value createEmpty(RankedTensorType type) {
    return createEmpty(toShape(type.getShape()), type.getElementType());
  }
  Value createEmpty(ArrayRef<Size> shape, Type element);
  /// Returns a tensor with a number in all elements.
  Value createFilled(ArrayRef<Size> shape, Value scalar);
  Value createFilled(ArrayRef<Size> shape, TypedAttr number) {
    return createFilled(shape, arith::ConstantOp::create(builder, number));
  }
  /// Returns the element of a tensor of rank 0.
  Value getScalar(Value tensor) {
    return tensor::ExtractOp::create(builder, tensor, ValueRange());
  }
  /// Returns a tensor of the sizes of `like` with a number in all elements.
  Value createSplatLike(Value like, double number);
  /// Returns the value with the type's shape, which has a dimension for each of
  /// `dims` that it has, or that is 1 there.
  Value broadcast(Value value, ArrayRef<Size> shape, ArrayRef<int64_t> dims);
  /// Broadcasts as NumPy does: by the last dimensions.
  Value broadcastLast(Value value, ArrayRef<Size> shape);
  Value broadcastLast(Value value, ArrayRef<int64_t> shape) {
    return broadcastLast(value, toShape(shape));
  }
  Value reshape(Value value, RankedTensorType type);
  Value reshape(Value value, ArrayRef<Size> shape);
  Value transpose(Value value, ArrayRef<int64_t> permutation);
  Value slice(Value value, ArrayRef<int64_t> begins, ArrayRef<int64_t> ends,
              ArrayRef<int64_t> strides);
  Value sliceBy(Value value, ArrayRef<Size> offsets, ArrayRef<Size> counts,
                ArrayRef<int64_t> strides);
  /// Returns a tensor of elements of `source`, at the indices that `getIndices`
  /// returns for those of an element of the result.
  Value gatherElements(
      Value source, ArrayRef<Size> shape,
      function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)>
          getIndices);
  Value concatenate(ValueRange values, int64_t dim);
  Value convertTo(Value value, Type element);
  Value compare(StringRef direction, Value lhs, Value rhs);
  Value select(Value condition, Value yes, Value no);
  Value createIota(ArrayRef<Size> shape, Type element, int64_t dim,
                   int64_t start, int64_t step);
  /// Returns the product of tensors, with dimensions in the order of batch, the
  /// others of lhs, the others of rhs.
  Value createDot(Value lhs, Value rhs, ArrayRef<int64_t> lhsBatch,
                  ArrayRef<int64_t> rhsBatch, ArrayRef<int64_t> lhsContracted,
                  ArrayRef<int64_t> rhsContracted, Type element);
  /// Reduces dimensions, which the result lacks. `init` is a scalar tensor, or
  /// null for the neutral element.
  Value reduce(Value value, Value init, ArrayRef<int64_t> dims,
               Combiner combiner);
  /// Returns the index of the first maximum along a dimension, which the result
  /// lacks.
  Value createArgMax(Value value, int64_t dim, Type index);
  /// Reduces several tensors at once by the region of the operation.
  FailureOr<SmallVector<Value>> reduceByRegion(ArrayRef<int64_t> dims);
  /// Returns the results of a region on scalars, for arguments. Fails without
  /// an error if an operation is not supported there.
  FailureOr<SmallVector<Value>>
  emitScalars(ImplicitLocOpBuilder &b, Region &region, ValueRange arguments);
  /// Gathers slices of these sizes.
  Value createGather(ArrayRef<Size> sliceSizes);
  Value createScatter();
  /// Returns sums, maxima and others of windows. The combiner is that of the
  /// region, or of a function that a custom call names.
  Value createWindows(Combiner combiner, ArrayRef<Size> window,
                      ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                      ArrayRef<Size> low, ArrayRef<Size> high);
  Value convertReduceWindow();
  Value convertDynamicReduceWindow();
  Value createPrefix(Combiner combiner, int64_t dim, bool isReversed);
  /// Returns the largest elements along the last dimension, and their indices.
  FailureOr<SmallVector<Value>> createTopK(int64_t count);
  Value createRealDynamicSlice();
  /// Casts operands to one type; returns false if they differ otherwise.
  bool haveSameTypes(MutableArrayRef<Value> operands);
  FailureOr<SmallVector<Value>> convertWhile();
  FailureOr<SmallVector<Value>> convertCase();
  FailureOr<SmallVector<Value>> convertCustomCall();
  /// A convolution. The numbers name dimensions in the order of batch (or
  /// output channel of the kernel), channel, spatial dimensions.
  struct Convolution {
    SmallVector<int64_t> input, kernel, output;
    SmallVector<int64_t> strides, low, high, dilations;
    int64_t groups = 1;
  };
  Value createConvolution(Value input, Value kernel, const Convolution &conv,
                          Type element);
  Value convertConvolution();
  Value convertConv2d();
  /// Returns rows of a matrix by their numbers.
  Value createEmbedding(Value indices, Value rows, RankedTensorType type);
  /// Returns an RMS norm, or a layer norm, which subtracts the mean.
  Value createNorm(bool hasMean);
  Value createPad();
  Value createPad(Value value, Value fill, ArrayRef<Size> low,
                  ArrayRef<Size> high);
  Value createReverse();
  /// Returns the scalar of a tensor of rank 0 as an index from 0 to `max`.
  Value getClampedIndex(Value scalar, const Size &max);
  std::optional<Combiner> getCombiner();
  /// Returns how a block of two arguments combines them.
  static std::optional<Combiner> getCombiner(Block &block);

  /// Returns the elementwise operation of the name, which both dialects may
  /// call differently, or null if there is none.
  Value convertElementwise(StringRef name, ValueRange operands,
                           RankedTensorType type);

  FailureOr<SmallVector<Value>> one(Value value) {
    if (!value)
      return failure();
    return SmallVector<Value>{value};
  }

  Operation *op;
  ImplicitLocOpBuilder builder;
  FunctionSizes &sizes;
  bool isInvalid = false;
};

} // namespace mlir::posenc::hlo

#endif // POSENC_IMPORT_HLO_CONVERTER_H
