//===- AttentionOps.cpp - reference evaluation of attention and caches ----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Limits.h"
#include "ScalarProgram.h"
#include "Specs.h"

#include "posenc/Reference/Compare.h"
#include "posenc/Reference/Quantize.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseSet.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using reference::Array;
using reference::DType;

static reference::TokenLayout getLayout(HeadLayout layout) {
  return layout == HeadLayout::TokenMajor ? reference::TokenLayout::TokenMajor
                                          : reference::TokenLayout::HeadMajor;
}

static std::optional<reference::RmsNorm> getNorm(Value weight,
                                                 std::optional<APFloat> epsilon,
                                                 double offset,
                                                 Evaluator &values) {
  if (!weight)
    return std::nullopt;
  reference::RmsNorm norm;
  const auto &elements = values.get(weight).array.values;
  for (long double element : elements)
    norm.weight.push_back(static_cast<double>(element + offset));
  norm.epsilon = epsilon ? epsilon->convertToDouble() : 0;
  return norm;
}

/// Converts a rotation. Leaves `rotation` absent if the attribute is null.
static LogicalResult getRotation(Operation *op, RotationAttr attr,
                                 Value positions, ValueRange turns,
                                 Evaluator &values,
                                 std::optional<reference::Rotation> &rotation) {
  if (!attr)
    return success();
  FailureOr<reference::FrequencySpec> spec = getFrequencySpec(
      op, attr.getFrequencies(), attr.getAxes(), turns, values);
  if (failed(spec))
    return failure();
  rotation.emplace();
  rotation->frequencies = *spec;
  rotation->axes = getAxesSpec(attr.getAxes());
  rotation->interleaved = attr.getPairing() == Pairing::Interleaved;
  rotation->windowOffset = attr.getOffset();
  if (positions)
    rotation->positions = values.getPositions(positions);
  return success();
}

//===----------------------------------------------------------------------===//
// posenc.attention
//===----------------------------------------------------------------------===//

namespace {
/// The score and where regions of an attention (score_mod and mask_mod, as in
/// FlexAttention) as programs. Must outlive `spec`, which refers to them.
struct Regions {
  std::unique_ptr<ScalarProgram> score, where;

  LogicalResult create(AttentionOp op, reference::AttentionSpec &spec,
                       Evaluator &values) {
    if (!op.getScore().empty()) {
      score = ScalarProgram::create(op.getScore(), values);
      if (!score)
        return failure();
      spec.score = [this](double value, int64_t b, int64_t h, int64_t i,
                          int64_t j) {
        return score
            ->run({Scalar::of(value), Scalar::of(b), Scalar::of(h),
                   Scalar::of(i), Scalar::of(j)})
            .real;
      };
    }
    if (!op.getWhere().empty()) {
      where = ScalarProgram::create(op.getWhere(), values);
      if (!where)
        return failure();
      spec.sees = [this](int64_t b, int64_t h, int64_t i, int64_t j) {
        return where
                   ->run({Scalar::of(b), Scalar::of(h), Scalar::of(i),
                          Scalar::of(j)})
                   .integer != 0;
      };
    }
    return success();
  }

  LogicalResult checkRuns() const {
    for (const auto &program : {score.get(), where.get()})
      if (program && failed(program->checkRuns()))
        return failure();
    return success();
  }
};
} // namespace

