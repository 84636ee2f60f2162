//===- Expr.cpp - values of tensor elements as expressions ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Expr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace mlir::posenc::raise;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

bool Expr::hasPart(llvm::function_ref<bool(const Expr *)> holds) const {
  SmallVector<const Expr *> stack{this};
  llvm::DenseSet<const Expr *> seen;
  while (!stack.empty()) {
    const Expr *next = stack.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (holds(next))
      return true;
    llvm::append_range(stack, next->operands);
  }
  return false;
}

std::optional<int64_t> Expr::getIndexConstant() const {
  if (kind == Kind::Index)
    if (auto number = dyn_cast<AffineConstantExpr>(index))
      return number.getValue();
  return std::nullopt;
}

std::optional<double> Expr::getFloatConstant() const {
  if (kind == Kind::Constant)
    if (auto number = dyn_cast<FloatAttr>(constant))
      return number.getValueAsDouble();
  return std::nullopt;
}

std::optional<bool> Expr::getBoolConstant() const {
  if (kind == Kind::Constant && type.isInteger(1))
    return cast<IntegerAttr>(constant).getValue().getBoolValue();
  return std::nullopt;
}

void Expr::Profile(llvm::FoldingSetNodeID &id) const {
  id.AddInteger(static_cast<int>(kind));
  id.AddPointer(type.getAsOpaquePointer());
  id.AddPointer(index ? index.getAsOpaquePointer() : nullptr);
  id.AddPointer(constant ? constant.getAsOpaquePointer() : nullptr);
  id.AddPointer(tensor ? tensor.getAsOpaquePointer() : nullptr);
  if (name)
    id.AddPointer(name->getAsOpaquePointer());
  id.AddPointer(properties ? properties.getAsOpaquePointer() : nullptr);
  for (const Expr *operand : operands)
    id.AddPointer(operand);
}

//===----------------------------------------------------------------------===//
// Affine expressions of bounded indices
//===----------------------------------------------------------------------===//

static IndexRange constantRange(int64_t number) { return {number, number}; }

static IndexRange add(const IndexRange &a, const IndexRange &b) {
  IndexRange sum;
  if (a.min && b.min)
    sum.min = llvm::checkedAdd(*a.min, *b.min);
  if (a.max && b.max)
    sum.max = llvm::checkedAdd(*a.max, *b.max);
  return sum;
}

static IndexRange scale(const IndexRange &a, int64_t factor) {
  IndexRange product;
  if (factor < 0) {
    if (a.max)
      product.min = llvm::checkedMul(*a.max, factor);
    if (a.min)
      product.max = llvm::checkedMul(*a.min, factor);
    return product;
  }
  if (a.min)
    product.min = llvm::checkedMul(*a.min, factor);
  if (a.max)
    product.max = llvm::checkedMul(*a.max, factor);
  return product;
}

IndexRange ExprContext::getRange(AffineExpr expr) {
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return constantRange(number.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    int64_t size = sizes[dim.getPosition()];
    IndexRange range{0, std::nullopt};
    if (!ShapedType::isDynamic(size))
      range.max = std::max<int64_t>(size - 1, 0);
    return range;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return {};
  IndexRange lhs = getRange(binary.getLHS());
  if (expr.getKind() == AffineExprKind::Add)
    return add(lhs, getRange(binary.getRHS()));
  auto right = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (!right)
    return {};
  int64_t number = right.getValue();
  if (expr.getKind() == AffineExprKind::Mul)
    return scale(lhs, number);
  if (number <= 0)
    return {};
  if (expr.getKind() == AffineExprKind::Mod) {
    IndexRange range = {0, number - 1};
    if (lhs.min && *lhs.min >= 0 && lhs.max)
      range.max = std::min(*range.max, *lhs.max);
    return range;
  }
  if (expr.getKind() != AffineExprKind::FloorDiv)
    return {};
  IndexRange quotient;
  auto floorDiv = [&](int64_t value) {
    return llvm::divideFloorSigned(value, number);
  };
  if (lhs.min)
    quotient.min = floorDiv(*lhs.min);
  if (lhs.max)
    quotient.max = floorDiv(*lhs.max);
  return quotient;
}

/// Appends the terms of a sum.
static void collectTerms(AffineExpr expr, SmallVectorImpl<AffineExpr> &terms) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && expr.getKind() == AffineExprKind::Add) {
    collectTerms(binary.getLHS(), terms);
    collectTerms(binary.getRHS(), terms);
    return;
  }
  terms.push_back(expr);
}

