//===- ExpandF8.cpp - f8 conversions by way of f16 and integers -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From f8: both formats are narrower than f16 in exponent and fraction. Their
// bits, shifted, form an f16, which the hardware converts to f32 without
// branches, subnormal numbers included:
//
//   f8E5M2    s eeeee mm         is f16 s eeeee mm00000000 as it is;
//   f8E4M3FN  s eeee mmm         is f16 s 0eeee mmm0000000 times 2^8, the
//                                difference of the biases 15 and 7.
//
// Truncation to f8 cannot go through f16, as numbers would be rounded twice.
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/ElementwiseBuilder.h"

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEXPANDF8PASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// The parameters in which the two formats differ.
struct Format {
  unsigned fractionBits;
  int bias;
  uint32_t beyond; ///< Bits of an overflow: infinity, or NaN without infinity.
  uint32_t nan;
};
} // namespace

static std::optional<Format> getFormat(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<TensorType>(type))
    return std::nullopt;
  if (isa<Float8E4M3FNType>(element))
    return Format{3, 7, 0x7f, 0x7f};
  if (isa<Float8E5M2Type>(element))
    return Format{2, 15, 0x7c, 0x7e};
  return std::nullopt;
}

/// Converts `value` to another float type, through f32 if both have the same
/// width.
static Value convert(OpBuilder &builder, Location loc, Value value, Type to) {
  unsigned from = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
  unsigned width = getElementTypeOrSelf(to).getIntOrFloatBitWidth();
  if (value.getType() == to)
    return value;
  if (from < width)
    return arith::ExtFOp::create(builder, loc, to, value);
  return arith::TruncFOp::create(builder, loc, to, value);
}

static LogicalResult expandF8Extension(arith::ExtFOp op,
                                       PatternRewriter &rewriter) {
  std::optional<Format> format = getFormat(op.getIn().getType());
  if (!format)
    return rewriter.notifyMatchFailure(op, "not from f8");
  Location loc = op.getLoc();
  ElementwiseBuilder b(rewriter, loc, op.getIn());
  Type i16 = rewriter.getI16Type(), f16 = rewriter.getF16Type(),
       f32 = rewriter.getF32Type();
  Value bits = b.cast<arith::BitcastOp>(rewriter.getI8Type(), op.getIn());
  Value result;
  if (format->fractionBits == 2) {
    bits = b.shl(b.cast<arith::ExtUIOp>(i16, bits), b.i16(8));
    result = b.cast<arith::ExtFOp>(f32, b.cast<arith::BitcastOp>(f16, bits));
  } else {
    // Sign extension puts the sign bit where f16 has it.
    bits = b.cast<arith::ExtSIOp>(i16, bits);
    Value size = b.andi(b.shl(bits, b.i16(7)), b.i16(0x3f80));
    Value isNaN = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq,
                                        size, b.i16(0x3f80));
    size = b.select(isNaN, b.i16(0x7e00), size);
    Value half = b.ori(size, b.andi(bits, b.i16(0x8000)));
    result = b.cast<arith::ExtFOp>(f32, b.cast<arith::BitcastOp>(f16, half));
    result = b.mul(result, b.f32(256));
  }
  rewriter.replaceOp(op, convert(rewriter, loc, result, op.getType()));
  return success();
}

static LogicalResult expandF8Truncation(arith::TruncFOp op,
                                        PatternRewriter &rewriter) {
  std::optional<Format> format = getFormat(op.getType());
  if (!format)
    return rewriter.notifyMatchFailure(op, "not to f8");
  Location loc = op.getLoc();
  // f64 would be rounded twice, to f32 and to f8.
  if (getElementTypeOrSelf(op.getIn().getType()).isF64())
    return rewriter.notifyMatchFailure(op, "from f64");
  ElementwiseBuilder b(rewriter, loc, op.getIn());
  Type i32 = rewriter.getI32Type(), f32 = rewriter.getF32Type();
  Value x = convert(rewriter, loc, op.getIn(), b.like(f32));
  Value bits = b.cast<arith::BitcastOp>(i32, x);
  Value size = b.andi(bits, b.i32(0x7fffffff));
  Value sign = b.andi(b.shru(bits, b.i32(24)), b.i32(0x80));
  auto isBelow = [&](Value a, Value limit) {
    return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult, a,
                                 limit);
  };

  // Normal numbers: adds half a unit in the last place, or slightly less if
  // the truncated number is even. A carry increments the exponent, whose bias
  // is changed.
  unsigned shift = 23 - format->fractionBits;
  Value odd = b.andi(b.shru(size, b.i32(shift)), b.i32(1));
  Value half = b.addi(b.i32((uint32_t(1) << (shift - 1)) - 1), odd);
  Value normal = b.shru(b.addi(size, half), b.i32(shift));
  normal = b.subi(normal,
                  b.i32(uint32_t(127 - format->bias) << format->fractionBits));
  normal = b.binary<arith::MinUIOp>(normal, b.i32(format->beyond));
  // Subnormal numbers: adds a number whose unit in the last place is the
  // smallest subnormal. This rounds to that unit, and the lowest bits of the
  // sum count the units.
  uint32_t exponent = 127 + 1 - format->bias;
  uint32_t unit = (exponent + shift) << 23;
  Value sum = b.add(b.cast<arith::BitcastOp>(f32, size),
                    b.cast<arith::BitcastOp>(f32, b.i32(unit)));
  Value small = b.subi(b.cast<arith::BitcastOp>(i32, sum), b.i32(unit));
  Value result = b.select(isBelow(size, b.i32(exponent << 23)), small, normal);
  Value isNumber = isBelow(size, b.i32(0x7f800001));
  result = b.select(isNumber, result, b.i32(format->nan));
  Value byte =
      b.cast<arith::TruncIOp>(rewriter.getI8Type(), b.ori(result, sign));
  rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), byte);
  return success();
}

namespace {
struct ExpandF8 final : mlir::posenc::impl::PosencExpandF8PassBase<ExpandF8> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(expandF8Extension).add(expandF8Truncation);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
