//===- Smt.cpp - integers of IR as formulas of a solver -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Smt.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::posenc::proofs;
using llvm::StringRef;

static Term number(const APInt &value) {
  llvm::SmallString<24> digits;
  value.abs().toString(digits, 10, /*Signed=*/false);
  return value.isNegative() ? "(- " + digits.str().str() + ")"
                            : digits.str().str();
}

Term mlir::posenc::proofs::number(int64_t value) {
  return ::number(APInt(80, value, /*isSigned=*/true));
}

/// Returns 2^exponent.
static Term power(unsigned exponent) {
  return ::number(APInt::getOneBitSet(80, exponent));
}

Term mlir::posenc::proofs::call(StringRef function, ArrayRef<Term> arguments) {
  std::string text = "(" + function.str();
  // The solver refuses unknown names, so a term that was not set is an error.
  for (const Term &argument : arguments)
    text += " " + (argument.empty() ? Term("missing") : argument);
  return text + ")";
}

Term mlir::posenc::proofs::all(ArrayRef<Term> conditions) {
  return conditions.empty() ? "true" : call("and", conditions);
}

Term mlir::posenc::proofs::any(ArrayRef<Term> conditions) {
  return conditions.empty() ? "false" : call("or", conditions);
}

static bool isBool(Type type) { return type.isInteger(1); }

