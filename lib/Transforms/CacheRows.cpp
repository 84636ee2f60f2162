//===- CacheRows.cpp - conversion of KV cache rows ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CacheRows.h"

#include "HeadRows.h"

#include "posenc/IR/CreateGeneric.h"
#include "posenc/Transforms/AttentionIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

Value mlir::posenc::takeScales(OpBuilder &builder, Location loc, Value scales,
                               const ScaledKeys &keys) {
  auto type = cast<RankedTensorType>(scales.getType());
  int64_t rank = type.getRank();
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  auto isOne = [&](int64_t dim) { return type.getDimSize(dim) == 1; };
  SmallVector<OpFoldResult> offsets{keys.head, keys.first}, sizes{one, one};
  if (keys.sequence) {
    offsets.insert(offsets.begin(), keys.sequence);
    sizes.push_back(one);
  }
  auto dropped = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (!isOne(rank - 1)) {
    sizes.back() = keys.count;
    dropped.pop_back();
  }
  for (int64_t dim = 0; dim < rank; ++dim)
    if (isOne(dim))
      offsets[dim] = zero;
  // A scale that all pages and slots share needs no lookup in the block table.
  if (!keys.blockTable || (isOne(0) && isOne(rank - 1)))
    return extractSlice(builder, loc, scales, offsets, sizes, dropped);
  Value init = tensor::EmptyOp::create(
      builder, loc, ArrayRef<OpFoldResult>{keys.count}, type.getElementType());
  return createParallelGeneric(
      builder, loc, {}, init, {},
      [&](OpBuilder &b, Location l, ValueRange) -> Value {
        auto index = [&](Value value, int64_t dim) -> Value {
          if (!isOne(dim))
            return value;
          return arith::ConstantIndexOp::create(b, l, 0);
        };
        Value row = linalg::IndexOp::create(b, l, 0);
        Value key = arith::AddIOp::create(b, l, keys.first, row);
        ImplicitLocOpBuilder nested(l, b);
        auto [page, slot] = emitPagedKey(nested, keys.blockTable, keys.sequence,
                                         key, keys.slots);
        return tensor::ExtractOp::create(
            b, l, scales,
            ValueRange{index(page, 0), index(keys.head, 1), index(slot, 2)});
      });
}

/// Converts an element of a cache to the float type `sum`.
static Value widen(OpBuilder &builder, Location loc, Value value, Type sum) {
  if (value.getType() == sum)
    return value;
  if (value.getType().isInteger())
    return arith::SIToFPOp::create(builder, loc, sum, value);
  return arith::ExtFOp::create(builder, loc, sum, value);
}

/// Extracts scales without their dimensions of static size 1. Returns the
/// dimensions of the rows to which those that are left correspond, too.
static std::pair<Value, SmallVector<unsigned>>
dropUnitDims(OpBuilder &builder, Location loc, Value scales,
             ArrayRef<unsigned> dims) {
  auto type = cast<RankedTensorType>(scales.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, scales);
  SmallVector<int64_t> dropped;
  SmallVector<unsigned> indexed;
  for (auto [number, dim] : llvm::enumerate(dims)) {
    if (type.getDimSize(number) == 1)
      dropped.push_back(number);
    else
      indexed.push_back(dim);
  }
  if (!dropped.empty())
    scales = extractSlice(
        builder, loc, scales,
        SmallVector<OpFoldResult>(sizes.size(), builder.getIndexAttr(0)), sizes,
        dropped);
  return {scales, indexed};
}

Value mlir::posenc::widenRows(OpBuilder &builder, Location loc, Value rows,
                              Value scales, ArrayRef<unsigned> dims, Type sum) {
  int64_t rank = cast<RankedTensorType>(rows.getType()).getRank();
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  SmallVector<Value> inputs{rows};
  SmallVector<AffineMap> maps{all};
  if (scales) {
    auto [kept, indexed] = dropUnitDims(builder, loc, scales, dims);
    inputs.push_back(kept);
    maps.push_back(all.getSubMap(indexed));
  }
  maps.push_back(all);
  Value init = createEmptyLike(builder, loc, rows, sum);
  return createParallelGeneric(
      builder, loc, inputs, init, maps,
      [&](OpBuilder &b, Location l, ValueRange args) -> Value {
        Value x = widen(b, l, args[0], sum);
        if (args.size() == 3)
          x = arith::MulFOp::create(b, l, x, widen(b, l, args[1], sum));
        return x;
      });
}

Value mlir::posenc::narrowRows(OpBuilder &builder, Location loc, Value rows,
                               Type element) {
  if (getElementTypeOrSelf(rows.getType()) == element)
    return rows;
  Value init = createEmptyLike(builder, loc, rows, element);
  return createParallelGeneric(
      builder, loc, rows, init, {},
      [&](OpBuilder &b, Location l, ValueRange args) -> Value {
        return arith::TruncFOp::create(b, l, element, args[0]);
      });
}