AffineExpr ExprContext::simplify(AffineExpr expr) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return expr;
  AffineExpr lhs = simplify(binary.getLHS()), rhs = simplify(binary.getRHS());
  expr = getAffineBinaryOpExpr(expr.getKind(), lhs, rhs);
  auto divisor = dyn_cast<AffineConstantExpr>(rhs);
  AffineExprKind kind = binary.getKind();
  if (!divisor || divisor.getValue() <= 0 ||
      (kind != AffineExprKind::FloorDiv && kind != AffineExprKind::Mod))
    return simplifyAffineExpr(expr, sizes.size(), symbols.size());
  // Quotients of quotients and of remainders have one form.
  if (auto inner = dyn_cast<AffineBinaryOpExpr>(lhs);
      inner && kind == AffineExprKind::FloorDiv) {
    auto number = dyn_cast<AffineConstantExpr>(inner.getRHS());
    int64_t by = divisor.getValue();
    if (number && number.getValue() > 0 &&
        inner.getKind() == AffineExprKind::FloorDiv)
      if (std::optional<int64_t> both = llvm::checkedMul(number.getValue(), by))
        return simplify(inner.getLHS().floorDiv(*both));
    if (number && number.getValue() % by == 0 &&
        inner.getKind() == AffineExprKind::Mod)
      return simplify(inner.getLHS().floorDiv(by) % (number.getValue() / by));
  }
  // Splits the sum into multiples of the divisor and a rest that is smaller.
  SmallVector<AffineExpr> terms;
  collectTerms(lhs, terms);
  AffineExpr multiples = getAffineConstantExpr(0, context), rest = multiples;
  for (AffineExpr term : terms) {
    bool isMultiple = term.isMultipleOf(divisor.getValue());
    (isMultiple ? multiples : rest) = (isMultiple ? multiples : rest) + term;
  }
  IndexRange range = getRange(rest);
  if (range.min && *range.min >= 0 && range.max &&
      *range.max < divisor.getValue())
    return kind == AffineExprKind::Mod
               ? rest
               : simplifyAffineExpr(multiples.floorDiv(divisor), sizes.size(),
                                    symbols.size());
  return simplifyAffineExpr(expr, sizes.size(), symbols.size());
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

const Expr *ExprContext::unique(Expr &expr) {
  llvm::FoldingSetNodeID id;
  expr.Profile(id);
  void *position;
  if (Expr *known = exprs.FindNodeOrInsertPos(id, position))
    return known;
  auto *copy = new (allocator.Allocate<Expr>()) Expr(expr);
  copy->operands = expr.operands.copy(allocator);
  copy->id = numExprs++;
  exprs.InsertNode(copy, position);
  return copy;
}

const Expr *ExprContext::getIndex(AffineExpr index, Type type) {
  Expr expr;
  expr.kind = Expr::Kind::Index;
  expr.type = type ? type : IndexType::get(context);
  expr.index = simplify(index);
  return unique(expr);
}

const Expr *ExprContext::getSymbol(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)) &&
      constant.isSignedIntN(64))
    return getIndex(getAffineConstantExpr(constant.getSExtValue(), context),
                    value.getType());
  auto *it = llvm::find(symbols, value);
  unsigned position = it - symbols.begin();
  if (it == symbols.end())
    symbols.push_back(value);
  return getIndex(getAffineSymbolExpr(position, context), value.getType());
}

