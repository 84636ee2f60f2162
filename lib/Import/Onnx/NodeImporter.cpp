//===- NodeImporter.cpp - attributes and inputs of a node -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Importer.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

int64_t NodeImporter::getOpset() const {
  auto it = graph.model.opsets.find(node.domain);
  return it == graph.model.opsets.end() ? 1 : it->second;
}

Tensor &NodeImporter::getInput(unsigned number) {
  Tensor *tensor = graph.find(node.inputs[number]);
  assert(tensor && "checked before the operator is imported");
  return *tensor;
}

void NodeImporter::setOutput(unsigned number, Tensor tensor) {
  if (hasOutput(number))
    graph.define(node.outputs[number], std::move(tensor));
}

LogicalResult NodeImporter::setResult(FailureOr<Tensor> result) {
  if (succeeded(result))
    setOutput(0, std::move(*result));
  return result;
}

const AttributeProto *NodeImporter::getAttribute(StringRef name) {
  used.insert(name);
  for (const AttributeProto &attribute : node.attributes)
    if (attribute.name == name)
      return &attribute;
  return nullptr;
}

int64_t NodeImporter::getInt(StringRef name, int64_t fallback) {
  const AttributeProto *attribute = getAttribute(name);
  return attribute ? attribute->i.value_or(0) : fallback;
}

double NodeImporter::getFloat(StringRef name, double fallback) {
  const AttributeProto *attribute = getAttribute(name);
  return attribute ? attribute->f.value_or(0) : fallback;
}

StringRef NodeImporter::getString(StringRef name, StringRef fallback) {
  const AttributeProto *attribute = getAttribute(name);
  return attribute ? attribute->s.value_or("") : fallback;
}

std::optional<SmallVector<int64_t>> NodeImporter::getInts(StringRef name) {
  const AttributeProto *attribute = getAttribute(name);
  if (!attribute)
    return std::nullopt;
  return attribute->ints;
}

const Graph *NodeImporter::getGraph(StringRef name) {
  const AttributeProto *attribute = getAttribute(name);
  usedGraphs.insert(name);
  return attribute ? attribute->graph.get() : nullptr;
}

LogicalResult NodeImporter::checkAttributes() {
  for (const AttributeProto &attribute : node.attributes)
    if (!used.contains(attribute.name) ||
        (attribute.isUnsupported && !usedGraphs.contains(attribute.name)))
      return emitError() << "attribute '" << attribute.name.take_front(200)
                         << "' is not supported";
  return success();
}

FailureOr<int64_t> NodeImporter::getAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return emitError() << "axis " << axis << " is out of range for rank "
                       << rank;
  return axis < 0 ? axis + rank : axis;
}

FailureOr<std::optional<SmallVector<Size>>>
NodeImporter::getSizes(unsigned input, StringRef attribute) {
  std::optional<SmallVector<Size>> sizes;
  if (std::optional<SmallVector<int64_t>> ints = getInts(attribute)) {
    sizes.emplace(ints->begin(), ints->end());
    return sizes;
  }
  if (!hasInput(input))
    return sizes;
  Tensor &tensor = getInput(input);
  if (!isa<IntegerType>(tensor.element))
    return emitError() << "input " << input << " must have integers";
  if (tensor.elements) {
    sizes = *tensor.elements;
    return sizes;
  }
  return emitError() << "input " << input
                     << " depends on data: sizes must follow from the shapes "
                        "of the model's inputs";
}

FailureOr<std::optional<SmallVector<int64_t>>>
NodeImporter::getConstantInts(unsigned input, StringRef attribute) {
  FailureOr<std::optional<SmallVector<Size>>> sizes =
      getSizes(input, attribute);
  if (failed(sizes))
    return failure();
  std::optional<SmallVector<int64_t>> ints;
  if (!*sizes)
    return ints;
  ints.emplace();
  for (const Size &size : **sizes) {
    std::optional<int64_t> constant = size.getConstant();
    if (!constant)
      return emitError() << "input " << input << " must be constant";
    ints->push_back(*constant);
  }
  return ints;
}
