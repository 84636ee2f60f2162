//===- SizeAnalysis.cpp - requirements of operations on sizes -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/SizeAnalysis.h"

#include "FlagAssertions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::posenc;

SizeAnalysis::SizeAnalysis(FunctionOpInterface function) : function(function) {
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    inputs[argument] = number;
    auto tensor = dyn_cast<RankedTensorType>(argument.getType());
    if (!tensor)
      continue;
    SmallVector<SizeExpr> &shape = shapes[argument];
    for (auto [dim, size] : llvm::enumerate(tensor.getShape()))
      shape.push_back(ShapedType::isDynamic(size)
                          ? symbols.createSize(number, dim)
                          : SizeExpr(size));
  }
  // Scalars come after sizes, so that a size is the representative of equal
  // scalars.
  for (BlockArgument argument : function.getArguments())
    if (argument.getType().isIntOrIndex())
      integers[argument] = symbols.createScalar(argument.getArgNumber());
    else if (AbiAttr::isSizeElement(argument.getType()))
      elements[argument] = symbols.createElement(argument.getArgNumber());
}

LogicalResult SizeAnalysis::run() {
  if (failed(visitBlock(function.getFunctionBody().front())))
    return failure();
  for (const Requirement &requirement : requirements)
    if (failed(finish(requirement)))
      return failure();
  return success();
}

/// Returns the value that was converted to another integer type.
static Value skipCasts(Value value) {
  while (auto *op = value.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::ExtSIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool SizeAnalysis::isCheckedElement(Value condition) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>())
    return isCheckedElement(both.getLhs()) && isCheckedElement(both.getRhs());
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return false;
  Value element = skipCasts(compare.getLhs());
  SizeExpr limit = getInteger(compare.getRhs());
  return llvm::any_of(checkedElements, [&](const auto &checked) {
    const auto &[value, low, size] = checked;
    if (value != element)
      return false;
    // The other side is at least the size, or at most the least number.
    switch (compare.getPredicate()) {
    case arith::CmpIPredicate::slt:
      return symbols.isNonNegative(resolve(limit - size));
    case arith::CmpIPredicate::sge:
      return symbols.isNonNegative(resolve(low - limit));
    default:
      return false;
    }
  });
}

bool SizeAnalysis::requireElement(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  // An unsigned comparison fails for a negative element, too.
  if (conditional || !compare ||
      compare.getPredicate() != arith::CmpIPredicate::ule)
    return false;
  SizeExpr element = getInteger(compare.getLhs()),
           limit = getInteger(compare.getRhs());
  if (symbols.isKnown(resolve(element)) || !symbols.isKnown(resolve(limit)) ||
      !symbols.isNonNegative(resolve(limit)))
    return false;
  auto read = skipCasts(compare.getLhs()).getDefiningOp<tensor::ExtractOp>();
  std::optional<unsigned> input =
      read ? getInput(read.getTensor()) : std::nullopt;
  if (input && AbiAttr::isSizeElement(read.getTensor().getType()) &&
      cast<RankedTensorType>(read.getTensor().getType()).getRank() == 1)
    return succeeded(requireBound(
        {BoundKind::Lengths, *input, {limit}, std::nullopt}, compare));
  if (!symbols.isComputable(resolve(element)))
    return false;
  for (auto [low, high] : {std::pair(SizeExpr(0), element), {element, limit}})
    requirements.push_back({RelationKind::AtMost, low, high, compare,
                            /*guards=*/{}, /*isAssumed=*/true});
  return true;
}

LogicalResult SizeAnalysis::runPartially() {
  isPartial = true;
  ScopedDiagnosticHandler silence(function.getContext(),
                                  [](Diagnostic &) { return success(); });
  if (failed(visitBlock(function.getFunctionBody().front())))
    return failure();
  for (const Requirement &requirement : requirements) {
    size_t numRelations = relations.size();
    bool failed = mlir::failed(finish(requirement));
    auto assertion = dyn_cast<cf::AssertOp>(requirement.op);
    if (assertion && (failed || relations.size() != numRelations))
      needed.insert(assertion);
  }
  function.walk([&](cf::AssertOp assertion) {
    if (!isCheckedElement(assertion.getArg()))
      return;
    needed.erase(assertion);
    unprovenAssertions.remove(assertion);
  });
  return success();
}

