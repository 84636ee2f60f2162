//===- Sizes.cpp - sizes of tensors of StableHLO --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dynamic StableHLO computes sizes on tensors of integers. These are evaluated
// here as polynomials over the sizes of the arguments, so that equal sizes are
// equal values in the result.
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

using arith::CmpIPredicate;

/// Tensors with more elements are not evaluated.
static constexpr uint64_t kMaxElements = 512;

//===----------------------------------------------------------------------===//
// FunctionSizes
//===----------------------------------------------------------------------===//

FunctionSizes::FunctionSizes(Block *entry) : entry(entry) {
  if (!entry)
    return;
  for (BlockArgument argument : entry->getArguments())
    if (isa<RankedTensorType>(argument.getType()))
      getShape(argument);
}

/// Returns a value with the sizes of a result, or null.
static Value getTied(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return {};
  if (auto linalg = dyn_cast<DestinationStyleOpInterface>(op))
    return linalg.getTiedOpOperand(cast<OpResult>(tensor))->get();
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return cast.getSource();
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return insert.getDest();
  if (op->hasTrait<OpTrait::Elementwise>())
    for (Value operand : llvm::reverse(op->getOperands()))
      if (isa<RankedTensorType>(operand.getType()))
        return operand;
  return {};
}

Shape FunctionSizes::getShape(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.hasStaticShape())
    return Shape(type.getShape().begin(), type.getShape().end());
  auto it = shapes.find(tensor);
  Shape shape;
  if (it != shapes.end()) {
    for (const Size &size : it->second)
      shape.push_back(table.resolve(size));
    return shape;
  }
  if (Value tied = getTied(tensor);
      tied && isa<RankedTensorType>(tied.getType())) {
    shape = getShape(tied);
  } else {
    OpBuilder builder(tensor.getContext());
    builder.setInsertionPointAfterValue(tensor);
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      shape.push_back(
          !type.isDynamicDim(dim) ? Size(type.getDimSize(dim))
          : tensor.getParentBlock() != entry
              ? Size::invalid()
              : table.createSymbol(tensor::DimOp::create(
                                       builder, tensor.getLoc(), tensor, dim),
                                   /*isNonNegative=*/true));
  }
  setShape(tensor, shape);
  return getShape(tensor);
}

void FunctionSizes::setShape(Value tensor, ArrayRef<Size> shape) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.hasStaticShape())
    return;
  Shape &known = shapes[tensor];
  known.assign(shape.begin(), shape.end());
  known.resize(type.getRank(), Size::invalid());
  for (auto [size, number] : llvm::zip_equal(known, type.getShape()))
    if (!ShapedType::isDynamic(number))
      size = number;
}

std::optional<Shape> FunctionSizes::getElements(Value tensor) {
  if (auto it = elements.find(tensor); it != elements.end()) {
    Shape resolved;
    for (const Size &size : it->second)
      resolved.push_back(table.resolve(size));
    return resolved;
  }
  DenseIntElementsAttr attr;
  if (!matchPattern(tensor, m_Constant(&attr)) ||
      uint64_t(attr.getNumElements()) > kMaxElements ||
      !isa<IntegerType>(attr.getElementType()) ||
      attr.getElementType().getIntOrFloatBitWidth() > 64)
    return std::nullopt;
  Shape constants;
  bool isBool = attr.getElementType().isInteger(1);
  for (const APInt &number : attr.getValues<APInt>())
    constants.push_back(isBool ? int64_t(number.getZExtValue())
                               : number.getSExtValue());
  return constants;
}

void FunctionSizes::setElements(Value tensor, ArrayRef<Size> values) {
  elements[tensor] = Shape(values);
}

OpFoldResult FunctionSizes::getMixed(Operation *op, const Size &size) {
  Size resolved = table.resolve(size);
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  // All operations in the function may use it afterwards.
  if (!resolved.getConstant() && entry)
    if (Operation *at = entry->findAncestorOpInBlock(*op))
      builder.setInsertionPoint(at);
  return table.getMixed(builder, resolved);
}