const Expr *ExprContext::getConstant(TypedAttr constant) {
  if (auto number = dyn_cast<IntegerAttr>(constant);
      number && !number.getType().isInteger(1) &&
      number.getValue().isSignedIntN(64))
    return getIndex(
        getAffineConstantExpr(number.getValue().getSExtValue(), context),
        number.getType());
  Expr expr;
  expr.kind = Expr::Kind::Constant;
  expr.type = constant.getType();
  expr.constant = constant;
  return unique(expr);
}

const Expr *ExprContext::getElement(Value tensor,
                                    ArrayRef<const Expr *> indices) {
  Expr expr;
  expr.kind = Expr::Kind::Element;
  expr.type = cast<RankedTensorType>(tensor.getType()).getElementType();
  expr.tensor = tensor;
  expr.operands = indices;
  tensors.try_emplace(tensor, tensors.size() + 1);
  return unique(expr);
}

/// Returns the truth of a comparison of numbers whose difference has the range,
/// or nullopt if it depends on the numbers.
static std::optional<bool> compare(arith::CmpIPredicate predicate,
                                   const IndexRange &difference) {
  bool isZero = difference.min == 0 && difference.max == 0;
  bool isPositive = difference.min && *difference.min > 0;
  bool isNegative = difference.max && *difference.max < 0;
  bool notNegative = difference.min && *difference.min >= 0;
  bool notPositive = difference.max && *difference.max <= 0;
  auto decide = [](bool yes, bool no) -> std::optional<bool> {
    if (yes || no)
      return yes;
    return std::nullopt;
  };
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return decide(isZero, isPositive || isNegative);
  case arith::CmpIPredicate::ne:
    return decide(isPositive || isNegative, isZero);
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return decide(isNegative, notNegative);
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return decide(notPositive, isPositive);
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return decide(isPositive, notPositive);
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    return decide(notNegative, isNegative);
  }
  return std::nullopt;
}

/// Folds integer operations on affine functions of the loops' indices. Indices
/// are assumed not to wrap.
const Expr *ExprContext::foldIndices(OperationName name, Attribute properties,
                                     Type type,
                                     ArrayRef<const Expr *> operands) {
  if (!llvm::all_of(operands, [](const Expr *operand) {
        return operand->kind == Expr::Kind::Index;
      }))
    return nullptr;
  // Narrow integers wrap, unless the numbers are known to fit.
  auto getInteger = [&](AffineExpr number) -> const Expr * {
    unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    IndexRange range = getRange(simplify(number));
    bool fits = range.min && range.max && llvm::isIntN(bits, *range.min) &&
                llvm::isIntN(bits, *range.max);
    return bits >= 32 || fits ? getIndex(number, type) : nullptr;
  };
  if (Expr::isAnyOf<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
                    arith::TruncIOp>(name) &&
      !type.isInteger(1))
    return getInteger(operands[0]->index);
  if (operands.size() != 2)
    return nullptr;
  AffineExpr lhs = operands[0]->index, rhs = operands[1]->index;
  if (Expr::isAnyOf<arith::AddIOp>(name))
    return getInteger(lhs + rhs);
  if (Expr::isAnyOf<arith::SubIOp>(name))
    return getInteger(lhs - rhs);
  if (Expr::isAnyOf<arith::CmpIOp>(name)) {
    auto predicate = cast<DictionaryAttr>(properties)
                         .getAs<arith::CmpIPredicateAttr>("predicate");
    // As unsigned numbers, negative ones are large.
    auto isNatural = [&](AffineExpr number) {
      IndexRange range = getRange(number);
      return range.min && *range.min >= 0;
    };
    if (predicate.getValue() >= arith::CmpIPredicate::ult &&
        !(isNatural(lhs) && isNatural(rhs)))
      return nullptr;
    std::optional<bool> truth =
        compare(predicate.getValue(), getRange(simplify(lhs - rhs)));
    return truth ? getConstant(BoolAttr::get(context, *truth)) : nullptr;
  }
  if (Expr::isAnyOf<arith::MaxSIOp, arith::MinSIOp>(name)) {
    std::optional<bool> isFirst =
        compare(Expr::isAnyOf<arith::MaxSIOp>(name) ? arith::CmpIPredicate::sge
                                                    : arith::CmpIPredicate::sle,
                getRange(simplify(lhs - rhs)));
    return isFirst ? operands[*isFirst ? 0 : 1] : nullptr;
  }
  bool isConstant = isa<AffineConstantExpr>(rhs);
  if (Expr::isAnyOf<arith::XOrIOp>(name) && isConstant &&
      isa<AffineConstantExpr>(lhs))
    return getInteger(
        getAffineConstantExpr(cast<AffineConstantExpr>(lhs).getValue() ^
                                  cast<AffineConstantExpr>(rhs).getValue(),
                              context));
  if (Expr::isAnyOf<arith::MulIOp>(name) &&
      (isConstant || isa<AffineConstantExpr>(lhs)))
    return getInteger(lhs * rhs);
  auto divisor = dyn_cast<AffineConstantExpr>(rhs);
  IndexRange range = getRange(lhs);
  if (!divisor || divisor.getValue() <= 0 || !range.min || *range.min < 0)
    return nullptr;
  if (Expr::isAnyOf<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(name))
    return getIndex(lhs.floorDiv(rhs), type);
  if (Expr::isAnyOf<arith::RemSIOp, arith::RemUIOp>(name))
    return getIndex(lhs % rhs, type);
  return nullptr;
}

