//===- Control.cpp - control flow of StableHLO ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A while that counts becomes scf.for, and another scf.while. Operations are
// pure, so all branches of a case are computed, and their results selected.
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

static bool isNamed(Operation &op, StringRef name) {
  return op.getName().getStringRef() == name;
}

/// Moves the operations of a block, except for its terminator, before a
/// position, and converts them. Returns the operands of the terminator.
static FailureOr<SmallVector<Value>> moveAndConvert(Block &from, Block &to,
                                                    Block::iterator position,
                                                    FunctionSizes &sizes) {
  SmallVector<Operation *> ops;
  for (Operation &op : from)
    ops.push_back(&op);
  Operation *terminator = ops.pop_back_val();
  to.getOperations().splice(position, from.getOperations(), from.begin(),
                            Block::iterator(terminator));
  for (Operation *op : ops)
    if (failed(convertNested(op, sizes)))
      return failure();
  return SmallVector<Value>(terminator->getOperands());
}

/// Returns the only block of a region that ends in stablehlo.return, or null.
static Block *getBody(Region &region, size_t numResults) {
  if (!region.hasOneBlock() || region.front().empty() ||
      !isNamed(region.front().back(), "stablehlo.return") ||
      region.front().back().getNumOperands() != numResults)
    return nullptr;
  return &region.front();
}

namespace {
/// The argument of a while that counts from one constant up to another.
struct Counter {
  unsigned number;
  int64_t start, step, count;
};
} // namespace

/// Returns the constant of a scalar that is defined outside of a loop or in it.
static std::optional<int64_t> getKnownScalar(Value value,
                                             FunctionSizes &sizes) {
  if (Operation *op = value.getDefiningOp();
      op && isNamed(*op, "stablehlo.constant")) {
    auto attr = op->getAttrOfType<DenseIntElementsAttr>("value");
    if (!attr || attr.getNumElements() != 1 ||
        !isa<IntegerType>(attr.getElementType()) ||
        attr.getElementType().getIntOrFloatBitWidth() > 64)
      return std::nullopt;
    return (*attr.begin()).getSExtValue();
  }
  auto type = dyn_cast<RankedTensorType>(value.getType());
  std::optional<Shape> elements =
      type && type.getRank() == 0 ? sizes.getElements(value) : std::nullopt;
  return elements ? elements->front().getConstant() : std::nullopt;
}

static std::optional<Counter> getCounter(Operation *loop, Block &condition,
                                         Block &body, FunctionSizes &sizes) {
  Operation *compare = condition.back().getOperand(0).getDefiningOp();
  if (!compare || !isNamed(*compare, "stablehlo.compare") ||
      compare->getBlock() != &condition || compare->getNumOperands() != 2 ||
      compare->hasAttr(kUnsigned))
    return std::nullopt;
  // Other operations have no effect on the condition.
  auto argument = dyn_cast<BlockArgument>(compare->getOperand(0));
  auto direction = compare->getAttrOfType<StringAttr>("comparison_direction");
  if (!argument || argument.getOwner() != &condition || !direction ||
      direction.getValue().rtrim("> ").take_back(2) != "LT")
    return std::nullopt;
  unsigned number = argument.getArgNumber();
  Operation *add = body.back().getOperand(number).getDefiningOp();
  if (!add || !isNamed(*add, "stablehlo.add") || add->getNumOperands() != 2 ||
      add->getBlock() != &body)
    return std::nullopt;
  Value counted = body.getArgument(number);
  Value other = add->getOperand(0) == counted   ? add->getOperand(1)
                : add->getOperand(1) == counted ? add->getOperand(0)
                                                : Value();
  std::optional<int64_t> start =
                             getKnownScalar(loop->getOperand(number), sizes),
                         limit = getKnownScalar(compare->getOperand(1), sizes),
                         step = other ? getKnownScalar(other, sizes)
                                      : std::nullopt;
  constexpr int64_t bound = int64_t(1) << 31;
  auto isSmall = [](int64_t number) {
    return number >= -bound && number <= bound;
  };
  if (!start || !limit || !step || *step < 1 || !isSmall(*start) ||
      !isSmall(*limit) || !isSmall(*step))
    return std::nullopt;
  int64_t count =
      *limit <= *start ? 0 : llvm::divideCeil(*limit - *start, *step);
  return Counter{number, *start, *step, count};
}

