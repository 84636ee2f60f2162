//===- PosencOps.cpp - reference evaluation of tables and rotations -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"
#include "Limits.h"
#include "Specs.h"

#include "posenc/Reference/Compare.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using reference::Array;
using reference::DType;
using reference::ResultKind;

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

static ReferenceValue makeTable(Type elementType, Array array,
                                FrequenciesAttr frequencies,
                                double angleSlack) {
  ReferenceValue result;
  result.type = *getReferenceType(elementType);
  result.array = std::move(array);
  // Elements that must match bit for bit have a negative magnitude.
  if (result.array.magnitude.empty())
    for (long double value : result.array.values)
      result.array.magnitude.push_back(std::fabs(value));
  result.limitUlp = double(defaultLimitUlp(
      ResultKind::Table, result.type, !frequencies.hasUnitAttentionFactor()));
  result.absoluteSlack =
      (result.type == DType::F64 ? 0x1p-60 : 0x1p-61) +
      angleSlack * frequencies.computeAttentionFactor().toDouble();
  return result;
}

/// Raises the magnitudes of a rotated row to the largest magnitude in its input
/// row that exceeds twice its element. The error of a structured result is in
/// units of its magnitude, which may exceed both elements of the rotated pair.
static void raiseMagnitudes(const Array &input, Array &result) {
  if (input.magnitude.empty())
    return;
  const size_t width = size_t(result.shape.back());
  for (size_t row = 0; row < result.values.size(); row += width) {
    long double largest = 0;
    for (size_t i = row; i < row + width; ++i)
      if (input.magnitude[i] > 2 * std::fabs(input.values[i]))
        largest = std::fmax(largest, input.magnitude[i]);
    for (size_t i = row; i < row + width; ++i)
      if (result.magnitude[i] >= 0)
        result.magnitude[i] = std::fmax(result.magnitude[i], largest);
  }
}