std::optional<FunctionSizes::Condition>
FunctionSizes::getCondition(const Size &size) {
  for (bool isNegated : {false, true}) {
    auto term = table.getTerm(isNegated ? Size(1) - size : size);
    if (!term || (term->kind != SizeTable::Term::IsEqual &&
                  term->kind != SizeTable::Term::IsAtLeast))
      continue;
    CmpIPredicate predicate = term->kind == SizeTable::Term::IsEqual
                                  ? CmpIPredicate::eq
                                  : CmpIPredicate::sge;
    return Condition{isNegated ? arith::invertPredicate(predicate) : predicate,
                     term->left, term->right};
  }
  return std::nullopt;
}

Size FunctionSizes::createCondition(CmpIPredicate predicate, const Size &left,
                                    const Size &right) {
  // All comparisons are EQ or GE.
  switch (predicate) {
  case CmpIPredicate::ne:
    return Size(1) - createCondition(CmpIPredicate::eq, left, right);
  case CmpIPredicate::sgt:
    return createCondition(CmpIPredicate::sge, left, right + 1);
  case CmpIPredicate::sle:
    return createCondition(CmpIPredicate::sge, right, left);
  case CmpIPredicate::slt:
    return createCondition(CmpIPredicate::sge, right, left + 1);
  default:
    break;
  }
  bool isEqual = predicate == CmpIPredicate::eq;
  // The sign of a size that is not negative.
  auto term = table.getTerm(left);
  if (isEqual && right.getConstant() && term &&
      term->kind == SizeTable::Term::Min && table.isNonNegative(term->left) &&
      term->right.isConstant(1) && (right.isConstant(0) || right.isConstant(1)))
    return right.isConstant(1)
               ? createCondition(CmpIPredicate::sge, term->left, 1)
               : createCondition(CmpIPredicate::eq, term->left, 0);
  return table.createTerm(isEqual ? SizeTable::Term::IsEqual
                                  : SizeTable::Term::IsAtLeast,
                          left, right);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Whether `size` is 1 - x for a condition x that compares in this way.
static std::optional<FunctionSizes::Condition>
getNegated(const Size &size, CmpIPredicate predicate, FunctionSizes &sizes) {
  std::optional<FunctionSizes::Condition> condition =
      sizes.getCondition(Size(1) - size);
  if (condition && condition->predicate == predicate)
    return condition;
  return std::nullopt;
}

/// Whether `first` is x < 1, and `second` that x has a remainder. Both are
/// never true for an x that is not negative.
static bool excludeEachOther(const Size &first, const Size &second,
                             FunctionSizes &sizes) {
  auto isZero = getNegated(first, CmpIPredicate::sge, sizes),
       hasRemainder = getNegated(second, CmpIPredicate::eq, sizes);
  if (!isZero || !hasRemainder || !isZero->right.isConstant(1) ||
      !hasRemainder->right.isConstant(0))
    return false;
  auto term = sizes.table.getTerm(hasRemainder->left);
  return term && term->kind == SizeTable::Term::Remainder &&
         term->left == isZero->left && sizes.table.isNonNegative(isZero->left);
}

/// Returns an operation on two integers; nullopt if it is not known.
static std::optional<Size> evaluateBinary(StringRef name, const Size &a,
                                          const Size &b, bool isBool,
                                          FunctionSizes &sizes) {
  using Term = SizeTable::Term;
  SizeTable &table = sizes.table;
  if (isBool) {
    if (name == "and") {
      if (excludeEachOther(a, b, sizes) || excludeEachOther(b, a, sizes))
        return Size(0);
      return a * b;
    }
    if (name == "or")
      return a + b - a * b;
    if (name == "xor")
      return a + b - a * b * 2;
    return std::nullopt;
  }
  if (name == "add")
    return a + b;
  if (name == "subtract")
    return a - b;
  if (name == "multiply")
    return a * b;
  if (name == "maximum")
    return table.createTerm(Term::Max, a, b);
  if (name == "minimum")
    return table.createTerm(Term::Min, a, b);
  if (name != "divide" && name != "remainder")
    return std::nullopt;
  if (a.getConstant() && b.getConstant()) {
    int64_t x = *a.getConstant(), y = *b.getConstant();
    if (y == 0 || y == -1)
      return std::nullopt;
    return Size(name == "divide" ? x / y : x % y);
  }
  if (!table.isNonNegative(a) || !table.isNonNegative(b - 1))
    return std::nullopt;
  return table.createTerm(name == "divide" ? Term::Quotient : Term::Remainder,
                          a, b);
}

static std::optional<Size> evaluateUnary(StringRef name, const Size &a,
                                         bool isBool, FunctionSizes &sizes) {
  if (name == "not")
    return isBool ? std::optional<Size>(Size(1) - a) : std::nullopt;
  if (isBool)
    return std::nullopt;
  if (name == "negate")
    return Size(0) - a;
  if (name == "abs" && sizes.table.isNonNegative(a))
    return a;
  if (name == "sign") {
    if (a.getConstant())
      return Size((*a.getConstant() > 0) - (*a.getConstant() < 0));
    if (sizes.table.isNonNegative(a))
      return sizes.table.createTerm(SizeTable::Term::Min, a, 1);
  }
  return std::nullopt;
}

/// Returns the number of an attribute in either storage.
static std::optional<int64_t> getNumberOf(Operation *op, StringRef name) {
  Attribute attribute = op->getDiscardableAttr(name);
  if (!attribute)
    if (auto properties =
            dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
      attribute = properties.get(name);
  auto number = dyn_cast_or_null<IntegerAttr>(attribute);
  return number && number.getValue().getSignificantBits() <= 64
             ? std::optional(number.getValue().getSExtValue())
             : std::nullopt;
}

/// Returns elements before they wrap around in their type.
static std::optional<Shape> evaluate(Operation *op, StringRef name,
                                     RankedTensorType type,
                                     FunctionSizes &sizes) {
  size_t count = type.getNumElements();
  if (name == "iota") {
    Shape numbers;
    if (type.getRank() != 1)
      return std::nullopt;
    for (size_t i = 0; i < count; ++i)
      numbers.push_back(Size(i));
    return numbers;
  }
  if (name == "get_dimension_size") {
    std::optional<int64_t> dim = getNumberOf(op, "dimension");
    auto operand = op->getNumOperands() == 1
                       ? dyn_cast<RankedTensorType>(op->getOperand(0).getType())
                       : RankedTensorType();
    if (!dim || !operand || *dim < 0 || *dim >= operand.getRank())
      return std::nullopt;
    return Shape{sizes.getShape(op->getOperand(0))[*dim]};
  }
  SmallVector<Shape> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Shape> elements = sizes.getElements(operand);
    if (!elements)
      return std::nullopt;
    operands.push_back(std::move(*elements));
    if (name == "broadcast_in_dim" || name == "dynamic_broadcast_in_dim")
      break;
  }
  if (operands.empty())
    return std::nullopt;
  bool isBool = getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(1);
  if (name == "reshape")
    return operands[0];
  if (name == "convert" && (isBool || !type.getElementType().isInteger(1)))
    return operands[0];
  if (name == "broadcast_in_dim" || name == "dynamic_broadcast_in_dim") {
    if (operands[0].size() == 1)
      return Shape(count, operands[0][0]);
    return cast<RankedTensorType>(op->getOperand(0).getType()).getRank() == 1
               ? std::optional<Shape>(operands[0])
               : std::nullopt;
  }
  if (name == "concatenate") {
    if (getNumberOf(op, "dimension").value_or(0) != 0)
      return std::nullopt;
    Shape all;
    for (const Shape &operand : operands)
      all.append(operand);
    return all;
  }
  // Scalars among the operands of clamp and select are for all elements.
  for (Shape &operand : operands)
    if (operand.size() == 1)
      operand.resize(count, Size(operand[0]));
    else if (operand.size() != count)
      return std::nullopt;
  Shape results;
  for (size_t i = 0; i < count; ++i) {
    std::optional<Size> result;
    if (operands.size() == 1) {
      result = evaluateUnary(name, operands[0][i], isBool, sizes);
    } else if (name == "compare" && operands.size() == 2) {
      std::optional<CmpIPredicate> predicate =
          getPredicate(getDirection(op), /*isUnsigned=*/false);
      const Size &a = operands[0][i], &b = operands[1][i];
      if (!predicate)
        return std::nullopt;
      if (!isBool)
        result = sizes.createCondition(*predicate, a, b);
      else if (*predicate == CmpIPredicate::eq)
        result = Size(1) - a - b + a * b * 2;
      else if (*predicate == CmpIPredicate::ne)
        result = a + b - a * b * 2;
    } else if (operands.size() == 2) {
      result =
          evaluateBinary(name, operands[0][i], operands[1][i], isBool, sizes);
    } else if (name == "clamp" && operands.size() == 3 && !isBool) {
      Size above = sizes.table.createTerm(SizeTable::Term::Max, operands[0][i],
                                          operands[1][i]);
      result =
          sizes.table.createTerm(SizeTable::Term::Min, above, operands[2][i]);
    } else if (name == "select" && operands.size() == 3) {
      const Size &c = operands[0][i], &a = operands[1][i], &b = operands[2][i];
      result = a == b ? a : c * a + (Size(1) - c) * b;
    }
    if (!result)
      return std::nullopt;
    results.push_back(std::move(*result));
  }
  return results;
}

std::optional<Shape> hlo::evaluateElements(Operation *op, StringRef name,
                                           FunctionSizes &sizes) {
  // The size of a tensor of unsigned integers is signed.
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 ||
      (op->hasAttr(kUnsigned) && name != "get_dimension_size"))
    return std::nullopt;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto integer =
      type ? dyn_cast<IntegerType>(type.getElementType()) : IntegerType();
  if (!integer || integer.getWidth() > 64 || !type.hasStaticShape() ||
      static_cast<uint64_t>(type.getNumElements()) > kMaxElements)
    return std::nullopt;
  std::optional<Shape> elements = evaluate(op, name, type, sizes);
  if (!elements || int64_t(elements->size()) != type.getNumElements())
    return std::nullopt;
  for (Size &element : *elements) {
    if (!element.isValid())
      return std::nullopt;
    // Constants wrap around; sizes are small.
    if (std::optional<int64_t> constant = element.getConstant())
      element = integer.getWidth() == 1
                    ? *constant & 1
                    : llvm::SignExtend64(*constant, integer.getWidth());
  }
  return elements;
}

