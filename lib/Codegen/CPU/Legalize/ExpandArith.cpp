//===- ExpandArith.cpp - arith operations without runtime calls -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel library links neither libm nor the compiler's runtime library, but
// LLVM lowers some arith operations to calls of them: __truncdfhf2, fmodf,
// fmaxf, __divti3 and others. This pass expands those that take a few
// instructions and rejects the rest. Integer divisions that would trap get a
// defined result.
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/ElementwiseBuilder.h"
#include "posenc/Numerics/MathExpansion.h"

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEXPANDARITHPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Returns the element type of a scalar or vector, or null for a tensor.
/// Operations on tensors are ignored: they become loops over scalars before
/// this pass must handle them.
static Type getElement(Value value) {
  return isa<TensorType>(value.getType()) ? Type()
                                          : getElementTypeOrSelf(value);
}

/// Converts f64 to f32 with rounding to odd: an inexact number becomes the
/// neighbour whose last bit is 1. Rounding the result to a type of at most 22
/// significant bits is equivalent to a single rounding of the original number
/// (Boldo and Melquiond, "When double rounding is odd", 2005).
static Value truncateToOdd(ElementwiseBuilder &b, Value wide) {
  Type i32 = b.builder.getI32Type(), f64 = b.builder.getF64Type();
  auto compare = [&](arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b.builder, b.loc, predicate, x, y);
  };
  Value nearest = b.cast<arith::TruncFOp>(b.builder.getF32Type(), wide);
  Value back = b.cast<arith::ExtFOp>(f64, nearest);
  Value bits = b.cast<arith::BitcastOp>(i32, nearest);
  // The neighbour on the other side of the number. Beyond the largest f32,
  // `nearest` is infinite, and its neighbour the largest.
  Value isBeyond = compare(arith::CmpFPredicate::OGT,
                           math::AbsFOp::create(b.builder, b.loc, back),
                           math::AbsFOp::create(b.builder, b.loc, wide));
  Value other = b.addi(bits, b.select(isBeyond, b.i32(-1), b.i32(1)));
  // The comparison is false for a NaN, which is kept.
  Value isInexact = compare(arith::CmpFPredicate::ONE, back, wide);
  Value isEven =
      arith::CmpIOp::create(b.builder, b.loc, arith::CmpIPredicate::eq,
                            b.andi(bits, b.i32(1)), b.i32(0));
  Value odd = b.select(b.andi(isInexact, isEven), other, bits);
  return b.cast<arith::BitcastOp>(b.builder.getF32Type(), odd);
}

/// Converts f64 to f16 or bf16 with a single rounding.
static LogicalResult expandTruncation(arith::TruncFOp op,
                                      PatternRewriter &rewriter) {
  Type from = getElement(op.getIn());
  if (!from || !from.isF64() ||
      !isNarrowFloat(getElementTypeOrSelf(op.getType())))
    return rewriter.notifyMatchFailure(op, "not from f64 to f16 or bf16");
  ElementwiseBuilder b(rewriter, op.getLoc(), op.getIn());
  rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(),
                                               truncateToOdd(b, op.getIn()));
  return success();
}