/// Makes the result of a rotation. `input` is not rounded; `array` is the
/// rotation of the rounded input.
static ReferenceValue makeRotated(const ReferenceValue &input, Array array) {
  ReferenceValue result;
  result.type = input.type;
  result.array = std::move(array);
  // Lanes outside of the rotated channels keep their precision.
  for (size_t i = 0; i < input.array.magnitude.size(); ++i)
    if (result.array.magnitude[i] < 0) {
      result.array.values[i] = input.array.values[i];
      result.array.magnitude[i] = input.array.magnitude[i];
    }
  result.limitUlp =
      double(defaultLimitUlp(ResultKind::Rotated, result.type, false)) +
      getInheritedLimit(input, result.type);
  if (input.isStructured)
    raiseMagnitudes(input.array, result.array);
  return result;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Sets `list` to the positions of all axes and `shape` to the shape of one
/// axis. A scalar position is expanded to `count` consecutive positions.
static void getPositions(Value positions, AxesAttr axes, int64_t count,
                         Evaluator &values, reference::Positions &list,
                         Shape &shape) {
  list = values.getPositions(positions);
  if (isa<ShapedType>(positions.getType())) {
    shape = values.getShape(positions);
    if (axes)
      shape.erase(shape.begin());
    return;
  }
  shape = {count};
  uint64_t first = uint64_t(int64_t(list.front()));
  list.clear();
  for (int64_t i = 0; i < count; ++i)
    list.push_back(int64_t(first + uint64_t(i)));
}

/// Checks that the destination has the shape of the result.
static LogicalResult checkDestination(Operation *op, const Shape &shape,
                                      Value init, Evaluator &values) {
  if (values.getShape(init) != shape)
    return op->emitError("expected a destination with the shape of the result");
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static LogicalResult evaluate(SincosOp op, Evaluator &values) {
  FailureOr<reference::FrequencySpec> spec = getFrequencySpec(
      op, op.getFrequencies(), op.getAxesAttr(), op.getTurns(), values);
  if (failed(spec))
    return failure();
  reference::AxesSpec axes = getAxesSpec(op.getAxesAttr());
  reference::Positions positions;
  Shape shape;
  const Shape &destination = values.getShape(op.getInits().front());
  getPositions(op.getPositions(), op.getAxesAttr(), destination.front(), values,
               positions, shape);
  Shape table = shape;
  table.push_back(op.getFrequencies().getNumPairs());
  if (failed(checkShape(op, table)) ||
      failed(reject(op, reference::checkSinCos(*spec, axes, positions, shape))))
    return failure();
  for (Value init : op.getInits())
    if (failed(checkDestination(op, table, init, values)))
      return failure();
  reference::CosSinTable tables =
      reference::sincos(*spec, axes, positions, shape);
  Type type = getElementTypeOrSelf(op.getInits().front().getType());
  double slack = getAngleSlack(positions);
  values.set(op.getResult(0), makeTable(type, std::move(tables.cos),
                                        op.getFrequencies(), slack));
  values.set(op.getResult(1), makeTable(type, std::move(tables.sin),
                                        op.getFrequencies(), slack));
  return success();
}

static reference::SinusoidalOrder getOrder(TableOrder order) {
  switch (order) {
  case TableOrder::Interleaved:
    return reference::SinusoidalOrder::Interleaved;
  case TableOrder::SinCos:
    return reference::SinusoidalOrder::SinCos;
  case TableOrder::CosSin:
    return reference::SinusoidalOrder::CosSin;
  }
  llvm_unreachable("unknown order");
}

static LogicalResult evaluate(SinusoidalOp op, Evaluator &values) {
  reference::FrequencySpec spec =
      getFrequencySpec(op.getFrequencies(), op.getAxesAttr());
  reference::AxesSpec axes = getAxesSpec(op.getAxesAttr());
  reference::SinusoidalOptions options;
  options.order = getOrder(op.getOrder());
  options.zeroPad = op.getZeroPad();
  options.paddingPosition = op.getPaddingPosition();
  Value init = op.getInits().front();
  reference::Positions positions;
  Shape shape;
  getPositions(op.getPositions(), op.getAxesAttr(),
               values.getShape(init).front(), values, positions, shape);
  Shape table = shape;
  table.push_back(op.getRowSize());
  if (failed(checkShape(op, table)) ||
      failed(reject(op, reference::checkSinusoidal(spec, axes, positions, shape,
                                                   options))) ||
      failed(checkDestination(op, table, init, values)))
    return failure();
  Array array = reference::sinusoidal(spec, axes, positions, shape, options);
  values.set(op.getResult(0),
             makeTable(getElementTypeOrSelf(init.getType()), std::move(array),
                       op.getFrequencies(), getAngleSlack(positions)));
  return success();
}

static LogicalResult evaluate(RotateOp op, Evaluator &values) {
  reference::RotateOptions options;
  options.interleaved = op.getPairing() == Pairing::Interleaved;
  options.windowOffset = op.getOffset();
  options.positionDims.assign(op.getDims().begin(), op.getDims().end());
  options.inverse = op.getInverse();
  options.fullTables = op.getFullTables();
  const ReferenceValue &cos = values.get(op.getCos());
  const ReferenceValue &sin = values.get(op.getSin());
  for (auto [input, init, result] :
       llvm::zip_equal(op.getInputs(), op.getInits(), op.getResults())) {
    const ReferenceValue &x = values.get(input);
    if (failed(reject(op, reference::checkRotate(x.array, cos.array, sin.array,
                                                 options))) ||
        failed(checkShape(op, x.array.shape)) ||
        failed(checkDestination(op, x.array.shape, init, values)))
      return failure();
    ReferenceValue rotated =
        makeRotated(values.getExact(input),
                    reference::rotate(x.array, cos.array, sin.array, options));
    // The default limit includes the error of tables of f32 or f64. Tables of
    // shorter types may differ by their own unit.
    for (const ReferenceValue *table : {&cos, &sin})
      if (getPrecision(table->type) < getPrecision(DType::F32))
        rotated.limitUlp += getInheritedLimit(*table, rotated.type);
    values.set(result, std::move(rotated));
  }
  return success();
}

static LogicalResult evaluate(RopeOp op, Evaluator &values) {
  FailureOr<reference::FrequencySpec> spec = getFrequencySpec(
      op, op.getFrequencies(), op.getAxesAttr(), op.getTurns(), values);
  if (failed(spec))
    return failure();
  reference::AxesSpec axes = getAxesSpec(op.getAxesAttr());
  reference::RotateOptions options;
  options.interleaved = op.getPairing() == Pairing::Interleaved;
  options.windowOffset = op.getOffset();
  options.positionDims.assign(op.getDims().begin(), op.getDims().end());
  options.inverse = op.getInverse();
  if (XposAttr scale = op.getScaleAttr())
    options.positionScale = {scale.getBase().getValueAsDouble(),
                             scale.getGamma().getValueAsDouble(),
                             scale.getOrigin(), scale.getReciprocal()};
  for (auto [input, init, result] :
       llvm::zip_equal(op.getInputs(), op.getInits(), op.getResults())) {
    const ReferenceValue &x = values.get(input);
    reference::Positions positions;
    Shape shape, expected;
    for (int64_t dim : options.positionDims)
      expected.push_back(x.array.shape[dim]);
    getPositions(op.getPositions(), op.getAxesAttr(),
                 expected.empty() ? 1 : expected.front(), values, positions,
                 shape);
    if (shape != expected)
      return op.emitError("the shape of the positions does not match 'dims'");
    if (failed(reject(op, reference::checkRope(x.array, *spec, axes, positions,
                                               options))) ||
        failed(checkShape(op, x.array.shape)) ||
        failed(checkDestination(op, x.array.shape, init, values)))
      return failure();
    ReferenceValue rotated =
        makeRotated(values.getExact(input),
                    reference::rope(x.array, *spec, axes, positions, options));
    // The unit of a lane is at least 2^-precision of its magnitude.
    rotated.limitUlp +=
        std::ldexp(getAngleSlack(positions), getPrecision(rotated.type));
    // Factors and their products with the tables are rounded to f32.
    if (options.positionScale)
      rotated.limitUlp += std::ldexp(0x1p-22, getPrecision(rotated.type));
    values.set(result, std::move(rotated));
  }
  return success();
}

static LogicalResult evaluate(ConvertPairingOp op, Evaluator &values) {
  ReferenceValue result = values.getExact(op.getInput());
  const size_t pairs = size_t(op.getDim()) / 2, offset = size_t(op.getOffset());
  const size_t width = size_t(result.array.shape.back());
  auto getLane = [&](Pairing pairing, size_t pair, size_t which) {
    return offset +
           (pairing == Pairing::Half ? pair + which * pairs : 2 * pair + which);
  };
  auto permute = [&](auto &elements) {
    const auto before = elements;
    for (size_t row = 0; row < before.size(); row += width)
      for (size_t pair = 0; pair < pairs; ++pair)
        for (size_t which = 0; which < 2; ++which)
          elements[row + getLane(op.getTo(), pair, which)] =
              before[row + getLane(op.getFrom(), pair, which)];
  };
  permute(result.array.values);
  permute(result.array.magnitude);
  values.set(op.getResult(), std::move(result));
  return success();
}

static LogicalResult evaluate(TurnsOp op, Evaluator &values) {
  SmallVector<::posenc::BigFloat> frequencies;
  if (op.getValues())
    llvm::append_range(frequencies, getGivenFrequencies(op, values));
  else
    frequencies = op.getFrequenciesAttr()
                      .withLength(getGivenLength(op, values))
                      .computeFrequencies();
  ReferenceValue high, low;
  for (ReferenceValue *part : {&high, &low}) {
    part->type = DType::I64;
    part->array.shape = {static_cast<int64_t>(frequencies.size())};
  }
  for (const ::posenc::BigFloat &frequency : frequencies) {
    auto turns = ::posenc::Turns::fromRadians(frequency);
    high.array.values.push_back(static_cast<int64_t>(turns.high));
    low.array.values.push_back(turns.low);
  }
  values.set(op.getHigh(), std::move(high));
  values.set(op.getLow(), std::move(low));
  return success();
}

std::optional<LogicalResult> mlir::posenc::evaluatePosenc(Operation *op,
                                                          Evaluator &values) {
  if (!isa<SincosOp, SinusoidalOp, RotateOp, RopeOp, ConvertPairingOp, TurnsOp>(
          op))
    return std::nullopt;
  if (op->getNumResults() == 0)
    return op->emitError("the reference supports only tensors, not memrefs");
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<SincosOp, SinusoidalOp, RotateOp, RopeOp, ConvertPairingOp,
            TurnsOp>([&](auto concrete) { return evaluate(concrete, values); });
}
