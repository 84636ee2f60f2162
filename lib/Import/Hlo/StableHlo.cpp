//===- StableHlo.cpp - operations of StableHLO ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Attribute Converter::getAttribute(StringRef name) {
  if (Attribute attribute = op->getDiscardableAttr(name))
    return attribute;
  auto properties =
      dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  return properties ? properties.get(name) : Attribute();
}

std::optional<SmallVector<int64_t>> Converter::getNumbers(StringRef name) {
  Attribute attribute = getAttribute(name);
  if (auto array = dyn_cast_or_null<DenseI64ArrayAttr>(attribute))
    return SmallVector<int64_t>(array.asArrayRef());
  if (auto array = dyn_cast_or_null<DenseI32ArrayAttr>(attribute))
    return SmallVector<int64_t>(array.asArrayRef().begin(),
                                array.asArrayRef().end());
  SmallVector<int64_t> numbers;
  if (auto elements = dyn_cast_or_null<DenseIntElementsAttr>(attribute)) {
    for (APInt number : elements.getValues<APInt>())
      numbers.push_back(number.getSExtValue());
    return numbers;
  }
  auto array = dyn_cast_or_null<ArrayAttr>(attribute);
  if (!array)
    return std::nullopt;
  for (Attribute element : array) {
    auto number = dyn_cast<IntegerAttr>(element);
    if (!number)
      return std::nullopt;
    numbers.push_back(number.getValue().getSExtValue());
  }
  return numbers;
}

std::optional<int64_t> Converter::getNumber(StringRef name) {
  auto number = dyn_cast_or_null<IntegerAttr>(getAttribute(name));
  return number ? std::optional(number.getValue().getSExtValue())
                : std::nullopt;
}

SmallVector<int64_t> Converter::getListInText(StringRef text, StringRef key) {
  SmallVector<int64_t> numbers;
  // Keys may end like others: `lhs_batching_dimensions`.
  size_t at = text.find(key);
  while (at != StringRef::npos && at > 0 &&
         (llvm::isAlnum(text[at - 1]) || text[at - 1] == '_'))
    at = text.find(key, at + 1);
  if (at == StringRef::npos)
    return numbers;
  StringRef list = text.drop_front(at + key.size()).ltrim(" =");
  if (!list.consume_front("["))
    return numbers;
  list = list.take_until([](char c) { return c == ']'; });
  while (!list.empty()) {
    auto [first, rest] = list.split(',');
    int64_t number;
    if (!first.trim().getAsInteger(10, number))
      numbers.push_back(number);
    list = rest;
  }
  return numbers;
}

static std::optional<Combiner> getCombinerOf(StringRef name) {
  name.consume_front("stablehlo.");
  return llvm::StringSwitch<std::optional<Combiner>>(name)
      .Case("add", Combiner::Add)
      .Case("multiply", Combiner::Mul)
      .Case("maximum", Combiner::Max)
      .Case("minimum", Combiner::Min)
      .Case("and", Combiner::And)
      .Case("or", Combiner::Or)
      .Default(std::nullopt);
}

std::optional<Combiner> Converter::getCombiner(Block &block) {
  if (block.getNumArguments() != 2 || block.getOperations().size() != 2)
    return std::nullopt;
  Operation &combined = block.front(), &yield = block.back();
  if (combined.getNumResults() != 1 || yield.getNumOperands() != 1 ||
      yield.getOperand(0) != combined.getResult(0) ||
      combined.getNumOperands() != 2 ||
      combined.getOperand(0) == combined.getOperand(1) ||
      llvm::any_of(combined.getOperands(), [&](Value operand) {
        return operand.getParentBlock() != &block ||
               !isa<BlockArgument>(operand);
      }))
    return std::nullopt;
  return getCombinerOf(combined.getName().getStringRef());
}

