//===- Converter.h - conversion of one operation to linalg ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IMPORT_HLO_CONVERTER_H
#define POSENC_IMPORT_HLO_CONVERTER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace mlir::posenc::hlo {

/// Whether the name is one of an elementwise operation.
bool isElementwise(StringRef name);

/// How a reduction combines two numbers.
enum class Combiner { Add, Mul, Max, Min, And, Or };

/// Unit attribute of operations whose first operand had an unsigned type, and
/// of those with another value of such a type.
inline constexpr llvm::StringLiteral kUnsignedOperand =
    "posenc.unsigned_operand";
inline constexpr llvm::StringLiteral kUnsigned = "posenc.unsigned";

/// Converts an operation that is known by its name. Functions that create
/// values return null after an error, which they have emitted.
class Converter {
public:
  explicit Converter(Operation *op) : op(op), loc(op->getLoc()), builder(op) {}

  /// Converts an operation of StableHLO, or of TTIR, whose name without the
  /// dialect is `name`. Returns its results; fails after an error.
  FailureOr<SmallVector<Value>> convertStableHlo(StringRef name);
  FailureOr<SmallVector<Value>> convertTtir(StringRef name);
  /// Converts a tm_tensor.scan, which may have dynamic sizes.
  FailureOr<SmallVector<Value>> convertScan();

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
  /// Returns the numbers of a list in the text of an attribute, as in
  /// `#stablehlo.dot<lhs_contracting_dimensions = [2], ...>`.
  static SmallVector<int64_t> getListInText(StringRef text, StringRef key);
  std::nullptr_t fail(const Twine &why) {
    op->emitError() << "'" << op->getName() << "' " << why;
    return nullptr;
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
  Value createEmpty(RankedTensorType type);
  /// Returns the value with the type's shape, which has a dimension for each of
  /// `dims` that it has, or that is 1 there.
  Value broadcast(Value value, RankedTensorType type, ArrayRef<int64_t> dims);
  /// Broadcasts as NumPy does: by the last dimensions.
  Value broadcastLast(Value value, ArrayRef<int64_t> shape);
  Value reshape(Value value, RankedTensorType type);
  Value transpose(Value value, ArrayRef<int64_t> permutation);
  Value slice(Value value, ArrayRef<int64_t> begins, ArrayRef<int64_t> ends,
              ArrayRef<int64_t> strides);
  Value concatenate(ValueRange values, int64_t dim);
  Value convertTo(Value value, Type element);
  Value compare(StringRef direction, Value lhs, Value rhs);
  Value select(Value condition, Value yes, Value no);
  Value createIota(RankedTensorType type, int64_t dim, int64_t start,
                   int64_t step);
  /// Returns the product of tensors, with dimensions in the order of batch, the
  /// others of lhs, the others of rhs.
  Value createDot(Value lhs, Value rhs, ArrayRef<int64_t> lhsBatch,
                  ArrayRef<int64_t> rhsBatch, ArrayRef<int64_t> lhsContracted,
                  ArrayRef<int64_t> rhsContracted, RankedTensorType type);
  /// Reduces dimensions, which the result lacks. `init` is a scalar tensor, or
  /// null for the neutral element.
  Value reduce(Value value, Value init, ArrayRef<int64_t> dims,
               Combiner combiner);
  /// Returns the index of the first maximum along a dimension, which the result
  /// lacks.
  Value createArgMax(Value value, int64_t dim, Type index);
  Value createGather();
  /// Returns rows of a matrix by their numbers.
  Value createEmbedding(Value indices, Value rows, RankedTensorType type);
  /// Returns an RMS norm, or a layer norm, which subtracts the mean.
  Value createNorm(bool hasMean);
  Value createPad();
  Value createReverse();
  /// Returns the scalar of a tensor of rank 0 as an index from 0 to `max`.
  Value getClampedIndex(Value scalar, int64_t max);
  std::optional<Combiner> getCombiner();

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
  Location loc;
  OpBuilder builder;
};

} // namespace mlir::posenc::hlo

#endif // POSENC_IMPORT_HLO_CONVERTER_H