static unsigned getWidth(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

Term Encoder::fail(const Twine &message) {
  if (error.empty())
    error = message.str();
  return "unknown";
}

Term Encoder::declareInteger(StringRef name) {
  Term term = name.str() + "." + std::to_string(numNames++);
  text += "(declare-const " + term + " Int)\n";
  return term;
}

Term Encoder::declare(Type type, StringRef name) {
  if (!isBool(type)) {
    Term term = declareInteger(name);
    unsigned width = getWidth(type);
    assume(between(call("-", {power(width - 1)}), term,
                   minus(power(width - 1), "1")));
    return term;
  }
  Term term = name.str() + "." + std::to_string(numNames++);
  text += "(declare-const " + term + " Bool)\n";
  return term;
}

Term Encoder::define(const Term &term, bool isBool) {
  if (term.find(' ') == Term::npos)
    return term;
  Term name = "v" + std::to_string(numNames++);
  text += "(define-fun " + name + " () " + (isBool ? "Bool " : "Int ") + term +
          ")\n";
  return name;
}

Term Encoder::getElement(Value tensor, ArrayRef<Term> indices) {
  auto [name, isNew] = tensors.try_emplace(tensor);
  Type element = getElementTypeOrSelf(tensor.getType());
  if (isNew) {
    name->second = "tensor" + std::to_string(numNames++);
    text += "(declare-fun " + name->second + " (";
    for (size_t i = 0; i < indices.size(); ++i)
      text += i ? " Int" : "Int";
    text += isBool(element) ? ") Bool)\n" : ") Int)\n";
  }
  Term term = indices.empty() ? name->second : call(name->second, indices);
  if (isBool(element) || !declared.insert({term, true}).second)
    return term;
  unsigned width = getWidth(element);
  assume(between(call("-", {power(width - 1)}), term,
                 minus(power(width - 1), "1")));
  return term;
}

Term Encoder::get(OpFoldResult value) {
  if (auto attribute = dyn_cast<Attribute>(value))
    return number(cast<IntegerAttr>(attribute).getInt());
  return get(cast<Value>(value));
}

Term Encoder::get(Value value) {
  for (auto &scope : llvm::reverse(scopes))
    if (auto known = scope.find(value); known != scope.end())
      return known->second;
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return fail("an argument without a meaning");
  // An operation of an outer scope would be encoded again in each iteration,
  // with the same result.
  Term term = define(encode(result.getOwner(), result.getResultNumber()),
                     isBool(value.getType()));
  bind(value, term);
  return term;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Returns the number of the same bits in the width. `isOnce` says that at most
/// one power of two is missing.
Term Encoder::wrap(const Term &sum, unsigned width, bool isOnce) {
  Term name = define(sum, /*isBool=*/false);
  Term half = power(width - 1), whole = power(width);
  if (isOnce)
    return call("ite",
                {less(name, call("-", {half})), plus(name, whole),
                 call("ite", {atMost(half, name), minus(name, whole), name})});
  return minus(call("mod", {plus(name, half), whole}), half);
}

Term Encoder::toUnsigned(const Term &x, unsigned width) {
  return call("ite", {less(x, "0"), plus(x, power(width)), x});
}

/// The quotient by a positive number, rounded towards zero.
Term Encoder::divide(const Term &x, int64_t divisor) {
  Term by = number(divisor);
  return call("ite",
              {less(x, "0"), call("-", {call("div", {call("-", {x}), by})}),
               call("div", {x, by})});
}

static const char *getOrder(arith::CmpIPredicate predicate) {
  using arith::CmpIPredicate;
  switch (predicate) {
  case CmpIPredicate::eq:
    return "=";
  case CmpIPredicate::ne:
    return "distinct";
  case CmpIPredicate::slt:
  case CmpIPredicate::ult:
    return "<";
  case CmpIPredicate::sle:
  case CmpIPredicate::ule:
    return "<=";
  case CmpIPredicate::sgt:
  case CmpIPredicate::ugt:
    return ">";
  case CmpIPredicate::sge:
  case CmpIPredicate::uge:
    return ">=";
  }
  llvm_unreachable("an unknown predicate");
}

Term Encoder::encodeArith(Operation *op) {
  Type type = op->getResult(0).getType();
  unsigned width = getWidth(type);
  SmallVector<Term> x;
  for (Value operand : op->getOperands())
    x.push_back(get(operand));
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    arith::CmpIPredicate predicate = compare.getPredicate();
    Type compared = compare.getLhs().getType();
    if (isBool(compared) && predicate > arith::CmpIPredicate::ne)
      return fail("an order of i1");
    if (predicate >= arith::CmpIPredicate::ult)
      for (Term &term : x)
        term = toUnsigned(term, getWidth(compared));
    return call(getOrder(predicate), x);
  }
  if (isa<arith::SelectOp>(op))
    return fault == Fault::Check && !isBool(type) ? x[1] : call("ite", x);
  if (isBool(type)) {
    if (isa<arith::AndIOp>(op))
      return call("and", x);
    if (isa<arith::OrIOp>(op))
      return call("or", x);
    if (isa<arith::XOrIOp>(op))
      return call("xor", x);
    if (isa<arith::TruncIOp>(op))
      return call("=", {call("mod", {x[0], "2"}), "1"});
    return fail(op->getName().getStringRef() + " of i1");
  }
  if (isa<arith::ExtUIOp, arith::ExtSIOp>(op) &&
      isBool(op->getOperand(0).getType()))
    return call("ite", {x[0], isa<arith::ExtUIOp>(op) ? "1" : "(- 1)", "0"});
  auto operand = [&](unsigned i) -> std::optional<int64_t> {
    APInt constant;
    if (matchPattern(op->getOperand(i), m_ConstantInt(&constant)))
      return constant.getSExtValue();
    return std::nullopt;
  };
  auto byDivisor = [&](auto quotient) {
    std::optional<int64_t> divisor = operand(1);
    if (!divisor || *divisor <= 0)
      return fail(op->getName().getStringRef() + " by no positive constant");
    return quotient(*divisor);
  };
  auto byShift = [&](auto shifted) {
    std::optional<int64_t> bits = operand(1);
    if (!bits || *bits < 0 || *bits >= width)
      return fail(op->getName().getStringRef() + " by no constant");
    return shifted(power(*bits));
  };
  auto select = [&](StringRef order, const Term &a, const Term &b) {
    if (fault == Fault::MinMax)
      order = order == "<" ? ">" : "<";
    return call("ite", {call(order, {a, b}), a, b});
  };
  auto minMaxU = [&](StringRef order) {
    return call(
        "ite", {call(order, {toUnsigned(x[0], width), toUnsigned(x[1], width)}),
                x[0], x[1]});
  };
  auto divideU = [&](StringRef function) {
    return byDivisor([&](int64_t divisor) {
      return wrap(call(function, {toUnsigned(x[0], width), number(divisor)}),
                  width, /*isOnce=*/true);
    });
  };
  return llvm::TypeSwitch<Operation *, Term>(op)
      .Case<arith::AddIOp, arith::SubIOp>([&](auto) {
        Term sum = call(isa<arith::AddIOp>(op) ? "+" : "-", x);
        if (fault == Fault::OffByOne)
          sum = plus(sum, "1");
        return wrap(sum, width, fault != Fault::OffByOne);
      })
      .Case([&](arith::MulIOp) {
        return wrap(call("*", x), width, /*isOnce=*/false);
      })
      .Case([&](arith::DivSIOp) {
        return byDivisor([&](int64_t by) { return divide(x[0], by); });
      })
      .Case([&](arith::FloorDivSIOp) {
        return byDivisor(
            [&](int64_t by) { return call("div", {x[0], number(by)}); });
      })
      .Case([&](arith::CeilDivSIOp) {
        return byDivisor([&](int64_t by) {
          return call("-", {call("div", {call("-", {x[0]}), number(by)})});
        });
      })
      .Case([&](arith::RemSIOp) {
        return byDivisor([&](int64_t by) {
          return minus(x[0], call("*", {number(by), divide(x[0], by)}));
        });
      })
      .Case([&](arith::DivUIOp) { return divideU("div"); })
      .Case([&](arith::RemUIOp) { return divideU("mod"); })
      .Case([&](arith::ShLIOp) {
        return byShift([&](const Term &factor) {
          return wrap(call("*", {x[0], factor}), width, /*isOnce=*/false);
        });
      })
      .Case([&](arith::ShRSIOp) {
        return byShift(
            [&](const Term &factor) { return call("div", {x[0], factor}); });
      })
      .Case([&](arith::ShRUIOp) {
        return byShift([&](const Term &factor) {
          return wrap(call("div", {toUnsigned(x[0], width), factor}), width,
                      /*isOnce=*/true);
        });
      })
      .Case([&](arith::MinSIOp) { return select("<", x[0], x[1]); })
      .Case([&](arith::MaxSIOp) { return select(">", x[0], x[1]); })
      .Case([&](arith::MinUIOp) { return minMaxU("<"); })
      .Case([&](arith::MaxUIOp) { return minMaxU(">"); })
      .Case([&](math::AbsIOp) {
        return wrap(call("ite", {less(x[0], "0"), call("-", {x[0]}), x[0]}),
                    width, /*isOnce=*/true);
      })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(
          [&](auto) { return wrap(x[0], width, /*isOnce=*/false); })
      .Case<arith::IndexCastUIOp, arith::ExtUIOp>([&](auto) {
        return wrap(toUnsigned(x[0], getWidth(op->getOperand(0).getType())),
                    width, /*isOnce=*/false);
      })
      .Default([&](Operation *) {
        return fail("no semantics of " + op->getName().getStringRef());
      });
}

Term Encoder::encodeAffine(AffineExpr expr, ArrayRef<Term> dims,
                           ArrayRef<Term> symbols) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return number(constant.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Term left = encodeAffine(binary.getLHS(), dims, symbols),
       right = encodeAffine(binary.getRHS(), dims, symbols);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return plus(left, right);
  case AffineExprKind::Mul:
    return call("*", {left, right});
  case AffineExprKind::FloorDiv:
    return call("div", {left, right});
  case AffineExprKind::CeilDiv:
    return call("-", {call("div", {call("-", {left}), right})});
  case AffineExprKind::Mod:
    return call("mod", {left, right});
  default:
    llvm_unreachable("not a binary expression");
  }
}