static LogicalResult getSpec(AttentionOp op, Evaluator &values,
                             reference::AttentionSpec &spec) {
  spec.queryLayout = getLayout(op.getQueryLayout());
  spec.keyLayout = getLayout(op.getKeyLayout());
  if (std::optional<APFloat> scale = op.getScale())
    spec.scale = scale->convertToDouble();
  spec.causal = op.getCausal();
  spec.left = op.getWindowLeft();
  spec.right = op.getWindowRight();
  spec.queryNorm = getNorm(op.getQueryNorm(), op.getNormEps(),
                           op.getNormWeightOffset(), values);
  spec.keyNorm = getNorm(op.getKeyNorm(), op.getNormEps(),
                         op.getNormWeightOffset(), values);
  if (failed(getRotation(op, op.getQueryRotationAttr(), op.getQueryPositions(),
                         op.getTurns(), values, spec.queryRotation)) ||
      failed(getRotation(op, op.getKeyRotationAttr(), op.getKeyPositions(),
                         op.getTurns(), values, spec.keyRotation)))
    return failure();
  if (Value lengths = op.getLengths())
    spec.keyLengths = values.getElements(lengths);
  if (Value trailing = op.getTrailingQueries())
    spec.trailingQueries = values.getInteger(OpFoldResult(trailing));
  for (auto [list, starts] : llvm::zip(
           op.getCuSeqlens(), std::array{&spec.queryStarts, &spec.keyStarts})) {
    *starts = values.getElements(list);
    // The oracle treats an empty list as an absent one.
    if (starts->empty())
      return op.emitError("expected 'cu_seqlens' with at least one element");
  }
  if (Value table = op.getBlockTable()) {
    spec.blockTable.emplace();
    spec.blockTable->pages = values.getElements(table);
    spec.blockTable->blocks = values.getShape(table)[1];
  }
  if (Value mask = op.getMask()) {
    spec.mask.emplace();
    spec.mask->array = values.get(mask).array;
    spec.mask->isBoolean = getElementTypeOrSelf(mask.getType()).isInteger(1);
  }
  if (Value sinks = op.getSinks()) {
    const auto &elements = values.get(sinks).array.values;
    spec.sinks.assign(elements.begin(), elements.end());
  }
  return success();
}

/// Makes the result for log-sum-exp. Errors of the scores add to it, so its
/// limit has an absolute part.
static ReferenceValue makeLogSum(DType type, DType sumType, Array array) {
  ReferenceValue result;
  result.type = sumType;
  result.array = std::move(array);
  for (long double value : result.array.values)
    result.array.magnitude.push_back(std::fabs(value));
  result.limitUlp = 4;
  result.absoluteSlack =
      double(8 * reference::ulp(type, 1) + 64 * reference::ulp(sumType, 1));
  return result;
}

/// Returns the keys or values: the stored rows times their scales, if any.
static FailureOr<Array> getScaledRows(AttentionOp op, Value rows, Value scales,
                                      Evaluator &values) {
  const Array &stored = values.get(rows).array;
  if (!scales)
    return stored;
  const Array &factors = values.get(scales).array;
  reference::TokenLayout layout = getLayout(op.getKeyLayout());
  if (failed(reject(op, reference::checkScales(stored, layout, factors))))
    return failure();
  return reference::scaleRows(stored, layout, factors);
}

static LogicalResult evaluate(AttentionOp op, Evaluator &values) {
  const ReferenceValue &query = values.get(op.getQuery());
  FailureOr<Array> key =
      getScaledRows(op, op.getKey(), op.getKeyScales(), values);
  FailureOr<Array> value =
      getScaledRows(op, op.getValue(), op.getValueScales(), values);
  if (failed(key) || failed(value))
    return failure();
  reference::AttentionSpec spec;
  Regions regions;
  Shape shape = query.array.shape;
  if (!value->shape.empty())
    shape.back() = value->shape.back();
  if (failed(getSpec(op, values, spec)) ||
      failed(regions.create(op, spec, values)) ||
      failed(reject(
          op, reference::checkAttention(query.array, *key, *value, spec))) ||
      failed(checkShape(op, shape)))
    return failure();
  Shape sums(shape.begin(), shape.end() - 1);
  if (values.getShape(op.getInits()[0]) != shape ||
      (op.getLogSumInit() && values.getShape(op.getLogSumInit()) != sums))
    return op.emitError("expected destinations with the shapes of the results");

  reference::AttentionResult attended =
      reference::attention(query.array, *key, *value, spec);
  if (failed(regions.checkRuns()))
    return failure();
  ReferenceValue result;
  result.type = query.type;
  result.array = std::move(attended.output);
  const int64_t width = shape.back();
  result.largest.reserve(result.array.values.size());
  for (double largest : attended.largestValue)
    result.largest.insert(result.largest.end(), size_t(width), largest);
  result.isAttention = true;
  values.set(op.getResult(0), std::move(result));
  if (op.getLogSumInit())
    values.set(op.getResult(1),
               makeLogSum(query.type, *getReferenceType(op.getSumType()),
                          std::move(attended.logSumExp)));
  return success();
}

