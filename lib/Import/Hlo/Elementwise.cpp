//===- Elementwise.cpp - elementwise operations of StableHLO and TTIR -----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

namespace {
/// Names of the operations on floats, signed integers, i1 and complex numbers;
/// empty where there is none.
struct Spelling {
  StringRef onFloats, onIntegers, onBools, onComplex;
};
} // namespace

static std::optional<Spelling> getBinarySpelling(StringRef name) {
  using S = std::optional<Spelling>;
  return llvm::StringSwitch<S>(name)
      .Case("add", S({"arith.addf", "arith.addi", "arith.ori", "complex.add"}))
      .Case("subtract", S({"arith.subf", "arith.subi", "", "complex.sub"}))
      .Case("multiply",
            S({"arith.mulf", "arith.muli", "arith.andi", "complex.mul"}))
      .Cases({"divide", "div"}, S({"arith.divf", "", "", "complex.div"}))
      .Case("maximum", S({"arith.maximumf", "arith.maxsi", "arith.ori", ""}))
      .Case("minimum", S({"arith.minimumf", "arith.minsi", "arith.andi", ""}))
      .Case("remainder", S({"arith.remf", "", "", ""}))
      .Cases({"power", "pow"}, S({"math.powf", "math.ipowi", "", ""}))
      .Case("atan2", S({"math.atan2", "", "", ""}))
      .Cases({"and", "logical_and", "bitwise_and"},
             S({"", "arith.andi", "arith.andi", ""}))
      .Cases({"or", "logical_or", "bitwise_or"},
             S({"", "arith.ori", "arith.ori", ""}))
      .Cases({"xor", "logical_xor", "bitwise_xor"},
             S({"", "arith.xori", "arith.xori", ""}))
      .Default(std::nullopt);
}

static std::optional<Spelling> getUnarySpelling(StringRef name) {
  using S = std::optional<Spelling>;
  return llvm::StringSwitch<S>(name)
      .Case("abs", S({"math.absf", "math.absi", "", ""}))
      .Case("ceil", S({"math.ceil", "", "", ""}))
      .Case("floor", S({"math.floor", "", "", ""}))
      .Cases({"cosine", "cos"}, S({"math.cos", "", "", ""}))
      .Cases({"sine", "sin"}, S({"math.sin", "", "", ""}))
      .Case("tan", S({"math.tan", "", "", ""}))
      .Cases({"exponential", "exp"}, S({"math.exp", "", "", ""}))
      .Cases({"exponential_minus_one", "expm1"}, S({"math.expm1", "", "", ""}))
      .Case("log", S({"math.log", "", "", ""}))
      .Cases({"log_plus_one", "log1p"}, S({"math.log1p", "", "", ""}))
      .Case("rsqrt", S({"math.rsqrt", "", "", ""}))
      .Case("sqrt", S({"math.sqrt", "", "", ""}))
      .Case("cbrt", S({"math.cbrt", "", "", ""}))
      .Case("tanh", S({"math.tanh", "", "", ""}))
      .Case("erf", S({"math.erf", "", "", ""}))
      .Case("round_nearest_even", S({"math.roundeven", "", "", ""}))
      .Case("round_nearest_afz", S({"math.round", "", "", ""}))
      .Case("popcnt", S({"", "math.ctpop", "math.ctpop", ""}))
      .Case("count_leading_zeros", S({"", "math.ctlz", "", ""}))
      .Default(std::nullopt);
}

/// Returns the names of an operation on scalars, if it is one there.
static std::optional<Spelling> getSpelling(StringRef name) {
  std::optional<Spelling> binary = getBinarySpelling(name);
  return binary ? binary : getUnarySpelling(name);
}

bool hlo::isBinaryOperation(StringRef name) {
  return getBinarySpelling(name) ||
         llvm::is_contained({"complex", "shift_left", "shift_right_arithmetic",
                             "shift_right_logical"},
                            name);
}