/// Converts integers of 25 to 64 bits to f16 or bf16 by way of f64. By way of
/// f32 they would be rounded twice.
template <typename OpTy>
static LogicalResult expandFromInteger(OpTy op, PatternRewriter &rewriter) {
  constexpr bool isSigned = std::is_same_v<OpTy, arith::SIToFPOp>;
  Type from = getElement(op.getIn());
  if (!from || !isNarrowFloat(getElementTypeOrSelf(op.getType())))
    return rewriter.notifyMatchFailure(op, "not to f16 or bf16");
  unsigned width = from.getIntOrFloatBitWidth();
  if (width <= 24 || width > 64)
    return rewriter.notifyMatchFailure(
        op, "integer is exact in f32 or wider than 64 bits");
  ElementwiseBuilder b(rewriter, op.getLoc(), op.getIn());
  Value integer = op.getIn();
  if (width > 53) {
    using Extension =
        std::conditional_t<isSigned, arith::ExtSIOp, arith::ExtUIOp>;
    if (width < 64)
      integer = b.cast<Extension>(rewriter.getI64Type(), integer);
    // An integer of more than 53 bits keeps its upper bits; its lowest kept
    // bit is set if any dropped bit was set (rounding to odd).
    Value low = b.andi(integer, b.i64(0x7ff));
    Value isExact = arith::CmpIOp::create(
        rewriter, op.getLoc(), arith::CmpIPredicate::eq, low, b.i64(0));
    Value sticky = b.ori(b.andi(integer, b.i64(~int64_t(0x7ff))),
                         b.select(isExact, b.i64(0), b.i64(0x400)));
    // Tests whether the integer is in [-2^52, 2^52) if signed, else in
    // [0, 2^53).
    Value shifted =
        isSigned ? b.addi(integer, b.i64(int64_t(1) << 52)) : integer;
    Value isSmall =
        arith::CmpIOp::create(rewriter, op.getLoc(), arith::CmpIPredicate::ult,
                              shifted, b.i64(int64_t(1) << 53));
    integer = b.select(isSmall, integer, sticky);
  }
  Value wide = b.cast<OpTy>(rewriter.getF64Type(), integer);
  rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(),
                                               truncateToOdd(b, wide));
  return success();
}

/// Expands maxnumf and minnumf of f16 or bf16 to a comparison in f32 and a
/// select of the operands. LLVM would undo a computation in f32.
template <typename OpTy>
static LogicalResult expandExtremum(OpTy op, PatternRewriter &rewriter) {
  Type element = getElement(op.getLhs());
  if (!element || !isNarrowFloat(element))
    return rewriter.notifyMatchFailure(op, "not of f16 or bf16");
  ElementwiseBuilder b(rewriter, op.getLoc(), op.getLhs());
  Type f32 = rewriter.getF32Type();
  Value lhs = b.cast<arith::ExtFOp>(f32, op.getLhs());
  Value rhs = b.cast<arith::ExtFOp>(f32, op.getRhs());
  auto compare = [&](arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(rewriter, op.getLoc(), predicate, x, y);
  };
  constexpr bool isMaximum = std::is_same_v<OpTy, arith::MaxNumFOp>;
  Value isLeft =
      compare(isMaximum ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT,
              lhs, rhs);
  isLeft = b.ori(isLeft, compare(arith::CmpFPredicate::UNO, rhs, rhs));
  rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isLeft, op.getLhs(),
                                               op.getRhs());
  return success();
}

/// Returns `divisor * 2^(51 j)` with `j = numSteps - 1 - i`, or infinity on
/// overflow. It multiplies by three factors, each of which is finite.
static Value scale(ElementwiseBuilder &b, Value divisor, Value i,
                   int64_t numSteps) {
  OpBuilder &builder = b.builder;
  auto i64 = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, b.loc,
                                     builder.getI64IntegerAttr(value));
  };
  Value count =
      arith::IndexCastOp::create(builder, b.loc, builder.getI64Type(), i);
  Value j = b.subi(i64(numSteps - 1), count);
  Value exponent = b.addi(b.muli(j, i64(17)), i64(1023));
  Value bits = b.shl(exponent, i64(52));
  Value factor =
      arith::BitcastOp::create(builder, b.loc, builder.getF64Type(), bits);
  if (isa<VectorType>(divisor.getType()))
    factor =
        vector::BroadcastOp::create(builder, b.loc, divisor.getType(), factor);
  return b.mul(b.mul(b.mul(divisor, factor), factor), factor);
}

