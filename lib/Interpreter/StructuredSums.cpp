//===- StructuredSums.cpp - sums in structured operations -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StructuredSums.h"

#include "Limits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using reference::DType;

StructuredInput::StructuredInput(Value operand, Evaluator &values)
    : type(getElementTypeOrSelf(operand.getType())) {
  const ReferenceValue &value = values.getExact(operand);
  // Takes elements without rounding; their errors include the rounding.
  for (long double element : value.array.values) {
    bool isInfinite = std::isinf(reference::roundTo(value.type, element));
    elements.push_back(loadScalar(
        type, isInfinite ? reference::roundTo(value.type, element) : element));
  }
  if (value.array.magnitude.empty() || !value.initialized)
    return;
  for (size_t i = 0; i < elements.size(); ++i)
    errors.push_back(getElementError(value, i, /*isRounded=*/false));
}

bool StructuredInput::isFinite() const {
  return llvm::all_of(elements,
                      [](Scalar x) { return std::isfinite(x.real); }) &&
         llvm::all_of(errors, [](double x) { return std::isfinite(x); });
}

void Sum::add(const BoundedScalar &term, bool isNegative) {
  value += isNegative ? -term.value.real : term.value.real;
  size += std::fabs(term.value.real);
  error += term.error;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

void mlir::posenc::analyzeResult(linalg::LinalgOp op, unsigned number,
                                 ArrayRef<int64_t> ranges,
                                 StructuredOutput &output) {
  Value yielded = op.getBlock()->getTerminator()->getOperand(number);
  OpOperand *init = op.getDpsInitOperand(number);
  output.factors = {yielded};
  AffineMap map = op.getMatchingIndexingMap(init);
  BlockArgument sum = op.getMatchingBlockArgument(init);
  Operation *add = yielded.getDefiningOp();
  if (!add || add->getBlock() != op.getBlock() || !sum.hasOneUse() ||
      *sum.user_begin() != add || !yielded.hasOneUse() ||
      !map.isProjectedPermutation() || map.isPermutation())
    return;
  if (auto fma = dyn_cast<math::FmaOp>(add)) {
    if (fma.getC() != sum)
      return;
    output.factors = {fma.getA(), fma.getB()};
  } else if (isa<arith::AddFOp, arith::SubFOp>(add)) {
    bool isFirst = add->getOperand(0) == sum;
    output.isNegative = isa<arith::SubFOp>(add);
    if (output.isNegative && !isFirst)
      return;
    Value term = add->getOperand(isFirst ? 1 : 0);
    output.factors = {term};
    auto product = term.getDefiningOp<arith::MulFOp>();
    if (product && product->getBlock() == op.getBlock())
      output.factors = {product.getLhs(), product.getRhs()};
  } else {
    return;
  }
  output.isSum = true;
  for (auto [loop, range] : llvm::enumerate(ranges))
    if (!map.isFunctionOfDim(unsigned(loop)))
      output.numTerms *= range;
}

/// A sum of K terms has an error of at most (8 + 2 sqrt(K)) units of the sum of
/// their absolute values. Products are summed in at least f32 and rounded once.
/// Other sums in 16-bit types are rounded at every step, and these errors may
/// add up to K / 2 units.
BoundedScalar mlir::posenc::finishSum(const StructuredOutput &output,
                                      const Sum &sum,
                                      const BoundedScalar &init) {
  DType type = *getReferenceType(output.type);
  bool isShort = getPrecision(type) < getPrecision(DType::F32);
  DType sumType = isShort && output.isContraction() ? DType::F32 : type;
  long double value = init.value.real + sum.value;
  long double size = std::fabs((long double)(init.value.real)) + sum.size;
  double error = init.error + sum.error;
  double steps = double(output.numTerms), units = 8 + 2 * std::sqrt(steps);
  if (isShort && !output.isContraction())
    units = std::fmax(units, steps / 2);
  if (!std::isfinite(value))
    return {Scalar::of(double(value)), error < HUGE_VAL ? 0 : HUGE_VAL};
  error += units * std::ldexp(double(size), 1 - getPrecision(sumType));
  // A partial sum may overflow even if the sum does not.
  if (size > std::fabs(value) && size + error >= overflowBound(sumType))
    error = HUGE_VAL;
  return roundBounded(output.type, double(value), error, Rounding::Once);
}

/// Returns the number of the input that a factor is, possibly through
/// arith.extf, which is exact, or nullopt for other factors.
static std::optional<unsigned> getOperandNumber(linalg::LinalgOp op,
                                                Value factor) {
  while (auto extend = factor.getDefiningOp<arith::ExtFOp>())
    factor = extend.getIn();
  auto argument = dyn_cast<BlockArgument>(factor);
  if (!argument || argument.getOwner() != op.getBlock() ||
      argument.getArgNumber() >= op.getNumDpsInputs())
    return std::nullopt;
  return argument.getArgNumber();
}

/// Adds the products of `count` elements of two operands to the sum.
template <typename Real>
static void addProducts(const StructuredInput &a, const StructuredInput &b,
                        int64_t firstA, int64_t firstB, int64_t stepA,
                        int64_t stepB, int64_t count, Sum &sum) {
  Real value = 0, size = 0;
  const Scalar *x = a.elements.data() + firstA;
  const Scalar *y = b.elements.data() + firstB;
  for (int64_t i = 0; i < count; ++i) {
    Real product = Real(x[i * stepA].real) * Real(y[i * stepB].real);
    value += product;
    size += std::fabs(product);
  }
  sum.value += value;
  sum.size += size;
  if (a.errors.empty() && b.errors.empty())
    return;
  for (int64_t i = 0; i < count; ++i)
    sum.error +=
        multiplyBounded(a.get(firstA + i * stepA), b.get(firstB + i * stepB))
            .error;
}

FailureOr<bool> mlir::posenc::addContraction(linalg::LinalgOp op,
                                             ArrayRef<int64_t> ranges,
                                             ArrayRef<ElementMap> maps,
                                             ArrayRef<StructuredInput> inputs,
                                             StructuredOutput &output) {
  if (!output.isContraction())
    return false;
  auto left = getOperandNumber(op, output.factors[0]);
  auto right = getOperandNumber(op, output.factors[1]);
  if (!left || !right)
    return false;
  const StructuredInput &a = inputs[*left], &b = inputs[*right];
  ElementMap used[] = {maps[*left], maps[*right], maps.back()};
  if (!a.isFinite() || !b.isFinite() ||
      !llvm::all_of(used, [](const auto &map) { return map.isLinear(); }))
    return false;
  if (llvm::is_contained(ranges, 0))
    return true;
  // The longest reduction loop becomes the innermost.
  size_t inner = 0;
  int64_t longest = 0;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (auto [loop, range] : llvm::enumerate(ranges))
    if (!map.isFunctionOfDim(unsigned(loop)) && range > longest) {
      longest = range;
      inner = loop;
    }
  for (const ElementMap &each : used)
    if (!each.isInside(ranges))
      return op.emitError("an operand is read out of bounds");
  SmallVector<int64_t> outer(ranges);
  outer[inner] = 1;
  const int64_t stepA = used[0].getStrides()[inner];
  const int64_t stepB = used[1].getStrides()[inner];
  bool isDouble = a.type.isF64() || b.type.isF64();
  auto add = isDouble ? addProducts<long double> : addProducts<double>;
  if (failed(forEachPoint(op, outer, used, [&](auto, auto positions) {
        add(a, b, positions[0], positions[1], stepA, stepB, longest,
            output.sums[positions[2]]);
      })))
    return failure();
  if (output.isNegative)
    for (Sum &sum : output.sums)
      sum.value = -sum.value;
  return true;
}
