//===- Slice.cpp - Slice, Pad, Trilu and CumSum ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops.h"
#include "Scalars.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

/// Returns a bound of a slice, clamped to [0, size]; bounds below 0 count from
/// the end.
static Size clampBound(NodeImporter &node, const Size &bound,
                       const Size &size) {
  SizeTable &sizes = node.sizes;
  std::optional<int64_t> constant = bound.getConstant();
  // Exporters write such bounds for the ends of dynamic dimensions.
  constexpr int64_t huge = std::numeric_limits<int32_t>::max();
  if (constant && *constant >= huge && !size.getConstant())
    return size;
  if (constant && *constant < -huge && !size.getConstant())
    return 0;
  Size position = sizes.createTerm(SizeTable::Term::Wrap, bound, size);
  Size low = sizes.createTerm(SizeTable::Term::Max, Size(0), position);
  return sizes.createTerm(SizeTable::Term::Min, low, size);
}

/// Reverses a dimension, or takes every n-th element of it backwards: element i
/// is `first - i * step`.
static Tensor takeBackwards(NodeImporter &node, Tensor &tensor, int64_t dim,
                            const Size &first, int64_t step,
                            const Size &count) {
  SmallVector<Size> shape = tensor.shape;
  shape[dim] = count;
  Value source = node.getValue(tensor);
  Value origin = node.materialize(first);
  return mapElementsTo(
      node, {}, shape, tensor.element, [&](Scalars &s, ValueRange) -> Value {
        SmallVector<Value> index;
        for (int64_t i = 0, rank = shape.size(); i < rank; ++i)
          index.push_back(linalg::IndexOp::create(s, i));
        Value back = arith::MulIOp::create(
            s, index[dim], arith::ConstantIndexOp::create(s, step));
        index[dim] = arith::SubIOp::create(s, origin, back);
        return tensor::ExtractOp::create(s, source, index);
      });
}

/// Returns a constant bound in the range; bounds below 0 count from the end.
static int64_t clampBound(int64_t bound, int64_t count, int64_t low,
                          int64_t high) {
  return std::clamp(bound < 0 ? bound + count : bound, low, high);
}

/// Sets the output to known elements, if the input and the bounds are known.
static bool sliceElements(NodeImporter &node, const Tensor &input, Size start,
                          Size end, int64_t step) {
  if (!input.elements || input.getRank() != 1 || !start.getConstant() ||
      !end.getConstant())
    return false;
  int64_t count = input.elements->size();
  int64_t first = *start.getConstant(), last = *end.getConstant();
  SmallVector<Size> elements;
  if (step > 0) {
    first = clampBound(first, count, 0, count);
    last = clampBound(last, count, 0, count);
    for (int64_t i = first; i < last; i += std::min(step, count))
      elements.push_back((*input.elements)[i]);
  } else {
    first = clampBound(first, count, -1, count - 1);
    last = clampBound(last, count, -1, count - 1);
    for (int64_t i = first; i > last; i += std::max(step, -count))
      elements.push_back((*input.elements)[i]);
  }
  node.setOutput(0, createElements(input.element, elements, 1));
  return true;
}