/// Expands complex arithmetic into that of real and imaginary parts.
const Expr *ExprContext::foldComplex(OperationName name,
                                     ArrayRef<const Expr *> operands) {
  if (!Expr::isAnyOf<complex::ReOp, complex::ImOp>(name))
    return nullptr;
  bool isReal = Expr::isAnyOf<complex::ReOp>(name);
  std::pair<const Expr *, unsigned> key(operands[0], isReal);
  if (auto it = complexParts.find(key); it != complexParts.end())
    return it->second;
  const Expr *part = computeComplexPart(operands[0], isReal);
  return complexParts[key] = part;
}

const Expr *ExprContext::computeComplexPart(const Expr *number, bool isReal) {
  auto part = [&](const Expr *of, bool real) {
    Type type = cast<ComplexType>(of->type).getElementType();
    StringRef op = real ? complex::ReOp::getOperationName()
                        : complex::ImOp::getOperationName();
    return getOperation(OperationName(op, context), getArithProperties(), type,
                        of);
  };
  if (number->is<complex::CreateOp>())
    return number->operands[isReal ? 0 : 1];
  if (number->is<complex::ConjOp>()) {
    const Expr *same = part(number->operands[0], isReal);
    return isReal ? same : getArith<arith::NegFOp>(same);
  }
  if (number->is<complex::AddOp>())
    return getArith<arith::AddFOp>(
        {part(number->operands[0], isReal), part(number->operands[1], isReal)});
  if (number->is<complex::SubOp>())
    return getArith<arith::SubFOp>(
        {part(number->operands[0], isReal), part(number->operands[1], isReal)});
  if (!number->is<complex::MulOp>())
    return nullptr;
  const Expr *a = number->operands[0], *b = number->operands[1];
  auto product = [&](bool realA, bool realB) {
    return getArith<arith::MulFOp>({part(a, realA), part(b, realB)});
  };
  if (isReal)
    return getArith<arith::SubFOp>(
        {product(true, true), product(false, false)});
  return getArith<arith::AddFOp>({product(true, false), product(false, true)});
}

static bool isFloat(const Expr *expr, double number) {
  return expr->getFloatConstant() == number;
}

