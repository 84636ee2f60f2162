//===- SizeIntegerOps.cpp - arithmetic on sizes ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/SizeAnalysis.h"

using namespace mlir;
using namespace mlir::posenc;

/// Whether a type has 64 bits, as sizes have. Narrower arithmetic wraps around
/// earlier.
static bool isWide(Type type) { return type.isIndex() || type.isInteger(64); }

/// Returns a quotient that is rounded towards zero.
static SizeExpr truncate(const SizeExpr &left, const SizeExpr &right,
                         SizeSymbols &symbols) {
  SizeExpr quotient = symbols.createTerm(TermKind::Quotient, {left, right});
  if (symbols.isNonNegative(left))
    return quotient;
  SizeExpr negated =
      symbols.createTerm(TermKind::Quotient, {SizeExpr(0) - left, right});
  return symbols.createTerm(TermKind::IfLess,
                            {left, 0, SizeExpr(0) - negated, quotient});
}

/// Returns the result of an operation on two integers, or nullopt if it is
/// unknown.
static std::optional<SizeExpr> evaluate(Operation *op, const SizeExpr &left,
                                        const SizeExpr &right,
                                        SizeAnalysis &analysis) {
  SizeSymbols &symbols = analysis.getSymbols();
  auto term = [&](TermKind kind, const SizeExpr &a, const SizeExpr &b) {
    return symbols.createTerm(kind, {a, b});
  };
  bool areNonNegative =
      symbols.isNonNegative(left) && symbols.isNonNegative(right);
  if (isa<arith::AddIOp>(op))
    return left + right;
  if (isa<arith::SubIOp>(op))
    return left - right;
  if (isa<arith::MulIOp>(op))
    return left * right;
  if (isa<arith::MinSIOp>(op) || (isa<arith::MinUIOp>(op) && areNonNegative))
    return term(TermKind::Min, left, right);
  if (isa<arith::MaxSIOp>(op) || (isa<arith::MaxUIOp>(op) && areNonNegative))
    return term(TermKind::Max, left, right);
  // Divisors that are elements of tensors are not checked.
  bool isDivision = isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
                        arith::CeilDivSIOp, arith::CeilDivUIOp, arith::RemSIOp,
                        arith::RemUIOp>(op);
  if (!isDivision || !symbols.isKnown(right))
    return std::nullopt;
  analysis.requireAtMost(1, right, op);
  bool isUnsigned = isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp>(op);
  if (isUnsigned && !areNonNegative)
    return std::nullopt;
  if (isa<arith::FloorDivSIOp>(op))
    return term(TermKind::Quotient, left, right);
  if (isa<arith::CeilDivSIOp, arith::CeilDivUIOp>(op))
    return term(TermKind::Quotient, left + right - 1, right);
  if (isa<arith::RemSIOp, arith::RemUIOp>(op)) {
    if (symbols.isNonNegative(left))
      return term(TermKind::Remainder, left, right);
    return left - truncate(left, right, symbols) * right;
  }
  return truncate(left, right, symbols);
}

bool mlir::posenc::visitIntegerOp(Operation *op, SizeAnalysis &analysis) {
  if (visitAffineOp(op, analysis))
    return true;
  // The regions of a scf.while on integers are visited.
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 ||
      !op->getResult(0).getType().isIntOrIndex())
    return false;
  Value result = op->getResult(0);
  auto isScalar = [](Type type) { return type.isIntOrIndex(); };
  if (!llvm::all_of(op->getOperandTypes(), isScalar))
    return false;
  SizeSymbols &symbols = analysis.getSymbols();
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    analysis.setCondition(result, compare.getPredicate(),
                          analysis.getInteger(compare.getLhs()),
                          analysis.getInteger(compare.getRhs()));
    return true;
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    if (std::optional<SizeExpr> value = analysis.select(
            select.getCondition(), analysis.getInteger(select.getTrueValue()),
            analysis.getInteger(select.getFalseValue())))
      analysis.setInteger(result, *value);
    return true;
  }
  if (isa<arith::ExtUIOp>(op) && isWide(result.getType()) &&
      op->getOperand(0).getType().isInteger(1)) {
    if (std::optional<SizeExpr> value =
            analysis.select(op->getOperand(0), 1, 0))
      analysis.setInteger(result, *value);
    return true;
  }
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::IndexCastUIOp,
          arith::ExtUIOp>(op)) {
    SizeExpr value = analysis.getInteger(op->getOperand(0));
    bool isSigned = isa<arith::IndexCastOp, arith::ExtSIOp>(op);
    if (isWide(result.getType()) && !op->getOperand(0).getType().isInteger(1) &&
        (isSigned || symbols.isNonNegative(value)))
      analysis.setInteger(result, value);
    return true;
  }
  // The narrow integer of an element wraps around. Narrow sizes are unknown.
  if (isa<arith::TruncIOp>(op) && result.getType().isInteger(32)) {
    SizeExpr value = analysis.getInteger(op->getOperand(0));
    if (!symbols.isKnown(value) && symbols.isComputable(value)) {
      constexpr int64_t half = int64_t{1} << 31;
      analysis.setInteger(result, symbols.createTerm(TermKind::Remainder,
                                                     {value + half, 2 * half}) -
                                      half);
    }
    return true;
  }
  if (op->getNumOperands() == 2 && isWide(result.getType()))
    if (std::optional<SizeExpr> value =
            evaluate(op, analysis.getInteger(op->getOperand(0)),
                     analysis.getInteger(op->getOperand(1)), analysis))
      analysis.setInteger(result, *value);
  return true;
}