std::optional<bool> SizeAnalysis::getTruth(Value condition) {
  std::optional<SizeExpr> holds = select(condition, 1, 0);
  std::optional<int64_t> number =
      holds ? resolve(*holds).getConstant() : std::nullopt;
  return number ? std::optional(*number != 0) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

SmallVector<SizeExpr> SizeAnalysis::getShape(Value tensor) {
  auto type = cast<ShapedType>(tensor.getType());
  auto [entry, isNew] = shapes.try_emplace(tensor);
  if (isNew && type.hasRank())
    for (int64_t size : type.getShape())
      entry->second.push_back(ShapedType::isDynamic(size)
                                  ? symbols.createUnknown()
                                  : SizeExpr(size));
  return entry->second;
}

std::optional<SizeExpr> SizeAnalysis::getElement(Value tensor) const {
  auto known = elements.find(tensor);
  if (known == elements.end())
    return std::nullopt;
  return known->second;
}

void SizeAnalysis::setElement(Value tensor, SizeExpr element) {
  // Known sizes wrap around in tensors.
  if (symbols.isComputable(element) && !symbols.isKnown(element))
    elements[tensor] = std::move(element);
}

void SizeAnalysis::shareElement(Value from, Value to) {
  elements.erase(to);
  if (std::optional<SizeExpr> element = getElement(from))
    elements[to] = *element;
}

SizeExpr SizeAnalysis::getSize(Value tensor, int64_t dim) {
  return symbols.resolve(getShape(tensor)[dim], /*useConstants=*/false);
}

void SizeAnalysis::limitBytes(Type element, ArrayRef<SizeExpr> shape,
                              Operation *op) {
  if (!element.isIntOrIndexOrFloat())
    return;
  SizeExpr bytes(element.isIndex()
                     ? 8
                     : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
  for (const SizeExpr &size : shape)
    bytes = bytes * resolve(size);
  if (!symbols.isKnown(bytes) && symbols.isComputable(bytes))
    requireAtMost(bytes, int64_t{1} << 62, op);
}

void SizeAnalysis::setShape(Value tensor, ArrayRef<SizeExpr> shape,
                            Operation *op) {
  SmallVector<SizeExpr> copy(shape);
  auto type = cast<ShapedType>(tensor.getType());
  limitBytes(type.getElementType(), shape, op);
  for (auto [size, expr] : llvm::zip_equal(type.getShape(), copy)) {
    if (ShapedType::isDynamic(size)) {
      requireAtMost(0, expr, op);
      continue;
    }
    requireEqual(expr, size, op);
    expr = size;
  }
  shapes[tensor] = std::move(copy);
}

SizeExpr SizeAnalysis::getInteger(OpFoldResult value) {
  if (auto attribute = dyn_cast<Attribute>(value))
    return cast<IntegerAttr>(attribute).getValue().getSExtValue();
  APInt constant;
  if (matchPattern(cast<Value>(value), m_ConstantInt(&constant)))
    return constant.getSignificantBits() <= 64
               ? SizeExpr(constant.getSExtValue())
               : SizeExpr::invalid();
  auto [entry, isNew] = integers.try_emplace(cast<Value>(value));
  if (isNew)
    entry->second = symbols.createUnknown();
  return entry->second;
}

SmallVector<SizeExpr> SizeAnalysis::getIntegers(ArrayRef<OpFoldResult> values) {
  return llvm::map_to_vector(
      values, [&](OpFoldResult value) { return getInteger(value); });
}

std::optional<unsigned> SizeAnalysis::getInput(Value tensor) const {
  auto known = inputs.find(tensor);
  if (known == inputs.end())
    return std::nullopt;
  return known->second;
}

void SizeAnalysis::shareInput(Value from, Value to) {
  inputs.erase(to);
  if (std::optional<unsigned> input = getInput(from))
    inputs[to] = *input;
}

void SizeAnalysis::setCondition(Value value, arith::CmpIPredicate predicate,
                                SizeExpr left, SizeExpr right) {
  using arith::CmpIPredicate;
  bool isEquality =
      llvm::is_contained({CmpIPredicate::eq, CmpIPredicate::ne}, predicate);
  // a > b is b < a, and a <= b is that b < a is false.
  if (llvm::is_contained({CmpIPredicate::sgt, CmpIPredicate::ugt,
                          CmpIPredicate::sle, CmpIPredicate::ule},
                         predicate))
    std::swap(left, right);
  bool isNegated = llvm::is_contained({CmpIPredicate::ne, CmpIPredicate::sge,
                                       CmpIPredicate::uge, CmpIPredicate::sle,
                                       CmpIPredicate::ule},
                                      predicate);
  conditions[value] = {isEquality ? TermKind::IfEqual : TermKind::IfLess,
                       isNegated,
                       /*isUnsigned=*/predicate >= CmpIPredicate::ult,
                       std::move(left), std::move(right)};
}

std::optional<SizeExpr>
SizeAnalysis::select(Value condition, const SizeExpr &yes, const SizeExpr &no) {
  APInt constant;
  if (matchPattern(condition, m_ConstantInt(&constant)))
    return constant.isZero() ? no : yes;
  auto known = conditions.find(condition);
  if (known == conditions.end())
    return std::nullopt;
  const auto &[kind, isNegated, isUnsigned, left, right] = known->second;
  if (isUnsigned &&
      !(symbols.isNonNegative(left) && symbols.isNonNegative(right)))
    return std::nullopt;
  return symbols.createTerm(
      kind, {left, right, isNegated ? no : yes, isNegated ? yes : no});
}

//===----------------------------------------------------------------------===//
// Requirements
//===----------------------------------------------------------------------===//

void SizeAnalysis::requireEqual(const SizeExpr &a, const SizeExpr &b,
                                Operation *op) {
  if (a == b)
    return;
  Requirement requirement{RelationKind::Equal, a, b, op, guards};
  SizeExpr difference = a - b;
  // The quotient does not exist where the lowest number is negated.
  std::optional<SizeExpr> quotient =
      difference.divideExactly(std::max<int64_t>(difference.getDivisor(), 1));
  if (conditional || !quotient) {
    requirements.push_back(std::move(requirement));
    return;
  }
  // Differences of two symbols, or of a symbol and a constant, unify the two.
  SmallVector<unsigned> names = difference.getSymbols();
  const SizeExpr &reduced = *quotient;
  auto isSize = [&](unsigned symbol) {
    return symbols.get(symbol).kind == SizeSymbol::Kind::Size;
  };
  if (names.size() == 2 && isSize(names[0]) && isSize(names[1]) &&
      (reduced == SizeExpr::symbol(names[0]) - SizeExpr::symbol(names[1]) ||
       reduced == SizeExpr::symbol(names[1]) - SizeExpr::symbol(names[0]))) {
    symbols.unite(names[0], names[1]);
    if (isa<cf::AssertOp>(op))
      needed.insert(op);
    return;
  }
  if (names.size() == 1 && isSize(names[0])) {
    SizeExpr symbol = SizeExpr::symbol(names[0]);
    std::optional<int64_t> value = (symbol - reduced).getConstant();
    if (!value)
      value = (symbol + reduced).getConstant();
    if (value) {
      symbols.setConstant(names[0], *value);
      requirement.left = symbol;
      requirement.right = *value;
      requirement.isAssumed = true;
    }
  }
  requirements.push_back(std::move(requirement));
}

void SizeAnalysis::requireEqual(Value a, Value b, Operation *op) {
  for (auto [size, otherSize] : llvm::zip_equal(getShape(a), getShape(b)))
    requireEqual(size, otherSize, op);
}

void SizeAnalysis::requireAtMost(const SizeExpr &a, const SizeExpr &b,
                                 Operation *op) {
  Requirement requirement{RelationKind::AtMost, a, b, op, guards};
  std::optional<unsigned> symbol = b.getSymbol();
  if (!conditional && symbol && a == SizeExpr(0) &&
      (symbols.get(*symbol).kind == SizeSymbol::Kind::Scalar ||
       symbols.get(*symbol).kind == SizeSymbol::Kind::Element) &&
      !symbols.get(*symbol).isNonNegative) {
    symbols.setNonNegative(*symbol);
    requirement.isAssumed = true;
  } else if (symbols.isNonNegative(b - a)) {
    return;
  }
  requirements.push_back(std::move(requirement));
}

/// Emits an error about an operation whose sizes are not known.
static InFlightDiagnostic emitUnknown(Operation *op) {
  return op->emitError() << "sizes of '" << op->getName()
                         << "' depend on tensor elements or on too large an "
                            "expression, so entry points cannot check them: "
                            "make them arguments";
}

LogicalResult SizeAnalysis::requireBound(IndexBound bound, Operation *op) {
  SmallVector<SizeExpr> factors(bound.limit);
  if (bound.each)
    factors.push_back(*bound.each);
  if (!llvm::all_of(factors, [&](const SizeExpr &factor) {
        return symbols.isComputable(resolve(factor));
      }))
    return emitUnknown(op);
  bounds.push_back(std::move(bound));
  return success();
}

SmallVector<SizeAnalysis::Guard> SizeAnalysis::getGuards(Value condition,
                                                         bool isTrue) {
  std::optional<SizeExpr> holds = select(condition, 1, 0);
  if (!holds)
    return {};
  auto known = conditions.find(condition);
  if (known != conditions.end()) {
    const auto &[kind, isNegated, isUnsigned, left, right] = known->second;
    bool isLess = kind == TermKind::IfLess;
    if (isTrue != isNegated && isLess)
      return {{left, right}};
    if (isTrue != isNegated)
      return {{left, right + 1}, {right, left + 1}};
    if (isLess)
      return {{right, left + 1}};
  }
  if (isTrue)
    return {{0, *holds}};
  return {{*holds, 1}};
}

/// Adds why a kernel cannot report an assertion to an error about it.
static InFlightDiagnostic addReason(Operation *op, InFlightDiagnostic error) {
  if (auto assertion = dyn_cast<cf::AssertOp>(op)) {
    std::string reason = explainUnflagged(assertion);
    if (!reason.empty())
      error.attachNote() << "a kernel cannot report the assertion either: "
                         << reason;
  }
  return error;
}

LogicalResult SizeAnalysis::requireCondition(Value condition, Operation *op) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>())
    return success(succeeded(requireCondition(both.getLhs(), op)) &&
                   succeeded(requireCondition(both.getRhs(), op)));
  if (requireElement(condition)) {
    if (isa<cf::AssertOp>(op))
      needed.insert(op);
    return success();
  }
  std::optional<SizeExpr> holds = select(condition, 1, 0);
  if (!holds && isPartial) {
    unprovenAssertions.insert(cast<cf::AssertOp>(op));
    needed.insert(op);
    return success();
  }
  if (!holds)
    return addReason(op, op->emitError("expected a comparison of sizes, which "
                                       "entry points can check: kernels cannot "
                                       "abort the process; posenc-compile "
                                       "--assert=drop leaves assertions out"));
  auto known = conditions.find(condition);
  if (known == conditions.end()) {
    requireEqual(*holds, 1, op);
    return success();
  }
  auto [kind, isNegated, isUnsigned, left, right] = known->second;
  if (kind == TermKind::IfLess && isNegated)
    requireAtMost(right, left, op);
  else if (kind == TermKind::IfLess)
    requireAtMost(left + 1, right, op);
  else if (isNegated)
    requireEqual(*holds, 1, op);
  else
    requireEqual(left, right, op);
  return success();
}

