//===- TurnsToLinalg.cpp - frequencies known at run time in linalg --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PairConstants.h"

#include "posenc/Conversion/Passes.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Numerics/TurnsBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#include <algorithm>
#include <cmath>

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCTURNSTOLINALGPASS
#include "posenc/Conversion/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

namespace {

/// Rewrites posenc.turns to elementwise linalg.generic.
struct ConvertTurns : OpRewritePattern<TurnsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TurnsOp op,
                                PatternRewriter &rewriter) const override;
};

} // namespace

using Body =
    function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)>;

/// Emits a generic over the elements of results of the shape `shape`, which is
/// of rank 0 or 1. Inputs of rank 0 and scalars are the same for all elements.
static ValueRange createElementwise(OpBuilder &builder, Location loc,
                                    ArrayRef<int64_t> shape, Type element,
                                    ValueRange inputs, Body body) {
  auto type = RankedTensorType::get(shape, element);
  SmallVector<Value> inits(2);
  for (Value &init : inits)
    init = tensor::EmptyOp::create(builder, loc, shape, element);
  int64_t rank = shape.size();
  AffineMap each = builder.getMultiDimIdentityMap(rank);
  AffineMap same = AffineMap::get(rank, 0, builder.getContext());
  SmallVector<AffineMap> maps;
  for (Value input : inputs) {
    auto inputType = dyn_cast<RankedTensorType>(input.getType());
    maps.push_back(inputType && inputType.getRank() == rank ? each : same);
  }
  maps.append(2, each);
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, TypeRange{type, type}, inputs, inits, maps, loops,
             [&](OpBuilder &b, Location l, ValueRange args) {
               linalg::YieldOp::create(b, l, body(b, l, args));
             })
      .getResults();
}

/// Creates the constants of both doubles of the numbers.
static void appendNumbers(OpBuilder &builder, Location loc,
                          ArrayRef<BigFloat> numbers,
                          SmallVectorImpl<Value> &constants) {
  SmallVector<double> hi, lo;
  for (const BigFloat &number : numbers) {
    TwoDoubles rounded = TwoDoubles::round(number);
    hi.push_back(rounded.hi);
    lo.push_back(rounded.lo);
  }
  for (ArrayRef<double> values : {ArrayRef(hi), ArrayRef(lo)})
    constants.push_back(
        createPairConstant(builder, loc, builder.getF64Type(), values));
}

/// Emits a selection of one of two constant lists.
static ValueRange convertLongrope(OpBuilder &builder, TurnsOp op,
                                  LongropeScalingAttr scaling) {
  Location loc = op.getLoc();
  double original = scaling.getOriginalMaxPosition().getValueAsDouble();
  SmallVector<Value> inputs{op.getLength()};
  FrequenciesAttr frequencies = op.getFrequenciesAttr();
  for (double length : {original, 2 * original})
    appendTurns(builder, loc,
                frequencies.withLength(length).computeFrequencies(), inputs);
  // An integer is above a number if it is above the integer below the number.
  int64_t limit = static_cast<int64_t>(
      std::min(std::floor(original), 0x1.fffffffffffffp62));
  return createElementwise(
      builder, loc, {frequencies.getNumPairs()}, builder.getI64Type(), inputs,
      [&](OpBuilder &b, Location l, ValueRange args) -> SmallVector<Value> {
        Value isLong = arith::CmpIOp::create(
            b, l, arith::CmpIPredicate::sgt, args[0],
            arith::ConstantIntOp::create(b, l, limit, 64));
        return {arith::SelectOp::create(b, l, isLong, args[3], args[1]),
                arith::SelectOp::create(b, l, isLong, args[4], args[2])};
      });
}

/// Emits the frequencies of a base that grows with the length. The scaled base
/// divides frequency i by the scale to the power of 2i/(d-2).
static ValueRange convertDynamic(OpBuilder &builder, TurnsOp op,
                                 DynamicScalingAttr scaling) {
  Location loc = op.getLoc();
  double factor = scaling.getFactor().getValueAsDouble();
  double maxPosition = scaling.getMaxPosition().getValueAsDouble();
  Type f64 = builder.getF64Type();
  ValueRange logs = createElementwise(
      builder, loc, {}, f64, op.getLength(),
      [&](OpBuilder &b, Location l, ValueRange args) -> SmallVector<Value> {
        Value like = arith::ConstantOp::create(b, l, b.getF64FloatAttr(0));
        TwoFloats log = TurnsBuilder(b, l, like)
                            .logOfDynamicScale(args[0], factor, maxPosition);
        return {log.hi, log.lo};
      });
  FrequenciesAttr frequencies = op.getFrequenciesAttr();
  int64_t dim = frequencies.getDim();
  SmallVector<BigFloat> unscaled, exponents;
  BigFloat turn = BigFloat(2.0) * BigFloat::pi();
  for (auto [i, frequency] : llvm::enumerate(
           frequencies.withLength(maxPosition).computeFrequencies())) {
    unscaled.push_back(frequency / turn);
    exponents.push_back(BigFloat(2.0 * i) / BigFloat(dim - 2.0));
  }
  SmallVector<Value> inputs(logs);
  appendNumbers(builder, loc, unscaled, inputs);
  appendNumbers(builder, loc, exponents, inputs);
  return createElementwise(
      builder, loc, {frequencies.getNumPairs()}, builder.getI64Type(), inputs,
      [&](OpBuilder &b, Location l, ValueRange args) -> SmallVector<Value> {
        TurnsBuilder::Turns turns =
            TurnsBuilder(b, l, args[0])
                .scale({args[2], args[3]}, {args[0], args[1]},
                       {args[4], args[5]});
        return {turns.high, turns.low};
      });
}

static ValueRange convertValues(OpBuilder &builder, TurnsOp op) {
  auto type = cast<RankedTensorType>(op.getValues().getType());
  return createElementwise(
      builder, op.getLoc(), type.getShape(), builder.getI64Type(),
      op.getValues(),
      [&](OpBuilder &b, Location l, ValueRange args) -> SmallVector<Value> {
        Value radians = args[0];
        if (!radians.getType().isF64())
          radians = arith::ExtFOp::create(b, l, b.getF64Type(), radians);
        TurnsBuilder::Turns turns =
            TurnsBuilder(b, l, radians).fromRadians(radians);
        return {turns.high, turns.low};
      });
}

LogicalResult ConvertTurns::matchAndRewrite(TurnsOp op,
                                            PatternRewriter &rewriter) const {
  if (op.getValues()) {
    rewriter.replaceOp(op, convertValues(rewriter, op));
    return success();
  }
  Attribute scaling = op.getFrequenciesAttr().getScaling();
  if (auto longrope = dyn_cast<LongropeScalingAttr>(scaling))
    rewriter.replaceOp(op, convertLongrope(rewriter, op, longrope));
  else if (auto dynamic = dyn_cast<DynamicScalingAttr>(scaling))
    rewriter.replaceOp(op, convertDynamic(rewriter, op, dynamic));
  else
    return rewriter.notifyMatchFailure(op, "unknown scaling");
  return success();
}

namespace {
struct ConvertPosencTurnsToLinalgPass
    : mlir::posenc::impl::ConvertPosencTurnsToLinalgPassBase<
          ConvertPosencTurnsToLinalgPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ConvertTurns>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
