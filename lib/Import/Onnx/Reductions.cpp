//===- Reductions.cpp - reductions and softmax ----------------------------===//
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

/// Reduces the known elements of a tensor of rank 1 to one; false if that is
/// not possible.
static bool reduceSizes(NodeImporter &node, const Tensor &input,
                        bool keepsDims) {
  StringRef op = node.node.op;
  if (!input.elements || input.getRank() != 1 ||
      (op != "ReduceProd" && op != "ReduceSum"))
    return false;
  Size total(op == "ReduceProd" ? 1 : 0);
  for (const Size &size : *input.elements)
    total = op == "ReduceProd" ? total * size : total + size;
  std::optional<Tensor> result =
      createResults(node, input.element, total, keepsDims);
  if (result)
    node.setOutput(0, std::move(*result));
  return result.has_value();
}

/// Returns a reduced tensor with the axes as dimensions of size 1.
static FailureOr<Tensor> keepDims(NodeImporter &node, Tensor &reduced,
                                  const Tensor &input, ArrayRef<int64_t> axes) {
  SmallVector<Size> shape = input.shape;
  for (int64_t axis : axes)
    shape[axis] = 1;
  return reshape(node, reduced, shape);
}

//===----------------------------------------------------------------------===//
// Sums of exponentials
//===----------------------------------------------------------------------===//

namespace {
/// The terms of a sum of exponentials, relative to the largest one.
struct Exponentials {
  /// The maxima and sums have the axes as dimensions of size 1.
  Tensor tops, shifted, sums;
};
} // namespace