//===----------------------------------------------------------------------===//
// posenc.kv_append
//===----------------------------------------------------------------------===//

/// Sets the slots of the new rows, and the positions if they follow from the
/// slots.
static LogicalResult getSlots(KvAppendOp op, Evaluator &values,
                              reference::AppendSpec &spec) {
  if (Value slots = op.getSlots()) {
    spec.slots = values.getElements(slots);
    return success();
  }
  const int64_t tokens = values.getShape(op.getKey())[op.getTokenDim()];
  const int64_t capacity =
      values.getShape(op.getInits()[0])[op.getCacheTokenDim()];
  std::vector<int64_t> lengths = values.getElements(op.getLengths()), positions;
  for (auto [sequence, length] : llvm::enumerate(lengths)) {
    if (length > capacity)
      return op.emitError()
             << "the length " << length << " of sequence " << sequence
             << " exceeds the capacity of " << capacity << " slots";
    for (int64_t t = 0; t < tokens; ++t) {
      int64_t slot = int64_t(uint64_t(length) - uint64_t(tokens) + uint64_t(t));
      positions.push_back(slot);
      spec.slots.push_back(slot < 0 ? -1 : int64_t(sequence) * capacity + slot);
    }
  }
  if (spec.keyRotation && !op.getPositions())
    spec.keyRotation->positions = std::move(positions);
  return success();
}

/// Returns the magnitudes of an array as values, -1 where an element was not
/// computed.
static Array getMagnitudes(const Array &array) {
  Array result;
  result.shape = array.shape;
  result.values = array.magnitude;
  result.values.resize(array.values.size(), -1.0L);
  return result;
}

/// Returns the error bound of a row in f32, in units in the last place of its
/// largest element, or 0 if the row is exact.
static double getRowError(KvAppendOp op, bool ofKeys,
                          const ReferenceValue &rows,
                          const std::optional<reference::Rotation> &rotation) {
  bool isComputed = !rows.array.magnitude.empty();
  double limit = isComputed ? 1 + getInheritedLimit(rows, DType::F32) : 0;
  if (!ofKeys || !(op.getNorm() || op.getRotation()))
    return limit;
  ReferenceValue wide;
  wide.type = DType::F32;
  return limit +
         getRowLimit(wide, op.getNorm() != nullptr,
                     rotation ? rotation->positions : reference::Positions());
}

/// Sets the results of quantized caches. Exact rows are compared bit by bit.
/// For inexact rows, such as rotated ones, the oracle returns quotients before
/// rounding: an element must be within half a step plus the error of the row in
/// f32. So it equals the rounded quotient, or its neighbour if the quotient is
/// that close to a tie.
static void setQuantized(KvAppendOp op, reference::Caches &caches,
                         ArrayRef<double> rowErrors, ArrayRef<double> excess,
                         Evaluator &values) {
  Array *arrays[] = {&caches.keys, &caches.values, &caches.keyScales,
                     &caches.valueScales};
  for (auto [number, array] :
       llvm::enumerate(ArrayRef(arrays).take_front(op.getInits().size()))) {
    const ReferenceValue &init = values.getExact(op.getInits()[number]);
    ReferenceValue result;
    result.type = init.type;
    result.array = std::move(*array);
    // The largest element of a row may be smaller by a factor of sqrt(2) than
    // the magnitude of a rotation's error. Quotients have the error of the
    // scale as well.
    double ofScale = 2 * rowErrors[number % 2] + 1;
    double limit = double(reference::quantizedLimit(init.type));
    bool isScale = number >= 2;
    result.limitUlp = isScale ? ofScale : 0.5;
    if (!isScale)
      result.absoluteSlack =
          limit * excess[number] * std::ldexp(2 * ofScale + 2, -23);
    result.limitUlp = std::max(result.limitUlp, init.limitUlp);
    result.absoluteSlack = std::max(result.absoluteSlack, init.absoluteSlack);
    values.set(op.getResult(number), std::move(result));
  }
}