//===----------------------------------------------------------------------===//
// Converter
//===----------------------------------------------------------------------===//

RankedTensorType Converter::getTypeOf(ArrayRef<Size> shape, Type element) {
  SmallVector<int64_t> numbers;
  for (const Size &size : shape) {
    std::optional<int64_t> constant = size.getConstant();
    numbers.push_back(constant && *constant >= 0 ? *constant
                                                 : ShapedType::kDynamic);
  }
  return RankedTensorType::get(numbers, element);
}

OpFoldResult Converter::getMixed(const Size &size) {
  std::optional<int64_t> constant = size.getConstant();
  if (size.isValid() && (!constant || *constant >= 0))
    return sizes.getMixed(op, size);
  isInvalid = true;
  return builder.getIndexAttr(0);
}

SmallVector<OpFoldResult> Converter::getMixed(ArrayRef<Size> shape) {
  return llvm::map_to_vector(shape,
                             [&](const Size &size) { return getMixed(size); });
}

Value Converter::getIndex(const Size &size) {
  OpFoldResult mixed = getMixed(size);
  if (auto value = dyn_cast<Value>(mixed))
    return value;
  return arith::ConstantIndexOp::create(
      builder, cast<IntegerAttr>(cast<Attribute>(mixed)).getInt());
}

