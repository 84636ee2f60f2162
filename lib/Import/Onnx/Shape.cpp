//===- Shape.cpp - operators on shapes ------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops.h"
#include "Scalars.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

static LogicalResult importShape(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  int64_t rank = input.getRank();
  // Bounds beyond the rank are clamped.
  auto clamp = [&](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  int64_t start = clamp(node.getInt("start", 0));
  int64_t end = clamp(node.getInt("end", rank));
  ArrayRef<Size> shape(input.shape);
  shape = shape.slice(start, std::max<int64_t>(end - start, 0));
  return node.setResult(createElements(node.getI64Type(), shape, 1));
}

static LogicalResult importSize(NodeImporter &node) {
  Size count = getProduct(node.getInput(0).shape);
  return node.setResult(createElements(node.getI64Type(), count, 0));
}

static LogicalResult importConstant(NodeImporter &node) {
  auto create = [&](int64_t count, Type element, auto get) {
    SmallVector<mlir::Attribute> values;
    for (int64_t i = 0; i < std::max<int64_t>(count, 1); ++i)
      values.push_back(get(i));
    SmallVector<int64_t> shape;
    if (count >= 0)
      shape.push_back(count);
    if (count == 0)
      values.clear();
    return node.setResult(createConstant(
        DenseElementsAttr::get(RankedTensorType::get(shape, element), values)));
  };
  if (const AttributeProto *value = node.getAttribute("value")) {
    if (!value->tensor)
      return node.emitError() << "attribute 'value' is no tensor";
    DenseElementsAttr attr = node.graph.reader.read(
        *value->tensor, [&] { return node.emitError(); });
    if (!attr)
      return failure();
    return node.setResult(createConstant(
        attr, getElementType(node.getContext(), value->tensor->type)));
  }
  if (const AttributeProto *value = node.getAttribute("value_int"))
    return create(-1, node.getI64Type(), [&](int64_t) {
      return node.getI64IntegerAttr(value->i.value_or(0));
    });
  if (const AttributeProto *value = node.getAttribute("value_float"))
    return create(-1, node.getF32Type(), [&](int64_t) {
      return node.getF32FloatAttr(value->f.value_or(0));
    });
  if (const AttributeProto *value = node.getAttribute("value_ints"))
    return create(value->ints.size(), node.getI64Type(), [&](int64_t i) {
      return node.getI64IntegerAttr(value->ints.empty() ? 0 : value->ints[i]);
    });
  if (const AttributeProto *value = node.getAttribute("value_floats"))
    return create(value->floats.size(), node.getF32Type(), [&](int64_t i) {
      return node.getF32FloatAttr(value->floats.empty() ? 0 : value->floats[i]);
    });
  return node.emitError() << "expected a numeric value";
}

/// Returns a tensor with all elements equal to those of a constant.
static LogicalResult fillOutput(NodeImporter &node, ArrayRef<Size> shape,
                                DenseElementsAttr value) {
  RankedTensorType type = node.graph.getType(shape, value.getElementType());
  if (type.hasStaticShape()) {
    for (const Size &size : shape)
      if (*size.getConstant() < 0)
        return node.emitError() << "a size is negative";
    return node.setResult(createConstant(DenseElementsAttr::get(
        type, *value.getValues<mlir::Attribute>().begin())));
  }
  Value scalar = arith::ConstantOp::create(
      node, cast<TypedAttr>(*value.getValues<mlir::Attribute>().begin()));
  return node.setResult(
      createTensor(node, createFilled(node, shape, scalar), shape));
}

static LogicalResult importConstantOfShape(NodeImporter &node) {
  FailureOr<std::optional<SmallVector<Size>>> shape = node.getSizes(0, "");
  if (failed(shape))
    return failure();
  if ((*shape)->size() > kMaxRank)
    return node.emitError()
           << "the result has more than " << kMaxRank << " dimensions";
  DenseElementsAttr value = DenseElementsAttr::get(
      RankedTensorType::get({1}, node.getF32Type()), 0.0f);
  if (const AttributeProto *attribute = node.getAttribute("value")) {
    if (attribute->tensor &&
        isCode(getElementType(node.getContext(), attribute->tensor->type)))
      return node.emitError()
             << "element type " << describeDataType(attribute->tensor->type)
             << " is not supported";
    if (attribute->tensor)
      value = node.graph.reader.read(*attribute->tensor,
                                     [&] { return node.emitError(); });
    if (!value)
      return failure();
    if (value.getNumElements() != 1)
      return node.emitError() << "attribute 'value' needs one element";
  }
  return fillOutput(node, **shape, value);
}

/// Returns the number of elements of a range; invalid if it overflows.
static Size countSteps(NodeImporter &node, const Size &first, const Size &end,
                       int64_t step) {
  std::optional<int64_t> low = first.getConstant(), high = end.getConstant();
  if (low && high) {
    if (step < 0)
      std::swap(low, high);
    // The differences have no sign, and overflow signed numbers.
    uint64_t span = *low < *high ? uint64_t(*high) - uint64_t(*low) : 0;
    uint64_t count = llvm::divideCeil(span, llvm::AbsoluteValue(step));
    return count > INT64_MAX ? Size::invalid() : Size(count);
  }
  Size span = step > 0 ? end - first : first - end;
  Size width = step > 0 ? Size(step) : Size(0) - Size(step);
  return node.sizes.createTerm(SizeTable::Term::Max, Size(0),
                               node.sizes.createTerm(SizeTable::Term::Quotient,
                                                     span + width - 1, width));
}

/// Ones on a diagonal of a matrix, zeros elsewhere.
static LogicalResult importEyeLike(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  if (input.getRank() != 2)
    return node.emitError() << "expected a matrix";
  int64_t diagonal = node.getInt("k", 0);
  Type element = input.element;
  if (const AttributeProto *type = node.getAttribute("dtype")) {
    int64_t number = type->i.value_or(0);
    element = getElementType(node.getContext(), number);
    if (!element || isCode(element))
      return node.emitError() << "element type " << describeDataType(number)
                              << " is not supported";
  }
  return node.setResult(mapElementsTo(
      node, {}, input.shape, element, [&](Scalars &s, ValueRange) -> Value {
        Value row = linalg::IndexOp::create(s, 0);
        Value column = linalg::IndexOp::create(s, 1);
        Value isOne = arith::CmpIOp::create(
            s, arith::CmpIPredicate::eq, arith::SubIOp::create(s, column, row),
            arith::ConstantIndexOp::create(s, diagonal));
        return s.convert(isOne, element);
      }));
}

/// The second value where the position along a new axis is an index, and the
/// first elsewhere.
static LogicalResult importOneHot(NodeImporter &node) {
  Tensor &indices = node.getInput(0), &values = node.getInput(2);
  FailureOr<int64_t> axis =
      node.getAxis(node.getInt("axis", -1), indices.getRank() + 1);
  FailureOr<std::optional<SmallVector<Size>>> depth = node.getSizes(1, "");
  if (failed(axis) || failed(depth))
    return failure();
  if ((*depth)->size() != 1 || !requireAtMost(node, 0, (*depth)->front()))
    return node.emitError() << "expected one depth that is not negative";
  if (values.getRank() != 1 || !requireEqual(node, values.shape[0], 2))
    return node.emitError() << "expected two values";
  if (indices.isBool())
    return node.emitError() << "expected numbers, found bool";
  const Size &size = (*depth)->front();
  SmallVector<Size> shape = indices.shape, column = indices.shape;
  shape.insert(shape.begin() + *axis, size);
  column.insert(column.begin() + *axis, 1);
  FailureOr<Tensor> columns = reshape(node, indices, column);
  if (failed(columns))
    return failure();
  Value both = node.getValue(values), count = node.materialize(size);
  Value picks[2];
  for (int64_t number : {0, 1}) {
    Value at = arith::ConstantIndexOp::create(node, number);
    picks[number] = tensor::ExtractOp::create(node, both, at);
  }
  return node.setResult(mapElementsTo(
      node, &*columns, shape, values.element,
      [&](Scalars &s, ValueRange args) -> Value {
        Value wide = s.convert(args[0], s.getI64Type());
        Value index = wrapIndex(s, s.convert(wide, s.getIndexType()), count);
        Value isPicked =
            arith::CmpIOp::create(s, arith::CmpIPredicate::eq, index,
                                  linalg::IndexOp::create(s, *axis));
        return s.select(isPicked, picks[1], picks[0]);
      }));
}

/// Integer bounds may be sizes; others must be constant.
static LogicalResult importRange(NodeImporter &node) {
  // Floats are computed in f32 at least.
  node.ignore("stash_type");
  Tensor &start = node.getInput(0), &limit = node.getInput(1),
         &delta = node.getInput(2);
  Type element = start.element;
  // f16 and bf16 are computed in f32.
  if (node.getInt("stash_type", 1) != static_cast<int64_t>(DataType::Float))
    return node.emitError() << "'stash_type' must be that of f32";
  auto isKnown = [](Tensor &tensor) {
    return tensor.elements && tensor.elements->size() == 1;
  };
  if (isa<IntegerType>(element) && isKnown(start) && isKnown(limit) &&
      isKnown(delta)) {
    Size first = start.elements->front(), end = limit.elements->front();
    std::optional<int64_t> step = delta.elements->front().getConstant();
    if (!step || *step == 0)
      return node.emitError() << "the step must be a constant other than 0";
    Size count = countSteps(node, first, end, *step);
    if (!count.isValid())
      return node.emitError() << "the number of elements overflows";
    std::optional<int64_t> known = count.getConstant();
    if (known && *known <= kMaxKnownElements) {
      SmallVector<Size> elements;
      // The last element is in the range, so no earlier one overflows.
      for (int64_t i = 0; i < *known; ++i)
        elements.push_back(i ? elements.back() + *step : first);
      return node.setResult(createElements(element, elements, 1));
    }
    Value origin = node.materialize(first);
    Tensor result =
        mapElementsTo(node, {}, count, element, [&](Scalars &s, ValueRange) {
          Value index = linalg::IndexOp::create(s, 0);
          Value factor = arith::ConstantIndexOp::create(s, *step);
          index = arith::AddIOp::create(
              s, arith::MulIOp::create(s, index, factor), origin);
          return index;
        });
    Size last = first + (count - 1) * *step;
    result.range = *step > 0 ? std::pair(first, last) : std::pair(last, first);
    return node.setResult(std::move(result));
  }
  auto getNumber = [](Tensor &tensor) -> std::optional<double> {
    if (auto attr = dyn_cast_or_null<FloatAttr>(getSplat(tensor)))
      return attr.getValueAsDouble();
    return std::nullopt;
  };
  std::optional<double> first = getNumber(start), end = getNumber(limit),
                        step = getNumber(delta);
  if (!first || !end || !step || *step == 0)
    return node.emitError() << "the bounds depend on data: they must follow "
                               "from the shapes of the model's inputs";
  double count = std::max(0.0, std::ceil((*end - *first) / *step));
  if (!(count <= 1e9))
    return node.emitError() << "the number of elements overflows";
  Tensor result = mapElementsTo(
      node, {}, Size(static_cast<int64_t>(count)), element,
      [&](Scalars &s, ValueRange) {
        Value index = s.convert(linalg::IndexOp::create(s, 0), s.getI64Type());
        Value number = s.convert(index);
        return s.add(s.mul(number, s.get(*step)), s.get(*first));
      });
  return node.setResult(std::move(result));
}

static LogicalResult importIdentity(NodeImporter &node) {
  node.ignore("seed");
  node.ignore("ratio");
  return node.setResult(node.getInput(0));
}

/// Dropout in inference is the identity. Its mask, if used, is all true.
static LogicalResult importDropout(NodeImporter &node) {
  if (node.hasInput(2)) {
    Tensor &training = node.getInput(2);
    if (!training.elements || training.elements->size() != 1 ||
        !training.elements->front().isConstant(0))
      return node.emitError() << "training mode is not supported";
  }
  return importIdentity(node);
}

void onnx::addShapeOperators(OperatorTable &table) {
  table["Shape"] = {1, 1, 1, importShape, CodeUse::Read};
  table["Size"] = {1, 1, 1, importSize, CodeUse::Read};
  table["Constant"] = {0, 0, 1, importConstant};
  table["ConstantOfShape"] = {1, 1, 1, importConstantOfShape};
  table["EyeLike"] = {1, 1, 1, importEyeLike};
  table["OneHot"] = {3, 3, 1, importOneHot};
  table["Range"] = {3, 3, 1, importRange};
  table["Identity"] = {1, 1, 1, importIdentity, CodeUse::Moved};
  table["Dropout"] = {1, 3, 1, importDropout};
  setFirstOpsets(table, {{"Dropout", 7},
                         {"ConstantOfShape", 9},
                         {"EyeLike", 9},
                         {"OneHot", 9},
                         {"Range", 11}});
}