/// Returns by which factor, at least 1, rows may exceed the type's largest
/// number times the smallest given scale. Their errors do, too.
static double getExcess(ArrayRef<long double> rows,
                        const std::optional<reference::RmsNorm> &norm,
                        ArrayRef<long double> scales, DType type) {
  long double largest = 0, smallest = HUGE_VALL;
  if (norm) {
    for (double weight : norm->weight)
      largest = std::fmax(largest, std::fabs(weight));
    largest *= std::sqrt((long double)norm->weight.size());
  } else {
    for (long double x : rows)
      largest = std::isfinite(x) ? std::fmax(largest, std::fabs(x)) : largest;
  }
  for (long double scale : scales)
    smallest = scale != 0 ? std::fmin(smallest, std::fabs(scale)) : smallest;
  // A rotation can increase an element by a factor of sqrt(2).
  long double limit = smallest * reference::quantizedLimit(type);
  return std::fmax(1, double(2 * largest / limit));
}

static LogicalResult evaluateQuantized(KvAppendOp op, Evaluator &values,
                                       reference::AppendSpec spec) {
  auto getInit = [&](unsigned number) -> const Array & {
    return values.get(op.getInits()[number]).array;
  };
  reference::Caches caches{getInit(0), getInit(1)};
  if (op.computesScales()) {
    caches.keyScales = getInit(2);
    caches.valueScales = getInit(3);
  } else {
    spec.givenKeyScales = values.get(op.getKeyScales()).array.values;
    spec.givenValueScales = values.get(op.getValueScales()).array.values;
  }
  spec.quantized = values.getExact(op.getInits()[0]).type;
  SmallVector<double, 2> rowErrors;
  for (Value rows : {op.getKey(), op.getValue()})
    rowErrors.push_back(getRowError(op, rowErrors.empty(),
                                    values.getExact(rows), spec.keyRotation));
  spec.hasInexactKeys = rowErrors[0] != 0;
  spec.hasInexactValues = rowErrors[1] != 0;
  // Quantization starts from f32.
  Array rows[] = {values.get(op.getKey()).array,
                  values.get(op.getValue()).array};
  for (Array &array : rows)
    for (long double &element : array.values)
      element = reference::roundTo(DType::F32, element);
  if (failed(
          reject(op, reference::checkAppend(caches, rows[0], rows[1], spec))))
    return failure();
  caches = reference::append(caches, rows[0], rows[1], spec);
  double excess[] = {getExcess(rows[0].values, spec.keyNorm,
                               spec.givenKeyScales, *spec.quantized),
                     getExcess(rows[1].values, std::nullopt,
                               spec.givenValueScales, *spec.quantized),
                     1, 1};
  setQuantized(op, caches, rowErrors, excess, values);
  return success();
}

/// Evaluates an append to caches of another float type than the new rows.
static LogicalResult evaluateMixed(KvAppendOp op, Evaluator &values,
                                   const reference::AppendSpec &spec) {
  const ReferenceValue *rows[] = {&values.get(op.getKey()),
                                  &values.get(op.getValue())};
  const ReferenceValue *inits[] = {&values.get(op.getInits()[0]),
                                   &values.get(op.getInits()[1])};
  reference::Caches caches{inits[0]->array, inits[1]->array};
  if (failed(reject(op, reference::checkAppend(caches, rows[0]->array,
                                               rows[1]->array, spec))))
    return failure();
  reference::Caches results =
      reference::append(caches, rows[0]->array, rows[1]->array, spec);
  // Elements that are written to are rounded once, even if they are copies.
  llvm::DenseSet<int64_t> written(spec.slots.begin(), spec.slots.end());
  auto isWritten = [&](const Array &cache, int64_t element) {
    std::vector<int64_t> index = reference::unflatten(cache.shape, element);
    int64_t slots = cache.shape[op.getCacheTokenDim()];
    return written.contains(index[0] * slots + index[op.getCacheTokenDim()]);
  };
  for (auto [number, array] :
       {std::pair(0, &results.keys), std::pair(1, &results.values)}) {
    ReferenceValue result;
    result.type = inits[number]->type;
    for (size_t i = 0; i < array->values.size(); ++i)
      if (array->magnitude[i] < 0 && isWritten(*array, int64_t(i)))
        array->magnitude[i] = std::fabs(array->values[i]);
    result.array = std::move(*array);
    bool isChanged = number == 0 && (op.getNorm() || op.getRotation());
    ReferenceValue source;
    source.type = result.type;
    source.limitUlp = rows[number]->limitUlp;
    result.limitUlp = double(reference::defaultLimitUlp(
                          reference::ResultKind::Rotated, result.type, false)) +
                      getInheritedLimit(*rows[number], result.type);
    if (isChanged)
      result.limitUlp +=
          getRowLimit(source, op.getNorm() != nullptr,
                      spec.keyRotation ? spec.keyRotation->positions
                                       : reference::Positions());
    values.set(op.getResult(number), std::move(result));
  }
  return success();
}