std::optional<StringRef> hlo::getScalarOperation(StringRef name, Type type) {
  std::optional<Spelling> spelling = getSpelling(name);
  if (!spelling)
    return std::nullopt;
  StringRef target = isa<FloatType>(type)     ? spelling->onFloats
                     : type.isInteger(1)      ? spelling->onBools
                     : isa<IntegerType>(type) ? spelling->onIntegers
                     : isa<ComplexType>(type) ? spelling->onComplex
                                              : StringRef();
  return target.empty() ? std::nullopt : std::optional(target);
}

bool mlir::posenc::hlo::isElementwise(StringRef name) {
  return isBinaryOperation(name) || getUnarySpelling(name) ||
         llvm::is_contained({"negate", "neg", "logistic", "sigmoid",
                             "reciprocal", "relu", "silu", "gelu", "sign",
                             "not", "logical_not", "bitwise_not", "is_finite",
                             "real", "imag"},
                            name);
}

Value Converter::createElementwise(StringRef name, Type type,
                                   ValueRange operands,
                                   ArrayRef<NamedAttribute> attributes) {
  auto create = [&](OpBuilder &b, Type result, ValueRange inputs) {
    OperationState state(builder.getLoc(), name);
    state.addOperands(inputs);
    state.addTypes(result);
    state.addAttributes(attributes);
    return b.create(state)->getResult(0);
  };
  // Operations on complex numbers have no form on tensors. MLIR folds `x ^ x`
  // of dynamic sizes to a constant of dynamic sizes, which is none.
  auto tensor = cast<RankedTensorType>(type);
  bool isFolded = name == "arith.xori" && !tensor.hasStaticShape();
  if (!name.starts_with("complex.") && !isFolded)
    return create(builder, type, operands);
  Type element = tensor.getElementType();
  return createGeneric(builder, operands,
                       createEmpty(getShape(operands[0]), element), {}, {},
                       [&](ImplicitLocOpBuilder &b, ValueRange args) {
                         return create(b, element, args.drop_back());
                       });
}

Value Converter::createSplat(RankedTensorType type, double number) {
  Type element = type.getElementType();
  Attribute attribute =
      isa<FloatType>(element)
          ? Attribute(builder.getFloatAttr(element, number))
          : Attribute(builder.getIntegerAttr(element, int64_t(number)));
  return arith::ConstantOp::create(builder,
                                   DenseElementsAttr::get(type, attribute));
}

Value Converter::createNeutral(Combiner combiner, Type element) {
  return arith::ConstantOp::create(
      builder,
      DenseElementsAttr::get(RankedTensorType::get({}, element),
                             Attribute(getNeutral(combiner, element))));
}

Value Converter::createConstant(RankedTensorType type) {
  auto value = dyn_cast_or_null<TypedAttr>(getAttribute("value"));
  if (!isa_and_nonnull<ElementsAttr>(value) || value.getType() != type)
    return fail("lacks a value of its type");
  return arith::ConstantOp::create(builder, type, value);
}

Value Converter::select(Value condition, Value yes, Value no) {
  if (!getType(condition).getElementType().isInteger(1) ||
      getType(yes).getElementType() != getType(no).getElementType())
    return fail("has operands of other types");
  condition = broadcastLast(condition, getShape(yes));
  if (!condition)
    return {};
  return arith::SelectOp::create(builder, condition, yes, no);
}

std::optional<arith::CmpIPredicate> hlo::getPredicate(StringRef direction,
                                                      bool isUnsigned) {
  using P = arith::CmpIPredicate;
  return llvm::StringSwitch<std::optional<P>>(direction.upper())
      .Case("EQ", P::eq)
      .Case("NE", P::ne)
      .Case("LT", isUnsigned ? P::ult : P::slt)
      .Case("LE", isUnsigned ? P::ule : P::sle)
      .Case("GT", isUnsigned ? P::ugt : P::sgt)
      .Case("GE", isUnsigned ? P::uge : P::sge)
      .Default(std::nullopt);
}