/// Sums the exponentials of floats along the axes. Infinite maxima are not
/// subtracted if `isFinite`.
static LogicalResult sumExponentials(NodeImporter &node, Tensor &input,
                                     ArrayRef<int64_t> axes, bool isFinite,
                                     Exponentials &result) {
  Type wide = getWideType(input.element);
  Tensor top = reduce(node, input, axes, Combiner::Max, wide);
  if (isFinite)
    top = mapElementsTo(
        node, &top, top.shape, wide, [&](Scalars &s, ValueRange args) {
          Value isInfinite =
              s.equal(math::AbsFOp::create(s, args[0]), s.get(INFINITY));
          return s.select(isInfinite, s.get(0), args[0]);
        });
  if (failed(assign(result.tops, keepDims(node, top, input, axes))))
    return failure();
  Tensor *operands[] = {&input, &result.tops};
  result.shifted = mapElementsTo(node, operands, input.shape, wide,
                                 [&](Scalars &s, ValueRange args) {
                                   return s.sub(s.convert(args[0]), args[1]);
                                 });
  Tensor sum =
      reduce(node, result.shifted, axes, Combiner::Add, wide,
             [&](Scalars &s, ValueRange args) { return s.exp(args[0]); });
  return assign(result.sums, keepDims(node, sum, input, axes));
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Returns the axes of a reduction, sorted.
static FailureOr<SmallVector<int64_t>> getReducedAxes(NodeImporter &node,
                                                      int64_t rank) {
  bool isIdentity = node.getInt("noop_with_empty_axes", 0);
  FailureOr<std::optional<SmallVector<int64_t>>> given =
      node.getConstantInts(1, "axes");
  if (failed(given))
    return failure();
  SmallVector<int64_t> axes;
  if (*given)
    axes = **given;
  if (axes.empty() && !isIdentity)
    return llvm::to_vector(llvm::seq<int64_t>(0, rank));
  for (int64_t &axis : axes) {
    FailureOr<int64_t> valid = node.getAxis(axis, rank);
    if (failed(valid))
      return failure();
    axis = *valid;
  }
  llvm::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

/// Reduces the axes to dimensions of size 1, or drops them. Without axes, only
/// the elementwise part of an operator is left, such as the squares.
static LogicalResult importReduction(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  StringRef op = node.node.op;
  bool keepsDims = node.getInt("keepdims", 1);
  FailureOr<SmallVector<int64_t>> axes = getReducedAxes(node, input.getRank());
  if (failed(axes))
    return failure();
  bool isExtremum = op == "ReduceMax" || op == "ReduceMin";
  if (input.isBool() && !isExtremum)
    return node.emitError() << "expected numbers, found bool";
  bool isFloat = input.isFloat(), isLog = op == "ReduceLogSum";
  bool isLogSumExp = op == "ReduceLogSumExp", isMean = op == "ReduceMean";
  bool isProduct = op == "ReduceProd", isRoot = op == "ReduceL2";
  if (!isFloat && (isMean || isRoot || isLog || isLogSumExp))
    return node.emitError() << "expected floats, found " << input.element;
  if (axes->empty() &&
      (isExtremum || isMean || isProduct || isLogSumExp || op == "ReduceSum"))
    return node.setResult(input);
  if (!axes->empty() && reduceSizes(node, input, keepsDims))
    return success();
  Type element = input.element, wide = getWideType(element);
  if (isLogSumExp) {
    Exponentials terms;
    if (failed(sumExponentials(node, input, *axes, /*isFinite=*/true, terms)))
      return failure();
    Tensor *operands[] = {&terms.sums, &terms.tops};
    Tensor result =
        mapElementsTo(node, operands, terms.sums.shape, element,
                      [&](Scalars &s, ValueRange args) {
                        return s.add(math::LogOp::create(s, args[0]), args[1]);
                      });
    if (keepsDims)
      return node.setResult(std::move(result));
    ReductionLoops loops(node.getContext(), input.shape, *axes);
    return node.setResult(reshape(node, result, loops.shape));
  }
  Combiner combiner = op == "ReduceMax"   ? Combiner::Max
                      : op == "ReduceMin" ? Combiner::Min
                      : isProduct         ? Combiner::Mul
                                          : Combiner::Add;
  auto transform = [&](Scalars &s, ValueRange args) -> Value {
    if (isRoot || op == "ReduceSumSquare")
      return s.mul(args[0], args[0]);
    if (op != "ReduceL1")
      return args[0];
    if (isFloat)
      return math::AbsFOp::create(s, args[0]);
    return math::AbsIOp::create(s, args[0]);
  };
  Tensor result = reduce(node, input, *axes, combiner,
                         isExtremum ? element : wide, transform);
  Value count;
  if (isMean)
    count = createCount(node, input, *axes, wide);
  if (count || isRoot || isLog || result.element != element)
    result = mapElementsTo(node, &result, result.shape, element,
                           [&](Scalars &s, ValueRange args) {
                             Value x = args[0];
                             if (count)
                               x = arith::DivFOp::create(s, x, count);
                             if (isRoot)
                               x = math::SqrtOp::create(s, x);
                             if (isLog)
                               x = math::LogOp::create(s, x);
                             return x;
                           });
  if (keepsDims)
    return node.setResult(keepDims(node, result, input, *axes));
  return node.setResult(std::move(result));
}

/// Returns the index of the largest or the smallest element along the axis,
/// with a dimension of size 1 for it: of equal ones the first, or the last. NaN
/// is more extreme than any number.
static FailureOr<Tensor> findExtremum(NodeImporter &node, Tensor &input,
                                      int64_t axis, Combiner combiner,
                                      bool wantsLast) {
  if (input.isBool())
    return node.emitError() << "expected numbers, found bool";
  if (!requireAtMost(node, 1, input.shape[axis]))
    return node.emitError() << "no elements along the axis";
  Tensor top = reduce(node, input, axis, combiner, input.element);
  FailureOr<Tensor> tops = keepDims(node, top, input, axis);
  if (failed(tops))
    return failure();
  Type i64 = node.getI64Type();
  Tensor *operands[] = {&input, &*tops};
  Tensor numbers = mapElementsTo(
      node, operands, input.shape, i64,
      [&](Scalars &s, ValueRange args) -> Value {
        Value isFound;
        if (input.isFloat()) {
          Type wide = getWideType(input.element);
          Value x = s.convert(args[0], wide), y = s.convert(args[1], wide);
          Value isNaN =
              arith::CmpFOp::create(s, arith::CmpFPredicate::UNO, x, x);
          isFound = arith::OrIOp::create(s, s.equal(x, y), isNaN);
        } else {
          isFound = arith::CmpIOp::create(s, arith::CmpIPredicate::eq, args[0],
                                          args[1]);
        }
        Value number = s.convert(linalg::IndexOp::create(s, axis), i64);
        Value none = arith::ConstantIntOp::create(s, wantsLast ? -1 : INT64_MAX,
                                                  /*width=*/64);
        return s.select(isFound, number, none);
      });
  Tensor found = reduce(node, numbers, axis,
                        wantsLast ? Combiner::Max : Combiner::Min, i64);
  found.range = std::pair(Size(0), input.shape[axis] - 1);
  return keepDims(node, found, input, axis);
}

/// ArgMax and ArgMin.
static LogicalResult importArgExtremum(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  FailureOr<int64_t> axis =
      node.getAxis(node.getInt("axis", 0), input.getRank());
  if (failed(axis))
    return failure();
  bool keepsDims = node.getInt("keepdims", 1);
  FailureOr<Tensor> result =
      findExtremum(node, input, *axis,
                   node.node.op == "ArgMax" ? Combiner::Max : Combiner::Min,
                   /*wantsLast=*/node.getInt("select_last_index", 0));
  if (failed(result) || keepsDims)
    return node.setResult(std::move(result));
  SmallVector<Size> shape = input.shape;
  shape.erase(shape.begin() + *axis);
  return node.setResult(reshape(node, *result, shape));
}

//===----------------------------------------------------------------------===//
// Softmax, LogSoftmax and Hardmax
//===----------------------------------------------------------------------===//

static FailureOr<Tensor> createSoftmax(NodeImporter &node, Tensor &input,
                                       int64_t axis) {
  Value init = createEmpty(node, input.shape, input.element);
  Value result = linalg::SoftmaxOp::create(node, init.getType(),
                                           node.getValue(input), init, axis)
                     ->getResult(0);
  return createTensor(node, result, input.shape);
}

static FailureOr<Tensor> createLogSoftmax(NodeImporter &node, Tensor &input,
                                          int64_t axis) {
  Exponentials terms;
  if (failed(sumExponentials(node, input, axis, /*isFinite=*/false, terms)))
    return failure();
  Tensor *operands[] = {&terms.shifted, &terms.sums};
  return mapElementsTo(node, operands, input.shape, input.element,
                       [&](Scalars &s, ValueRange args) {
                         Value log = math::LogOp::create(s, args[1]);
                         return s.sub(args[0], log);
                       });
}

/// 1 for the first largest element along the axis, 0 for others.
static FailureOr<Tensor> createHardmax(NodeImporter &node, Tensor &input,
                                       int64_t axis) {
  FailureOr<Tensor> found = findExtremum(node, input, axis, Combiner::Max,
                                         /*wantsLast=*/false);
  if (failed(found))
    return failure();
  return mapElementsTo(
      node, &*found, input.shape, input.element,
      [&](Scalars &s, ValueRange args) -> Value {
        Value number =
            s.convert(linalg::IndexOp::create(s, axis), args[0].getType());
        Value isFound =
            arith::CmpIOp::create(s, arith::CmpIPredicate::eq, number, args[0]);
        return s.select(isFound, s.get(1), s.get(0));
      });
}

/// Softmax, LogSoftmax and Hardmax. Before opset 13, they are over all
/// dimensions from the axis on.
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
  StringRef op = node.node.op;
  auto create = op == "Softmax"      ? createSoftmax
                : op == "LogSoftmax" ? createLogSoftmax
                                     : createHardmax;
  if (!isOld || *axis == rank - 1)
    return node.setResult(create(node, input, *axis));
  ArrayRef<Size> shape(input.shape);
  FailureOr<Tensor> rows = reshape(node, input,
                                   {getProduct(shape.take_front(*axis)),
                                    getProduct(shape.drop_front(*axis))});
  if (failed(rows))
    return failure();
  FailureOr<Tensor> result = create(node, *rows, 1);
  if (failed(result))
    return failure();
  return node.setResult(reshape(node, *result, shape));
}

void onnx::addReductionOperators(OperatorTable &table) {
  for (StringRef op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
                       "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
                       "ReduceLogSum", "ReduceLogSumExp"})
    table[op] = {1, 2, 1, importReduction};
  for (StringRef op : {"ArgMax", "ArgMin"})
    table[op] = {1, 1, 1, importArgExtremum};
  for (StringRef op : {"Softmax", "LogSoftmax", "Hardmax"})
    table[op] = {1, 1, 1, importSoftmax};
}
