//===- Products.cpp - contractions and reductions -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

using utils::IteratorType;

Value Converter::createDot(Value lhs, Value rhs, ArrayRef<int64_t> lhsBatch,
                           ArrayRef<int64_t> rhsBatch,
                           ArrayRef<int64_t> lhsContracted,
                           ArrayRef<int64_t> rhsContracted, Type element) {
  RankedTensorType left = getType(lhs), right = getType(rhs);
  if (lhsBatch.size() != rhsBatch.size() ||
      lhsContracted.size() != rhsContracted.size())
    return fail("has different numbers of dimensions for its operands");
  // Sums are in the type of the result; narrower operands are converted.
  auto isNumber = [](Type type) { return isa<FloatType, IntegerType>(type); };
  if (left.getElementType() != right.getElementType() || !isNumber(element) ||
      !isNumber(left.getElementType()) ||
      isa<FloatType>(element) != isa<FloatType>(left.getElementType()) ||
      element.getIntOrFloatBitWidth() <
          left.getElementType().getIntOrFloatBitWidth())
    return fail("has operands and a result of other types");
  Shape leftShape = getShape(lhs), rightShape = getShape(rhs), shape;
  SmallVector<AffineExpr> lhsMap(left.getRank()), rhsMap(right.getRank()),
      resultMap;
  SmallVector<IteratorType> loops;
  auto addLoop = [&](IteratorType kind) {
    loops.push_back(kind);
    return builder.getAffineDimExpr(loops.size() - 1);
  };
  auto isDim = [](ArrayRef<int64_t> dims, RankedTensorType of) {
    return llvm::all_of(
        dims, [&](int64_t dim) { return dim >= 0 && dim < of.getRank(); });
  };
  if (!isDim(lhsBatch, left) || !isDim(lhsContracted, left) ||
      !isDim(rhsBatch, right) || !isDim(rhsContracted, right))
    return fail("has a dimension that its operands lack");
  for (auto [lists, others] :
       {std::pair(lhsBatch, rhsBatch), std::pair(lhsContracted, rhsContracted)})
    for (auto [a, b] : llvm::zip_equal(lists, others))
      if (sizes.table.areDifferent(leftShape[a], rightShape[b]))
        return fail("has operands of different sizes");
  for (auto [a, b] : llvm::zip_equal(lhsBatch, rhsBatch)) {
    if (lhsMap[a] || rhsMap[b])
      return fail("names a dimension twice");
    lhsMap[a] = rhsMap[b] = addLoop(IteratorType::parallel);
    resultMap.push_back(lhsMap[a]);
    shape.push_back(leftShape[a]);
  }
  for (auto *map : {&lhsMap, &rhsMap})
    for (auto [dim, expr] : llvm::enumerate(*map)) {
      bool isLeft = map == &lhsMap;
      if (expr || llvm::is_contained(isLeft ? lhsContracted : rhsContracted,
                                     int64_t(dim)))
        continue;
      expr = addLoop(IteratorType::parallel);
      resultMap.push_back(expr);
      shape.push_back((isLeft ? leftShape : rightShape)[dim]);
    }
  for (auto [a, b] : llvm::zip_equal(lhsContracted, rhsContracted)) {
    if (lhsMap[a] || rhsMap[b])
      return fail("names a dimension twice");
    lhsMap[a] = rhsMap[b] = addLoop(IteratorType::reduction);
  }
  Value init =
      linalg::FillOp::create(builder, loc,
                             Value(arith::ConstantOp::create(
                                 builder, loc, builder.getZeroAttr(element))),
                             createEmpty(shape, element))
          .getResult(0);
  auto type = cast<RankedTensorType>(init.getType());
  // The named forms, where the dimensions are in their order.
  auto isLeading = [](ArrayRef<int64_t> dims) {
    for (auto [position, dim] : llvm::enumerate(dims))
      if (dim != int64_t(position))
        return false;
    return true;
  };
  unsigned numBatch = lhsBatch.size();
  if (numBatch < 2 && left.getRank() == int64_t(numBatch) + 2 &&
      right.getRank() == left.getRank() && lhsContracted.size() == 1 &&
      isLeading(lhsBatch) && isLeading(rhsBatch) &&
      lhsContracted[0] == left.getRank() - 1 &&
      rhsContracted[0] == right.getRank() - 2) {
    if (numBatch == 1)
      return linalg::BatchMatmulOp::create(builder, loc, type,
                                           ValueRange{lhs, rhs}, init)
          .getResult(0);
    return linalg::MatmulOp::create(builder, loc, type, ValueRange{lhs, rhs},
                                    init)
        .getResult(0);
  }
  auto map = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(loops.size(), 0, exprs, builder.getContext());
  };
  return linalg::GenericOp::create(
             builder, loc, type, ValueRange{lhs, rhs}, init,
             ArrayRef<AffineMap>{map(lhsMap), map(rhsMap), map(resultMap)},
             loops,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               auto widen = [&](Value value) -> Value {
                 Type from = value.getType();
                 if (from == element)
                   return value;
                 if (isa<FloatType>(from))
                   return arith::ExtFOp::create(b, loc, element, value);
                 return arith::ExtSIOp::create(b, loc, element, value);
               };
               Value x = widen(args[0]), y = widen(args[1]);
               bool isFloat = isa<FloatType>(element);
               Value product = isFloat
                                   ? Value(arith::MulFOp::create(b, loc, x, y))
                                   : Value(arith::MulIOp::create(b, loc, x, y));
               Value sum =
                   isFloat
                       ? Value(arith::AddFOp::create(b, loc, args[2], product))
                       : Value(arith::AddIOp::create(b, loc, args[2], product));
               linalg::YieldOp::create(b, loc, sum);
             })
      .getResult(0);
}

