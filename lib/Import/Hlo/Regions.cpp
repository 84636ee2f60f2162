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

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

/// Returns the operation of a region on scalars, or null.
static Value emitScalar(ImplicitLocOpBuilder &b, Operation &op, StringRef name,
                        Type element, ValueRange operands) {
  if (name == "select" && operands.size() == 3 &&
      operands[0].getType().isInteger(1) &&
      operands[1].getType() == operands[2].getType())
    return arith::SelectOp::create(b, operands[0], operands[1], operands[2]);
  if (operands.empty() || operands.size() > 2 ||
      operands.front().getType() != operands.back().getType())
    return {};
  Type type = operands[0].getType();
  if (name == "compare" && hasTotalOrder(&op))
    return {};
  if (name == "compare" && operands.size() == 2)
    return createComparison(b, getDirection(&op), operands[0], operands[1],
                            /*isUnsigned=*/type.isInteger(1));
  if (type != element || isa<ComplexType>(type))
    return {};
  if (name == "not" && isa<IntegerType>(type)) {
    Value ones = arith::ConstantOp::create(b, b.getIntegerAttr(type, -1));
    return arith::XOrIOp::create(b, operands[0], ones);
  }
  std::optional<StringRef> scalar = getScalarOperation(name, type);
  if (!scalar || operands.size() != (isBinaryOperation(name) ? 2 : 1))
    return {};
  OperationState state(b.getLoc(), *scalar);
  state.addOperands(operands);
  state.addTypes(type);
  return static_cast<OpBuilder &>(b).create(state)->getResult(0);
}

FailureOr<SmallVector<Value>> Converter::emitScalars(ImplicitLocOpBuilder &b,
                                                     Region &region,
                                                     ValueRange arguments) {
  if (!region.hasOneBlock() || region.getNumArguments() != arguments.size())
    return failure();
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(region.getArguments(), arguments)) {
    auto type = dyn_cast<RankedTensorType>(from.getType());
    if (!type || type.getRank() != 0 || type.getElementType() != to.getType())
      return failure();
    mapping.map(from, to);
  }
  auto createConstant = [&](DenseElementsAttr attr) -> Value {
    return arith::ConstantOp::create(
        b, cast<TypedAttr>(attr.getSplatValue<Attribute>()));
  };
  // Returns the scalars of the operands; fails if one has none.
  auto getScalars = [&](Operation &nested) -> FailureOr<SmallVector<Value>> {
    SmallVector<Value> scalars;
    for (Value operand : nested.getOperands()) {
      Value scalar = mapping.lookupOrNull(operand);
      // A constant outside.
      DenseElementsAttr attr;
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (!scalar && type && type.getRank() == 0 &&
          matchPattern(operand, m_Constant(&attr)))
        scalar = createConstant(attr);
      if (!scalar)
        return failure();
      scalars.push_back(scalar);
    }
    return scalars;
  };
  for (Operation &nested : region.front()) {
    if (nested.hasAttr(kUnsigned))
      return failure();
    StringRef name = nested.getName().getStringRef().split('.').second;
    if (name == "return")
      return getScalars(nested);
    auto type = nested.getNumResults() == 1
                    ? dyn_cast<RankedTensorType>(nested.getResult(0).getType())
                    : RankedTensorType();
    if (!type || type.getRank() != 0)
      return failure();
    if (name == "constant") {
      auto attr = nested.getAttrOfType<DenseElementsAttr>("value");
      if (!attr || attr.getType() != type)
        return failure();
      mapping.map(nested.getResult(0), createConstant(attr));
      continue;
    }
    FailureOr<SmallVector<Value>> operands = getScalars(nested);
    if (failed(operands))
      return failure();
    ImplicitLocOpBuilder own(nested.getLoc(), b);
    Value result =
        emitScalar(own, nested, name, type.getElementType(), *operands);
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
  Shape shape = getShape(getOperand(0));
  if (llvm::any_of(dims, [&](int64_t dim) {
        return dim < 0 || dim >= int64_t(shape.size());
      }))
    return fail("reduces a dimension that its operand lacks");
  ReductionLoops loops(builder.getContext(), shape, dims);
  SmallVector<AffineMap> maps(count, loops.all);
  maps.append(count, loops.kept);
  SmallVector<Value> inputs, inits;
  for (size_t i = 0; i < count; ++i) {
    Value input = getOperand(i), start = getOperand(count + i);
    if (getType(input).getRank() != int64_t(shape.size()) ||
        getType(start).getRank() != 0 ||
        getType(start).getElementType() != getType(input).getElementType())
      return fail("has operands of different shapes");
    inputs.push_back(input);
    inits.push_back(createFilled(loops.shape, getScalar(start)));
  }
  bool isSupported = true;
  auto reduced = linalg::GenericOp::create(
      builder, ValueRange(inits).getTypes(), inputs, inits, maps, loops.kinds,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        ImplicitLocOpBuilder b(loc, nested);
        // Accumulators are the first arguments of the region.
        SmallVector<Value> arguments(args.drop_front(count));
        llvm::append_range(arguments, args.take_front(count));
        FailureOr<SmallVector<Value>> combined =
            emitScalars(b, op->getRegion(0), arguments);
        isSupported = succeeded(combined) && combined->size() == count &&
                      ValueRange(*combined).getTypes() ==
                          args.drop_front(count).getTypes();
        linalg::YieldOp::create(b, isSupported ? ValueRange(*combined)
                                               : args.drop_front(count));
      });
  if (!isSupported)
    return fail("has a region that is not supported");
  return SmallVector<Value>(reduced.getResults());
}