const Expr *ExprContext::foldFloats(OperationName name, Type type,
                                    ArrayRef<const Expr *> operands) {
  if (Expr::isAnyOf<arith::MulFOp>(name))
    for (unsigned side : {0, 1})
      if (isFloat(operands[side], 1.0))
        return operands[1 - side];
  if (Expr::isAnyOf<arith::AddFOp>(name))
    for (unsigned side : {0, 1})
      if (isFloat(operands[side], 0.0))
        return operands[1 - side];
  if (Expr::isAnyOf<arith::SubFOp>(name) && isFloat(operands[1], 0.0))
    return operands[0];
  std::optional<double> number = operands[0]->getFloatConstant();
  if (Expr::isAnyOf<arith::ExtFOp, arith::TruncFOp>(name) && number)
    return getConstant(FloatAttr::get(type, *number));
  if (Expr::isAnyOf<arith::NegFOp>(name)) {
    if (operands[0]->is<arith::NegFOp>())
      return operands[0]->operands[0];
    if (number)
      return getConstant(FloatAttr::get(type, -*number));
  }
  return nullptr;
}

/// Folds operations on i1 of which one operand is a constant.
const Expr *ExprContext::foldConditions(OperationName name,
                                        Attribute properties,
                                        ArrayRef<const Expr *> operands) {
  for (unsigned side : {0, 1}) {
    if (operands.size() != 2)
      break;
    std::optional<bool> truth = operands[side]->getBoolConstant();
    if (!truth)
      continue;
    bool isAnd = Expr::isAnyOf<arith::AndIOp>(name),
         isOr = Expr::isAnyOf<arith::OrIOp>(name);
    if ((isAnd && !*truth) || (isOr && *truth))
      return operands[side];
    bool isNotEqual = Expr::isAnyOf<arith::XOrIOp>(name) ||
                      (Expr::isAnyOf<arith::CmpIOp>(name) &&
                       cast<DictionaryAttr>(properties)
                               .getAs<arith::CmpIPredicateAttr>("predicate")
                               .getValue() == arith::CmpIPredicate::ne);
    if (isAnd || isOr || (isNotEqual && !*truth))
      return operands[1 - side];
  }
  return nullptr;
}

Attribute ExprContext::getArithProperties() {
  return DictionaryAttr::get(
      context, NamedAttribute(StringAttr::get(context, "fastmath"),
                              arith::FastMathFlagsAttr::get(
                                  context, arith::FastMathFlags::none)));
}

/// Whether `a` is before `b` among the operands of a commutative operation. The
/// order must be the same in all lanes, although their elements are created
/// later than the constants that the first lane has, too.
bool ExprContext::isBefore(const Expr *a, const Expr *b) {
  if (a->kind != b->kind)
    return a->kind < b->kind;
  unsigned first = tensors.lookup(a->tensor),
           second = tensors.lookup(b->tensor);
  return std::tie(first, a->id) < std::tie(second, b->id);
}

const Expr *ExprContext::getOperation(OperationName name, Attribute properties,
                                      Type type,
                                      ArrayRef<const Expr *> operands) {
  if (const Expr *folded = foldIndices(name, properties, type, operands))
    return folded;
  if (const Expr *folded = foldComplex(name, operands))
    return folded;
  if (const Expr *folded = foldFloats(name, type, operands))
    return folded;
  if (Expr::isAnyOf<arith::SelectOp>(name)) {
    if (std::optional<bool> condition = operands[0]->getBoolConstant())
      return operands[*condition ? 1 : 2];
    if (operands[1] == operands[2])
      return operands[1];
    if (operands[1]->getBoolConstant() == true &&
        operands[2]->getBoolConstant() == false)
      return operands[0];
  }
  if (const Expr *folded = foldConditions(name, properties, operands))
    return folded;
  SmallVector<const Expr *> ordered(operands);
  if (name.hasTrait<OpTrait::IsCommutative>() && ordered.size() == 2 &&
      isBefore(ordered[1], ordered[0]))
    std::swap(ordered[0], ordered[1]);
  Expr expr;
  expr.kind = Expr::Kind::Operation;
  expr.type = type;
  expr.name = name;
  expr.properties = properties;
  expr.operands = ordered;
  return unique(expr);
}