StringRef hlo::getDirection(Operation *op) {
  auto direction = op->getAttrOfType<StringAttr>("comparison_direction");
  return direction ? direction.getValue().rtrim("> ").take_back(2) : "";
}

bool hlo::hasTotalOrder(Operation *op) {
  auto type = op->getAttrOfType<StringAttr>("compare_type");
  return type && type.getValue().contains("TOTALORDER") &&
         isa<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType()));
}

Value hlo::createComparison(ImplicitLocOpBuilder &b, StringRef direction,
                            Value x, Value y, bool isUnsigned) {
  Type element = getElementTypeOrSelf(x.getType());
  if (isa<IntegerType>(element)) {
    auto predicate = getPredicate(direction, isUnsigned);
    return predicate ? Value(arith::CmpIOp::create(b, *predicate, x, y))
                     : Value();
  }
  using P = arith::CmpFPredicate;
  auto predicate = llvm::StringSwitch<std::optional<P>>(direction.upper())
                       .Case("EQ", P::OEQ)
                       .Case("NE", P::UNE)
                       .Case("LT", P::OLT)
                       .Case("LE", P::OLE)
                       .Case("GT", P::OGT)
                       .Case("GE", P::OGE)
                       .Default(std::nullopt);
  return predicate && isa<FloatType>(element)
             ? Value(arith::CmpFOp::create(b, *predicate, x, y))
             : Value();
}

Value Converter::compare(StringRef direction, Value lhs, Value rhs) {
  Type element = getType(lhs).getElementType();
  if (getType(rhs).getElementType() != element ||
      !isa<FloatType, IntegerType>(element))
    return fail("has operands of types that it cannot compare");
  // false < true for i1.
  bool isUnsigned = element.isInteger(1) || hasUnsignedOperand();
  if (!getPredicate(direction, isUnsigned))
    return fail("has an unknown direction '" + direction + "'");
  if (isa<FloatType>(element) || getType(lhs).hasStaticShape())
    return createComparison(builder, direction, lhs, rhs, isUnsigned);
  // MLIR folds `x == x` of dynamic sizes to a constant of dynamic sizes, which
  // is none.
  return createGeneric(
      builder, {lhs, rhs}, createEmpty(getShape(lhs), builder.getI1Type()), {},
      {}, [&](ImplicitLocOpBuilder &b, ValueRange args) {
        return createComparison(b, direction, args[0], args[1], isUnsigned);
      });
}

/// Converts a float to an integer as XLA does: what is out of range becomes the
/// nearest end of the range, and NaN 0.
static Value saturate(ImplicitLocOpBuilder &b, Value x, Type integer,
                      bool isUnsigned) {
  if (cast<FloatType>(x.getType()).getWidth() < 32)
    x = arith::ExtFOp::create(b, b.getF32Type(), x);
  unsigned width = integer.getIntOrFloatBitWidth();
  auto get = [&](double number) -> Value {
    return arith::ConstantOp::create(b, b.getFloatAttr(x.getType(), number));
  };
  // The powers of two are exact.
  double end = std::ldexp(1, isUnsigned ? width : width - 1);
  Value isBelow =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, get(end));
  Value isAbove =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, x, get(end));
  Value inside = arith::MaximumFOp::create(b, x, get(isUnsigned ? 0 : -end));
  inside = arith::SelectOp::create(b, isBelow, inside, get(0));
  Value number = isUnsigned
                     ? Value(arith::FPToUIOp::create(b, integer, inside))
                     : Value(arith::FPToSIOp::create(b, integer, inside));
  APInt greatest =
      isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  Value last =
      arith::ConstantOp::create(b, b.getIntegerAttr(integer, greatest));
  return arith::SelectOp::create(b, isAbove, last, number);
}