bool SizeAnalysis::isCertain(ArrayRef<Guard> guards) {
  return llvm::all_of(guards, [&](const Guard &guard) {
    return symbols.isKnown(guard.first) && symbols.isKnown(guard.second);
  });
}

LogicalResult SizeAnalysis::finishUnknown(const Requirement &requirement,
                                          bool usesElements) {
  Operation *op = requirement.op;
  // The read is clamped to the tensor, so the tensor must not be empty, unless
  // the read is in a loop that may not run.
  if (auto read = dyn_cast<tensor::ExtractOp>(op)) {
    if (!unprovenReads.insert(read) || !isCertain(requirement.guards))
      return success();
    for (const SizeExpr &size : getShape(read.getTensor()))
      if (failed(
              finish({RelationKind::AtMost, 1, size, op, requirement.guards})))
        return failure();
    return success();
  }
  if (auto assertion = dyn_cast<cf::AssertOp>(op); assertion && isPartial) {
    unprovenAssertions.insert(assertion);
    return failure();
  }
  if (!usesElements)
    return finish(requirement, /*usesElements=*/true);
  return addReason(op, emitUnknown(op));
}

SmallVector<SizeExpr> SizeAnalysis::getDifferences(const SizeExpr &difference,
                                                   ArrayRef<Guard> guards) {
  SmallVector<SizeExpr> differences{difference};
  for (const Guard &guard : guards) {
    SizeExpr holds = symbols.resolve(guard.second - guard.first - 1,
                                     /*useConstants=*/false);
    if (!symbols.isKnown(holds))
      differences.push_back(difference + holds);
  }
  return differences;
}