FailureOr<SmallVector<Value>> Converter::convertWhile() {
  size_t count = op->getNumOperands();
  Block *condition =
            op->getNumRegions() == 2 ? getBody(op->getRegion(0), 1) : nullptr,
        *body = op->getNumRegions() == 2 ? getBody(op->getRegion(1), count)
                                         : nullptr;
  if (!condition || !body || op->getNumResults() != count ||
      condition->getNumArguments() != count ||
      body->getNumArguments() != count ||
      !isa<RankedTensorType>(condition->back().getOperand(0).getType()) ||
      getType(condition->back().getOperand(0)) !=
          RankedTensorType::get({}, builder.getI1Type()))
    return fail("expected a condition and a body of one block each");
  for (auto [operand, type, argument, other] :
       llvm::zip_equal(op->getOperands(), op->getResultTypes(),
                       condition->getArguments(), body->getArguments()))
    if (argument.getType() != other.getType() || argument.getType() != type ||
        getType(operand).getElementType() != getElementTypeOrSelf(type) ||
        failed(verifyCompatibleShape(operand.getType(), type)))
      return fail("has arguments of other types than its operands");
  std::optional<Counter> counter = getCounter(op, *condition, *body, sizes);
  // Arguments that the body returns unchanged are values from outside.
  SmallVector<Value> results(count), inits;
  SmallVector<unsigned> carried;
  for (unsigned i = 0; i < count; ++i) {
    Value argument = body->getArgument(i), init = op->getOperand(i);
    if (body->back().getOperand(i) == argument) {
      argument.replaceAllUsesWith(init);
      condition->getArgument(i).replaceAllUsesWith(init);
      results[i] = init;
      continue;
    }
    if (counter && counter->number == i) {
      int64_t last = counter->start + counter->count * counter->step;
      results[i] = createElements(getResultType(i), Size(last));
      sizes.setElements(results[i], Size(last));
      continue;
    }
    carried.push_back(i);
    auto type = cast<RankedTensorType>(argument.getType());
    Shape shape = getShape(init);
    if (init.getType() != type)
      init = withShape(tensor::CastOp::create(builder, type, init), shape);
    inits.push_back(init);
  }
  auto replaceArguments = [&](Block &from, ValueRange arguments) {
    for (auto [number, argument, init] :
         llvm::zip_equal(carried, arguments, inits)) {
      sizes.setShape(argument, getShape(init));
      from.getArgument(number).replaceAllUsesWith(argument);
    }
  };
  // Returns the values of the next iteration.
  auto getNext =
      [&](ImplicitLocOpBuilder &b,
          ArrayRef<Value> returned) -> FailureOr<SmallVector<Value>> {
    SmallVector<Value> next;
    for (auto [number, init] : llvm::zip_equal(carried, inits)) {
      Value value = returned[number];
      if (value.getType() != init.getType()) {
        if (getType(value).getElementType() != getType(init).getElementType() ||
            failed(verifyCompatibleShape(value.getType(), init.getType())))
          return fail("returns a value of another type than its argument");
        value = tensor::CastOp::create(b, init.getType(), value);
      }
      next.push_back(value);
    }
    return next;
  };
  if (counter) {
    Value zero = arith::ConstantIndexOp::create(builder, 0),
          limit = arith::ConstantIndexOp::create(builder, counter->count),
          one = arith::ConstantIndexOp::create(builder, 1);
    auto loop = scf::ForOp::create(builder, zero, limit, one, inits);
    Block &target = *loop.getBody();
    if (!target.empty() && target.back().hasTrait<OpTrait::IsTerminator>())
      target.back().erase();
    auto b = ImplicitLocOpBuilder::atBlockBegin(builder.getLoc(), &target);
    replaceArguments(*body, loop.getRegionIterArgs());
    Value argument = body->getArgument(counter->number);
    if (!argument.use_empty()) {
      auto type = cast<RankedTensorType>(argument.getType());
      Value scaled = loop.getInductionVar();
      auto constant = [&](int64_t number) -> Value {
        return arith::ConstantIndexOp::create(b, number);
      };
      if (counter->step != 1)
        scaled = arith::MulIOp::create(b, scaled, constant(counter->step));
      if (counter->start != 0)
        scaled = arith::AddIOp::create(b, scaled, constant(counter->start));
      Value number =
          arith::IndexCastOp::create(b, type.getElementType(), scaled);
      argument.replaceAllUsesWith(
          tensor::FromElementsOp::create(b, type, number));
    }
    FailureOr<SmallVector<Value>> returned =
        moveAndConvert(*body, target, target.end(), sizes);
    if (failed(returned))
      return failure();
    b.setInsertionPointToEnd(&target);
    FailureOr<SmallVector<Value>> next = getNext(b, *returned);
    if (failed(next))
      return failure();
    scf::YieldOp::create(b, *next);
    for (auto [number, result, init] :
         llvm::zip_equal(carried, loop.getResults(), inits))
      results[number] = withShape(result, getShape(init));
    return results;
  }
  auto loop = scf::WhileOp::create(builder, ValueRange(inits).getTypes(), inits,
                                   nullptr, nullptr);
  for (bool isBody : {false, true}) {
    Block &from = isBody ? *body : *condition,
          &target = isBody ? loop.getAfter().front() : loop.getBefore().front();
    target.clear();
    replaceArguments(from, target.getArguments());
    FailureOr<SmallVector<Value>> returned =
        moveAndConvert(from, target, target.end(), sizes);
    if (failed(returned))
      return failure();
    auto b = ImplicitLocOpBuilder::atBlockEnd(builder.getLoc(), &target);
    if (isBody) {
      FailureOr<SmallVector<Value>> next = getNext(b, *returned);
      if (failed(next))
        return failure();
      scf::YieldOp::create(b, *next);
      continue;
    }
    Value holds = tensor::ExtractOp::create(b, returned->front(), ValueRange());
    scf::ConditionOp::create(b, holds, target.getArguments());
  }
  for (auto [number, result, init] :
       llvm::zip_equal(carried, loop.getResults(), inits))
    results[number] = withShape(result, getShape(init));
  return results;
}