static LogicalResult importSlice(NodeImporter &node) {
  Tensor input = node.getInput(0);
  FailureOr<std::optional<SmallVector<Size>>> starts, ends, given;
  FailureOr<std::optional<SmallVector<int64_t>>> steps;
  if (failed(starts = node.getSizes(1, "starts")) ||
      failed(ends = node.getSizes(2, "ends")) ||
      failed(given = node.getSizes(3, "axes")) ||
      failed(steps = node.getConstantInts(4, "steps")))
    return failure();
  if (!*starts || !*ends || (*starts)->size() != (*ends)->size())
    return node.emitError() << "expected as many starts as ends";
  size_t count = (*starts)->size();
  if ((*given && (*given)->size() != count) ||
      (*steps && (*steps)->size() != count))
    return node.emitError() << "expected " << count << " axes and steps";
  int64_t rank = input.getRank();
  SmallVector<Size> offsets(rank, Size(0)), sizes(input.shape);
  SmallVector<int64_t> strides(rank, 1);
  // Dimensions with negative steps.
  SmallVector<std::pair<int64_t, int64_t>> backwards;
  for (size_t i = 0; i < count; ++i) {
    std::optional<int64_t> number =
        *given ? (**given)[i].getConstant() : static_cast<int64_t>(i);
    if (!number)
      return node.emitError() << "the axes must be constant";
    FailureOr<int64_t> axis = node.getAxis(*number, rank);
    if (failed(axis))
      return failure();
    const Size &start = (**starts)[i], &end = (**ends)[i];
    const Size &size = input.shape[*axis];
    int64_t step = *steps ? (**steps)[i] : 1;
    if (step == 0)
      return node.emitError() << "a step is 0";
    // Larger steps take one element, too.
    int64_t maxStep = std::max<int64_t>(
        size.getConstant().value_or(std::numeric_limits<int32_t>::max()), 1);
    step = std::clamp(step, -maxStep, maxStep);
    if (count == 1 && sliceElements(node, input, start, end, step))
      return success();
    if (step < 0) {
      std::optional<int64_t> whole = size.getConstant(),
                             first = start.getConstant(),
                             last = end.getConstant();
      bool takesAll = first && last && *last <= -(int64_t(1) << 31) &&
                      (*first == -1 || *first >= (int64_t(1) << 31) - 1);
      if (!takesAll) {
        if (!whole || !first || !last || *whole == 0)
          return node.emitError()
                 << "a negative step needs constant bounds, or "
                    "the whole dimension";
        // Cuts out the elements first: they begin after the end.
        int64_t top = clampBound(*first, *whole, -1, *whole - 1);
        int64_t bottom = clampBound(*last, *whole, -1, *whole - 1);
        int64_t length = std::max<int64_t>(top - bottom, 0);
        offsets[*axis] = length ? bottom + 1 : 0;
        sizes[*axis] = length;
      }
      backwards.push_back({*axis, -step});
      continue;
    }
    offsets[*axis] = clampBound(node, start, size);
    Size span = clampBound(node, end, size) - offsets[*axis];
    if (step > 1)
      span = node.sizes.createTerm(SizeTable::Term::Quotient, span + (step - 1),
                                   step);
    sizes[*axis] = node.sizes.createTerm(SizeTable::Term::Max, Size(0), span);
    strides[*axis] = step;
    if (!sizes[*axis].isValid())
      return node.emitError() << "the bounds have no simple form";
  }
  Tensor result = slice(node, input, offsets, sizes, strides);
  for (auto [axis, step] : backwards) {
    Size length = result.shape[axis];
    Size steps = node.sizes.createTerm(SizeTable::Term::Quotient,
                                       length + (step - 1), step);
    result = takeBackwards(node, result, axis, length - 1, step, steps);
  }
  return node.setResult(std::move(result));
}

//===----------------------------------------------------------------------===//
// Pad, Trilu and CumSum
//===----------------------------------------------------------------------===//

/// Crops as many elements as a negative pad says: first those of the input,
/// then pads of the other side. Returns the number of the former.
static Size crop(SizeTable &sizes, Size &pad, Size &size, Size &other) {
  if (sizes.isNonNegative(pad))
    return 0;
  using Term = SizeTable::Term;
  Size excess = sizes.createTerm(Term::Max, Size(0), Size(0) - pad);
  Size cropped = sizes.createTerm(Term::Min, excess, size);
  size = size - cropped;
  other = other - excess + cropped;
  pad = pad + excess;
  return cropped;
}

static LogicalResult importPad(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  int64_t rank = input.getRank();
  if (node.getString("mode", "constant") != "constant")
    return node.emitError() << "only the mode 'constant' is supported";
  auto pads = node.getSizes(1, "pads");
  if (failed(pads))
    return failure();
  auto given = node.getConstantInts(3, "");
  if (failed(given))
    return failure();
  SmallVector<int64_t> axes =
      *given ? **given : llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (!*pads || (*pads)->size() != 2 * axes.size())
    return node.emitError() << "expected " << 2 * axes.size() << " pads";
  Value padding;
  if (node.hasInput(2)) {
    TypedAttr splat = getSplat(node.getInput(2));
    if (!splat || splat.getType() != input.element)
      return node.emitError() << "the padding must be a constant of the "
                                 "input's type";
    padding = arith::ConstantOp::create(node, splat);
  } else {
    padding = createScalar(node, input.element, node.getFloat("value", 0));
  }
  SmallVector<Size> low(rank, Size(0)), high(low), offsets(low),
      sizes(input.shape), shape(input.shape);
  llvm::SmallSet<int64_t, 8> padded;
  for (size_t i = 0; i < axes.size(); ++i) {
    FailureOr<int64_t> axis = node.getAxis(axes[i], rank);
    if (failed(axis))
      return failure();
    if (!padded.insert(*axis).second)
      return node.emitError() << "axis " << *axis << " is given twice";
    Size &before = low[*axis], &after = high[*axis], &size = sizes[*axis];
    before = (**pads)[i];
    after = (**pads)[i + axes.size()];
    shape[*axis] = before + after + size;
    if (!requireAtMost(node, 0, shape[*axis]))
      return node.emitError()
             << "a size of the result is negative or overflows";
    offsets[*axis] = crop(node.sizes, before, size, after);
    crop(node.sizes, after, size, before);
    if (!size.isValid() || !before.isValid() || !after.isValid())
      return node.emitError() << "the pads have no simple form";
  }
  // The verifier of the lowered pad expects that some of the input is left.
  for (auto [size, pad, whole] : llvm::zip_equal(sizes, low, shape))
    if (size.isConstant(0) || node.sizes.isAtMost(whole, pad))
      return node.setResult(
          createTensor(node, createFilled(node, shape, padding), shape));
  Tensor cropped = slice(node, input, offsets, sizes);
  RankedTensorType type = node.graph.getType(shape, input.element);
  Value result =
      tensor::PadOp::create(node, type, node.getValue(cropped),
                            node.getMixed(low), node.getMixed(high), padding);
  return node.setResult(createTensor(node, result, shape));
}