/// Returns how the region of a reduction combines, if it is one operation.
std::optional<Combiner> Converter::getCombiner() {
  if (auto applied = dyn_cast_or_null<StringAttr>(getAttribute("applies")))
    return getCombinerOf(applied.getValue());
  if (op->getNumRegions() != 1 || !op->getRegion(0).hasOneBlock())
    return std::nullopt;
  return getCombiner(op->getRegion(0).front());
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> Converter::convertStableHlo(StringRef name) {
  if (name == "optimization_barrier")
    return SmallVector<Value>(op->getOperands());
  if (name == "composite") {
    // Its decomposition is called instead, unless it is known.
    return fail("lacks its decomposition");
  }
  if (name == "custom_call")
    return convertCustomCall();
  if (name == "while")
    return convertWhile();
  if (name == "case" || name == "if")
    return convertCase();
  if (name == "top_k")
    return createTopK(getNumber("k").value_or(0));
  if (name == "reduce") {
    std::optional<Combiner> combiner = getCombiner();
    std::optional<SmallVector<int64_t>> dims = getNumbers("dimensions");
    if (!dims)
      return fail("lacks its dimensions");
    if (!combiner || op->getNumOperands() != 2)
      return reduceByRegion(*dims);
    return one(reduce(getOperand(0), getOperand(1), *dims, *combiner));
  }
  if (op->getNumResults() != 1)
    return fail("is not supported");
  RankedTensorType type = getResultType();
  if (name == "constant")
    return one(createConstant(type));
  if (name == "iota")
    return one(createIota(toShape(type.getShape()), type.getElementType(),
                          getNumber("iota_dimension").value_or(0), 0, 1));
  Value first = op->getNumOperands() ? getOperand(0) : Value();
  if (!first)
    return fail("is not supported");
  if (name == "convert")
    return one(convertTo(first, type.getElementType()));
  if (name == "broadcast_in_dim" || name == "dynamic_broadcast_in_dim") {
    std::optional<SmallVector<int64_t>> dims =
        getNumbers("broadcast_dimensions");
    FailureOr<Shape> shape = getResultShape(1);
    if (failed(shape))
      return failure();
    return one(broadcast(first, *shape, dims.value_or(SmallVector<int64_t>())));
  }
  if (name == "dynamic_iota") {
    FailureOr<Shape> shape = getResultShape(0);
    if (failed(shape))
      return failure();
    return one(createIota(*shape, type.getElementType(),
                          getNumber("iota_dimension").value_or(0), 0, 1));
  }
  if (name == "reshape" || name == "dynamic_reshape") {
    FailureOr<Shape> shape = getResultShape(1);
    if (failed(shape))
      return failure();
    return one(reshape(first, *shape));
  }
  if (name == "get_dimension_size")
    return fail("expected a dimension of its operand");
  if (name == "real_dynamic_slice")
    return one(createRealDynamicSlice());
  if (name == "convolution")
    return one(convertConvolution());
  if (name == "reduce_window")
    return one(convertReduceWindow());
  if (name == "scatter")
    return one(createScatter());
  if (name == "transpose")
    return one(transpose(
        first, getNumbers("permutation").value_or(SmallVector<int64_t>())));
  if (name == "slice") {
    auto begins = getNumbers("start_indices"),
         ends = getNumbers("limit_indices"), strides = getNumbers("strides");
    SmallVector<int64_t> none;
    return one(slice(first, begins.value_or(none), ends.value_or(none),
                     strides.value_or(none)));
  }
  if (name == "concatenate")
    return one(
        concatenate(op->getOperands(), getNumber("dimension").value_or(-1)));
  if (name == "pad" || name == "dynamic_pad")
    return one(createPad());
  if (name == "reverse")
    return one(createReverse());
  if (name == "gather" || name == "dynamic_gather") {
    std::optional<Shape> sliceSizes;
    if (auto listed = getNumbers("slice_sizes"))
      sliceSizes = toShape(*listed);
    else if (op->getNumOperands() == 3)
      sliceSizes = sizes.getElements(getOperand(2));
    if (!sliceSizes)
      return fail("lacks its slice sizes");
    return one(createGather(*sliceSizes));
  }
  if (name == "select")
    return one(select(first, getOperand(1), getOperand(2)));
  if (name == "clamp") {
    SmallVector<Value> operands(op->getOperands());
    for (Value &operand : operands)
      if (operand = broadcastLast(operand, getShape(getOperand(1))); !operand)
        return failure();
    if (!haveSameTypes(operands))
      return fail("has operands of other types");
    RankedTensorType clamped = getType(operands[1]);
    Value above =
        convertElementwise("maximum", {operands[1], operands[0]}, clamped);
    return one(
        above ? convertElementwise("minimum", {above, operands[2]}, clamped)
              : Value());
  }
  if (name == "compare") {
    auto direction =
        dyn_cast_or_null<StringAttr>(getAttribute("comparison_direction"));
    if (!direction)
      return fail("lacks its direction");
    if (hasTotalOrder(op))
      return fail("by the total order of floats is not supported");
    // The text of the attribute is EQ or #stablehlo<comparison_direction EQ>.
    StringRef text = direction.getValue().rtrim("> ");
    return one(compare(text.take_back(2), first, getOperand(1)));
  }
  if (name == "dot") {
    int64_t rank = getType(first).getRank();
    return one(createDot(first, getOperand(1), {}, {}, {rank - 1}, {0},
                         type.getElementType()));
  }
  if (name == "dot_general") {
    SmallVector<int64_t> lists[4];
    StringRef keys[] = {"lhs_batching_dimensions", "rhs_batching_dimensions",
                        "lhs_contracting_dimensions",
                        "rhs_contracting_dimensions"};
    auto text =
        dyn_cast_or_null<StringAttr>(getAttribute("dot_dimension_numbers"));
    for (auto [list, key] : llvm::zip_equal(lists, keys))
      list = text ? getListInText(text.getValue(), key)
                  : getNumbers(key).value_or(SmallVector<int64_t>());
    return one(createDot(first, getOperand(1), lists[0], lists[1], lists[2],
                         lists[3], type.getElementType()));
  }
  if (name == "dynamic_slice" || name == "dynamic_update_slice") {
    bool isUpdate = name == "dynamic_update_slice";
    RankedTensorType operand = getType(first);
    Shape shape = getShape(first), counts;
    if (isUpdate)
      counts = getShape(getOperand(1));
    else if (auto listed = getNumbers("slice_sizes"))
      counts = toShape(*listed);
    if (op->getNumOperands() != operand.getRank() + (isUpdate ? 2u : 1u) ||
        counts.size() != shape.size() ||
        (isUpdate &&
         getType(getOperand(1)).getElementType() != operand.getElementType()))
      return fail("expected an index for each dimension");
    if (hasNoElements(counts))
      return one(isUpdate ? first
                          : createEmpty(counts, operand.getElementType()));
    SmallVector<OpFoldResult> offsets;
    for (int64_t dim = 0; dim < operand.getRank(); ++dim) {
      if (sizes.table.isNonNegative(counts[dim] - shape[dim] - 1) ||
          sizes.table.isNonNegative(Size(0) - counts[dim] - 1))
        return fail("has a slice that is larger than its operand");
      // Slices of the whole dimension begin at 0.
      Size limit = shape[dim] - counts[dim];
      if (limit.isConstant(0)) {
        offsets.push_back(builder.getIndexAttr(0));
        continue;
      }
      Value start = getStarts((isUpdate ? 2 : 1) + dim);
      if (std::optional<Shape> known = sizes.getElements(start);
          known && known->size() == 1) {
        Size above =
            sizes.table.createTerm(SizeTable::Term::Max, (*known)[0], 0);
        offsets.push_back(getMixed(
            sizes.table.createTerm(SizeTable::Term::Min, above, limit)));
        continue;
      }
      Value index = getClampedIndex(start, limit);
      if (!index)
        return failure();
      offsets.push_back(index);
    }
    SmallVector<OpFoldResult> mixed = getMixed(counts),
                              strides(offsets.size(), builder.getIndexAttr(1));
    if (isUpdate)
      return one(tensor::InsertSliceOp::create(builder, getOperand(1), first,
                                               offsets, mixed, strides));
    return one(withShape(
        tensor::ExtractSliceOp::create(builder, first, offsets, mixed, strides),
        counts));
  }
  if (!isElementwise(name))
    return fail("is not supported");
  SmallVector<Value> operands(op->getOperands());
  if (operands.size() > (isBinaryOperation(name) ? 2 : 1) ||
      !haveSameTypes(operands))
    return fail("has operands of other shapes or types");
  // Only the element type may differ from that of the operands.
  RankedTensorType target = getType(operands[0]).clone(type.getElementType());
  if (Value value = convertElementwise(name, operands, target))
    return one(value);
  return fail("is not supported for " +
              Twine(llvm::to_string(operands[0].getType())));
}

bool Converter::haveSameTypes(MutableArrayRef<Value> operands) {
  RankedTensorType type = getType(operands[0]);
  for (Value operand : operands.drop_front()) {
    RankedTensorType other = getType(operand);
    if (other.getElementType() != type.getElementType() ||
        failed(verifyCompatibleShape(other, type)))
      return false;
    SmallVector<int64_t> merged(type.getShape());
    for (auto [size, number] : llvm::zip_equal(merged, other.getShape()))
      if (ShapedType::isDynamic(size))
        size = number;
    type = type.clone(merged);
  }
  for (Value &operand : operands)
    if (operand.getType() != type)
      operand = withShape(tensor::CastOp::create(builder, type, operand),
                          getShape(operand));
  return true;
}

Value Converter::createRealDynamicSlice() {
  if (op->getNumOperands() != 4)
    return fail("expected an operand, starts, limits and strides");
  Value operand = getOperand(0);
  Shape source = getShape(operand);
  std::optional<Shape> starts = sizes.getElements(getOperand(1)),
                       limits = sizes.getElements(getOperand(2));
  auto strides = getConstantElements(3);
  size_t rank = source.size();
  if (!strides || strides->size() != rank ||
      llvm::any_of(*strides, [](int64_t n) { return n < 1; }))
    return fail("is supported for constant strides only");
  if (starts && limits && starts->size() == rank && limits->size() == rank) {
    Shape counts;
    for (size_t dim = 0; dim < rank; ++dim) {
      Size span = (*limits)[dim] - (*starts)[dim];
      if (sizes.table.isNonNegative((*limits)[dim] - source[dim] - 1) ||
          sizes.table.isNonNegative(Size(0) - span - 1) ||
          sizes.table.isNonNegative(Size(0) - (*starts)[dim] - 1))
        return fail("has a range outside of its operand");
      counts.push_back(sizes.table.createTerm(SizeTable::Term::Quotient,
                                              span + (*strides)[dim] - 1,
                                              (*strides)[dim]));
    }
    return sliceBy(operand, *starts, counts, *strides);
  }
  // The limits are the sum of starts, which are elements, and sizes.
  Value start = getOperand(1);
  auto sum = getOperand(2).getDefiningOp<arith::AddIOp>();
  Value other = !sum                    ? Value()
                : sum.getLhs() == start ? sum.getRhs()
                : sum.getRhs() == start ? sum.getLhs()
                                        : Value();
  std::optional<Shape> counts = other ? sizes.getElements(other) : std::nullopt;
  if (!counts || counts->size() != rank || getType(start).getRank() != 1 ||
      getType(start).getDimSize(0) != int64_t(rank) ||
      llvm::any_of(*strides, [](int64_t n) { return n != 1; }))
    return fail("has a size that does not follow from the sizes of arguments");
  SmallVector<OpFoldResult> offsets;
  for (size_t dim = 0; dim < rank; ++dim) {
    Size limit = source[dim] - (*counts)[dim];
    if (limit.isConstant(0)) {
      offsets.push_back(builder.getIndexAttr(0));
      continue;
    }
    Value number = tensor::ExtractOp::create(
        builder, start, Value(arith::ConstantIndexOp::create(builder, dim)));
    Value scalar = tensor::FromElementsOp::create(
        builder, getType(start).clone(ArrayRef<int64_t>()), number);
    Value index = getClampedIndex(scalar, limit);
    if (!index)
      return {};
    offsets.push_back(index);
  }
  return withShape(tensor::ExtractSliceOp::create(
                       builder, operand, offsets, getMixed(*counts),
                       getAsIndexOpFoldResult(builder.getContext(), *strides)),
                   *counts);
}

/// Returns what a message of JAX says, without the numbers and the help.
static std::string getMessage(StringRef text) {
  text = text.split(" Using the following").first;
  text = text.split(", but found").first.rtrim(". ");
  std::string message;
  for (; !text.empty(); text = text.drop_front()) {
    if (text.starts_with(" (= {"))
      text = text.drop_front(
          text.find(')') == StringRef::npos ? 1 : text.find(')') + 1);
    if (!text.empty())
      message += text.front();
    else
      break;
  }
  return message.empty() ? "sizes do not match" : message;
}

FailureOr<SmallVector<Value>> Converter::convertCustomCall() {
  auto target = dyn_cast_or_null<StringAttr>(getAttribute("call_target_name"));
  if (!target &&
      isa_and_nonnull<FlatSymbolRefAttr>(getAttribute("call_target_name")))
    target =
        cast<FlatSymbolRefAttr>(getAttribute("call_target_name")).getAttr();
  StringRef text = target ? target.getValue() : "";
  // Annotations of the partitioner.
  if ((text == "Sharding" || text == "annotate_device_placement") &&
      op->getNumOperands() == op->getNumResults())
    return SmallVector<Value>(op->getOperands());
  if (text == "stablehlo.dynamic_reduce_window" && op->getNumOperands() == 7)
    return one(convertDynamicReduceWindow());
  if (text != "shape_assertion" || op->getNumOperands() == 0 ||
      op->getNumResults() != 0)
    return fail("calls '" + text + "', which is not supported");
  std::optional<Shape> holds = sizes.getElements(getOperand(0));
  if (!holds || holds->size() != 1)
    return fail("asserts a condition that does not follow from sizes");
  Size condition = holds->front();
  if (condition.isConstant(1))
    return SmallVector<Value>();
  if (condition.getConstant())
    return fail("asserts a condition that never holds");
  std::optional<FunctionSizes::Condition> known = sizes.getCondition(condition);
  if (!known)
    known = {arith::CmpIPredicate::eq, condition, Size(1)};
  auto message = dyn_cast_or_null<StringAttr>(getAttribute("error_message"));
  // Sums may be negative, so they are not sizes of tensors.
  auto getValue = [&](const Size &size) -> Value {
    if (std::optional<int64_t> constant = size.getConstant())
      return arith::ConstantIndexOp::create(builder, *constant);
    return cast<Value>(sizes.getMixed(op, size));
  };
  Value left = getValue(known->left), right = getValue(known->right);
  Value value = arith::CmpIOp::create(builder, known->predicate, left, right);
  cf::AssertOp::create(builder, value,
                       getMessage(message ? message.getValue() : ""));
  if (known->predicate == arith::CmpIPredicate::eq)
    sizes.table.assumeEqual(known->left, known->right);
  if (known->predicate == arith::CmpIPredicate::sge)
    sizes.table.assumeNonNegative(known->left - known->right);
  return SmallVector<Value>();
}
