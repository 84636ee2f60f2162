//===- ExpandMath.cpp - functions that a kernel has no libm for -*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// exp, exp2, log, log2 and tanh of f32 and f64, without branches: within a few
// units in the last place, of infinities and NaNs too. Rounding is by the
// addition of a large number, since vectors of AVX2 have no conversion to
// 64-bit integers, and that of a NaN would be undefined. What else there is of
// f32 is left to upstream's approximations. The polynomials of log and tanh are
// those of Moshier's Cephes library.
//
//===----------------------------------------------------------------------===//

#include "ElementwiseBuilder.h"

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/bit.h"

#include <limits>

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEXPANDMATHPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {

/// Arithmetic in f32 or f64, whichever the operand has.
class MathBuilder : public ElementwiseBuilder {
public:
  MathBuilder(OpBuilder &builder, Location loc, Value like)
      : ElementwiseBuilder(builder, loc, like),
        wide(getElementTypeOrSelf(like.getType()).isF64()) {}

  Value number(double value) { return wide ? f64(value) : f32(value); }
  Value integer(int64_t value) {
    return wide ? i64(value) : i32(static_cast<uint32_t>(value));
  }
  Value toBits(Value value) {
    return cast<arith::BitcastOp>(
        wide ? builder.getI64Type() : builder.getI32Type(), value);
  }
  Value fromBits(Value bits) {
    return cast<arith::BitcastOp>(
        wide ? Type(builder.getF64Type()) : Type(builder.getF32Type()), bits);
  }
  Value compare(arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(builder, loc, predicate, a, b);
  }
  Value div(Value a, Value b) { return binary<arith::DivFOp>(a, b); }
  Value abs(Value a) { return math::AbsFOp::create(builder, loc, a); }
  Value copySign(Value magnitude, Value sign) {
    return math::CopySignOp::create(builder, loc, magnitude, sign);
  }
  /// Coefficients of the highest power first.
  Value series(Value x, ArrayRef<double> coefficients) {
    Value sum = number(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      sum = fma(sum, x, number(coefficient));
    return sum;
  }

  Value exp(Value x, bool isBase2);
  Value log(Value x);
  Value tanh(Value x);

  bool wide;
};

} // namespace

/// `2^n * exp(r)`, with `|r|` at most half of ln 2.
Value MathBuilder::exp(Value x, bool isBase2) {
  // Beyond these, results are 0 or infinite. A NaN stays.
  double scale = isBase2 ? 1.0 : 0x1.71547652b82fep+0; // 1/ln 2
  Value least = number((wide ? -1077.0 : -152.0) / scale);
  Value most = number((wide ? 1025.0 : 129.0) / scale);
  x = select(compare(arith::CmpFPredicate::OLT, x, least), least, x);
  x = select(compare(arith::CmpFPredicate::OGT, x, most), most, x);
  double magic = wide ? 0x1.8p52 : 0x1.8p23;
  Value shifted = fma(x, number(scale), number(magic));
  Value n = sub(shifted, number(magic));
  double ln2 = 0x1.62e42fefa39efp-1, ln2Rest = 0x1.abc9e3b39803fp-56;
  if (!wide) {
    ln2Rest = ln2 - static_cast<float>(ln2);
    ln2 = static_cast<float>(ln2);
  }
  Value rest;
  if (isBase2) {
    rest = sub(x, n);
    rest = fma(rest, number(ln2), mul(rest, number(ln2Rest)));
  } else {
    rest = fma(n, number(-ln2), x);
    rest = fma(n, number(-ln2Rest), rest);
  }
  // (exp(r) - 1 - r) / r^2: Taylor's series in f64, in f32 a minimax one.
  Value tail =
      wide ? series(rest, {1.0 / 6227020800.0, 1.0 / 479001600.0,
                           1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
                           1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0,
                           1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5})
           : series(rest, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3,
                           4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  Value power = add(fma(mul(rest, rest), tail, rest), number(1.0));
  // In two steps, for results below the smallest normal number.
  int64_t magicBits = wide ? llvm::bit_cast<int64_t>(magic)
                           : llvm::bit_cast<int32_t>(static_cast<float>(magic));
  Value exponent = binary<arith::SubIOp>(toBits(shifted), integer(magicBits));
  Value half = shrs(exponent, integer(1));
  Value others = binary<arith::SubIOp>(exponent, half);
  auto powerOf2 = [&](Value of) {
    Value biased = addi(of, integer(wide ? 1023 : 127));
    return fromBits(shl(biased, integer(wide ? 52 : 23)));
  };
  return mul(mul(power, powerOf2(half)), powerOf2(others));
}

/// Of f64. `x = 2^e * (1 + m)`, with `1 + m` between the roots of 1/2 and 2.
Value MathBuilder::log(Value x) {
  Value given = x;
  Value isSmall = compare(arith::CmpFPredicate::OLT, x, f64(0x1p-1022));
  x = select(isSmall, mul(x, f64(0x1p54)), x);
  Value bits = toBits(x);
  // An exponent that is more by one from the root of 1/2 on.
  int64_t root = llvm::bit_cast<int64_t>(0x1.6a09e667f3bcdp-1);
  Value offset = binary<arith::SubIOp>(bits, i64(root));
  Value exponent = shrs(offset, i64(52));
  Value mantissa =
      fromBits(binary<arith::SubIOp>(bits, shl(exponent, i64(52))));
  // To a float by way of its bits: it is an integer of 11 bits and a sign.
  Value e = fromBits(addi(exponent, i64(llvm::bit_cast<int64_t>(0x1.8p52))));
  e = sub(e, f64(0x1.8p52));
  e = sub(e, select(isSmall, f64(54.0), f64(0.0)));

  Value m = sub(mantissa, f64(1.0));
  Value square = mul(m, m);
  Value p = series(m, {1.01875663804580931796e-4, 4.97494994976747001425e-1,
                       4.70579119878881725854e0, 1.44989225341610930846e1,
                       1.79368678507819816313e1, 7.70838733755885391666e0});
  Value q = series(m, {1.0, 1.12873587189167450590e1, 4.52279145837532221105e1,
                       8.29875266912776603211e1, 7.11544750618563894466e1,
                       2.31251620126765340583e1});
  Value y = mul(m, mul(square, div(p, q)));
  // ln 2 in two parts, the first of which is short.
  y = fma(e, f64(-2.121944400546905827679e-4), y);
  y = fma(square, f64(-0.5), y);
  Value result = fma(e, f64(0.693359375), add(m, y));

  double infinity = std::numeric_limits<double>::infinity();
  Value isZero = compare(arith::CmpFPredicate::OEQ, given, f64(0.0));
  result = select(isZero, f64(-infinity), result);
  Value isInfinite = compare(arith::CmpFPredicate::OEQ, given, f64(infinity));
  result = select(isInfinite, given, result);
  Value isWrong = compare(arith::CmpFPredicate::ULT, given, f64(0.0));
  return select(isWrong, f64(std::numeric_limits<double>::quiet_NaN()), result);
}

Value MathBuilder::tanh(Value x) {
  Value z = mul(x, x);
  Value tail;
  if (wide) {
    Value p = series(z, {-9.64399179425052238628e-1, -9.92877231001918586564e1,
                         -1.61468768441708447952e3});
    Value q = series(z, {1.0, 1.12811678491632931402e2,
                         2.23548839060100448583e3, 4.84406305325125486048e3});
    tail = div(p, q);
  } else {
    tail = series(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                      1.33314422036e-1, -3.33332819422e-1});
  }
  Value nearZero = fma(mul(x, z), tail, x);
  Value size = abs(x);
  Value power = exp(add(size, size), /*isBase2=*/false);
  Value far = sub(number(1.0), div(number(2.0), add(power, number(1.0))));
  far = copySign(far, x);
  return select(compare(arith::CmpFPredicate::OLT, size, number(0.625)),
                nearZero, far);
}

/// The function's value, in the type of `x`.
static Value expand(math::ExpOp, MathBuilder &b, Value x) {
  return b.exp(x, /*isBase2=*/false);
}
static Value expand(math::Exp2Op, MathBuilder &b, Value x) {
  return b.exp(x, /*isBase2=*/true);
}
static Value expand(math::TanhOp, MathBuilder &b, Value x) { return b.tanh(x); }

/// A logarithm, times `factor`. In f64: it is not taken often.
static Value expandLog(MathBuilder &b, Value x, double factor) {
  Value wide = b.wide ? x : b.cast<arith::ExtFOp>(b.builder.getF64Type(), x);
  Value result = MathBuilder(b.builder, b.loc, wide).log(wide);
  if (factor != 1.0)
    result = b.mul(result, b.f64(factor));
  return b.wide ? result
                : b.cast<arith::TruncFOp>(b.builder.getF32Type(), result);
}
static Value expand(math::LogOp, MathBuilder &b, Value x) {
  return expandLog(b, x, 1.0);
}
static Value expand(math::Log2Op, MathBuilder &b, Value x) {
  return expandLog(b, x, 0x1.71547652b82fep+0);
}

/// Computes in f32 what is of f16 or bf16. Upstream's pass for it crashes on
/// operations of no dialect.
static void widen(Operation *op) {
  auto isNarrow = [](Type type) {
    return isa<Float16Type, BFloat16Type>(getElementTypeOrSelf(type)) &&
           !isa<TensorType>(type);
  };
  if (!llvm::any_of(op->getOperandTypes(), isNarrow) &&
      !llvm::any_of(op->getResultTypes(), isNarrow))
    return;
  OpBuilder builder(op);
  auto getWide = [&](Type type) -> Type {
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.clone(builder.getF32Type());
    return builder.getF32Type();
  };
  for (OpOperand &operand : op->getOpOperands())
    if (Value value = operand.get(); isNarrow(value.getType()))
      operand.set(arith::ExtFOp::create(builder, op->getLoc(),
                                        getWide(value.getType()), value));
  builder.setInsertionPointAfter(op);
  for (OpResult result : op->getResults()) {
    Type type = result.getType();
    if (!isNarrow(type))
      continue;
    result.setType(getWide(type));
    auto narrow = arith::TruncFOp::create(builder, op->getLoc(), type, result);
    result.replaceAllUsesExcept(narrow, narrow);
  }
}

/// Whether targets have instructions for an operation of floats.
static bool isInstruction(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp,
             math::CtPopOp, math::FloorOp, math::FmaOp, math::IsFiniteOp,
             math::IsInfOp, math::IsNaNOp, math::IsNormalOp, math::RoundEvenOp,
             math::RoundOp, math::RsqrtOp, math::SqrtOp, math::TruncOp>(op);
}

namespace {

template <typename OpTy> struct Expand : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    Type element = getElementTypeOrSelf(x.getType());
    if ((!element.isF32() && !element.isF64()) || isa<TensorType>(x.getType()))
      return rewriter.notifyMatchFailure(op, "not of f32 or f64");
    MathBuilder b(rewriter, op.getLoc(), x);
    rewriter.replaceOp(op, expand(op, b, x));
    return success();
  }
};