/// Returns the largest magnitude of a quantized element.
static double getLimit(Type element) {
  if (element.isInteger())
    return 127;
  APFloat largest =
      APFloat::getLargest(cast<FloatType>(element).getFloatSemantics());
  return largest.convertToDouble();
}

/// Rounds a number within the limits of `element` to nearest, ties to even.
static Value round(OpBuilder &builder, Location loc, Value value,
                   Type element) {
  if (!element.isInteger())
    return arith::TruncFOp::create(builder, loc, element, value);
  return arith::FPToSIOp::create(
      builder, loc, element, math::RoundEvenOp::create(builder, loc, value));
}

std::pair<Value, Value> mlir::posenc::quantizeRows(OpBuilder &builder,
                                                   Location loc, Value rows,
                                                   Type element, Value scales,
                                                   ArrayRef<unsigned> order) {
  auto type = cast<RankedTensorType>(rows.getType());
  Type f32 = builder.getF32Type();
  int64_t rank = type.getRank();
  double limit = getLimit(element);
  auto constant = [&](OpBuilder &b, double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(f32, value));
  };
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  AffineMap row = all.getSubMap(order);
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  loops.back() = utils::IteratorType::reduction;

  scales = linalg::FillOp::create(builder, loc, constant(builder, 0), scales)
               .getResult(0);
  // arith.maximumf propagates a NaN of the row, which makes the scale NaN.
  scales =
      linalg::GenericOp::create(
          builder, loc, scales.getType(), rows, scales,
          ArrayRef<AffineMap>{all, row}, loops,
          [&](OpBuilder &b, Location l, ValueRange args) {
            Value size = math::AbsFOp::create(b, l, args[0]);
            linalg::YieldOp::create(
                b, l,
                arith::MaximumFOp::create(b, l, size, args[1]).getResult());
          })
          .getResult(0);
  scales = createParallelGeneric(
      builder, loc, {}, scales, {},
      [&](OpBuilder &b, Location l, ValueRange args) -> Value {
        return arith::DivFOp::create(b, l, args[0], constant(b, limit));
      });

  Value init = createEmptyLike(builder, loc, rows, element);
  Value quantized = createParallelGeneric(
      builder, loc, {rows, scales}, init, {all, row, all},
      [&](OpBuilder &b, Location l, ValueRange args) -> Value {
        auto compare = [&](arith::CmpFPredicate predicate, double value) {
          return arith::CmpFOp::create(b, l, predicate, args[1],
                                       constant(b, value));
        };
        // The scale is neither 0 nor infinite nor NaN.
        Value isUsual = arith::AndIOp::create(
            b, l, compare(arith::CmpFPredicate::OGT, 0),
            compare(arith::CmpFPredicate::OLT,
                    std::numeric_limits<double>::infinity()));
        Value ratio = arith::DivFOp::create(b, l, args[0], args[1]);
        // The quotient may exceed the limit slightly, as the scale was
        // rounded.
        ratio = arith::MinNumFOp::create(b, l, ratio, constant(b, limit));
        ratio = arith::MaxNumFOp::create(b, l, ratio, constant(b, -limit));
        ratio = arith::SelectOp::create(b, l, isUsual, ratio, constant(b, 0));
        return round(b, l, ratio, element);
      });
  return {quantized, scales};
}

Value mlir::posenc::quantizeRowsBy(OpBuilder &builder, Location loc, Value rows,
                                   Type element, Value scales,
                                   ArrayRef<unsigned> dims) {
  int64_t rank = cast<RankedTensorType>(rows.getType()).getRank();
  double limit = getLimit(element);
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  auto [kept, indexed] = dropUnitDims(builder, loc, scales, dims);
  Value init = createEmptyLike(builder, loc, rows, element);
  return createParallelGeneric(
      builder, loc, {rows, kept}, init, {all, all.getSubMap(indexed), all},
      [&](OpBuilder &b, Location l, ValueRange args) -> Value {
        auto constant = [&](double value) -> Value {
          return arith::ConstantOp::create(
              b, l, b.getFloatAttr(b.getF32Type(), value));
        };
        // Minimum and maximum propagate NaN, which f8 can hold.
        Value ratio = arith::DivFOp::create(b, l, args[0], args[1]);
        ratio = arith::MinimumFOp::create(b, l, ratio, constant(limit));
        ratio = arith::MaximumFOp::create(b, l, ratio, constant(-limit));
        if (element.isInteger()) {
          Value isNaN = arith::CmpFOp::create(b, l, arith::CmpFPredicate::UNO,
                                              ratio, ratio);
          ratio = arith::SelectOp::create(b, l, isNaN, constant(0), ratio);
        }
        return round(b, l, ratio, element);
      });
}
