//===- Regions.cpp - regions of StableHLO on scalars ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

/// Returns the operation of a region on scalars, or null.
static Value emitScalar(OpBuilder &b, Operation &op, StringRef name,
                        Type element, ValueRange operands) {
  Location loc = op.getLoc();
  if (name == "select" && operands.size() == 3 &&
      operands[0].getType().isInteger(1) &&
      operands[1].getType() == operands[2].getType())
    return arith::SelectOp::create(b, loc, operands[0], operands[1],
                                   operands[2]);
  if (operands.empty() || operands.size() > 2 ||
      operands.front().getType() != operands.back().getType())
    return {};
  Type type = operands[0].getType();
  bool isFloat = isa<FloatType>(type), isBool = type.isInteger(1);
  if (name == "compare" && operands.size() == 2) {
    auto direction = op.getAttrOfType<StringAttr>("comparison_direction");
    StringRef text =
        direction ? direction.getValue().rtrim("> ").take_back(2) : "";
    if (isFloat) {
      auto predicate = llvm::StringSwitch<arith::CmpFPredicate>(text)
                           .Case("EQ", arith::CmpFPredicate::OEQ)
                           .Case("NE", arith::CmpFPredicate::UNE)
                           .Case("LT", arith::CmpFPredicate::OLT)
                           .Case("LE", arith::CmpFPredicate::OLE)
                           .Case("GT", arith::CmpFPredicate::OGT)
                           .Case("GE", arith::CmpFPredicate::OGE)
                           .Default(arith::CmpFPredicate::AlwaysFalse);
      if (predicate == arith::CmpFPredicate::AlwaysFalse)
        return {};
      return arith::CmpFOp::create(b, loc, predicate, operands[0], operands[1]);
    }
    using P = arith::CmpIPredicate;
    auto predicate = llvm::StringSwitch<std::optional<P>>(text)
                         .Case("EQ", P::eq)
                         .Case("NE", P::ne)
                         .Case("LT", isBool ? P::ult : P::slt)
                         .Case("LE", isBool ? P::ule : P::sle)
                         .Case("GT", isBool ? P::ugt : P::sgt)
                         .Case("GE", isBool ? P::uge : P::sge)
                         .Default(std::nullopt);
    if (!predicate || !isa<IntegerType>(type))
      return {};
    return arith::CmpIOp::create(b, loc, *predicate, operands[0], operands[1]);
  }
  if (type != element || isa<ComplexType>(type))
    return {};
  if (name == "not" && isa<IntegerType>(type)) {
    Value ones = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, -1));
    return arith::XOrIOp::create(b, loc, operands[0], ones);
  }
  std::optional<StringRef> scalar = getScalarOperation(name, type);
  if (!scalar || operands.size() != (isBinaryOperation(name) ? 2 : 1))
    return {};
  OperationState state(loc, *scalar);
  state.addOperands(operands);
  state.addTypes(type);
  return b.create(state)->getResult(0);
}

FailureOr<SmallVector<Value>>
Converter::emitScalars(OpBuilder &b, Region &region, ValueRange arguments) {
  if (!region.hasOneBlock() || region.getNumArguments() != arguments.size())
    return failure();
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(region.getArguments(), arguments)) {
    auto type = dyn_cast<RankedTensorType>(from.getType());
    if (!type || type.getRank() != 0 || type.getElementType() != to.getType())
      return failure();
    mapping.map(from, to);
  }
  auto getScalar = [&](Value value) -> Value {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    // A constant outside.
    DenseElementsAttr attr;
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getRank() != 0 || !matchPattern(value, m_Constant(&attr)))
      return {};
    return arith::ConstantOp::create(
        b, loc, cast<TypedAttr>(attr.getSplatValue<Attribute>()));
  };
  for (Operation &nested : region.front()) {
    if (nested.hasAttr(kUnsigned))
      return failure();
    StringRef name = nested.getName().getStringRef().split('.').second;
    if (name == "return") {
      SmallVector<Value> results;
      for (Value operand : nested.getOperands()) {
        Value scalar = getScalar(operand);
        if (!scalar)
          return failure();
        results.push_back(scalar);
      }
      return results;
    }
    auto type = nested.getNumResults() == 1
                    ? dyn_cast<RankedTensorType>(nested.getResult(0).getType())
                    : RankedTensorType();
    if (!type || type.getRank() != 0)
      return failure();
    if (name == "constant") {
      auto attr = nested.getAttrOfType<DenseElementsAttr>("value");
      if (!attr || attr.getType() != type)
        return failure();
      mapping.map(
          nested.getResult(0),
          arith::ConstantOp::create(
              b, loc, cast<TypedAttr>(attr.getSplatValue<Attribute>())));
      continue;
    }
    SmallVector<Value> operands;
    for (Value operand : nested.getOperands()) {
      Value scalar = getScalar(operand);
      if (!scalar)
        return failure();
      operands.push_back(scalar);
    }
    Value result = emitScalar(b, nested, name, type.getElementType(), operands);
    if (!result || result.getType() != type.getElementType())
      return failure();
    mapping.map(nested.getResult(0), result);
  }
  return failure();
}

