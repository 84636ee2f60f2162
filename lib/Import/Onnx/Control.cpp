//===- Control.cpp - If ---------------------------------------------------===//
//-------------------------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A condition that is known chooses a branch. Otherwise the results of both
// must be constants, as in models with one table of rotations for short
// sequences and another one for long ones.
//
//===----------------------------------------------------------------------===//

#include "Ops.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

/// Returns one of two constants as a part of the rows of both: no element is
/// copied.
static FailureOr<Tensor> select(NodeImporter &node, const Size &condition,
                                const Tensor &a, const Tensor &b) {
  auto getRow = [](const Tensor &tensor) {
    return ArrayRef<Size>(tensor.shape).drop_front();
  };
  if (!a.constant || !b.constant || a.constant.isSplat() ||
      b.constant.isSplat() || a.element != b.element || a.isBool() ||
      isCode(a.element) || a.shape.empty() || b.shape.empty() ||
      getRow(a) != getRow(b))
    return node.emitError()
           << "branches need a condition that follows from constants, unless "
              "both are constants that differ in the first dimension only";
  std::vector<char> bytes(a.constant.getRawData());
  llvm::append_range(bytes, b.constant.getRawData());
  SmallVector<Size> shape(a.shape);
  shape[0] = a.shape[0] + b.shape[0];
  Tensor both = createConstant(DenseElementsAttr::getFromRawBuffer(
      node.graph.getType(shape, a.element), bytes));
  // The condition is 1 or 0.
  auto choose = [&](const Size &yes, const Size &no) {
    return no + condition * (yes - no);
  };
  SmallVector<Size> offsets(shape.size(), Size(0));
  offsets[0] = choose(0, a.shape[0]);
  shape[0] = choose(a.shape[0], b.shape[0]);
  return slice(node, both, offsets, shape);
}

static LogicalResult importIf(NodeImporter &node) {
  Tensor &condition = node.getInput(0);
  const Graph *branches[] = {node.getGraph("then_branch"),
                             node.getGraph("else_branch")};
  if (!condition.isBool() || !branches[0] || !branches[1])
    return node.emitError() << "expected a bool and two branches";
  size_t count = node.node.outputs.size();
  for (const Graph *branch : branches)
    if (branch->outputs.size() < count || branch->hasSparse)
      return node.emitError() << "a branch lacks results or is sparse";
  if (!condition.elements || condition.elements->size() != 1)
    return node.emitError() << "the condition depends on data: it must follow "
                               "from the shapes of the model's inputs";
  Size bit = condition.elements->front();
  if (std::optional<int64_t> known = bit.getConstant()) {
    FailureOr<std::vector<Tensor>> results =
        node.graph.importBranch(*branches[*known ? 0 : 1]);
    if (failed(results))
      return failure();
    for (size_t i = 0; i < count; ++i)
      node.setOutput(i, (*results)[i]);
    return success();
  }
  // Others would be computed in vain.
  for (const Graph *branch : branches)
    for (const Node &inner : branch->nodes)
      if (inner.op != "Constant")
        return node.emitError()
               << "branches need a condition that follows from constants, "
                  "unless both are constants: found "
               << inner.op.take_front(200);
  FailureOr<std::vector<Tensor>> left = node.graph.importBranch(*branches[0]),
                                 right = node.graph.importBranch(*branches[1]);
  if (failed(left) || failed(right))
    return failure();
  for (size_t i = 0; i < count; ++i) {
    FailureOr<Tensor> result = select(node, bit, (*left)[i], (*right)[i]);
    if (failed(result))
      return failure();
    node.setOutput(i, std::move(*result));
  }
  return success();
}

void onnx::addControlOperators(OperatorTable &table) {
  table["If"] = {1, 1, 1024, importIf};
}
