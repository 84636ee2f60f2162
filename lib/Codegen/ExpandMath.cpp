//===- ExpandMath.cpp - math operations to arithmetic ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Numerics/MathBuilder.h"
#include "posenc/Numerics/MathExpansion.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <optional>

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEXPANDMATHPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Emits math.isnormal: the operand is neither zero, nor subnormal in its own
/// type, nor infinite, nor NaN.
static Value emitIsNormal(OpBuilder &builder, math::IsNormalOp op) {
  Value x = op.getOperand();
  Type element = getElementTypeOrSelf(x.getType());
  ElementwiseBuilder narrow(builder, op.getLoc(), x);
  if (isNarrowFloat(element))
    x = narrow.cast<arith::ExtFOp>(builder.getF32Type(), x);
  MathBuilder b(builder, op.getLoc(), x, /*hasAVX512=*/false);
  double min =
      element.isF64() ? 0x1p-1022 : (element.isF16() ? 0x1p-14 : 0x1p-126);
  Value size = b.abs(x);
  return b.andi(b.compare(arith::CmpFPredicate::OGE, size, b.number(min)),
                b.compare(arith::CmpFPredicate::OLT, size, b.infinity()));
}

/// Applies an operation of one operand to each row of a vector with several
/// dimensions.
static Value applyToRows(OpBuilder &builder, Operation *op, Value operand) {
  Location loc = op->getLoc();
  auto type = cast<VectorType>(operand.getType());
  if (type.getRank() == 1) {
    Operation *row = builder.clone(*op);
    row->setOperand(0, operand);
    row->getResult(0).setType(type);
    return row->getResult(0);
  }
  Value result =
      arith::ConstantOp::create(builder, loc, type, builder.getZeroAttr(type));
  for (int64_t i = 0; i < type.getDimSize(0); ++i) {
    Value row = vector::ExtractOp::create(builder, loc, operand, i);
    result = vector::InsertOp::create(builder, loc,
                                      applyToRows(builder, op, row), result, i);
  }
  return result;
}

/// Whether an operation must be applied to each row: the lowering of MLIR has
/// no vectors of several dimensions for these.
static bool needsRows(Operation *op) {
  auto type = dyn_cast<VectorType>(op->getResult(0).getType());
  return type && type.getRank() > 1 &&
         isa<math::AbsIOp, math::CountLeadingZerosOp,
             math::CountTrailingZerosOp>(op);
}

/// Changes an operation on f16 or bf16 to f32 and rounds its results once.
static void widen(Operation *op) {
  auto isNarrow = [](Type type) {
    return isNarrowFloat(getElementTypeOrSelf(type));
  };
  if (llvm::none_of(op->getOperandTypes(), isNarrow) &&
      llvm::none_of(op->getResultTypes(), isNarrow))
    return;
  OpBuilder builder(op);
  auto getWide = [&](Type type) -> Type {
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.clone(builder.getF32Type());
    return builder.getF32Type();
  };
  // Folds extensions of constants: a power is expanded differently for a
  // constant exponent.
  for (OpOperand &operand : op->getOpOperands())
    if (Value value = operand.get(); isNarrow(value.getType()))
      operand.set(builder.createOrFold<arith::ExtFOp>(
          op->getLoc(), getWide(value.getType()), value));
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

namespace {
/// The expansion of one operation on f32 or f64.
class Expansion {
public:
  Expansion(OpBuilder &builder, Operation *op, bool hasAVX512)
      : builder(builder), op(op),
        native(builder, op->getLoc(), op->getOperand(0), hasAVX512) {}

  /// Emits the expansion. Returns the results, or nullopt if the operation is
  /// kept because all targets have an instruction for it.
  std::optional<SmallVector<Value>> emit();

private:
  /// Computes a function in f64, and rounds the result if the operands are f32.
  template <typename Emit> Value inF64(Emit emit) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      if (getElementTypeOrSelf(operand.getType()).isF32())
        operand = native.cast<arith::ExtFOp>(builder.getF64Type(), operand);
      operands.push_back(operand);
    }
    MathBuilder b(builder, op->getLoc(), operands.front(), native.hasAVX512,
                  /*forF32=*/!native.wide);
    Value result = emit(b, operands);
    return native.wide
               ? result
               : native.cast<arith::TruncFOp>(builder.getF32Type(), result);
  }
  template <typename... Arguments>
  Value inF64(Value (MathBuilder::*function)(Value, Arguments...),
              Arguments... arguments) {
    return inF64([&](MathBuilder &b, ArrayRef<Value> x) {
      return (b.*function)(x[0], arguments...);
    });
  }
  Value emitPower(math::PowFOp power);
  Value emitConstantPower(int64_t exponent);
  Value emitIntegerPower(uint64_t exponent);

  OpBuilder &builder;
  Operation *op;
  MathBuilder native;
};
} // namespace