/// Expands arith.remf, which is C's fmod, without rounding errors. Starting
/// with r = |x|, multiples of |y| * 2^(51 j) are subtracted from r, for j from
/// numSteps - 1 down to 0. Each quotient is below 2^52, so it is off by at most
/// one, and each difference is exact.
static LogicalResult expandRemainder(arith::RemFOp op,
                                     PatternRewriter &rewriter) {
  Type element = getElement(op.getLhs());
  if (!element ||
      !(isNarrowFloat(element) || element.isF32() || element.isF64()))
    return rewriter.notifyMatchFailure(
        op, "expected f16, bf16, f32 or f64 operands");
  Location loc = op.getLoc();
  ElementwiseBuilder b(rewriter, loc, op.getLhs());
  Type f64 = rewriter.getF64Type();
  auto toF64 = [&](Value value) {
    return element.isF64() ? value : b.cast<arith::ExtFOp>(f64, value);
  };
  auto compare = [&](arith::CmpFPredicate predicate, Value a, Value c) {
    return arith::CmpFOp::create(rewriter, loc, predicate, a, c);
  };
  Value x = toF64(op.getLhs()), y = toF64(op.getRhs());
  Value divisor = math::AbsFOp::create(rewriter, loc, y);
  Value start = math::AbsFOp::create(rewriter, loc, x);

  // The steps cover all quotients: 2^278 > 2^128 / 2^-149 for f32, and
  // 2^2099 > 2^1024 / 2^-1074 for f64.
  int64_t numSteps = element.isF64() ? 42 : 6;
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  Value lower = index(0), upper = index(numSteps), step = index(1);
  auto loop = scf::ForOp::create(
      rewriter, loc, lower, upper, step, start,
      [&](OpBuilder &, Location, Value i, ValueRange state) {
        Value r = state[0];
        Value scaled = scale(b, divisor, i, numSteps);
        Value quotient = math::TruncOp::create(
            rewriter, loc, b.binary<arith::DivFOp>(r, scaled));
        Value less = b.fma(b.neg(quotient), scaled, r);
        Value isBelow0 = compare(arith::CmpFPredicate::OLT, less, b.f64(0.0));
        less = b.select(isBelow0, b.add(less, scaled), less);
        // This also skips steps in which `scaled` is infinite.
        Value isDone = compare(arith::CmpFPredicate::OLT, r, scaled);
        scf::YieldOp::create(rewriter, loc, Value(b.select(isDone, r, less)));
      });
  Value rest = math::CopySignOp::create(rewriter, loc, loop.getResult(0), x);
  Value infinity = b.f64(std::numeric_limits<double>::infinity());
  Value isDefined =
      b.andi(compare(arith::CmpFPredicate::OLT, start, infinity),
             compare(arith::CmpFPredicate::OGT, divisor, b.f64(0.0)));
  rest = b.select(isDefined, rest,
                  b.f64(std::numeric_limits<double>::quiet_NaN()));
  // The conversion is exact: the remainder is representable in the type.
  if (!element.isF64())
    rest = b.cast<arith::TruncFOp>(rewriter.getF32Type(), rest);
  if (isNarrowFloat(element))
    rest = b.cast<arith::TruncFOp>(element, rest);
  rewriter.replaceOp(op, rest);
  return success();
}

/// Guards integer divisions by tensor elements, so they never trap: x / 0 is -1
/// with the remainder x, and the minimum divided by -1 is the minimum. XLA
/// defines the same results.
template <typename OpTy>
static LogicalResult guardDivision(OpTy op, PatternRewriter &rewriter) {
  constexpr bool isSigned = std::is_same_v<OpTy, arith::DivSIOp> ||
                            std::is_same_v<OpTy, arith::RemSIOp>;
  constexpr bool isQuotient = std::is_same_v<OpTy, arith::DivSIOp> ||
                              std::is_same_v<OpTy, arith::DivUIOp>;
  Value dividend = op.getLhs(), divisor = op.getRhs();
  Type element = getElement(divisor);
  // Divisors of type index are sizes, which entry points check.
  if (!element || element.isIndex() || matchPattern(divisor, m_Constant()))
    return rewriter.notifyMatchFailure(op, "not by elements of tensors");
  Location loc = op.getLoc();
  auto splat = [&](int64_t value) -> Value {
    unsigned width = element.getIntOrFloatBitWidth();
    TypedAttr attribute =
        rewriter.getIntegerAttr(element, APInt(width, value, /*isSigned=*/true,
                                               /*implicitTrunc=*/true));
    if (auto type = dyn_cast<VectorType>(divisor.getType()))
      attribute = DenseElementsAttr::get(type, ArrayRef<Attribute>(attribute));
    return arith::ConstantOp::create(rewriter, loc, attribute);
  };
  auto isEqual = [&](int64_t value) -> Value {
    return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq,
                                 divisor, splat(value));
  };
  auto select = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(rewriter, loc, condition, yes, no);
  };
  Value isZero = isEqual(0), isMinusOne;
  Value safe = select(isZero, splat(1), divisor);
  if (isSigned) {
    isMinusOne = isEqual(-1);
    safe = select(isMinusOne, splat(1), safe);
  }
  Value result = OpTy::create(rewriter, loc, dividend, safe);
  if (isSigned && isQuotient)
    result = select(isMinusOne,
                    arith::SubIOp::create(rewriter, loc, splat(0), dividend),
                    result);
  rewriter.replaceOp(op,
                     select(isZero, isQuotient ? splat(-1) : dividend, result));
  return success();
}