Value Converter::convertTo(Value value, Type element) {
  RankedTensorType type = getType(value);
  Type from = type.getElementType();
  if (from == element)
    return value;
  RankedTensorType target = type.clone(element);
  auto fromFloat = dyn_cast<FloatType>(from),
       toFloat = dyn_cast<FloatType>(element);
  if (element.isInteger(1))
    return compare("NE", value, createSplatLike(value, 0));
  if (fromFloat && toFloat) {
    if (fromFloat.getWidth() == toFloat.getWidth()) {
      Type wide = builder.getF32Type();
      value = apply<arith::ExtFOp>(type.clone(wide), value);
      fromFloat = builder.getF32Type();
    }
    return fromFloat.getWidth() < toFloat.getWidth()
               ? apply<arith::ExtFOp>(target, value)
               : apply<arith::TruncFOp>(target, value);
  }
  if (fromFloat && isa<IntegerType>(element))
    return createGeneric(builder, value, createEmpty(getShape(value), element),
                         {}, {}, [&](ImplicitLocOpBuilder &b, ValueRange args) {
                           return saturate(b, args[0], element,
                                           op->hasAttr(kUnsigned));
                         });
  bool isUnsigned = from.isInteger(1) || hasUnsignedOperand();
  if (toFloat && isa<IntegerType>(from))
    return isUnsigned ? apply<arith::UIToFPOp>(target, value)
                      : apply<arith::SIToFPOp>(target, value);
  if (isa<IntegerType>(from) && isa<IntegerType>(element)) {
    if (from.getIntOrFloatBitWidth() > element.getIntOrFloatBitWidth())
      return apply<arith::TruncIOp>(target, value);
    return isUnsigned ? apply<arith::ExtUIOp>(target, value)
                      : apply<arith::ExtSIOp>(target, value);
  }
  return fail("has an unsupported conversion");
}

Value Converter::createIota(ArrayRef<Size> shape, Type element, int64_t dim,
                            int64_t start, int64_t step) {
  if (dim < 0 || dim >= int64_t(shape.size()) ||
      !isa<FloatType, IntegerType>(element))
    return fail("has a wrong dimension or type");
  Value init = createEmpty(shape, element);
  bool isFloat = isa<FloatType>(element);
  Type integer = isFloat ? builder.getI64Type() : element;
  return createGeneric(
      builder, {}, init, {}, {}, [&](ImplicitLocOpBuilder &b, ValueRange) {
        Value index = linalg::IndexOp::create(b, dim);
        Value number = arith::IndexCastOp::create(b, integer, index);
        auto constant = [&](int64_t value) -> Value {
          return arith::ConstantOp::create(b, b.getIntegerAttr(integer, value));
        };
        if (step != 1)
          number = arith::MulIOp::create(b, number, constant(step));
        if (start != 0)
          number = arith::AddIOp::create(b, number, constant(start));
        if (isFloat)
          number = arith::SIToFPOp::create(b, element, number);
        return number;
      });
}

