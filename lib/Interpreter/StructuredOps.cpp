//===- StructuredOps.cpp - structured operations on the oracle --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Limits.h"
#include "ScalarBounds.h"
#include "StructuredLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using reference::DType;
using reference::numElements;

namespace {
/// What an operand has for the body.
struct Input {
  Type type;
  std::vector<Scalar> elements;
  /// Empty if all are exact.
  std::vector<double> errors;

  Input(Value operand, Evaluator &values);
  BoundedScalar get(int64_t position) const {
    return {elements[position], errors.empty() ? 0 : errors[position]};
  }
  bool isFinite() const {
    return llvm::all_of(elements,
                        [](Scalar x) { return std::isfinite(x.real); }) &&
           llvm::all_of(errors, [](double x) { return std::isfinite(x); });
  }
};

/// The terms of a sum so far.
struct Sum {
  /// The reference's own rounding does not count: of f64 as well.
  long double value = 0, size = 0;
  double error = 0;

  void add(const BoundedScalar &term, bool isNegative) {
    value += isNegative ? -term.value.real : term.value.real;
    size += std::fabs(term.value.real);
    error += term.error;
  }
};

/// A result, and how the body makes it.
struct Output {
  Type type;
  /// For a sum: the terms, or the two factors of each. They are subtracted if
  /// it is negative. Otherwise what the body yields.
  SmallVector<Value, 2> parts;
  bool isSum = false, isNegative = false;
  int64_t numTerms = 1;
  std::vector<BoundedScalar> elements;
  std::vector<Sum> sums;

  bool isContraction() const { return parts.size() == 2; }
};
} // namespace

Input::Input(Value operand, Evaluator &values)
    : type(getElementTypeOrSelf(operand.getType())) {
  const ReferenceValue &value = values.getExact(operand);
  // What is computed is more exact than what is read, of which its error tells.
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

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Finds out whether the result is a sum over loops, of terms that do not
/// depend on it. A sum may be in any order, others are in that of the loops.
static void analyzeResult(linalg::LinalgOp op, unsigned number,
                          ArrayRef<int64_t> ranges, Output &output) {
  Value yielded = op.getBlock()->getTerminator()->getOperand(number);
  OpOperand *init = op.getDpsInitOperand(number);
  output.parts = {yielded};
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
    output.parts = {fma.getA(), fma.getB()};
  } else if (isa<arith::AddFOp, arith::SubFOp>(add)) {
    bool isFirst = add->getOperand(0) == sum;
    output.isNegative = isa<arith::SubFOp>(add);
    if (output.isNegative && !isFirst)
      return;
    Value term = add->getOperand(isFirst ? 1 : 0);
    output.parts = {term};
    auto product = term.getDefiningOp<arith::MulFOp>();
    if (product && product->getBlock() == op.getBlock())
      output.parts = {product.getLhs(), product.getRhs()};
  } else {
    return;
  }
  output.isSum = true;
  for (auto [loop, range] : llvm::enumerate(ranges))
    if (!map.isFunctionOfDim(unsigned(loop)))
      output.numTerms *= range;
}

/// The sum of K terms is within (8 + 2 sqrt(K)) units of the sum of their
/// sizes. Products are summed up in f32 at least and rounded once. Other sums of
/// 16 bits are rounded at every step, by which they may be off systematically.
static BoundedScalar finishSum(const Output &output, const Sum &sum,
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
  // A part of the sum may be an infinity where the sum is none.
  if (size > std::fabs(value) && size + error >= overflowBound(sumType))
    error = HUGE_VAL;
  BoundedScalar result =
      roundBounded(output.type, double(value), error, Rounding::Once);
  return result;
}

/// The operand of the body that a factor is, at most extended: that is exact.
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