Value hlo::combine(OpBuilder &b, Location loc, Combiner combiner, Value x,
                   Value y) {
  bool isFloat = isa<FloatType>(x.getType());
  switch (combiner) {
  case Combiner::Add:
    return isFloat ? Value(arith::AddFOp::create(b, loc, x, y))
                   : Value(arith::AddIOp::create(b, loc, x, y));
  case Combiner::Mul:
    return isFloat ? Value(arith::MulFOp::create(b, loc, x, y))
                   : Value(arith::MulIOp::create(b, loc, x, y));
  case Combiner::Max:
    if (x.getType().isInteger(1))
      return arith::OrIOp::create(b, loc, x, y);
    return isFloat ? Value(arith::MaximumFOp::create(b, loc, x, y))
                   : Value(arith::MaxSIOp::create(b, loc, x, y));
  case Combiner::Min:
    if (x.getType().isInteger(1))
      return arith::AndIOp::create(b, loc, x, y);
    return isFloat ? Value(arith::MinimumFOp::create(b, loc, x, y))
                   : Value(arith::MinSIOp::create(b, loc, x, y));
  case Combiner::And:
    return arith::AndIOp::create(b, loc, x, y);
  case Combiner::Or:
    return arith::OrIOp::create(b, loc, x, y);
  }
  llvm_unreachable("unknown combiner");
}