Value Converter::convertElementwise(StringRef name, ValueRange operands,
                                    RankedTensorType type) {
  RankedTensorType source = getType(operands[0]);
  Type element = source.getElementType();
  bool isFloat = isa<FloatType>(element), isBool = element.isInteger(1);
  Value x = operands[0];
  auto number = [&](double value) { return createSplatLike(x, value); };
  if (name == "negate" || name == "neg") {
    if (isFloat)
      return apply<arith::NegFOp>(type, x);
    return arith::SubIOp::create(builder, number(0), x);
  }
  if (name == "logistic" || name == "sigmoid") {
    // exp(12) is infinite in f16, but the result is not 0.
    if (isFloat && cast<FloatType>(element).getWidth() < 32) {
      RankedTensorType wide = type.clone(builder.getF32Type());
      Value result =
          convertElementwise(name, apply<arith::ExtFOp>(wide, x), wide);
      return apply<arith::TruncFOp>(type, result);
    }
    Value exp = apply<math::ExpOp>(type, apply<arith::NegFOp>(type, x));
    return arith::DivFOp::create(
        builder, number(1), arith::AddFOp::create(builder, number(1), exp));
  }
  if (name == "reciprocal")
    return arith::DivFOp::create(builder, number(1), x);
  if (name == "relu")
    return arith::MaximumFOp::create(builder, x, number(0));
  if (name == "silu")
    return arith::MulFOp::create(builder, x,
                                 convertElementwise("sigmoid", x, type));
  if (name == "gelu") {
    Value scaled = arith::MulFOp::create(builder, x, number(std::sqrt(0.5)));
    Value sum = arith::AddFOp::create(builder, number(1),
                                      apply<math::ErfOp>(type, scaled));
    Value half = arith::MulFOp::create(builder, x, number(0.5));
    return arith::MulFOp::create(builder, half, sum);
  }
  if (name == "sign" && isFloat) {
    // 0 and NaN are their own sign.
    Value one = apply<math::CopySignOp>(type, {number(1), x});
    Value isSigned =
        arith::CmpFOp::create(builder, arith::CmpFPredicate::ONE, x, number(0));
    return arith::SelectOp::create(builder, isSigned, one, x);
  }
  if (name == "sign" && isa<IntegerType>(element) && !isBool) {
    Value low = arith::MaxSIOp::create(builder, x, number(-1));
    return arith::MinSIOp::create(builder, low, number(1));
  }
  if (name.starts_with("shift_") && isa<IntegerType>(element) && !isBool) {
    // Shifts by the width or more give 0, or the sign.
    bool isArithmetic = name == "shift_right_arithmetic";
    unsigned width = element.getIntOrFloatBitWidth();
    Value amount = operands[1], last = number(width - 1);
    Value isInside =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::ule, amount, last);
    amount = arith::MinUIOp::create(builder, amount, last);
    if (isArithmetic)
      return arith::ShRSIOp::create(builder, x, amount);
    Value shifted = name == "shift_left"
                        ? Value(arith::ShLIOp::create(builder, x, amount))
                        : Value(arith::ShRUIOp::create(builder, x, amount));
    return arith::SelectOp::create(builder, isInside, shifted, number(0));
  }
  if (hasUnsignedOperand() && isa<IntegerType>(element)) {
    if (name == "maximum")
      return arith::MaxUIOp::create(builder, x, operands[1]);
    if (name == "minimum")
      return arith::MinUIOp::create(builder, x, operands[1]);
  }
  if (name == "not" || name == "logical_not" || name == "bitwise_not") {
    if (name == "logical_not" && !isBool)
      return convertTo(compare("EQ", x, number(0)), element);
    return arith::XOrIOp::create(builder, x, number(isBool ? 1 : -1));
  }
  if (name == "is_finite")
    return apply<math::IsFiniteOp>(type, x);
  if (name == "complex")
    return apply<complex::CreateOp>(type, operands);
  if (name == "real" || name == "imag") {
    if (!isa<ComplexType>(element))
      return name == "real" ? x : number(0);
    return name == "real" ? apply<complex::ReOp>(type, x)
                          : apply<complex::ImOp>(type, x);
  }
  if ((name == "divide" || name == "div" || name == "remainder") &&
      isa<IntegerType>(element)) {
    // Division by zero gives -1, and a remainder by zero the dividend.
    Value zero = number(0), isZero = compare("EQ", operands[1], zero);
    Value divisor =
        arith::SelectOp::create(builder, isZero, number(1), operands[1]);
    bool isUnsigned = hasUnsignedOperand();
    Value result =
        name == "remainder"
            ? (isUnsigned ? Value(arith::RemUIOp::create(builder, x, divisor))
                          : Value(arith::RemSIOp::create(builder, x, divisor)))
        : isUnsigned ? Value(arith::DivUIOp::create(builder, x, divisor))
                     : Value(arith::DivSIOp::create(builder, x, divisor));
    Value other = name == "remainder" ? x : number(-1);
    return arith::SelectOp::create(builder, isZero, other, result);
  }
  std::optional<StringRef> target = getScalarOperation(name, element);
  return target ? createElementwise(*target, type, operands) : Value();
}
