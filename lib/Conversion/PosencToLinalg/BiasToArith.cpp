//===- BiasToArith.cpp - ALiBi and T5 biases to arith ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Conversion/PosencToLinalg.h"
#include "posenc/Numerics/Alibi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

/// Whether the operation is in a region of an attention op, which must not
/// contain tables or loads.
static bool isInAttention(Operation *op) {
  return isa<AttentionOp, OnlineAttentionOp>(op->getParentOp());
}

/// Converts to `-(slope * |query - key|)`, with the slopes in a constant table
/// that `head` indexes.
static LogicalResult convertAlibi(AlibiOp op, PatternRewriter &rewriter) {
  if (isInAttention(op))
    return rewriter.notifyMatchFailure(op, "in a region of attention");
  Location loc = op.getLoc();
  Type type = op.getType();
  SmallVector<Attribute> slopes;
  for (double slope : getAlibiSlopes(op))
    slopes.push_back(rewriter.getFloatAttr(type, slope));
  auto tableType =
      RankedTensorType::get({static_cast<int64_t>(slopes.size())}, type);
  Value table = arith::ConstantOp::create(
      rewriter, loc, DenseElementsAttr::get(tableType, slopes));
  Value slope = tensor::ExtractOp::create(rewriter, loc, table, op.getHead());
  Value difference =
      arith::SubIOp::create(rewriter, loc, op.getQuery(), op.getKey());
  difference = arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(),
                                          difference);
  ElementwiseBuilder b(rewriter, loc, difference);
  rewriter.replaceOp(
      op, emitAlibi(b, slope, emitAlibiDistance(b, type, difference)));
  return success();
}

/// The bucket is the number of thresholds that the magnitude of the relative
/// position reaches. For the first thresholds, 1, 2, 3, ..., that is the
/// magnitude itself.
static LogicalResult convertT5Bucket(T5BucketOp op, PatternRewriter &rewriter) {
  Location loc = op.getLoc();
  Type type = op.getType();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(rewriter, loc,
                                     rewriter.getIntegerAttr(type, value));
  };
  // The minimum integer has no negation.
  int64_t min = type.isInteger(32) ? std::numeric_limits<int32_t>::min()
                                   : std::numeric_limits<int64_t>::min();
  Value relative = arith::MaxSIOp::create(rewriter, loc, op.getRelative(),
                                          constant(min + 1));
  Value zero = constant(0);
  Value opposite = arith::SubIOp::create(rewriter, loc, zero, relative);
  Value magnitude = arith::MaxSIOp::create(
      rewriter, loc, opposite, op.getBidirectional() ? relative : zero);

  SmallVector<int64_t> thresholds = op.getThresholds();
  int64_t exact = 0;
  while (exact < static_cast<int64_t>(thresholds.size()) &&
         thresholds[exact] == exact + 1)
    ++exact;
  Value bucket =
      arith::MinSIOp::create(rewriter, loc, magnitude, constant(exact));
  for (int64_t threshold : ArrayRef(thresholds).drop_front(exact)) {
    Value reaches =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::sge,
                              magnitude, constant(threshold));
    Value one =
        type.isIndex()
            ? Value(arith::IndexCastUIOp::create(rewriter, loc, type, reaches))
            : Value(arith::ExtUIOp::create(rewriter, loc, type, reaches));
    bucket = arith::AddIOp::create(rewriter, loc, bucket, one);
  }
  if (op.getBidirectional()) {
    Value isAfter = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::sgt, relative, zero);
    Value base = arith::SelectOp::create(rewriter, loc, isAfter,
                                         constant(op.getNumBuckets()), zero);
    bucket = arith::AddIOp::create(rewriter, loc, bucket, base);
  }
  rewriter.replaceOp(op, bucket);
  return success();
}

void mlir::posenc::populatePosencBiasToArithPatterns(
    RewritePatternSet &patterns) {
  patterns.add(convertAlibi).add(convertT5Bucket);
}