bool SizeAnalysis::isProven(const SizeExpr &difference,
                            ArrayRef<Guard> guards) {
  if (llvm::any_of(
          getDifferences(difference, guards),
          [&](const SizeExpr &expr) { return symbols.isAtMostZero(expr); }))
    return true;
  // Each case may need a different guard.
  SmallVector<SizeExpr> cases = symbols.splitCases(difference);
  return !cases.empty() && llvm::all_of(cases, [&](const SizeExpr &expr) {
    return isProven(expr, guards);
  });
}

/// Whether a term that is not the constant has a negative coefficient.
static bool hasNegativeTerm(const SizeExpr &expr) {
  return llvm::any_of(expr.getTerms(), [](const auto &term) {
    return !term.first.empty() && term.second < 0;
  });
}

/// Returns two expressions without negative coefficients whose difference is
/// `expr`.
static std::pair<SizeExpr, SizeExpr> splitBySign(const SizeExpr &expr) {
  SizeExpr positive, negative;
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    SizeExpr term(1);
    for (unsigned symbol : monomial)
      term = term * SizeExpr::symbol(symbol);
    if (coefficient > 0)
      positive = positive + term * coefficient;
    else
      negative = negative - term * coefficient;
  }
  return {positive, negative};
}

LogicalResult SizeAnalysis::finish(const Requirement &requirement,
                                   bool usesElements) {
  auto [kind, left, right, op, guards, isAssumed] = requirement;
  SizeExpr difference = symbols.resolve(left - right, /*useConstants=*/false);
  if (difference == SizeExpr(0) && !isAssumed)
    return success();
  if (!symbols.isKnown(difference) && symbols.isComputable(difference))
    usesElements |=
        isAssumed || (kind == RelationKind::Equal && !isa<cf::AssertOp>(op));
  auto isKnown = [&](const SizeExpr &expr) {
    return usesElements ? symbols.isComputable(expr) : symbols.isKnown(expr);
  };
  if (!isKnown(difference)) {
    // A relation of values that vary within a call must hold for their bounds.
    if (kind == RelationKind::Equal) {
      for (const SizeExpr &side : {difference, SizeExpr(0) - difference})
        if (failed(finish({RelationKind::AtMost, side, 0, op, guards})))
          return failure();
      return success();
    }
    if (isProven(difference, guards))
      return success();
    std::optional<SizeExpr> condition =
        symbols.findCondition(getDifferences(difference, guards), usesElements);
    if (!condition)
      return finishUnknown(requirement, usesElements);
    std::tie(left, right) = splitBySign(*condition);
  } else if (difference.isValid() &&
             (hasNegativeTerm(left) || hasNegativeTerm(right))) {
    // Messages name the two sides: 'a is 4, expected at most b' is clearer than
    // 'b - a is -1, expected at least 0'.
    std::tie(left, right) = splitBySign(difference);
  }
  // A loop whose bounds vary within the call is assumed to run.
  for (const Guard &guard : llvm::reverse(guards))
    if (isKnown(resolve(guard.first)) && isKnown(resolve(guard.second)))
      left = symbols.createTerm(TermKind::IfLess,
                                {guard.first, guard.second, left, right});
  difference = symbols.resolve(left - right, /*useConstants=*/true);
  bool holds = kind == RelationKind::Equal
                   ? difference == SizeExpr(0)
                   : symbols.isNonNegative(SizeExpr(0) - difference);
  if (holds && !isAssumed)
    return success();
  if (std::optional<int64_t> constant = difference.getConstant();
      constant && !holds) {
    std::optional<int64_t> l =
        symbols.resolve(left, /*useConstants=*/true).getConstant();
    std::optional<int64_t> r =
        symbols.resolve(right, /*useConstants=*/true).getConstant();
    InFlightDiagnostic error = op->emitError();
    error << "sizes of '" << op->getName() << "' cannot match: expected ";
    if (!l || !r)
      return error << "a difference of 0, got " << *constant;
    return error << (kind == RelationKind::Equal ? "" : "at most ") << *r
                 << ", got " << *l;
  }
  left = symbols.resolve(left, /*useConstants=*/false);
  right = symbols.resolve(right, /*useConstants=*/false);
  if (!isKnown(left) || !isKnown(right))
    return finishUnknown(requirement, usesElements);
  if (left == right)
    return success();
  // The message begins with the simpler side.
  if (kind == RelationKind::Equal && !left.getSymbol() && right.getSymbol())
    std::swap(left, right);
  if (seen.insert({kind, left, right}).second)
    relations.push_back({kind, left, right});
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult SizeAnalysis::visitBlock(Block &block) {
  for (Operation &op : block)
    if (failed(visit(&op)))
      return failure();
  return success();
}

void SizeAnalysis::addGuard(const Guard &guard) {
  if (symbols.isNonNegative(guard.second - guard.first - SizeExpr(1)))
    return;
  guards.push_back(guard);
  // Derives further conditions: a < min(b, c) implies a < b, and a < (c < d ? b
  // : a) implies c < d.
  SmallVector<Guard> worklist{guard};
  auto derive = [&](const SizeExpr &a, const SizeExpr &b) {
    worklist.push_back({a, b});
    if (!symbols.isKnown(b - a))
      guards.push_back({a, b});
  };
  while (!worklist.empty()) {
    Guard last = worklist.pop_back_val();
    const SizeExpr &reduced = last.first;
    std::optional<unsigned> number = last.second.getSymbol();
    if (!number || symbols.get(*number).kind != SizeSymbol::Kind::Term)
      continue;
    TermKind kind = symbols.get(*number).term;
    ArrayRef<SizeExpr> operands = symbols.get(*number).operands;
    if (kind == TermKind::Min) {
      derive(reduced, operands[0]);
      derive(reduced, operands[1]);
    }
    if (kind != TermKind::IfLess && kind != TermKind::IfEqual)
      continue;
    bool isEqual = kind == TermKind::IfEqual;
    const SizeExpr &left = operands[0], &right = operands[1];
    if (symbols.isAtMostZero(operands[3] - reduced)) {
      derive(reduced, operands[2]);
      derive(left, isEqual ? right + 1 : right);
      if (isEqual)
        derive(right, left + 1);
    } else if (symbols.isAtMostZero(operands[2] - reduced)) {
      derive(reduced, operands[3]);
      if (!isEqual)
        derive(right, left + 1);
    }
  }
}

LogicalResult SizeAnalysis::visitRegion(Region &region, ArrayRef<Guard> more,
                                        ArrayRef<SizeExpr> loops) {
  size_t numGuards = guards.size();
  ArrayRef<SizeExpr> outer = currentLoops;
  for (const Guard &guard : more)
    addGuard(guard);
  if (!loops.empty())
    currentLoops = loops;
  ++conditional;
  LogicalResult result = success();
  for (Block &block : region)
    if (succeeded(result))
      result = visitBlock(block);
  --conditional;
  currentLoops = outer;
  guards.truncate(numGuards);
  return result;
}

LogicalResult SizeAnalysis::visitCall(Operation *op) {
  auto call = cast<func::CallOp>(op);
  auto callee = symbolTables.lookupNearestSymbolFrom<func::FuncOp>(
      op, call.getCalleeAttr());
  if (!callee || callee.isExternal())
    return op->emitError() << "'" << call.getCallee()
                           << "' has no body: kernels can only call functions "
                              "of their module";
  if (!llvm::hasSingleElement(callee.getBody()))
    return op->emitError() << "'" << call.getCallee()
                           << "' has more than one block: use scf operations "
                              "instead of branches";
  if (llvm::is_contained(callers, callee) || callers.size() >= 64)
    return op->emitError() << "'" << call.getCallee()
                           << "' calls itself, or calls are nested more than "
                              "64 deep";
  for (auto [argument, operand] :
       llvm::zip_equal(callee.getArguments(), call.getOperands())) {
    shareInput(operand, argument);
    shareElement(operand, argument);
    if (isa<ShapedType>(argument.getType())) {
      SmallVector<SizeExpr> shape = getShape(operand);
      shapes[argument] = std::move(shape);
    } else if (argument.getType().isIntOrIndex()) {
      SizeExpr integer = getInteger(operand);
      integers[argument] = integer;
    }
  }
  callers.push_back(callee);
  LogicalResult visited = visitBlock(callee.getBody().front());
  callers.pop_back();
  if (failed(visited))
    return failure();
  for (auto [result, value] : llvm::zip_equal(
           call.getResults(),
           callee.getBody().front().getTerminator()->getOperands())) {
    if (isa<ShapedType>(result.getType())) {
      SmallVector<SizeExpr> shape = getShape(value);
      shapes[result] = std::move(shape);
    } else if (result.getType().isIntOrIndex()) {
      SizeExpr integer = getInteger(value);
      integers[result] = integer;
    }
    shareInput(value, result);
    shareElement(value, result);
  }
  return success();
}

/// Whether all tensors of the operation have static shapes. Operations on
/// memrefs are not checked.
static bool hasStaticShapes(Operation *op) {
  auto isStatic = [](Type type) {
    auto tensor = dyn_cast<TensorType>(type);
    return !tensor || tensor.hasStaticShape();
  };
  return llvm::all_of(op->getOperandTypes(), isStatic) &&
         llvm::all_of(op->getResultTypes(), isStatic);
}

LogicalResult SizeAnalysis::visit(Operation *op) {
  // A private function may be visited more than once.
  for (Value result : op->getResults()) {
    shapes.erase(result);
    integers.erase(result);
    conditions.erase(result);
    inputs.erase(result);
    elements.erase(result);
  }
  if (isa<func::CallOp>(op))
    return visitCall(op);
  if (auto assertion = dyn_cast<cf::AssertOp>(op))
    return requireCondition(assertion.getArg(), op);
  for (auto visitKind :
       {visitTensorOp, visitLinalgOp, visitPosencOp, visitLoopOp})
    if (std::optional<LogicalResult> result = visitKind(op, *this))
      return *result;
  if (visitIntegerOp(op, *this))
    return success();
  if (OpTrait::hasElementwiseMappableTraits(op) &&
      llvm::any_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>)) {
    Value first;
    for (Value operand : op->getOperands()) {
      if (!isa<ShapedType>(operand.getType()))
        continue;
      if (first)
        requireEqual(first, operand, op);
      else
        first = operand;
    }
    SmallVector<SizeExpr> shape = getShape(first);
    for (Value result : op->getResults())
      setShape(result, shape, op);
    return success();
  }
  if (op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
      !hasStaticShapes(op))
    return op->emitError() << "entry points cannot check what '"
                           << op->getName() << "' requires of dynamic sizes";
  for (Region &region : op->getRegions())
    if (failed(visitRegion(region, {})))
      return failure();
  return success();
}