/// Returns a signed integer in the total order of a float: its bits, of which
/// those below the sign are inverted if it is set.
static Value getTotalOrder(ImplicitLocOpBuilder &b, Value number) {
  Type bits = b.getIntegerType(number.getType().getIntOrFloatBitWidth());
  auto constant = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(bits, value));
  };
  unsigned width = bits.getIntOrFloatBitWidth();
  Value pattern = arith::BitcastOp::create(b, bits, number);
  Value signs =
      arith::ShRSIOp::create(b, pattern, constant(APInt(width, width - 1)));
  Value inverted = arith::AndIOp::create(
      b, signs, constant(APInt::getSignedMaxValue(width)));
  return arith::XOrIOp::create(b, pattern, inverted);
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
  ReductionLoops loops(builder.getContext(), shape, rank - 1);
  Shape column(loops.shape);
  column.push_back(1);
  auto element = cast<FloatType>(type.getElementType());
  Type index = builder.getI32Type();
  Value lowest = createFilled(loops.shape, getNeutral(Combiner::Max, element)),
        none = createFilled(loops.shape, builder.getIntegerAttr(index, -1));
  SmallVector<Value> values, indices;
  for (int64_t number = 0; number < count; ++number) {
    // The largest of those after the previous one in the order of descending
    // values and ascending indices. Values have the total order of floats, as
    // in XLA: 0 is larger than -0, and NaN is beyond the infinity of its sign.
    SmallVector<Value> inputs{input};
    SmallVector<AffineMap> maps{loops.all};
    if (number > 0) {
      inputs.append({values.back(), indices.back()});
      maps.append({loops.kept, loops.kept});
    }
    maps.append({loops.kept, loops.kept});
    auto next = linalg::GenericOp::create(
        builder, TypeRange{lowest.getType(), none.getType()}, inputs,
        ValueRange{lowest, none}, maps, loops.kinds,
        [&](OpBuilder &nested, Location loc, ValueRange args) {
          ImplicitLocOpBuilder b(loc, nested);
          Value x = args[0], at = linalg::IndexOp::create(b, rank - 1);
          at = arith::IndexCastOp::create(b, index, at);
          // Whether (x, i) comes before (y, j).
          auto precedes = [&](Value x, Value i, Value y, Value j) -> Value {
            using P = arith::CmpIPredicate;
            Value p = getTotalOrder(b, x), q = getTotalOrder(b, y);
            Value above = arith::CmpIOp::create(b, P::sgt, p, q),
                  same = arith::CmpIOp::create(b, P::eq, p, q),
                  earlier = arith::CmpIOp::create(b, P::slt, i, j);
            return arith::OrIOp::create(
                b, above, arith::AndIOp::create(b, same, earlier));
          };
          Value best = args[args.size() - 2], bestAt = args.back();
          Value zero = arith::ConstantOp::create(b, b.getIntegerAttr(index, 0));
          Value isFirst =
              arith::CmpIOp::create(b, arith::CmpIPredicate::slt, bestAt, zero);
          Value isBetter =
              arith::OrIOp::create(b, isFirst, precedes(x, at, best, bestAt));
          if (number > 0)
            isBetter = arith::AndIOp::create(b, isBetter,
                                             precedes(args[1], args[2], x, at));
          Value value = arith::SelectOp::create(b, isBetter, x, best);
          Value where = arith::SelectOp::create(b, isBetter, at, bestAt);
          linalg::YieldOp::create(b, ValueRange{value, where});
        });
    values.push_back(next.getResult(0));
    indices.push_back(next.getResult(1));
  }
  for (auto *list : {&values, &indices})
    for (Value &value : *list)
      value = loops.shape.empty()
                  ? reshape(value, getType(value).clone(ArrayRef<int64_t>{1}))
                  : reshape(value, column);
  if (count == 1)
    return SmallVector<Value>{values[0], indices[0]};
  return SmallVector<Value>{concatenate(values, rank - 1),
                            concatenate(indices, rank - 1)};
}