FailureOr<SmallVector<Value>>
Converter::reduceByRegion(ArrayRef<int64_t> dims) {
  size_t count = op->getNumOperands() / 2;
  if (op->getNumOperands() != 2 * count || count == 0 ||
      op->getNumResults() != count || op->getNumRegions() != 1)
    return fail("expected an initial value and a result for each operand");
  Shape shape = getShape(getOperand(0)), kept;
  SmallVector<utils::IteratorType> loops(shape.size(),
                                         utils::IteratorType::parallel);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= int64_t(shape.size()))
      return fail("reduces a dimension that its operand lacks");
    loops[dim] = utils::IteratorType::reduction;
  }
  SmallVector<AffineExpr> indices;
  for (auto [dim, loop] : llvm::enumerate(loops))
    if (loop == utils::IteratorType::parallel) {
      indices.push_back(builder.getAffineDimExpr(dim));
      kept.push_back(shape[dim]);
    }
  SmallVector<AffineMap> maps(count,
                              builder.getMultiDimIdentityMap(shape.size()));
  maps.append(count,
              AffineMap::get(shape.size(), 0, indices, builder.getContext()));
  SmallVector<Value> inputs, inits;
  for (size_t i = 0; i < count; ++i) {
    Value input = getOperand(i), start = getOperand(count + i);
    Type element = getType(input).getElementType();
    if (getType(input).getRank() != int64_t(shape.size()) ||
        getType(start).getRank() != 0 ||
        getType(start).getElementType() != element)
      return fail("has operands of different shapes");
    Value scalar = tensor::ExtractOp::create(builder, loc, start, ValueRange());
    inputs.push_back(input);
    inits.push_back(
        linalg::FillOp::create(builder, loc, scalar, createEmpty(kept, element))
            .getResult(0));
  }
  bool isSupported = true;
  auto reduced = linalg::GenericOp::create(
      builder, loc, ValueRange(inits).getTypes(), inputs, inits, maps, loops,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        // Accumulators are the first arguments of the region.
        SmallVector<Value> arguments(args.drop_front(count));
        llvm::append_range(arguments, args.take_front(count));
        FailureOr<SmallVector<Value>> combined =
            emitScalars(b, op->getRegion(0), arguments);
        isSupported = succeeded(combined) && combined->size() == count &&
                      ValueRange(*combined).getTypes() ==
                          args.drop_front(count).getTypes();
        linalg::YieldOp::create(b, loc,
                                isSupported ? ValueRange(*combined)
                                            : args.drop_front(count));
      });
  if (!isSupported)
    return fail("has a region that is not supported");
  return SmallVector<Value>(reduced.getResults());
}