Value Expansion::emitConstantPower(int64_t exponent) {
  if (exponent >= 0 && exponent <= 4)
    return native.powConstant(op->getOperand(0), exponent);
  return inF64([=](MathBuilder &b, ArrayRef<Value> x) {
    return b.powConstant(x[0], exponent);
  });
}

Value Expansion::emitPower(math::PowFOp power) {
  APFloat constant(0.0);
  bool isConstant = matchPattern(power.getRhs(), m_ConstantFloat(&constant));
  if (isConstant && constant.isInteger() &&
      abs(constant) <=
          APFloat(constant.getSemantics(), std::to_string(kMaxConstantPower)))
    return emitConstantPower(static_cast<int64_t>(constant.convertToDouble()));
  if (isConstant && abs(constant).isExactlyValue(0.5)) {
    // pow(-0, 0.5) is +0 and pow(-inf, 0.5) is +inf, but sqrt returns -0 and
    // NaN.
    Value x = power.getLhs();
    Value root = native.sqrt(native.add(x, native.number(0.0)));
    Value infinity = native.infinity();
    root = native.select(
        native.compare(arith::CmpFPredicate::OEQ, x, native.neg(infinity)),
        infinity, root);
    return constant.isNegative() ? native.div(native.number(1.0), root) : root;
  }
  return inF64(
      [](MathBuilder &b, ArrayRef<Value> x) { return b.pow(x[0], x[1]); });
}

Value Expansion::emitIntegerPower(uint64_t exponent) {
  ElementwiseBuilder b(builder, op->getLoc(), op->getOperand(0));
  Type element = getElementTypeOrSelf(op->getOperand(0).getType());
  Value power = b.constant(builder.getIntegerAttr(element, 1));
  // Square-and-multiply, from the highest bit.
  for (unsigned bit = 64; bit-- > 0;) {
    if (exponent >> bit > 1)
      power = b.muli(power, power);
    if (exponent >> bit & 1)
      power = b.muli(power, op->getOperand(0));
  }
  return power;
}

std::optional<SmallVector<Value>> Expansion::emit() {
  using Values = SmallVector<Value>;
  using Base = MathBuilder::Base;
  using LogBase = MathBuilder::LogBase;
  MathBuilder &b = native;
  Value x = op->getOperand(0);
  return llvm::TypeSwitch<Operation *, std::optional<Values>>(op)
      .Case([&](math::AcosOp) { return Values{inF64(&MathBuilder::acos)}; })
      .Case([&](math::AcoshOp) { return Values{inF64(&MathBuilder::acosh)}; })
      .Case([&](math::AsinOp) { return Values{inF64(&MathBuilder::asin)}; })
      .Case([&](math::AsinhOp) { return Values{inF64(&MathBuilder::asinh)}; })
      .Case([&](math::AtanOp) { return Values{inF64(&MathBuilder::atan)}; })
      .Case([&](math::Atan2Op) {
        return Values{inF64([](MathBuilder &wide, ArrayRef<Value> operands) {
          return wide.atan2(operands[0], operands[1]);
        })};
      })
      .Case([&](math::AtanhOp) { return Values{inF64(&MathBuilder::atanh)}; })
      .Case([&](math::CbrtOp) { return Values{inF64(&MathBuilder::cbrt)}; })
      .Case([&](math::ClampFOp clamp) {
        Value lower = b.binary<arith::MaximumFOp>(x, clamp.getMin());
        return Values{b.binary<arith::MinimumFOp>(lower, clamp.getMax())};
      })
      .Case([&](math::CosOp) { return Values{inF64(&MathBuilder::cos)}; })
      .Case([&](math::CoshOp) { return Values{inF64(&MathBuilder::cosh)}; })
      .Case([&](math::ErfOp) { return Values{inF64(&MathBuilder::erf)}; })
      .Case([&](math::ErfcOp) { return Values{inF64(&MathBuilder::erfc)}; })
      .Case([&](math::ExpOp) { return Values{b.exp(x)}; })
      .Case([&](math::Exp2Op) { return Values{b.exp(x, Base::Two)}; })
      .Case([&](math::ExpM1Op) { return Values{inF64(&MathBuilder::expm1)}; })
      .Case([&](math::FPowIOp power) {
        std::optional<int64_t> exponent = getIntegerExponent(power.getRhs());
        if (exponent && std::abs(*exponent) <= kMaxConstantPower)
          return Values{emitConstantPower(*exponent)};
        return Values{inF64([](MathBuilder &wide, ArrayRef<Value> operands) {
          return wide.powInteger(operands[0], operands[1]);
        })};
      })
      .Case([&](math::IPowIOp power) {
        return Values{emitIntegerPower(*getIntegerExponent(power.getRhs()))};
      })
      .Case([&](math::IsFiniteOp) {
        return Values{
            b.compare(arith::CmpFPredicate::OLT, b.abs(x), b.infinity())};
      })
      .Case([&](math::IsInfOp) {
        return Values{
            b.compare(arith::CmpFPredicate::OEQ, b.abs(x), b.infinity())};
      })
      .Case([&](math::IsNaNOp) {
        return Values{b.compare(arith::CmpFPredicate::UNO, x, x)};
      })
      .Case([&](math::LogOp) {
        return Values{inF64(&MathBuilder::log, LogBase::E)};
      })
      .Case([&](math::Log2Op) {
        return Values{inF64(&MathBuilder::log, LogBase::Two)};
      })
      .Case([&](math::Log10Op) {
        return Values{inF64(&MathBuilder::log, LogBase::Ten)};
      })
      .Case([&](math::Log1pOp) { return Values{inF64(&MathBuilder::log1p)}; })
      .Case([&](math::PowFOp power) { return Values{emitPower(power)}; })
      .Case([&](math::RsqrtOp) {
        return Values{b.div(b.number(1.0), b.sqrt(x))};
      })
      .Case([&](math::SinOp) { return Values{inF64(&MathBuilder::sin)}; })
      .Case([&](math::SincosOp) {
        return Values{inF64(&MathBuilder::sin), inF64(&MathBuilder::cos)};
      })
      .Case([&](math::SinhOp) { return Values{inF64(&MathBuilder::sinh)}; })
      .Case([&](math::TanOp) { return Values{inF64(&MathBuilder::tan)}; })
      .Case([&](math::TanhOp) { return Values{b.tanh(x)}; })
      .Default([](Operation *) { return std::nullopt; });
}