static LogicalResult importTrilu(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  bool isUpper = node.getInt("upper", 1);
  int64_t rank = input.getRank();
  if (rank < 2)
    return node.emitError() << "expected at least 2 dimensions";
  Size diagonal(0);
  if (node.hasInput(1)) {
    auto given = node.getSizes(1, "");
    if (failed(given))
      return failure();
    if ((*given)->size() != 1)
      return node.emitError() << "expected one diagonal";
    diagonal = (*given)->front();
  }
  // Sums with the number of a row do not overflow.
  constexpr int64_t limit = int64_t(1) << 62;
  if (std::optional<int64_t> constant = diagonal.getConstant())
    diagonal = std::clamp(*constant, -limit, limit);
  Value offset = node.materialize(diagonal);
  return node.setResult(mapElementsTo(
      node, &input, input.shape, input.element,
      [&](Scalars &s, ValueRange args) -> Value {
        Value row = linalg::IndexOp::create(s, rank - 2);
        Value column = linalg::IndexOp::create(s, rank - 1);
        Value limit = arith::AddIOp::create(s, row, offset);
        Value isKept = arith::CmpIOp::create(
            s, isUpper ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sle,
            column, limit);
        Value zero = createScalar(s, input.element, 0);
        return arith::SelectOp::create(s, isKept, args[0], zero);
      }));
}

/// A cumulative sum as a product with a triangle of ones: the sizes for which
/// exporters write it, lengths of sequences, are small.
static LogicalResult importCumSum(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  bool isExclusive = node.getInt("exclusive", 0);
  bool isReverse = node.getInt("reverse", 0);
  auto axes = node.getConstantInts(1, "");
  if (failed(axes))
    return failure();
  if ((*axes)->size() != 1)
    return node.emitError() << "expected one axis";
  int64_t rank = input.getRank();
  FailureOr<int64_t> axis = node.getAxis((*axes)->front(), rank);
  if (failed(axis))
    return failure();
  if (input.isBool())
    return node.emitError() << "expected numbers, found bool";
  Type wide = getWideType(input.element);
  Value init = createFilled(node, input.shape, wide, 0);
  // Loops over results, and over the elements that are added.
  SmallVector<AffineExpr> source, result;
  for (int64_t dim = 0; dim < rank; ++dim) {
    result.push_back(node.getAffineDimExpr(dim));
    source.push_back(node.getAffineDimExpr(dim == *axis ? rank : dim));
  }
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  loops.push_back(utils::IteratorType::reduction);
  MLIRContext *context = node.getContext();
  AffineMap maps[] = {AffineMap::get(rank + 1, 0, source, context),
                      AffineMap::get(rank + 1, 0, result, context)};
  auto predicate = isReverse     ? isExclusive ? arith::CmpIPredicate::sgt
                                               : arith::CmpIPredicate::sge
                   : isExclusive ? arith::CmpIPredicate::slt
                                 : arith::CmpIPredicate::sle;
  auto body = [&](Scalars &s, ValueRange args) {
    Value to = linalg::IndexOp::create(s, *axis);
    Value from = linalg::IndexOp::create(s, rank);
    Value isAdded = arith::CmpIOp::create(s, predicate, from, to);
    Value x = s.convert(args[0]);
    return s.add(args[1], s.select(isAdded, x, s.get(0)));
  };
  Tensor sums = createGeneric(node, node.getValue(input), init, maps, loops,
                              input.shape, body);
  return node.setResult(convertTensor(node, sums, input.element));
}

void onnx::addSliceOperators(OperatorTable &table) {
  table["Slice"] = {1, 5, 1, importSlice, CodeUse::Moved};
  table["Pad"] = {1, 4, 1, importPad};
  table["Trilu"] = {1, 2, 1, importTrilu};
  table["CumSum"] = {2, 2, 1, importCumSum};
  setFirstOpsets(table, {{"Pad", 2}, {"CumSum", 11}, {"Trilu", 14}});
}