/// Adds up products of the elements of two operands with `count` steps.
template <typename Real>
static void addProducts(const Input &a, const Input &b, int64_t firstA,
                        int64_t firstB, int64_t stepA, int64_t stepB,
                        int64_t count, Sum &sum) {
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

/// The most common bodies without a program: false if it is another.
static FailureOr<bool> addContraction(linalg::LinalgOp op,
                                      ArrayRef<int64_t> ranges,
                                      ArrayRef<ElementMap> maps,
                                      ArrayRef<Input> inputs, Output &output) {
  if (!output.isContraction())
    return false;
  auto left = getOperandNumber(op, output.parts[0]);
  auto right = getOperandNumber(op, output.parts[1]);
  if (!left || !right)
    return false;
  const Input &a = inputs[*left], &b = inputs[*right];
  ElementMap used[] = {maps[*left], maps[*right], maps.back()};
  if (!a.isFinite() || !b.isFinite() ||
      !llvm::all_of(used, [](const auto &map) { return map.isLinear(); }))
    return false;
  if (llvm::is_contained(ranges, 0))
    return true;
  // The longest loop over which an element is summed up is innermost.
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
      return op.emitError("an operand is read outside of its shape");
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

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// Runs the body for all indices of the loops.
static LogicalResult runBody(linalg::LinalgOp op, ArrayRef<int64_t> ranges,
                             ArrayRef<ElementMap> maps, ArrayRef<Input> inputs,
                             MutableArrayRef<Output> outputs,
                             Evaluator &values) {
  SmallVector<Value> wanted;
  for (const Output &output : outputs)
    llvm::append_range(wanted, output.parts);
  Region &region = *op.getBlock()->getParent();
  std::unique_ptr<ScalarProgram> program =
      ScalarProgram::create(region, wanted, values, /*rounds=*/false);
  if (!program)
    return failure();
  BoundedRun run(*program);
  SmallVector<unsigned> read;
  for (auto [number, argument] : llvm::enumerate(region.getArguments()))
    if (!argument.use_empty())
      read.push_back(unsigned(number));
  const unsigned numInputs = unsigned(inputs.size());
  auto visit = [&](ArrayRef<int64_t> indices, ArrayRef<int64_t> positions) {
    for (unsigned number : read)
      run.getArgument(number) =
          number < numInputs
              ? inputs[number].get(positions[number])
              : outputs[number - numInputs].elements[positions[number]];
    run.run(indices);
    unsigned next = 0;
    for (auto [number, output] : llvm::enumerate(outputs)) {
      int64_t position = positions[numInputs + number];
      BoundedScalar part = run.getResult(next++);
      if (output.isContraction())
        part = multiplyBounded(part, run.getResult(next++));
      if (output.isSum)
        output.sums[position].add(part, output.isNegative);
      else
        output.elements[position] = part;
    }
  };
  if (failed(forEachPoint(op, ranges, maps, visit)))
    return failure();
  return program->checkRuns();
}

static ReferenceValue makeResult(Output &output, const Shape &shape) {
  ReferenceValue result;
  result.type = *getReferenceType(output.type);
  result.array.shape = shape;
  std::vector<double> errors;
  for (auto [i, element] : llvm::enumerate(output.elements)) {
    if (output.isSum && output.numTerms > 0)
      element = finishSum(output, output.sums[i], element);
    result.array.values.push_back(isa<FloatType>(output.type)
                                      ? (long double)(element.value.real)
                                      : (long double)(element.value.integer));
    errors.push_back(element.error);
  }
  setElementErrors(result, errors);
  return result;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static LogicalResult checkOperands(linalg::LinalgOp op, Evaluator &values) {
  if (!op.hasPureTensorSemantics())
    return op.emitError("the reference evaluates tensors, not memrefs");
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (!getReferenceType(getElementTypeOrSelf(type)))
      return op.emitError() << "the reference does not know " << type;
    if (!op.getMatchingBlockArgument(&operand).use_empty() &&
        !values.getExact(operand.get()).initialized)
      return op.emitError("reads a tensor that nothing was written to");
  }
  for (auto [init, type] :
       llvm::zip_equal(op.getDpsInits(), op->getResultTypes()))
    if (failed(checkShape(op, values.getShape(init), type)))
      return failure();
  return success();
}

/// Moves elements without a change, those of an attention's result, too.
static LogicalResult moveElements(linalg::LinalgOp op, unsigned number,
                                  unsigned from, ArrayRef<int64_t> ranges,
                                  Evaluator &values) {
  const ReferenceValue &source = values.getExact(op->getOperand(from));
  OpOperand *init = op.getDpsInitOperand(number);
  const Shape &shape = values.getShape(init->get());
  const auto &elements = source.array.values;
  ReferenceValue result = source;
  result.array.shape = shape;
  result.array.values.resize(size_t(numElements(shape)));
  if (!source.array.magnitude.empty())
    result.array.magnitude.resize(result.array.values.size());
  if (source.isAttention)
    result.largest.resize(result.array.values.size());
  ElementMap maps[] = {
      {op.getMatchingIndexingMap(&op->getOpOperand(from)), source.array.shape},
      {op.getMatchingIndexingMap(init), shape}};
  if (failed(forEachPoint(op, ranges, maps, [&](auto, auto positions) {
        int64_t to = positions[1], at = positions[0];
        result.array.values[to] = elements[at];
        if (!source.array.magnitude.empty())
          result.array.magnitude[to] = source.array.magnitude[at];
        if (source.isAttention)
          result.largest[to] = source.largest[at];
      })))
    return failure();
  values.set(op->getResult(number), std::move(result));
  return success();
}

std::optional<LogicalResult> mlir::posenc::evaluateMoves(Operation *operation,
                                                         Evaluator &values) {
  auto op = dyn_cast<linalg::LinalgOp>(operation);
  if (!op || op.getNumParallelLoops() != op.getNumLoops())
    return std::nullopt;
  SmallVector<unsigned> from;
  for (auto [number, yielded] :
       llvm::enumerate(op.getBlock()->getTerminator()->getOperands())) {
    auto argument = dyn_cast<BlockArgument>(yielded);
    OpOperand *init = op.getDpsInitOperand(int64_t(number));
    if (!argument || argument.getOwner() != op.getBlock() ||
        argument.getArgNumber() >= op.getNumDpsInputs() ||
        !op.getMatchingIndexingMap(init).isPermutation())
      return std::nullopt;
    from.push_back(argument.getArgNumber());
  }
  if (failed(checkOperands(op, values)))
    return failure();
  FailureOr<SmallVector<int64_t>> ranges = getLoopRanges(op, values);
  if (failed(ranges))
    return failure();
  for (auto [number, argument] : llvm::enumerate(from))
    if (failed(moveElements(op, unsigned(number), argument, *ranges, values)))
      return failure();
  return success();
}

std::optional<LogicalResult>
mlir::posenc::evaluateStructured(Operation *operation, Evaluator &values) {
  auto op = dyn_cast<linalg::LinalgOp>(operation);
  if (!op)
    return std::nullopt;
  if (failed(checkOperands(op, values)))
    return failure();
  FailureOr<SmallVector<int64_t>> ranges = getLoopRanges(op, values);
  if (failed(ranges))
    return failure();
  SmallVector<ElementMap> maps;
  for (OpOperand &operand : op->getOpOperands())
    maps.emplace_back(op.getMatchingIndexingMap(&operand),
                      values.getShape(operand.get()));
  std::vector<Input> inputs;
  for (Value operand : op.getDpsInputs())
    inputs.emplace_back(operand, values);
  std::vector<Output> outputs;
  for (auto [number, value] : llvm::enumerate(op.getDpsInits())) {
    Output &output = outputs.emplace_back();
    Input init(value, values);
    output.type = init.type;
    analyzeResult(op, unsigned(number), *ranges, output);
    size_t count = size_t(numElements(values.getShape(value)));
    // What nothing is written to must not be taken for a result.
    BoundedScalar none{Scalar::of(0.0), HUGE_VAL};
    output.elements.assign(count, none);
    for (size_t i = 0; i < init.elements.size(); ++i)
      output.elements[i] = init.get(int64_t(i));
    if (output.isSum)
      output.sums.resize(count);
  }
  FailureOr<bool> isDone = false;
  if (outputs.size() == 1)
    isDone = addContraction(op, *ranges, maps, inputs, outputs.front());
  if (failed(isDone) ||
      (!*isDone && failed(runBody(op, *ranges, maps, inputs, outputs, values))))
    return failure();
  for (auto [result, output, init] :
       llvm::zip_equal(op->getResults(), outputs, op.getDpsInits()))
    values.set(result, makeResult(output, values.getShape(init)));
  return success();
}