static LogicalResult evaluate(KvAppendOp op, Evaluator &values) {
  // Takes unrounded operands, since copies are not rounded.
  const ReferenceValue *rows[] = {&values.get(op.getKey()),
                                  &values.getExact(op.getValue())};
  const ReferenceValue *inits[] = {&values.getExact(op.getInits()[0]),
                                   &values.getExact(op.getInits()[1])};
  for (const ReferenceValue *operand : {rows[0], rows[1]})
    if (!operand->initialized)
      return op.emitError("reads an uninitialized tensor");
  for (Value init : op.getInits())
    if (!values.getExact(init).initialized)
      return op.emitError("reads an uninitialized tensor");
  const bool isChanged = op.getNorm() || op.getRotation();
  if (!isChanged)
    rows[0] = &values.getExact(op.getKey());
  reference::AppendSpec spec;
  spec.rowLayout = getLayout(op.getLayout());
  spec.cacheLayout = getLayout(op.getCacheLayout());
  spec.keyNorm =
      getNorm(op.getNorm(), op.getNormEps(), op.getNormWeightOffset(), values);
  reference::Caches caches{inits[0]->array, inits[1]->array};
  if (failed(getRotation(op, op.getRotationAttr(), op.getPositions(),
                         op.getTurns(), values, spec.keyRotation)) ||
      failed(getSlots(op, values, spec)))
    return failure();
  if (op.isQuantized())
    return evaluateQuantized(op, values, std::move(spec));
  if (rows[0]->type != inits[0]->type)
    return evaluateMixed(op, values, spec);
  if (failed(reject(op, reference::checkAppend(caches, rows[0]->array,
                                               rows[1]->array, spec))))
    return failure();
  reference::Caches results =
      reference::append(caches, rows[0]->array, rows[1]->array, spec);
  // A copied row keeps the magnitudes that its own computation gave it.
  spec.keyNorm.reset();
  std::optional<reference::Rotation> rotation = std::move(spec.keyRotation);
  spec.keyRotation.reset();
  reference::Caches copied = reference::append(
      {getMagnitudes(inits[0]->array), getMagnitudes(inits[1]->array)},
      getMagnitudes(values.getExact(op.getKey()).array),
      getMagnitudes(rows[1]->array), spec);
  for (auto [number, array, copies] :
       {std::tuple(0, &results.keys, &copied.keys),
        std::tuple(1, &results.values, &copied.values)}) {
    ReferenceValue result;
    result.type = inits[number]->type;
    for (size_t i = 0; i < array->magnitude.size(); ++i)
      if (array->magnitude[i] < 0)
        array->magnitude[i] = copies->values[i];
    result.array = std::move(*array);
    result.limitUlp = std::max(rows[number]->limitUlp, inits[number]->limitUlp);
    result.absoluteSlack =
        std::max(rows[number]->absoluteSlack, inits[number]->absoluteSlack);
    if (number == 0 && isChanged)
      result.limitUlp = std::max(
          inits[0]->limitUlp,
          getRowLimit(*rows[0], op.getNorm() != nullptr,
                      rotation ? rotation->positions : reference::Positions()));
    values.set(op.getResult(number), std::move(result));
  }
  return success();
}

std::optional<LogicalResult>
mlir::posenc::evaluateAttention(Operation *op, Evaluator &values) {
  if (!isa<AttentionOp, KvAppendOp>(op))
    return std::nullopt;
  if (op->getNumResults() == 0)
    return op->emitError("the reference supports only tensors, not memrefs");
  if (auto attention = dyn_cast<AttentionOp>(op))
    return evaluate(attention, values);
  return evaluate(cast<KvAppendOp>(op), values);
}
