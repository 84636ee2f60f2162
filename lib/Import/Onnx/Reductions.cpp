//===- Reductions.cpp - sums, means, maxima and softmax -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops.h"
#include "Scalars.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

/// Returns the product of known sizes of a tensor of rank 1, reduced to a
/// scalar; false if they are unknown.
static bool reduceSizes(NodeImporter &node, const Tensor &input,
                        bool keepsDims) {
  StringRef op = node.node.op;
  if (!input.elements || input.getRank() != 1 ||
      (op != "ReduceProd" && op != "ReduceSum"))
    return false;
  Size total(op == "ReduceProd" ? 1 : 0);
  for (const Size &size : *input.elements)
    total = op == "ReduceProd" ? total * size : total + size;
  if (!total.isValid())
    return false;
  node.setOutput(0, createElements(input.element, total, keepsDims));
  return true;
}

static LogicalResult importReduction(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  StringRef op = node.node.op;
  int64_t rank = input.getRank();
  bool keepsDims = node.getInt("keepdims", 1);
  bool isIdentity = node.getInt("noop_with_empty_axes", 0);
  auto given = node.getConstantInts(1, "axes");
  if (failed(given))
    return failure();
  SmallVector<int64_t> axes;
  if (*given)
    axes = **given;
  if (axes.empty() && isIdentity)
    return node.setResult(input);
  if (axes.empty())
    axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  for (int64_t &axis : axes) {
    FailureOr<int64_t> valid = node.getAxis(axis, rank);
    if (failed(valid))
      return failure();
    axis = *valid;
  }
  llvm::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  if (reduceSizes(node, input, keepsDims))
    return success();
  bool isExtremum = op == "ReduceMax" || op == "ReduceMin";
  if (input.isBool() && !isExtremum)
    return node.emitError() << "expected numbers, found bool";
  bool isFloat = input.isFloat();
  if (!isFloat &&
      (op == "ReduceMean" || op == "ReduceL2" || op == "ReduceLogSumExp"))
    return node.emitError() << "expected floats, found " << input.element;
  Type element = input.element, wide = getWideType(element);
  Combiner combiner = op == "ReduceMax"    ? Combiner::Max
                      : op == "ReduceMin"  ? Combiner::Min
                      : op == "ReduceProd" ? Combiner::Mul
                                           : Combiner::Add;
  auto transform = [&](Scalars &s, ValueRange args) -> Value {
    if (op == "ReduceL2" || op == "ReduceSumSquare")
      return s.mul(args[0], args[0]);
    if (op != "ReduceL1")
      return args[0];
    if (isFloat)
      return math::AbsFOp::create(s, args[0]);
    return math::AbsIOp::create(s, args[0]);
  };
  Tensor result = reduce(node, input, axes, combiner,
                         isExtremum ? element : wide, transform);
  Value count;
  if (op == "ReduceMean")
    count = createCount(node, input, axes, wide);
  if (count || op == "ReduceL2" || result.element != element)
    result = mapElementsTo(node, &result, result.shape, element,
                           [&](Scalars &s, ValueRange args) {
                             Value x = args[0];
                             if (count)
                               x = arith::DivFOp::create(s, x, count);
                             if (op == "ReduceL2")
                               x = math::SqrtOp::create(s, x);
                             return x;
                           });
  if (keepsDims) {
    SmallVector<Size> shape = input.shape;
    for (int64_t axis : axes)
      shape[axis] = 1;
    return node.setResult(reshape(node, result, shape));
  }
  return node.setResult(std::move(result));
}

static LogicalResult importSoftmax(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  int64_t rank = input.getRank();
  bool isOld = node.getOpset() < 13;
  FailureOr<int64_t> axis =
      node.getAxis(node.getInt("axis", isOld ? 1 : -1), rank);
  if (failed(axis))
    return failure();
  if (!input.isFloat())
    return node.emitError() << "expected floats, found " << input.element;
  if (isOld && *axis != rank - 1)
    return node.emitError() << "before opset 13, only softmax over the last "
                               "axis is supported";
  Value init = createEmpty(node, input.shape, input.element);
  Value result = linalg::SoftmaxOp::create(node, init.getType(),
                                           node.getValue(input), init, *axis)
                     ->getResult(0);
  return node.setResult(createTensor(node, result, input.shape));
}

static LogicalResult importLogSoftmax(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  int64_t rank = input.getRank();
  FailureOr<int64_t> axis = node.getAxis(node.getInt("axis", -1), rank);
  if (failed(axis))
    return failure();
  if (!input.isFloat())
    return node.emitError() << "expected floats, found " << input.element;
  Type element = input.element, wide = getWideType(element);
  Tensor top = reduce(node, input, *axis, Combiner::Max, wide);
  SmallVector<Size> shape = input.shape;
  shape[*axis] = 1;
  FailureOr<Tensor> tops = reshape(node, top, shape);
  if (failed(tops))
    return failure();
  Tensor *shifting[] = {&input, &*tops};
  Tensor shifted = mapElementsTo(node, shifting, input.shape, wide,
                                 [&](Scalars &s, ValueRange args) {
                                   return s.sub(s.convert(args[0]), args[1]);
                                 });
  Tensor sum =
      reduce(node, shifted, *axis, Combiner::Add, wide,
             [&](Scalars &s, ValueRange args) { return s.exp(args[0]); });
  FailureOr<Tensor> sums = reshape(node, sum, shape);
  if (failed(sums))
    return failure();
  Tensor *operands[] = {&shifted, &*sums};
  return node.setResult(mapElementsTo(
      node, operands, input.shape, element, [&](Scalars &s, ValueRange args) {
        Value log = math::LogOp::create(s, args[1]);
        return s.sub(args[0], log);
      }));
}

void onnx::addReductionOperators(OperatorTable &table) {
  for (StringRef op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
                       "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"})
    table[op] = {1, 2, 1, importReduction};
  table["Softmax"] = {1, 1, 1, importSoftmax};
  table["LogSoftmax"] = {1, 1, 1, importLogSoftmax};
}
