//===- Control.cpp - If ---------------------------------------------------===//
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

/// Appends the bytes of all elements.
static void appendBytes(std::vector<char> &bytes, DenseElementsAttr attr) {
  int64_t count = attr.isSplat() ? attr.getNumElements() : 1;
  for (int64_t number = 0; number < count; ++number)
    llvm::append_range(bytes, attr.getRawData());
}

/// Returns one of two constants as a part of the rows of both: no element is
/// copied when the function is called. `bit` is 1 for the first one and 0 for
/// the second one.
static FailureOr<Tensor> select(NodeImporter &node, const Size &bit,
                                const Tensor &yes, const Tensor &no) {
  auto choose = [&](const Size &a, const Size &b) { return b + bit * (a - b); };
  // Integers that shapes may be computed from.
  if (yes.elements && no.elements && yes.element == no.element &&
      yes.shape == no.shape) {
    SmallVector<Size> elements;
    for (auto [a, b] : llvm::zip_equal(*yes.elements, *no.elements))
      elements.push_back(choose(a, b));
    if (std::optional<Tensor> result =
            createResults(node, yes.element, elements, yes.getRank()))
      return *result;
  }
  SmallVector<Size> ofYes(yes.shape), ofNo(no.shape);
  bool isScalar = ofYes.empty() && ofNo.empty();
  if (isScalar)
    ofYes = ofNo = {1};
  if (!yes.constant || !no.constant || yes.element != no.element ||
      yes.isBool() || isCode(yes.element) || ofYes.empty() || ofNo.empty() ||
      ArrayRef(ofYes).drop_front() != ArrayRef(ofNo).drop_front())
    return node.emitError()
           << "branches need a condition that follows from constants, unless "
              "both are constants that differ in the first dimension only";
  std::vector<char> bytes;
  appendBytes(bytes, yes.constant);
  appendBytes(bytes, no.constant);
  SmallVector<Size> shape(ofYes), offsets(shape.size(), Size(0));
  shape[0] = ofYes[0] + ofNo[0];
  Tensor both = createConstant(DenseElementsAttr::getFromRawBuffer(
      node.graph.getType(shape, yes.element), bytes));
  offsets[0] = choose(0, ofYes[0]);
  shape[0] = choose(ofYes[0], ofNo[0]);
  Tensor result = slice(node, both, offsets, shape);
  return isScalar ? reshape(node, result, {}) : result;
}

static LogicalResult importIf(NodeImporter &node) {
  Tensor &condition = node.getInput(0);
  const Graph *branches[] = {node.getGraph("then_branch"),
                             node.getGraph("else_branch")};
  if (!condition.isBool())
    return node.emitError() << "expected a condition of type bool";
  if (!branches[0] || !branches[1])
    return node.emitError() << "expected two branches, nested at most 8 deep";
  size_t count = node.node.outputs.size();
  for (const Graph *branch : branches) {
    if (branch->outputs.size() != count)
      return node.emitError()
             << "expected " << count << " results of each branch, found "
             << branch->outputs.size();
    if (branch->hasSparse)
      return node.emitError() << "sparse initializers are not supported";
  }
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
  FailureOr<std::vector<Tensor>> yes = node.graph.importBranch(*branches[0]),
                                 no = node.graph.importBranch(*branches[1]);
  if (failed(yes) || failed(no))
    return failure();
  for (size_t i = 0; i < count; ++i) {
    FailureOr<Tensor> result = select(node, bit, (*yes)[i], (*no)[i]);
    if (failed(result))
      return failure();
    node.setOutput(i, std::move(*result));
  }
  return success();
}

void onnx::addControlOperators(OperatorTable &table) {
  table["If"] = {1, 1, 1024, importIf};
}