/// Returns the neutral element.
static TypedAttr getNeutral(Builder &builder, Combiner combiner, Type type) {
  if (auto real = dyn_cast<FloatType>(type)) {
    double infinity = std::numeric_limits<double>::infinity();
    return builder.getFloatAttr(type, combiner == Combiner::Max   ? -infinity
                                      : combiner == Combiner::Min ? infinity
                                      : combiner == Combiner::Mul ? 1
                                                                  : 0);
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  APInt value(bits, 0);
  if (combiner == Combiner::Max && bits > 1)
    value = APInt::getSignedMinValue(bits);
  if (combiner == Combiner::Min)
    value = bits > 1 ? APInt::getSignedMaxValue(bits) : APInt(bits, 1);
  if (combiner == Combiner::Mul)
    value = APInt(bits, 1);
  if (combiner == Combiner::And)
    value = APInt::getAllOnes(bits);
  return builder.getIntegerAttr(type, value);
}

Value Converter::reduce(Value value, Value init, ArrayRef<int64_t> dims,
                        Combiner combiner) {
  RankedTensorType type = getType(value);
  if (!isa<FloatType, IntegerType>(type.getElementType()) ||
      (init && (getType(init).getRank() != 0 ||
                getType(init).getElementType() != type.getElementType())))
    return fail("has operands of types that it cannot reduce");
  bool isLogical = combiner == Combiner::And || combiner == Combiner::Or;
  if (isLogical && isa<FloatType>(type.getElementType()))
    return fail("has operands of types that it cannot reduce");
  Shape source = getShape(value);
  SmallVector<IteratorType> loops(type.getRank(), IteratorType::parallel);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= type.getRank())
      return fail("reduces a dimension that its operand lacks");
    loops[dim] = IteratorType::reduction;
  }
  SmallVector<AffineExpr> kept;
  Shape shape;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (loops[dim] == IteratorType::parallel) {
      kept.push_back(builder.getAffineDimExpr(dim));
      shape.push_back(source[dim]);
    }
  Value start =
      init ? Value(tensor::ExtractOp::create(builder, loc, init, ValueRange()))
           : Value(arith::ConstantOp::create(
                 builder, loc,
                 getNeutral(builder, combiner, type.getElementType())));
  Value filled =
      linalg::FillOp::create(builder, loc, start,
                             createEmpty(shape, type.getElementType()))
          .getResult(0);
  AffineMap map = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap keptMap =
      AffineMap::get(type.getRank(), 0, kept, builder.getContext());
  return linalg::GenericOp::create(
             builder, loc, filled.getType(), value, filled,
             ArrayRef<AffineMap>{map, keptMap}, loops,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               linalg::YieldOp::create(
                   b, loc, combine(b, loc, combiner, args[0], args[1]));
             })
      .getResult(0);
}

Value Converter::createArgMax(Value value, int64_t dim, Type index) {
  RankedTensorType type = getType(value);
  Type element = type.getElementType();
  SmallVector<IteratorType> loops(type.getRank(), IteratorType::parallel);
  loops[dim] = IteratorType::reduction;
  SmallVector<AffineExpr> kept;
  SmallVector<int64_t> shape;
  for (int64_t other = 0; other < type.getRank(); ++other)
    if (other != dim) {
      kept.push_back(builder.getAffineDimExpr(other));
      shape.push_back(type.getDimSize(other));
    }
  auto fill = [&](TypedAttr start) -> Value {
    Value number = arith::ConstantOp::create(builder, loc, start);
    Value init = createEmpty(type.clone(shape, start.getType()));
    return linalg::FillOp::create(builder, loc, number, init).getResult(0);
  };
  Value inits[] = {fill(getNeutral(builder, Combiner::Max, element)),
                   fill(builder.getIntegerAttr(index, 0))};
  AffineMap map = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap keptMap =
      AffineMap::get(type.getRank(), 0, kept, builder.getContext());
  return linalg::GenericOp::create(
             builder, loc, ValueRange(inits).getTypes(), value, inits,
             ArrayRef<AffineMap>{map, keptMap, keptMap}, loops,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               Value isLarger =
                   isa<FloatType>(element)
                       ? Value(arith::CmpFOp::create(b, loc,
                                                     arith::CmpFPredicate::OGT,
                                                     args[0], args[1]))
                       : Value(arith::CmpIOp::create(b, loc,
                                                     arith::CmpIPredicate::sgt,
                                                     args[0], args[1]));
               Value at = arith::IndexCastOp::create(
                   b, loc, index, linalg::IndexOp::create(b, loc, dim));
               Value max =
                   arith::SelectOp::create(b, loc, isLarger, args[0], args[1]);
               Value first =
                   arith::SelectOp::create(b, loc, isLarger, at, args[2]);
               linalg::YieldOp::create(b, loc, ValueRange{max, first});
             })
      .getResult(1);
}