Value Converter::createEmpty(ArrayRef<Size> shape, Type element) {
  // The type follows from the mixed sizes, which differ for invalid ones.
  SmallVector<OpFoldResult> mixed = getMixed(shape);
  return withShape(tensor::EmptyOp::create(builder, mixed, element), shape);
}

Value Converter::createFilled(ArrayRef<Size> shape, Value scalar) {
  Value empty = createEmpty(shape, scalar.getType());
  return linalg::FillOp::create(builder, scalar, empty).getResult(0);
}

Value Converter::createSplatLike(Value like, double number) {
  RankedTensorType type = getType(like);
  if (type.hasStaticShape())
    return createSplat(type, number);
  Value splat = createSplat(type.clone(ArrayRef<int64_t>()), number);
  return createFilled(getShape(like), getScalar(splat));
}

Value Converter::createElements(RankedTensorType type,
                                ArrayRef<Size> elements) {
  Type element = type.getElementType();
  SmallVector<Value> scalars;
  for (const Size &size : elements) {
    std::optional<int64_t> constant = size.getConstant();
    if (constant) {
      scalars.push_back(arith::ConstantOp::create(
          builder, builder.getIntegerAttr(element, *constant)));
      continue;
    }
    Value index = dyn_cast<Value>(sizes.getMixed(op, size));
    scalars.push_back(
        element.isInteger(1)
            ? Value(arith::CmpIOp::create(
                  builder, CmpIPredicate::ne, index,
                  arith::ConstantIndexOp::create(builder, 0)))
            : Value(arith::IndexCastOp::create(builder, element, index)));
  }
  return tensor::FromElementsOp::create(builder, type, scalars);
}

