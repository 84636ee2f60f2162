//===- StableHlo.cpp - operations of StableHLO ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
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

/// Returns how the region of a reduction combines, if it is one operation.
std::optional<Combiner> Converter::getCombiner() {
  StringRef name;
  if (auto applied = dyn_cast_or_null<StringAttr>(getAttribute("applies"))) {
    name = applied.getValue();
  } else {
    if (op->getNumRegions() != 1 || !op->getRegion(0).hasOneBlock())
      return std::nullopt;
    Block &block = op->getRegion(0).front();
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
    name = combined.getName().getStringRef();
  }
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

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> Converter::convertStableHlo(StringRef name) {
  if (name == "optimization_barrier")
    return SmallVector<Value>(op->getOperands());
  if (name == "custom_call") {
    auto target =
        dyn_cast_or_null<StringAttr>(getAttribute("call_target_name"));
    if (!target &&
        isa_and_nonnull<FlatSymbolRefAttr>(getAttribute("call_target_name")))
      target =
          cast<FlatSymbolRefAttr>(getAttribute("call_target_name")).getAttr();
    // Annotations of the partitioner.
    StringRef text = target ? target.getValue() : "";
    if ((text == "Sharding" || text == "annotate_device_placement") &&
        op->getNumOperands() == op->getNumResults())
      return SmallVector<Value>(op->getOperands());
    fail("calls '" + text + "', which is not supported");
    return failure();
  }
  if (name == "composite") {
    auto callee =
        dyn_cast_or_null<FlatSymbolRefAttr>(getAttribute("decomposition"));
    if (!callee) {
      fail("lacks its decomposition");
      return failure();
    }
    auto call = func::CallOp::create(builder, loc, callee, op->getResultTypes(),
                                     op->getOperands());
    return SmallVector<Value>(call.getResults());
  }
  if (op->getNumResults() != 1) {
    fail("is not supported");
    return failure();
  }
  RankedTensorType type = getResultType();
  if (name == "constant")
    return one(createConstant(type));
  if (name == "iota")
    return one(createIota(type, getNumber("iota_dimension").value_or(0), 0, 1));
  Value first = op->getNumOperands() ? getOperand(0) : Value();
  if (!first) {
    fail("is not supported");
    return failure();
  }
  if (name == "convert")
    return one(convertTo(first, type.getElementType()));
  if (name == "broadcast_in_dim") {
    std::optional<SmallVector<int64_t>> dims =
        getNumbers("broadcast_dimensions");
    return one(broadcast(first, type, dims.value_or(SmallVector<int64_t>())));
  }
  if (name == "reshape")
    return one(reshape(first, type));
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
  if (name == "pad")
    return one(createPad());
  if (name == "reverse")
    return one(createReverse());
  if (name == "gather")
    return one(createGather());
  if (name == "select")
    return one(select(first, getOperand(1), getOperand(2)));
  if (name == "clamp") {
    SmallVector<Value> operands(op->getOperands());
    for (Value &operand : operands)
      if (operand = broadcastLast(operand, type.getShape()); !operand)
        return failure();
    Value above =
        convertElementwise("maximum", {operands[1], operands[0]}, type);
    return one(convertElementwise("minimum", {above, operands[2]}, type));
  }
  if (name == "compare") {
    auto direction =
        dyn_cast_or_null<StringAttr>(getAttribute("comparison_direction"));
    if (!direction) {
      fail("lacks its direction");
      return failure();
    }
    // The text of the attribute is EQ or #stablehlo<comparison_direction EQ>.
    StringRef text = direction.getValue().rtrim("> ");
    return one(compare(text.take_back(2), first, getOperand(1)));
  }
  if (name == "dot") {
    int64_t rank = getType(first).getRank();
    return one(createDot(first, getOperand(1), {}, {}, {rank - 1}, {0}, type));
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
                         lists[3], type));
  }
  if (name == "reduce") {
    std::optional<Combiner> combiner = getCombiner();
    std::optional<SmallVector<int64_t>> dims = getNumbers("dimensions");
    if (!combiner || !dims || op->getNumOperands() != 2) {
      fail("with a region of more than one operation is not supported");
      return failure();
    }
    return one(reduce(first, getOperand(1), *dims, *combiner));
  }
  if (name == "dynamic_slice" || name == "dynamic_update_slice") {
    bool isUpdate = name == "dynamic_update_slice";
    RankedTensorType operand = getType(first);
    ArrayRef<int64_t> sizes =
        isUpdate ? getType(getOperand(1)).getShape() : type.getShape();
    SmallVector<OpFoldResult> offsets;
    if (op->getNumOperands() != operand.getRank() + (isUpdate ? 2u : 1u) ||
        int64_t(sizes.size()) != operand.getRank()) {
      fail("expected an index for each dimension");
      return failure();
    }
    for (int64_t dim = 0; dim < operand.getRank(); ++dim) {
      Value index = getClampedIndex(getOperand((isUpdate ? 2 : 1) + dim),
                                    operand.getDimSize(dim) - sizes[dim]);
      if (!index)
        return failure();
      offsets.push_back(index);
    }
    SmallVector<OpFoldResult> counts = getAsIndexOpFoldResult(
                                  builder.getContext(), sizes),
                              strides(offsets.size(), builder.getIndexAttr(1));
    if (isUpdate)
      return one(tensor::InsertSliceOp::create(
          builder, loc, getOperand(1), first, offsets, counts, strides));
    return one(tensor::ExtractSliceOp::create(builder, loc, type, first,
                                              offsets, counts, strides));
  }
  if (Value value = convertElementwise(name, op->getOperands(), type))
    return SmallVector<Value>{value};
  fail("is not supported");
  return failure();
}