/// Unrolls a loop. A claim about more iterations must not depend on it.
Term Encoder::encodeLoop(Operation *op, unsigned result) {
  auto loop = cast<scf::ForOp>(op);
  Term index = get(loop.getLowerBound()), end = get(loop.getUpperBound());
  SmallVector<Term> state;
  for (Value init : loop.getInitArgs())
    state.push_back(get(init));
  for (int i = 0; i < kUnrolled; ++i) {
    push();
    bind(loop.getInductionVar(), index);
    for (auto [argument, term] :
         llvm::zip_equal(loop.getRegionIterArgs(), state))
      bind(argument, term);
    Term runs = define(less(index, end), /*isBool=*/true);
    for (auto [value, term] :
         llvm::zip_equal(loop.getBody()->getTerminator()->getOperands(), state))
      term = define(call("ite", {runs, get(value), term}),
                    isBool(value.getType()));
    pop();
    index = define(plus(index, get(loop.getStep())), /*isBool=*/false);
  }
  assume(atMost(end, index));
  return state[result];
}

Term Encoder::encode(Operation *op, unsigned result) {
  Attribute constant;
  if (matchPattern(op, m_Constant(&constant))) {
    auto integer = dyn_cast<IntegerAttr>(constant);
    if (!integer)
      return fail("a constant that is no integer");
    if (isBool(integer.getType()))
      return integer.getValue().isZero() ? "false" : "true";
    return ::number(integer.getValue().sext(80));
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<int64_t> number = dim.getConstantIndex();
    auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
    if (number && type && !type.isDynamicDim(*number))
      return mlir::posenc::proofs::number(type.getDimSize(*number));
    if (!isa<BlockArgument>(dim.getSource()) || !number)
      return fail("a size of no argument");
    std::string key =
        "size" +
        std::to_string(cast<BlockArgument>(dim.getSource()).getArgNumber()) +
        "_" + std::to_string(*number);
    if (declared.insert({key, true}).second) {
      text += "(declare-const " + key + " Int)\n";
      assume(between("0", key, power(sizeBits)));
    }
    return key;
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<Term> indices;
    for (Value index : extract.getIndices())
      indices.push_back(get(index));
    return getElement(extract.getTensor(), indices);
  }
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return call("ite",
                {get(branch.getCondition()),
                 get(branch.thenBlock()->getTerminator()->getOperand(result)),
                 get(branch.elseBlock()->getTerminator()->getOperand(result))});
  if (isa<scf::ForOp>(op))
    return encodeLoop(op, result);
  if (isa<affine::AffineApplyOp, affine::AffineMinOp, affine::AffineMaxOp>(
          op)) {
    AffineMap map = cast<AffineMapAttr>(op->getAttr("map")).getValue();
    SmallVector<Term> operands, results;
    for (Value operand : op->getOperands())
      operands.push_back(get(operand));
    ArrayRef<Term> terms(operands);
    for (AffineExpr expr : map.getResults())
      results.push_back(
          define(encodeAffine(expr, terms.take_front(map.getNumDims()),
                              terms.drop_front(map.getNumDims())),
                 /*isBool=*/false));
    Term least = results.front();
    bool isMax = isa<affine::AffineMaxOp>(op) != (fault == Fault::MinMax);
    for (const Term &other : ArrayRef<Term>(results).drop_front())
      least = define(
          call("ite", {call(isMax ? ">" : "<", {least, other}), least, other}),
          /*isBool=*/false);
    return least;
  }
  if (op->getNumResults() == 1 &&
      isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
          op->getDialect()) &&
      op->getResult(0).getType().isIntOrIndex())
    return encodeArith(op);
  return fail("no semantics of " + op->getName().getStringRef());
}

Claim mlir::posenc::proofs::claim(StringRef rule, const Encoder &encoder,
                                  const Term &condition) {
  if (!encoder.getError().empty())
    return {rule.str(), "(echo \"" + encoder.getError() + "\")\n",
            "(assert false)\n"};
  return {rule.str(), encoder.getText(), "(assert (not " + condition + "))\n"};
}