FailureOr<SmallVector<Value>> Converter::convertCase() {
  bool isIf = op->getName().getStringRef() == "stablehlo.if";
  Value index = op->getNumOperands() == 1 ? getOperand(0) : Value();
  if (!index || getType(index).getRank() != 0 ||
      !isa<IntegerType>(getType(index).getElementType()) ||
      op->getNumRegions() == 0 || (isIf && op->getNumRegions() != 2))
    return fail("expected a scalar and a region for each branch");
  for (Region &region : op->getRegions()) {
    Block *block = getBody(region, op->getNumResults());
    if (!block || block->getNumArguments() != 0)
      return fail("has a branch with another number of results");
  }
  int64_t last = op->getNumRegions() - 1;
  std::optional<int64_t> known = getKnownScalar(index, sizes);
  // A true `if` takes its first branch.
  if (known && isIf)
    known = *known == 0 ? 1 : 0;
  else if (known)
    known = *known < 0 || *known > last ? last : *known;
  SmallVector<SmallVector<Value>> branches;
  for (int64_t number = 0; number <= last; ++number) {
    if (known && *known != number)
      continue;
    FailureOr<SmallVector<Value>> returned =
        moveAndConvert(op->getRegion(number).front(), *op->getBlock(),
                       Block::iterator(op), sizes);
    if (failed(returned))
      return failure();
    for (auto [value, type] :
         llvm::zip_equal(*returned, op->getResultTypes())) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      value = tensor ? refine(value, tensor) : Value();
      if (!value)
        return failure();
    }
    branches.push_back(*returned);
  }
  SmallVector<Value> results = branches.pop_back_val();
  // An index that is not that of a branch is that of the last one.
  for (int64_t number = last - 1; !branches.empty(); --number) {
    SmallVector<Value> branch = branches.pop_back_val();
    Value isTaken =
        isIf ? index
             : compare("EQ", index, createSplat(getType(index), number));
    for (auto [result, value] : llvm::zip_equal(results, branch)) {
      if (result.getType() != value.getType()) {
        value = refine(value, getType(result));
        result = value ? refine(result, getType(value)) : Value();
      }
      if (!value || !result)
        return failure();
      result = select(isTaken, value, result);
      if (!result)
        return failure();
    }
  }
  return results;
}