/// Converts an integer before its extension to more than 64 bits, for which
/// there are no conversions.
template <typename OpTy, typename ExtensionTy>
static LogicalResult skipExtension(OpTy op, PatternRewriter &rewriter) {
  auto extension = op.getIn().template getDefiningOp<ExtensionTy>();
  if (!extension || !getElement(op.getIn()) ||
      getElement(op.getIn()).getIntOrFloatBitWidth() <= 64)
    return rewriter.notifyMatchFailure(
        op, "operand is not an extension to more than 64 bits");
  rewriter.replaceOpWithNewOp<OpTy>(op, op.getType(), extension.getIn());
  return success();
}

namespace {
/// The reason why an operation is not supported in a kernel, and the type that
/// causes it.
struct Unsupported {
  Type type;
  StringRef reason;
};
} // namespace

static std::optional<Unsupported> findUnsupported(Operation *op) {
  // These ops move bits of any type.
  if (isa<arith::ConstantOp, arith::SelectOp, arith::BitcastOp>(op))
    return std::nullopt;
  bool isConversion =
      isa<arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp>(
          op);
  bool isDivision =
      isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
          arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op);
  SmallVector<Value> values(op->getOperands());
  llvm::append_range(values, op->getResults());
  for (Value value : values) {
    Type type = getElement(value);
    // Operations on tensors become loops over scalars first.
    if (!type)
      return std::nullopt;
    if (isa<FloatType>(type) && !isNarrowFloat(type) && !type.isF32() &&
        !type.isF64())
      return Unsupported{value.getType(),
                         "kernels compute in f16, bf16, f32 and f64"};
    if (!type.isInteger() || type.getIntOrFloatBitWidth() <= 64)
      continue;
    if (isConversion)
      return Unsupported{
          value.getType(),
          "it needs a library of functions, which kernels do not "
          "have; convert integers of at most 64 bits"};
    if (isDivision)
      return Unsupported{
          value.getType(),
          "it needs a library of functions, which kernels do not "
          "have; divide integers of at most 64 bits"};
  }
  return std::nullopt;
}

namespace {
struct ExpandArith final
    : mlir::posenc::impl::PosencExpandArithPassBase<ExpandArith> {
  using Base::Base;

  void runOnOperation() override {
    // Expands ceildiv and floordiv to the divisions that are guarded below.
    RewritePatternSet divisions(&getContext());
    arith::populateCeilFloorDivExpandOpsPatterns(divisions);
    walkAndApplyPatterns(getOperation(), std::move(divisions));
    RewritePatternSet patterns(&getContext());
    patterns.add(expandTruncation)
        .add(expandFromInteger<arith::SIToFPOp>)
        .add(expandFromInteger<arith::UIToFPOp>)
        .add(expandExtremum<arith::MaxNumFOp>)
        .add(expandExtremum<arith::MinNumFOp>)
        .add(expandRemainder)
        .add(guardDivision<arith::DivSIOp>)
        .add(guardDivision<arith::DivUIOp>)
        .add(guardDivision<arith::RemSIOp>)
        .add(guardDivision<arith::RemUIOp>)
        .add(skipExtension<arith::SIToFPOp, arith::ExtSIOp>)
        .add(skipExtension<arith::UIToFPOp, arith::ExtUIOp>);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    getOperation()->walk([&](Operation *op) {
      if (!isa_and_nonnull<arith::ArithDialect>(op->getDialect()))
        return;
      std::optional<Unsupported> unsupported = findUnsupported(op);
      if (!unsupported)
        return;
      op->emitError() << "cannot compile '" << op->getName() << "' with "
                      << unsupported->type << ": " << unsupported->reason;
      signalPassFailure();
    });
  }
};
} // namespace