struct ExpandMath final
    : mlir::posenc::impl::PosencExpandMathPassBase<ExpandMath> {
  using Base::Base;

  void runOnOperation() override {
    auto isOwn = [](StringRef name) {
      return llvm::is_contained(
          {math::ExpOp::getOperationName(), math::Exp2Op::getOperationName(),
           math::LogOp::getOperationName(), math::Log2Op::getOperationName(),
           math::TanhOp::getOperationName()},
          name);
    };
    getOperation()->walk([](Operation *op) {
      if (isa_and_nonnull<math::MathDialect>(op->getDialect()))
        widen(op);
    });
    RewritePatternSet patterns(&getContext());
    patterns.add<Expand<math::ExpOp>, Expand<math::Exp2Op>, Expand<math::LogOp>,
                 Expand<math::Log2Op>, Expand<math::TanhOp>>(&getContext());
    populateMathPolynomialApproximationPatterns(
        patterns, [&](StringRef name) { return !isOwn(name); });
    // Upstream's are made of others of these functions.
    GreedyRewriteConfig config;
    config.enableFolding(false).enableConstantCSE(false);
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();
    // What is left must not become calls.
    getOperation()->walk([&](Operation *op) {
      if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
          isa<TensorType>(op->getResult(0).getType()) || isInstruction(op))
        return;
      op->emitError() << "'" << op->getName() << "' of "
                      << op->getResult(0).getType()
                      << " needs a library of functions, which kernels do not "
                         "have";
      signalPassFailure();
    });
  }
};

} // namespace
