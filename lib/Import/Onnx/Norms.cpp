//===- Norms.cpp - RMS norms and layer norms ------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums are in f32, or f64 for f64, and results are rounded once.
//
//===----------------------------------------------------------------------===//

#include "Ops.h"
#include "Scalars.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

namespace {
/// A norm over the dimensions of `input` from `axis` on.
struct Norm {
  Tensor input;
  int64_t axis;
  double epsilon;
  /// Whether the mean is subtracted.
  bool isCentered;
  Tensor *weight = nullptr, *bias = nullptr;
  /// The type of the result, if it is not that of the input.
  Type resultElement;
  /// Set by emit(): the statistics of each row, with dimensions of size 1.
  Tensor mean, inverse;
};
} // namespace

/// Returns a statistic of rows with kept dimensions of size 1.
static FailureOr<Tensor> keepDims(NodeImporter &node, Tensor &statistic,
                                  const Norm &norm) {
  SmallVector<Size> shape = norm.input.shape;
  for (size_t dim = norm.axis; dim < shape.size(); ++dim)
    shape[dim] = 1;
  return reshape(node, statistic, shape);
}

static FailureOr<Tensor> emit(NodeImporter &node, Norm &norm) {
  Tensor &input = norm.input;
  if (!input.isFloat())
    return node.emitError() << "expected floats, found " << input.element;
  Type element = input.element, wide = getWideType(element);
  SmallVector<int64_t> axes =
      llvm::to_vector(llvm::seq<int64_t>(norm.axis, input.getRank()));
  Value count = createCount(node, input, axes, wide);
  Tensor centered = input;
  if (norm.isCentered) {
    Tensor sum = reduce(node, input, axes, Combiner::Add, wide);
    Tensor mean = mapElementsTo(
        node, &sum, sum.shape, wide,
        [&](Scalars &s, ValueRange args) { return s.div(args[0], count); });
    if (failed(assign(norm.mean, keepDims(node, mean, norm))))
      return failure();
    Tensor *operands[] = {&input, &norm.mean};
    centered = mapElementsTo(node, operands, input.shape, wide,
                             [&](Scalars &s, ValueRange args) {
                               return s.sub(s.convert(args[0]), args[1]);
                             });
  }
  Tensor squares = reduce(
      node, centered, axes, Combiner::Add, wide,
      [&](Scalars &s, ValueRange args) { return s.mul(args[0], args[0]); });
  Tensor inverse = mapElementsTo(
      node, &squares, squares.shape, wide, [&](Scalars &s, ValueRange args) {
        Value mean = s.add(s.div(args[0], count), s.get(norm.epsilon));
        return s.div(s.get(1), math::SqrtOp::create(s, mean));
      });
  if (failed(assign(norm.inverse, keepDims(node, inverse, norm))))
    return failure();
  SmallVector<Tensor *> operands{&centered, &norm.inverse};
  if (norm.weight)
    operands.push_back(norm.weight);
  if (norm.bias)
    operands.push_back(norm.bias);
  // Operands must broadcast to the input.
  FailureOr<SmallVector<Size>> shape = broadcastShapes(node, operands);
  if (failed(shape))
    return failure();
  if (shape->size() != input.shape.size())
    return node.emitError() << "the weight has more dimensions than the input";
  return mapElementsTo(
      node, operands, *shape, norm.resultElement ? norm.resultElement : element,
      [&](Scalars &s, ValueRange args) {
        Value x = s.mul(s.convert(args[0]), s.convert(args[1]));
        if (norm.weight)
          x = s.mul(x, s.convert(args[2]));
        if (norm.bias)
          x = s.add(x, s.convert(args.back()));
        return x;
      });
}

/// RMSNormalization, SimplifiedLayerNormalization and LayerNormalization.
static LogicalResult importNorm(NodeImporter &node) {
  Norm norm;
  norm.input = node.getInput(0);
  FailureOr<int64_t> axis =
      node.getAxis(node.getInt("axis", -1), norm.input.getRank());
  if (failed(axis))
    return failure();
  norm.axis = *axis;
  norm.epsilon = node.getFloat("epsilon", 1e-5);
  norm.isCentered = node.node.op == "LayerNormalization";
  // Sums are at least as precise as asked for.
  node.ignore("stash_type");
  norm.weight = &node.getInput(1);
  if (!norm.isCentered) {
    // The type of RMS norms is that of the weight.
    if (!norm.weight->isFloat())
      return node.emitError()
             << "expected a weight of floats, found " << norm.weight->element;
    norm.resultElement = norm.weight->element;
  }
  if (node.hasInput(2))
    norm.bias = &node.getInput(2);
  if (failed(node.setResult(emit(node, norm))))
    return failure();
  if (norm.isCentered) {
    node.setOutput(1, std::move(norm.mean));
    node.setOutput(2, std::move(norm.inverse));
  }
  return success();
}

