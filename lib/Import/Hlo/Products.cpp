//===- Products.cpp - contractions and reductions -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

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
  if (op->hasAttr(kUnsignedIndex) != hasUnsignedOperand())
    return fail("has an unsigned operand and one that is not");
  // Products of narrower integers extend them by their sign.
  if (hasUnsignedOperand() && left.getElementType() != element) {
    lhs = convertTo(lhs, element);
    rhs = convertTo(rhs, element);
  }
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
  Value init = createFilled(shape, builder.getZeroAttr(element));
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
      return linalg::BatchMatmulOp::create(builder, type, ValueRange{lhs, rhs},
                                           init)
          .getResult(0);
    return linalg::MatmulOp::create(builder, type, ValueRange{lhs, rhs}, init)
        .getResult(0);
  }
  auto map = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(loops.size(), 0, exprs, builder.getContext());
  };
  return createGeneric(builder, {lhs, rhs}, init,
                       {map(lhsMap), map(rhsMap), map(resultMap)}, loops,
                       [&](ImplicitLocOpBuilder &b, ValueRange args) {
                         auto widen = [&](Value value) -> Value {
                           Type from = value.getType();
                           if (from == element)
                             return value;
                           if (isa<FloatType>(from))
                             return arith::ExtFOp::create(b, element, value);
                           return arith::ExtSIOp::create(b, element, value);
                         };
                         Value x = widen(args[0]), y = widen(args[1]);
                         return combine(b, Combiner::Add, args[2],
                                        combine(b, Combiner::Mul, x, y));
                       });
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
  if (llvm::any_of(
          dims, [&](int64_t dim) { return dim < 0 || dim >= type.getRank(); }))
    return fail("reduces a dimension that its operand lacks");
  ReductionLoops loops(builder.getContext(), getShape(value), dims);
  Value start =
      init ? getScalar(init)
           : Value(arith::ConstantOp::create(
                 builder, getNeutral(combiner, type.getElementType())));
  return createGeneric(builder, value, createFilled(loops.shape, start),
                       {loops.all, loops.kept}, loops.kinds,
                       [&](ImplicitLocOpBuilder &b, ValueRange args) {
                         return combine(b, combiner, args[0], args[1]);
                       });
}

Value Converter::createArgMax(Value value, int64_t dim, Type index) {
  Type element = getType(value).getElementType();
  ReductionLoops loops(builder.getContext(), getShape(value), dim);
  Value inits[] = {
      createFilled(loops.shape, getNeutral(Combiner::Max, element)),
      createFilled(loops.shape, builder.getIntegerAttr(index, 0))};
  return linalg::GenericOp::create(
             builder, ValueRange(inits).getTypes(), value, inits,
             ArrayRef<AffineMap>{loops.all, loops.kept, loops.kept},
             loops.kinds,
             [&](OpBuilder &nested, Location loc, ValueRange args) {
               ImplicitLocOpBuilder b(loc, nested);
               Value isLarger = createComparison(b, "GT", args[0], args[1],
                                                 /*isUnsigned=*/false);
               Value at = arith::IndexCastOp::create(
                   b, index, linalg::IndexOp::create(b, dim));
               Value max =
                   arith::SelectOp::create(b, isLarger, args[0], args[1]);
               Value first = arith::SelectOp::create(b, isLarger, at, args[2]);
               linalg::YieldOp::create(b, ValueRange{max, first});
             })
      .getResult(1);
}