Value Converter::refine(Value value, RankedTensorType type) {
  RankedTensorType from = getType(value);
  if (from.getRank() != type.getRank() ||
      from.getElementType() != type.getElementType())
    return fail("has a result of " + Twine(llvm::to_string(type)) +
                ", expected " + llvm::to_string(from));
  SmallVector<int64_t> merged(from.getShape());
  for (auto [size, other] : llvm::zip_equal(merged, type.getShape())) {
    if (ShapedType::isDynamic(other))
      continue;
    if (!ShapedType::isDynamic(size) && size != other)
      return fail("has a result of " + Twine(llvm::to_string(type)) +
                  ", expected " + llvm::to_string(from));
    size = other;
  }
  RankedTensorType target = from.clone(merged);
  if (target == from)
    return value;
  Shape shape = getShape(value);
  return withShape(tensor::CastOp::create(builder, target, value), shape);
}

std::optional<SmallVector<int64_t>>
Converter::getConstantElements(unsigned number) {
  std::optional<Shape> elements = number < op->getNumOperands()
                                      ? sizes.getElements(getOperand(number))
                                      : std::nullopt;
  if (!elements)
    return std::nullopt;
  SmallVector<int64_t> numbers;
  for (const Size &size : *elements) {
    if (!size.getConstant())
      return std::nullopt;
    numbers.push_back(*size.getConstant());
  }
  return numbers;
}

FailureOr<Shape> Converter::getResultShape(std::optional<unsigned> operand) {
  RankedTensorType type = getResultType();
  Shape shape = toShape(type.getShape());
  if (type.hasStaticShape())
    return shape;
  std::optional<Shape> elements = operand && *operand < op->getNumOperands()
                                      ? sizes.getElements(getOperand(*operand))
                                      : std::nullopt;
  if (!elements || int64_t(elements->size()) != type.getRank())
    return fail("has a size that does not follow from the sizes of arguments");
  for (auto [size, number, known] :
       llvm::zip_equal(shape, type.getShape(), *elements))
    if (ShapedType::isDynamic(number))
      size = known;
  return shape;
}