/// Removes the fast-math flags of math functions, whose accuracy is guaranteed.
/// Keeps `reassoc` and `contract` on arith operations.
static void dropFastMath(Operation *op) {
  auto flagged = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!flagged || !flagged.getFastMathFlagsAttr())
    return;
  arith::FastMathFlags kept = arith::FastMathFlags::none;
  if (isa<arith::ArithDialect>(op->getDialect()))
    kept = flagged.getFastMathFlagsAttr().getValue() &
           (arith::FastMathFlags::reassoc | arith::FastMathFlags::contract);
  op->setAttr(flagged.getFastMathAttrName(),
              arith::FastMathFlagsAttr::get(op->getContext(), kept));
}

static LogicalResult checkSupport(Operation *op) {
  if (hasMathExpansion(op))
    return success();
  return op->emitError()
         << "'" << op->getName() << "' of " << op->getOperand(0).getType()
         << " is not supported: a kernel cannot call libm, and "
         << (hasExpandableTypes(op)
                 ? "this operation has no expansion"
                 : "expansions exist for f16, bf16, f32 and f64 only");
}

namespace {
struct ExpandMath final
    : mlir::posenc::impl::PosencExpandMathPassBase<ExpandMath> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> functions;
    bool hasErrors = false;
    getOperation()->walk([&](Operation *op) {
      if (op->getNumOperands() == 0 || op->getNumResults() == 0 ||
          isa<TensorType>(op->getResult(0).getType()))
        return;
      dropFastMath(op);
      if (!isa_and_nonnull<math::MathDialect>(op->getDialect()))
        return;
      if (failed(checkSupport(op)))
        hasErrors = true;
      else
        functions.push_back(op);
    });
    if (hasErrors)
      return signalPassFailure();
    for (Operation *op : functions) {
      OpBuilder builder(op);
      if (auto isNormal = dyn_cast<math::IsNormalOp>(op)) {
        // isnormal is not widened: a subnormal f16 is a normal f32.
        op->getResult(0).replaceAllUsesWith(emitIsNormal(builder, isNormal));
        op->erase();
        continue;
      }
      if (needsRows(op)) {
        op->replaceAllUsesWith(
            ValueRange{applyToRows(builder, op, op->getOperand(0))});
        op->erase();
        continue;
      }
      widen(op);
      builder.setInsertionPoint(op);
      std::optional<SmallVector<Value>> results =
          Expansion(builder, op, avx512).emit();
      if (!results)
        continue;
      op->replaceAllUsesWith(*results);
      op->erase();
    }
  }
};
} // namespace