FailureOr<SmallVector<Value>> Converter::createTopK(int64_t count) {
  Value input = getOperand(0);
  RankedTensorType type = getType(input);
  Shape shape = getShape(input);
  constexpr int64_t limit = 64;
  std::optional<int64_t> length =
      shape.empty() ? std::nullopt : shape.back().getConstant();
  if (count < 1 || count > limit || !length || count > *length ||
      !isa<FloatType>(type.getElementType()))
    return fail(
        "is supported for at most 64 floats along a dimension of a known size");
  int64_t rank = shape.size();
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  loops.back() = utils::IteratorType::reduction;
  Shape kept(shape);
  kept.pop_back();
  Shape column(kept);
  column.push_back(1);
  Type element = type.getElementType(), index = builder.getI32Type();
  AffineMap map = builder.getMultiDimIdentityMap(rank),
            keptMap = map.dropResult(rank - 1);
  auto fill = [&](TypedAttr start) -> Value {
    Value number = arith::ConstantOp::create(builder, loc, start);
    return linalg::FillOp::create(builder, loc, number,
                                  createEmpty(kept, start.getType()))
        .getResult(0);
  };
  Value lowest = fill(builder.getFloatAttr(
            element, APFloat::getInf(
                         cast<FloatType>(element).getFloatSemantics(), true))),
        none = fill(builder.getIntegerAttr(index, -1));
  SmallVector<Value> values, indices;
  for (int64_t number = 0; number < count; ++number) {
    // The largest of those after the previous one in the order of descending
    // values and ascending indices. NaN is larger than all numbers.
    SmallVector<Value> inputs{input};
    SmallVector<AffineMap> maps{map};
    if (number > 0) {
      inputs.append({values.back(), indices.back()});
      maps.append({keptMap, keptMap});
    }
    maps.append({keptMap, keptMap});
    auto next = linalg::GenericOp::create(
        builder, loc, TypeRange{lowest.getType(), none.getType()}, inputs,
        ValueRange{lowest, none}, maps, loops,
        [&](OpBuilder &b, Location loc, ValueRange args) {
          Value x = args[0], at = linalg::IndexOp::create(b, loc, rank - 1);
          at = arith::IndexCastOp::create(b, loc, index, at);
          // Whether (x, i) comes before (y, j).
          auto precedes = [&](Value x, Value i, Value y, Value j) -> Value {
            using F = arith::CmpFPredicate;
            auto compare = [&](F p, Value a, Value c) -> Value {
              return arith::CmpFOp::create(b, loc, p, a, c);
            };
            // UGT is true if x or y is NaN.
            Value above = arith::AndIOp::create(b, loc, compare(F::UGT, x, y),
                                                compare(F::ORD, y, y));
            Value same = arith::OrIOp::create(
                b, loc, compare(F::OEQ, x, y),
                arith::AndIOp::create(b, loc, compare(F::UNO, x, x),
                                      compare(F::UNO, y, y)));
            Value earlier =
                arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, i, j);
            return arith::OrIOp::create(
                b, loc, above, arith::AndIOp::create(b, loc, same, earlier));
          };
          Value best = args[args.size() - 2], bestAt = args.back();
          Value zero =
              arith::ConstantOp::create(b, loc, b.getIntegerAttr(index, 0));
          Value isFirst = arith::CmpIOp::create(
              b, loc, arith::CmpIPredicate::slt, bestAt, zero);
          Value isBetter = arith::OrIOp::create(b, loc, isFirst,
                                                precedes(x, at, best, bestAt));
          if (number > 0)
            isBetter = arith::AndIOp::create(b, loc, isBetter,
                                             precedes(args[1], args[2], x, at));
          Value value = arith::SelectOp::create(b, loc, isBetter, x, best);
          Value where = arith::SelectOp::create(b, loc, isBetter, at, bestAt);
          linalg::YieldOp::create(b, loc, ValueRange{value, where});
        });
    values.push_back(next.getResult(0));
    indices.push_back(next.getResult(1));
  }
  for (auto *list : {&values, &indices})
    for (Value &value : *list)
      value = kept.empty()
                  ? reshape(value, getType(value).clone(ArrayRef<int64_t>{1}))
                  : reshape(value, column);
  if (count == 1)
    return SmallVector<Value>{values[0], indices[0]};
  return SmallVector<Value>{concatenate(values, rank - 1),
                            concatenate(indices, rank - 1)};
}
