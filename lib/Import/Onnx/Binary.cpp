//===- Binary.cpp - operators of several tensors of equal shape -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If the operands are integers that follow from sizes, the result is computed
// here, so that shape arithmetic leaves no tensors behind.
//
//===----------------------------------------------------------------------===//

#include "Ops.h"
#include "Scalars.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

//===----------------------------------------------------------------------===//
// Arithmetic on sizes
//===----------------------------------------------------------------------===//

/// Computes an operator on constants, modulo 2^64; nullopt if it is not
/// arithmetic or the result is undefined.
static std::optional<int64_t> evaluate(StringRef op, int64_t x, int64_t y) {
  uint64_t a = x, b = y;
  if (op == "Add")
    return a + b;
  if (op == "Sub")
    return a - b;
  if (op == "Mul")
    return a * b;
  bool isRemainder = op == "Mod" || op == "Fmod";
  if ((op != "Div" && !isRemainder) || y == 0)
    return std::nullopt;
  // The quotient of the lowest number overflows.
  if (y == -1)
    return isRemainder ? 0 : -a;
  if (!isRemainder)
    return x / y;
  int64_t rest = x % y;
  bool isAdjusted = op == "Mod" && rest && (rest < 0) != (y < 0);
  return isAdjusted ? rest + y : rest;
}

/// Computes an operator on two sizes; invalid if the result is unknown. The
/// operator Fmod is Mod with the sign of the dividend.
static Size evaluate(SizeTable &sizes, StringRef op, const Size &x,
                     const Size &y) {
  using Term = SizeTable::Term;
  auto toSize = [](bool value) { return Size(value ? 1 : 0); };
  std::optional<int64_t> a = x.getConstant(), b = y.getConstant();
  if (a && b)
    if (std::optional<int64_t> result = evaluate(op, *a, *b))
      return *result;
  bool isEqual = x == y, differs = sizes.areDifferent(x, y);
  if (op == "Add")
    return x + y;
  if (op == "Sub")
    return x - y;
  if (op == "Mul")
    return x * y;
  if (op == "Min")
    return sizes.createTerm(Term::Min, x, y);
  if (op == "Max")
    return sizes.createTerm(Term::Max, x, y);
  if (op == "Div" || op == "Mod" || op == "Fmod") {
    // Terms round down. Quotients of numbers that are not negative do, too.
    if (!sizes.isNonNegative(y) || (op != "Mod" && !sizes.isNonNegative(x)))
      return Size::invalid();
    return sizes.createTerm(op == "Div" ? Term::Quotient : Term::Remainder, x,
                            y);
  }
  if (op == "Equal" && (isEqual || differs))
    return toSize(isEqual);
  if (op == "Less" || op == "GreaterOrEqual") {
    if (sizes.isAtMost(x + 1, y))
      return toSize(op == "Less");
    if (sizes.isAtMost(y, x))
      return toSize(op == "GreaterOrEqual");
  }
  if (op == "Greater" || op == "LessOrEqual") {
    if (sizes.isAtMost(y + 1, x))
      return toSize(op == "Greater");
    if (sizes.isAtMost(x, y))
      return toSize(op == "LessOrEqual");
  }
  // Conditions of branches; 1 or 0.
  if (op == "GreaterOrEqual" || op == "Less") {
    Size bit = sizes.createTerm(Term::IsAtLeast, x, y);
    return op == "Less" ? Size(1) - bit : bit;
  }
  if (op == "LessOrEqual" || op == "Greater") {
    Size bit = sizes.createTerm(Term::IsAtLeast, y, x);
    return op == "Greater" ? Size(1) - bit : bit;
  }
  if (a && b && op == "And")
    return toSize(*a && *b);
  if (a && b && op == "Or")
    return toSize(*a || *b);
  if (a && b && op == "Xor")
    return toSize(*a != *b);
  return Size::invalid();
}

/// Returns the elements of operands that are known, each repeated to the number
/// of elements of the result; nullopt if some are unknown.
static std::optional<SmallVector<SmallVector<Size>>>
getElements(ArrayRef<Tensor *> operands) {
  size_t count = 1;
  for (Tensor *operand : operands) {
    if (!operand->elements)
      return std::nullopt;
    if (operand->elements->size() != 1)
      count = operand->elements->size();
  }
  SmallVector<SmallVector<Size>> lists;
  for (Tensor *operand : operands) {
    const SmallVector<Size> &elements = *operand->elements;
    if (elements.size() == count)
      lists.push_back(elements);
    else if (elements.size() == 1)
      lists.emplace_back(count, elements.front());
    else
      return std::nullopt;
  }
  return lists;
}