/// SkipLayerNormalization and SkipSimplifiedLayerNormalization.
static LogicalResult importSkipNorm(NodeImporter &node) {
  bool isCentered = node.node.op == "SkipLayerNormalization";
  SmallVector<Tensor *> operands{&node.getInput(0), &node.getInput(1)};
  unsigned biasNumber = isCentered ? 4 : 3;
  if (node.hasInput(biasNumber))
    operands.push_back(&node.getInput(biasNumber));
  for (Tensor *operand : operands)
    if (!operand->isFloat() || operand->element != operands.front()->element)
      return node.emitError() << "expected floats of one type";
  FailureOr<Tensor> sum = addTensors(node, operands);
  if (failed(sum))
    return failure();
  if (sum->shape.empty())
    return node.emitError() << "expected at least one dimension";
  Norm norm;
  norm.input = *sum;
  norm.axis = sum->getRank() - 1;
  norm.epsilon = node.getFloat("epsilon", 1e-12);
  norm.isCentered = isCentered;
  norm.weight = &node.getInput(2);
  if (isCentered && node.hasInput(3))
    norm.bias = &node.getInput(3);
  if (failed(node.setResult(emit(node, norm))))
    return failure();
  node.setOutput(3, std::move(*sum));
  if (isCentered)
    node.setOutput(1, std::move(norm.mean));
  node.setOutput(2, std::move(norm.inverse));
  return success();
}

FailureOr<Tensor> onnx::normalizeRows(NodeImporter &node, Tensor &tensor,
                                      Tensor &weight, double epsilon) {
  Norm norm;
  norm.input = tensor;
  norm.axis = tensor.getRank() - 1;
  norm.epsilon = epsilon;
  norm.isCentered = false;
  norm.weight = &weight;
  return emit(node, norm);
}

/// The layer norm of the sum of embeddings of words, positions and segments.
static LogicalResult importEmbedNorm(NodeImporter &node) {
  for (unsigned needed : {2, 3, 5, 6})
    if (!node.hasInput(needed))
      return node.emitError() << "input " << needed << " is missing";
  Tensor &words = node.getInput(0);
  node.ignore("mask_index_type");
  if (words.getRank() != 2)
    return node.emitError() << "expected words of rank 2";
  if (node.hasOutput(1))
    return node.emitError() << "output mask_index is not supported";
  for (unsigned table : {2, 3, 4})
    if (node.hasInput(table) && node.getInput(table).getRank() != 2)
      return node.emitError() << "expected tables of rank 2";
  if (node.hasInput(1) != node.hasInput(4))
    return node.emitError() << "expected both segments and their table";
  std::vector<Tensor> parts;
  auto add = [&](FailureOr<Tensor> part) -> LogicalResult {
    if (succeeded(part))
      parts.push_back(std::move(*part));
    return part;
  };
  auto find = [&](unsigned table, unsigned indices) {
    return gather(node, node.getInput(table), node.getInput(indices), 0,
                  NegativeIndex::Fails);
  };
  if (failed(add(find(2, 0))) || (node.hasInput(1) && failed(add(find(4, 1)))))
    return failure();
  Tensor &positions = node.getInput(3);
  if (node.hasInput(8)) {
    if (failed(add(find(3, 8))))
      return failure();
  } else {
    if (!requireAtMost(node, words.shape[1], positions.shape[0]))
      return node.emitError() << "there are more words than positions";
    SmallVector<Size> shape{words.shape[1], positions.shape[1]};
    if (failed(add(slice(node, positions, {0, 0}, shape))))
      return failure();
  }
  SmallVector<Tensor *> operands;
  for (Tensor &part : parts) {
    if (!part.isFloat() || part.element != parts.front().element)
      return node.emitError() << "expected floats of one type";
    operands.push_back(&part);
  }
  FailureOr<Tensor> sum = addTensors(node, operands);
  if (failed(sum))
    return failure();
  Norm norm;
  norm.input = *sum;
  norm.axis = 2;
  norm.epsilon = node.getFloat("epsilon", 1e-12);
  norm.isCentered = true;
  norm.weight = &node.getInput(5);
  norm.bias = &node.getInput(6);
  if (failed(node.setResult(emit(node, norm))))
    return failure();
  node.setOutput(2, std::move(*sum));
  return success();
}

void onnx::addNormOperators(OperatorTable &table) {
  table["RMSNormalization"] = {2, 2, 1, importNorm};
  table["LayerNormalization"] = {2, 3, 3, importNorm};
  // ONNX Runtime registers this in the default domain.
  table["SimplifiedLayerNormalization"] = {2, 2, 1, importNorm};
  table["com.microsoft/SimplifiedLayerNormalization"] = {2, 2, 1, importNorm};
  table["com.microsoft/EmbedLayerNormalization"] = {1, 9, 3, importEmbedNorm};
  table["com.microsoft/SkipLayerNormalization"] = {3, 5, 4, importSkipNorm};
  table["com.microsoft/SkipSimplifiedLayerNormalization"] = {3, 4, 4,
                                                             importSkipNorm};
  setFirstOpsets(table, {{"LayerNormalization", 17}, {"RMSNormalization", 23}});
}
