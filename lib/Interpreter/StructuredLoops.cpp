//===- StructuredLoops.cpp - loops over elements of tensors ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StructuredLoops.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

/// Adds `factor` times the expression to the linear form of `strides` and
/// `offset`. Returns false if the expression is not linear.
static bool addLinear(AffineExpr expr, int64_t factor,
                      MutableArrayRef<int64_t> strides, int64_t &offset) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    offset += factor * constant.getValue();
    return true;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    strides[dim.getPosition()] += factor;
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (binary.getKind() == AffineExprKind::Add)
    return addLinear(binary.getLHS(), factor, strides, offset) &&
           addLinear(binary.getRHS(), factor, strides, offset);
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return binary.getKind() == AffineExprKind::Mul && constant &&
         addLinear(binary.getLHS(), factor * constant.getValue(), strides,
                   offset);
}

/// Evaluates an expression. Returns nullopt for symbols, which indexing maps do
/// not have, and for divisors that are not positive.
static std::optional<int64_t> compute(AffineExpr expr,
                                      ArrayRef<int64_t> indices) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return indices[dim.getPosition()];
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<int64_t> left = compute(binary.getLHS(), indices);
  std::optional<int64_t> right = compute(binary.getRHS(), indices);
  if (!left || !right)
    return std::nullopt;
  if (binary.getKind() == AffineExprKind::Add)
    return *left + *right;
  if (binary.getKind() == AffineExprKind::Mul)
    return *left * *right;
  if (*right <= 0)
    return std::nullopt;
  if (binary.getKind() == AffineExprKind::Mod)
    return llvm::mod(*left, *right);
  return binary.getKind() == AffineExprKind::FloorDiv
             ? llvm::divideFloorSigned(*left, *right)
             : llvm::divideCeilSigned(*left, *right);
}

ElementMap::ElementMap(AffineMap map, const Shape &shape)
    : map(map), shape(shape), strides(map.getNumDims(), 0) {
  int64_t stride = 1;
  for (size_t dim = shape.size(); linear && dim-- > 0;) {
    linear = addLinear(map.getResult(dim), stride, strides, offset);
    stride *= shape[dim];
  }
}

std::optional<int64_t>
ElementMap::getPosition(ArrayRef<int64_t> indices) const {
  int64_t position = 0;
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape)) {
    std::optional<int64_t> index = compute(expr, indices);
    if (!index || *index < 0 || *index >= size)
      return std::nullopt;
    position = position * size + *index;
  }
  return position;
}

bool ElementMap::isInside(ArrayRef<int64_t> ranges) const {
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape)) {
    SmallVector<int64_t> steps(ranges.size(), 0);
    int64_t first = 0;
    addLinear(expr, 1, steps, first);
    int64_t last = first;
    for (auto [step, range] : llvm::zip_equal(steps, ranges))
      (step < 0 ? first : last) += step * (range - 1);
    if (first < 0 || last >= size)
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<int64_t>> mlir::posenc::getLoopRanges(linalg::LinalgOp op,
                                                            Evaluator &values) {
  SmallVector<int64_t> ranges(op.getNumLoops(), -1);
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    const Shape &shape = values.getShape(operand.get());
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (!loop)
        continue;
      int64_t &range = ranges[loop.getPosition()];
      if (range >= 0 && range != shape[dim])
        return op.emitError() << "operand #" << operand.getOperandNumber()
                              << " has size " << shape[dim] << " in dimension "
                              << dim << ", but earlier operands have " << range;
      range = shape[dim];
    }
  }
  for (auto [loop, range] : llvm::enumerate(ranges))
    if (range < 0)
      return op.emitError()
             << "no operand determines the range of loop " << loop;
  return ranges;
}

LogicalResult mlir::posenc::forEachPoint(
    Operation *op, ArrayRef<int64_t> ranges, ArrayRef<ElementMap> maps,
    function_ref<void(ArrayRef<int64_t>, ArrayRef<int64_t>)> visit) {
  if (llvm::is_contained(ranges, 0))
    return success();
  SmallVector<int64_t> indices(ranges.size(), 0), positions;
  bool areLinear = true;
  auto reject = [&](size_t number) {
    return op->emitError() << "operand #" << number
                           << " is read or written outside of its shape";
  };
  for (auto [number, map] : llvm::enumerate(maps)) {
    if (map.isLinear() && !map.isInside(ranges))
      return reject(number);
    areLinear &= map.isLinear();
    positions.push_back(map.getOffset());
  }
  while (true) {
    for (size_t number = 0; !areLinear && number < maps.size(); ++number) {
      if (maps[number].isLinear())
        continue;
      std::optional<int64_t> position = maps[number].getPosition(indices);
      if (!position)
        return reject(number);
      positions[number] = *position;
    }
    visit(indices, positions);
    size_t loop = ranges.size();
    while (loop > 0) {
      --loop;
      bool isEnd = ++indices[loop] == ranges[loop];
      int64_t steps = isEnd ? 1 - ranges[loop] : 1;
      if (isEnd)
        indices[loop] = 0;
      for (auto [map, position] : llvm::zip_equal(maps, positions))
        if (map.isLinear())
          position += steps * map.getStrides()[loop];
      if (!isEnd)
        break;
      if (loop == 0)
        return success();
    }
    if (ranges.empty())
      return success();
  }
}