/// Sets the output to an operator on sizes; returns false if that is not
/// possible.
static bool importSizes(NodeImporter &node, StringRef op,
                        ArrayRef<Tensor *> operands, Type element) {
  std::optional<SmallVector<SmallVector<Size>>> lists = getElements(operands);
  if (!lists)
    return false;
  int64_t rank = 0;
  for (Tensor *operand : operands)
    rank = std::max(rank, operand->getRank());
  SmallVector<Size> results = lists->front();
  for (ArrayRef<Size> list : ArrayRef(*lists).drop_front())
    for (auto [result, size] : llvm::zip_equal(results, list)) {
      result = evaluate(node.sizes, op, result, size);
      if (!result.isValid())
        return false;
    }
  std::optional<Tensor> tensor = createResults(node, element, results, rank);
  if (tensor)
    node.setOutput(0, std::move(*tensor));
  return tensor.has_value();
}

/// Before the opset `since`, operands have one shape, unless attributes say
/// otherwise, which are not supported.
static LogicalResult checkBroadcasting(NodeImporter &node,
                                       ArrayRef<Tensor *> operands,
                                       int64_t since) {
  for (Tensor *operand : operands)
    if (node.getOpset() < since && operand->shape != operands.front()->shape)
      return node.emitError() << "before opset " << since
                              << ", only inputs of one shape are supported";
  return success();
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Divides integers without the traps of a division by 0 and of an overflow.
static Value divide(Scalars &s, Value x, Value y, bool wantsRemainder) {
  Value zero = s.get(0), one = s.get(1);
  Value minus = s.get(-1);
  auto equals = [&](Value value) {
    return arith::CmpIOp::create(s, arith::CmpIPredicate::eq, y, value);
  };
  Value isMinus = equals(minus);
  Value isUnsafe = arith::OrIOp::create(s, equals(zero), isMinus);
  Value divisor = s.select(isUnsafe, one, y);
  if (wantsRemainder)
    return arith::RemSIOp::create(s, x, divisor);
  Value quotient = arith::DivSIOp::create(s, x, divisor);
  return s.select(isMinus, s.sub(zero, x), quotient);
}

/// The remainder with the sign of the dividend, or of the divisor.
static Value createMod(Scalars &s, Value x, Value y, bool hasSignOfDividend) {
  bool isFloat = isa<FloatType>(x.getType());
  Value rest = isFloat ? arith::RemFOp::create(s, x, y).getResult()
                       : divide(s, x, y, /*wantsRemainder=*/true);
  if (hasSignOfDividend)
    return rest;
  Value zero = s.get(0);
  if (isFloat) {
    // A remainder of zero has the sign of the divisor.
    Value differ =
        arith::XOrIOp::create(s, s.less(rest, zero), s.less(y, zero));
    Value adjusted = s.select(differ, s.add(rest, y), rest);
    return s.select(s.equal(rest, zero), math::CopySignOp::create(s, zero, y),
                    adjusted);
  }
  Value signs = arith::XOrIOp::create(s, rest, y);
  Value differ =
      arith::CmpIOp::create(s, arith::CmpIPredicate::slt, signs, zero);
  Value isWhole =
      arith::CmpIOp::create(s, arith::CmpIPredicate::eq, rest, zero);
  Value adjusted = s.select(differ, s.add(rest, y), rest);
  return s.select(isWhole, rest, adjusted);
}

static LogicalResult importArithmetic(NodeImporter &node) {
  StringRef op = node.node.op;
  SmallVector<Tensor *> operands;
  for (unsigned number = 0; number < node.node.inputs.size(); ++number) {
    if (!node.hasInput(number))
      return node.emitError() << "input " << number << " is missing";
    operands.push_back(&node.getInput(number));
    if (operands.back()->element != operands.front()->element)
      return node.emitError() << "the inputs differ in element type";
  }
  Type element = operands.front()->element;
  if (operands.front()->isBool())
    return node.emitError() << "expected numbers, found bool";
  bool isVariadic = op == "Max" || op == "Mean" || op == "Min" || op == "Sum";
  if (failed(checkBroadcasting(node, operands, isVariadic ? 8 : 7)))
    return failure();
  bool isFloat = isa<FloatType>(element);
  bool hasSignOfDividend = op == "Mod" && node.getInt("fmod", 0);
  if (op == "Mod" && isFloat && !hasSignOfDividend && node.getOpset() < 28)
    return node.emitError() << "floats require 'fmod' before opset 28";
  if (op == "Mean" && !isFloat)
    return node.emitError() << "expected floats, found " << element;
  if (!isFloat && operands.size() > 1 &&
      importSizes(node, hasSignOfDividend ? "Fmod" : op, operands, element))
    return success();
  return node.setResult(
      mapElements(node, operands, element, [&](Scalars &s, ValueRange args) {
        auto combine = [&](Value x, Value y) {
          if (op == "Add" || op == "Sum" || op == "Mean")
            return s.add(x, y);
          if (op == "Sub")
            return s.sub(x, y);
          if (op == "Mul")
            return s.mul(x, y);
          if (op == "Max")
            return s.max(x, y);
          if (op == "Min")
            return s.min(x, y);
          if (op == "Mod")
            return createMod(s, x, y, hasSignOfDividend);
          return isFloat ? s.div(x, y)
                         : divide(s, x, y, /*wantsRemainder=*/false);
        };
        Value value = s.convert(args[0]);
        for (Value arg : args.drop_front())
          value = combine(value, s.convert(arg));
        if (op == "Mean")
          value = s.div(value, s.get(args.size()));
        return value;
      }));
}

/// Returns the exponent if it is the same for all elements.
static std::optional<double> getExponent(const Tensor &tensor) {
  TypedAttr splat = getSplat(tensor);
  if (auto attr = dyn_cast_or_null<FloatAttr>(splat))
    return attr.getValueAsDouble();
  if (auto attr = dyn_cast_or_null<IntegerAttr>(splat))
    return static_cast<double>(attr.getValue().getSExtValue());
  return std::nullopt;
}

static LogicalResult importPow(NodeImporter &node) {
  Tensor &base = node.getInput(0), &exponent = node.getInput(1);
  Type element = base.element;
  Tensor *operands[] = {&base, &exponent};
  if (failed(checkBroadcasting(node, operands, 7)))
    return failure();
  std::optional<double> power = getExponent(exponent);
  bool isSmall =
      power && *power >= 0 && *power <= 4 && *power == std::floor(*power);
  if (base.isBool() || exponent.isBool())
    return node.emitError() << "expected numbers, found bool";
  if (!base.isFloat() && !isSmall)
    return node.emitError() << "integers need a constant exponent from 0 to 4";
  return node.setResult(mapElements(
      node, operands, element, [&](Scalars &s, ValueRange args) -> Value {
        Value x = s.convert(args[0]), value;
        if (isSmall) {
          value = *power == 0 ? s.get(1) : x;
          for (int i = 1; i < *power; ++i)
            value = s.mul(value, x);
        } else if (power == 0.5 || power == -0.5) {
          // Zeros and infinities have the power of their magnitudes.
          Value root = math::SqrtOp::create(s, math::AbsFOp::create(s, x));
          Value isNegative = arith::AndIOp::create(s, s.less(x, s.get(0)),
                                                   s.less(s.get(-INFINITY), x));
          value = s.select(isNegative, s.get(NAN),
                           *power > 0 ? root : s.div(s.get(1), root));
        } else if (power == -1) {
          value = s.div(s.get(1), x);
        } else {
          value = math::PowFOp::create(s, x, s.convert(args[1]));
        }
        return value;
      }));
}

//===----------------------------------------------------------------------===//
// Comparisons and logic
//===----------------------------------------------------------------------===//

static LogicalResult importComparison(NodeImporter &node) {
  StringRef op = node.node.op;
  Tensor *operands[] = {&node.getInput(0), &node.getInput(1)};
  Type element = operands[0]->element;
  if (operands[1]->element != element)
    return node.emitError() << "the inputs differ in element type";
  bool isLogic = op == "And" || op == "Or" || op == "Xor";
  if (isLogic && !element.isInteger(1))
    return node.emitError() << "expected bools, found " << element;
  if (failed(checkBroadcasting(node, operands, 7)))
    return failure();
  Type i1 = node.getI1Type();
  bool isFloat = isa<FloatType>(element);
  if (!isFloat && importSizes(node, op, operands, i1))
    return success();
  return node.setResult(mapElements(
      node, operands, i1, [&](Scalars &s, ValueRange args) -> Value {
        Value x = args[0], y = args[1];
        if (op == "And")
          return arith::AndIOp::create(s, x, y);
        if (op == "Or")
          return arith::OrIOp::create(s, x, y);
        if (op == "Xor")
          return arith::XOrIOp::create(s, x, y);
        if (isFloat) {
          Type wide = getWideType(element);
          auto kind = llvm::StringSwitch<arith::CmpFPredicate>(op)
                          .Case("Less", arith::CmpFPredicate::OLT)
                          .Case("LessOrEqual", arith::CmpFPredicate::OLE)
                          .Case("Greater", arith::CmpFPredicate::OGT)
                          .Case("GreaterOrEqual", arith::CmpFPredicate::OGE)
                          .Default(arith::CmpFPredicate::OEQ);
          return arith::CmpFOp::create(s, kind, s.convert(x, wide),
                                       s.convert(y, wide));
        }
        auto kind = llvm::StringSwitch<arith::CmpIPredicate>(op)
                        .Case("Less", arith::CmpIPredicate::slt)
                        .Case("LessOrEqual", arith::CmpIPredicate::sle)
                        .Case("Greater", arith::CmpIPredicate::sgt)
                        .Case("GreaterOrEqual", arith::CmpIPredicate::sge)
                        .Default(arith::CmpIPredicate::eq);
        return arith::CmpIOp::create(s, kind, x, y);
      }));
}

static LogicalResult importWhere(NodeImporter &node) {
  Tensor *operands[] = {&node.getInput(0), &node.getInput(1),
                        &node.getInput(2)};
  Type element = operands[1]->element;
  if (!operands[0]->isBool() || operands[2]->element != element)
    return node.emitError()
           << "expected a bool tensor and two tensors of one element type";
  if (auto lists = getElements(operands)) {
    SmallVector<Size> results;
    int64_t rank = 0;
    for (Tensor *operand : operands)
      rank = std::max(rank, operand->getRank());
    for (size_t i = 0; i < lists->front().size(); ++i) {
      std::optional<int64_t> condition = (*lists)[0][i].getConstant();
      const Size &x = (*lists)[1][i], &y = (*lists)[2][i];
      if (!condition && x != y)
        break;
      results.push_back(condition && !*condition ? y : x);
    }
    if (results.size() == lists->front().size())
      return node.setResult(createElements(element, results, rank));
  }
  return node.setResult(mapElements(
      node, operands, element, [&](Scalars &s, ValueRange args) -> Value {
        return arith::SelectOp::create(s, args[0], args[1], args[2]);
      }));
}

static LogicalResult importPRelu(NodeImporter &node) {
  Tensor *operands[] = {&node.getInput(0), &node.getInput(1)};
  Type element = operands[0]->element;
  if (!isa<FloatType>(element) || operands[1]->element != element)
    return node.emitError() << "expected floats of one type";
  return node.setResult(
      mapToFirst(node, operands, [&](Scalars &s, ValueRange args) {
        Value x = s.convert(args[0]), slope = s.convert(args[1]);
        return s.select(s.less(x, s.get(0)), s.mul(slope, x), x);
      }));
}

void onnx::addBinaryOperators(OperatorTable &table) {
  for (StringRef op : {"Add", "Sub", "Mul", "Div", "Mod"})
    table[op] = {2, 2, 1, importArithmetic};
  for (StringRef op : {"Max", "Mean", "Min", "Sum"})
    table[op] = {1, 64, 1, importArithmetic};
  table["Pow"] = {2, 2, 1, importPow};
  for (StringRef op : {"Equal", "Less", "LessOrEqual", "Greater",
                       "GreaterOrEqual", "And", "Or", "Xor"})
    table[op] = {2, 2, 1, importComparison};
  table["Where"] = {3, 3, 1, importWhere};
  table["PRelu"] = {2, 2, 1, importPRelu};
  setFirstOpsets(table, {{"PRelu", 7},
                         {"Where", 9},
                         {"Mod", 10},
                         {"GreaterOrEqual", 12},
                         {"LessOrEqual", 12}});
}
