//===- CreateAttention.cpp - operands and results of raised attention -----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionSearch.h"
#include "Materialize.h"
#include "SoftmaxForm.h"
#include "posenc/IR/Attention.h"
#include "posenc/IR/CreateGeneric.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

#include <array>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::raise;

//===----------------------------------------------------------------------===//
// Masks and scores
//===----------------------------------------------------------------------===//

/// Whether the element is one of a tensor that attention can add as its mask:
/// its indices are some of batch, head, query and key, in this order.
bool AttentionSearch::isMask(const Expr *element) {
  if (element->kind != Expr::Kind::Element || !dependsOnLoop(element, key))
    return false;
  auto type = cast<RankedTensorType>(element->tensor.getType());
  Type result = getElementTypeOrSelf(op->getResult(0));
  if (!isa<FloatType>(type.getElementType()) ||
      (type.getElementType().isF64() && !result.isF64()))
    return false;
  std::array<const Expr *, 4> order{shape.batch, shape.head,
                                    exprs.getLoop(query), exprs.getLoop(key)};
  std::array<int64_t, 4> sizes{shape.batchSize, shape.numHeads,
                               getSizes()[query], getSizes()[key]};
  unsigned next = 0;
  for (auto [dim, index] : llvm::enumerate(element->operands)) {
    if (index->getIndexConstant() == 0 && type.getDimSize(dim) == 1)
      continue;
    if (index->kind != Expr::Kind::Index)
      return false;
    while (next < 4 && order[next]->index != index->index)
      ++next;
    // A dynamic dimension may be longer than what is read of it.
    if (next == 4 || sizes[next++] != type.getDimSize(dim) ||
        !coversDim(exprs, index, element->tensor, dim))
      return false;
  }
  return true;
}

Value AttentionSearch::createMask(OpBuilder &builder, const Expr *element) {
  SmallVector<int64_t> sizes(4, 1);
  auto type = cast<RankedTensorType>(element->tensor.getType());
  std::array<const Expr *, 4> order{shape.batch, shape.head,
                                    exprs.getLoop(query), exprs.getLoop(key)};
  unsigned next = 0;
  for (auto [dim, index] : llvm::enumerate(element->operands)) {
    if (type.getDimSize(dim) == 1)
      continue;
    while (order[next]->index != index->index)
      ++next;
    sizes[next++] = type.getDimSize(dim);
  }
  return reshape(builder, op.getLoc(), element->tensor, sizes);
}

/// Returns the element with the index 0 in dimensions of a constant along which
/// all elements are equal.
static const Expr *dropEqualRows(ExprContext &exprs, const Expr *element) {
  auto constant = element->kind == Expr::Kind::Element
                      ? element->tensor.getDefiningOp<arith::ConstantOp>()
                      : nullptr;
  auto dense = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue())
                        : DenseFPElementsAttr();
  if (!dense)
    return element;
  SmallVector<APFloat> numbers(dense.value_begin<APFloat>(),
                               dense.value_end<APFloat>());
  SmallVector<const Expr *> indices(element->operands);
  int64_t stride = numbers.size();
  for (auto [index, size] :
       llvm::zip_equal(indices, dense.getType().getShape())) {
    stride /= std::max<int64_t>(size, 1);
    bool isEqual = true;
    for (int64_t at = 0, end = numbers.size(); isEqual && at < end; ++at)
      isEqual = at / stride % size == 0 ||
                numbers[at].bitwiseIsEqual(numbers[at - stride]);
    if (isEqual)
      index = exprs.getIndex(0);
  }
  return exprs.getElement(element->tensor, indices);
}

/// Finds the sink as a function of the query head.
bool AttentionSearch::findSink() {
  if (!sink)
    return true;
  const Expr *ofLoops = sink;
  sink = dropEqualRows(exprs, stripCasts(sink));
  head = exprs.addLoop(shape.numHeads);
  unsigned batch = exprs.addLoop(shape.batchSize);
  AffineExpr ofHead = exprs.getLoop(head)->index;
  SmallVector<AffineExpr> coordinates;
  for (auto [number, coordinate] : llvm::enumerate(shape.coordinates)) {
    if (coordinate == shape.batch)
      coordinates.push_back(exprs.getLoop(batch)->index);
    else if (coordinate == shape.head)
      coordinates.push_back(ofHead);
    else
      coordinates.push_back(
          number + 1 == shape.coordinates.size()
              ? ofHead % shape.coordinateSizes.back()
              : ofHead.floorDiv(shape.coordinateSizes.back()));
  }
  for (const LoopCoordinates &loop : joined) {
    AffineExpr index = getAffineConstantExpr(0, exprs.getContext());
    for (unsigned number : loop.coordinates)
      index = index * (number == loop.coordinates.front()
                           ? 1
                           : shape.coordinateSizes[number]) +
              coordinates[number];
    sink = replaceLoop(exprs, sink, loop.loop, index);
  }
  for (unsigned loop = 0; loop < getSizes().size(); ++loop)
    if (loop != head && dependsOnLoop(sink, loop)) {
      sink = ofLoops;
      return miss("a column of the logits that is no key depends on more than "
                  "the head");
    }
  return true;
}

Value AttentionSearch::createSinks(OpBuilder &builder, FloatType type) {
  Location loc = op.getLoc();
  // A tensor of heads.
  const Expr *element = stripCasts(sink);
  if (element->kind == Expr::Kind::Element) {
    auto source = cast<RankedTensorType>(element->tensor.getType());
    if (source.hasStaticShape() && source.getNumElements() == shape.numHeads &&
        llvm::all_of(llvm::enumerate(element->operands), [&](auto index) {
          return source.getDimSize(index.index()) == 1 ||
                 index.value()->index == exprs.getLoop(head)->index;
        })) {
      Value tensor = reshape(builder, loc, element->tensor, shape.numHeads);
      if (tensor && source.getElementType() == type)
        return tensor;
      auto converted = RankedTensorType::get(shape.numHeads, type);
      if (tensor)
        return source.getElementTypeBitWidth() < type.getWidth()
                   ? Value(
                         arith::ExtFOp::create(builder, loc, converted, tensor))
                   : Value(arith::TruncFOp::create(builder, loc, converted,
                                                   tensor));
    }
  }
  const Expr *wide = widen(exprs, sink, type);
  Value init = tensor::EmptyOp::create(builder, loc, shape.numHeads, type);
  return createParallelGeneric(
      builder, loc, {}, init, {},
      [&](OpBuilder &b, Location loc, ValueRange) -> Value {
        SmallVector<Value> loops(getSizes().size(),
                                 linalg::IndexOp::create(b, loc, 0));
        Value number = Materializer(b, loc, exprs, loops).get(wide);
        if (number.getType() != type)
          number = arith::TruncFOp::create(b, loc, type, number);
        return number;
      });
}

/// Returns the indices of the contraction's loops from those of a region:
/// sequence, query head, query position and key.
SmallVector<Value> AttentionSearch::getLoops(OpBuilder &builder, Location loc,
                                             ValueRange arguments) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  SmallVector<Value> loops(getSizes().size(), zero);
  loops[key] = arguments[3];
  Value offsetValue = getValueOrCreateConstantIndexOp(builder, loc, offset);
  loops[query] = isZeroInteger(offset)
                     ? arguments[2]
                     : Value(arith::SubIOp::create(builder, loc, arguments[2],
                                                   offsetValue));
  // The values of the coordinates.
  SmallVector<Value> coordinates;
  for (auto [number, coordinate] : llvm::enumerate(shape.coordinates)) {
    if (coordinate == shape.batch) {
      coordinates.push_back(arguments[0]);
    } else if (coordinate == shape.head) {
      coordinates.push_back(arguments[1]);
    } else {
      // The head is group * size + number within the group.
      Value size = arith::ConstantIndexOp::create(builder, loc,
                                                  shape.coordinateSizes.back());
      coordinates.push_back(
          number + 1 == shape.coordinates.size()
              ? Value(arith::RemSIOp::create(builder, loc, arguments[1], size))
              : Value(
                    arith::DivSIOp::create(builder, loc, arguments[1], size)));
    }
  }
  for (const LoopCoordinates &loop : joined) {
    Value index;
    for (unsigned number : loop.coordinates) {
      if (!index) {
        index = coordinates[number];
        continue;
      }
      Value size = arith::ConstantIndexOp::create(
          builder, loc, shape.coordinateSizes[number]);
      index = arith::MulIOp::create(builder, loc, index, size);
      index = arith::AddIOp::create(builder, loc, index, coordinates[number]);
    }
    loops[loop.loop] = index;
  }
  return loops;
}

void AttentionSearch::setScores(OpBuilder &builder, AttentionOp attention,
                                const ScoreParts &parts) {
  FloatType sum = attention.getSumType();
  if (parts.score != parts.product) {
    const Expr *score = widen(exprs, parts.score, sum);
    const Expr *scaled = widen(exprs, parts.product, sum);
    buildScore(builder, attention,
               [&](OpBuilder &b, Location loc, ValueRange arguments) {
                 Materializer made(b, loc, exprs,
                                   getLoops(b, loc, arguments.drop_front()));
                 made.set(scaled, arguments.front());
                 return made.get(score);
               });
  }
  for (const Visibility &visibility : parts.conditions)
    buildWhere(builder, attention,
               [&](OpBuilder &b, Location loc, ValueRange arguments) -> Value {
                 Materializer made(b, loc, exprs, getLoops(b, loc, arguments));
                 Value condition = made.get(visibility.condition);
                 if (!visibility.isHidden)
                   return condition;
                 Value yes =
                     arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
                 return arith::XOrIOp::create(b, loc, condition, yes);
               });
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

static Value transpose(OpBuilder &builder, Location loc, Value tensor,
                       ArrayRef<int64_t> permutation) {
  if (isIdentityPermutation(permutation))
    return tensor;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  applyPermutationToVector(sizes, permutation);
  Value init = tensor::EmptyOp::create(builder, loc, sizes,
                                       getElementTypeOrSelf(tensor));
  return linalg::TransposeOp::create(builder, loc, tensor, init, permutation)
      ->getResult(0);
}

/// Returns the tensor with rows of the layout and of the element type.
Value AttentionSearch::takeRows(OpBuilder &builder, const RowOperand &rows,
                                HeadLayout layout, int64_t numHeads,
                                HeadLayout target, Type element) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(rows.tensor.getType());
  Value tensor = rows.tensor;
  if (type.getElementType() != element) {
    auto converted = type.clone(element);
    tensor =
        element.getIntOrFloatBitWidth() >
                type.getElementType().getIntOrFloatBitWidth()
            ? Value(arith::ExtFOp::create(builder, loc, converted, tensor))
            : Value(arith::TruncFOp::create(builder, loc, converted, tensor));
  }
  // The number of tokens is the only other dimension that may be absent.
  int64_t numTokens = 1;
  SmallVector<int64_t> core;
  for (int64_t size : type.getShape().take_front(rows.channelDim))
    if (size != 1)
      core.push_back(size);
  if (core.size() > rows.outer.size())
    numTokens = core[rows.numBeforeTokens];
  SmallVector<int64_t> sizes{shape.batchSize, numHeads, numTokens,
                             type.getDimSize(rows.channelDim)};
  if (layout == HeadLayout::TokenMajor)
    std::swap(sizes[1], sizes[2]);
  tensor = reshape(builder, loc, tensor, sizes);
  if (!tensor || layout == target)
    return tensor;
  return transpose(builder, loc, tensor, {0, 2, 1, 3});
}

/// Returns the loop that joins the coordinate, or nothing if its size is 1.
std::optional<unsigned> AttentionSearch::getLoopOf(unsigned coordinate) {
  for (const LoopCoordinates &loop : joined)
    if (llvm::is_contained(loop.coordinates, coordinate))
      return loop.loop;
  return std::nullopt;
}

/// Returns the result of attention in the shape of the contraction's.
Value AttentionSearch::createResult(OpBuilder &builder, Value attention) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  bool hasBatch = !shape.batch->getIndexConstant();
  unsigned numCoordinates = shape.coordinates.size();
  bool hasGroups = numCoordinates == 2u + hasBatch;
  auto isLoop = [&](unsigned loop) -> std::optional<unsigned> {
    return getSizes()[loop] == 1 ? std::nullopt : std::optional(loop);
  };
  bool isTokenMajor = shape.queryLayout == HeadLayout::TokenMajor;
  // A loop that joins batch and heads needs them to be neighbours.
  if (isTokenMajor && hasBatch && numCoordinates > 1 &&
      getLoopOf(0) == getLoopOf(1)) {
    attention = transpose(builder, loc, attention, {0, 2, 1, 3});
    isTokenMajor = false;
  }
  // The loop of each dimension, or nothing for a size of 1.
  SmallVector<std::optional<unsigned>> loops;
  loops.push_back(hasBatch ? getLoopOf(0) : std::nullopt);
  SmallVector<std::optional<unsigned>> heads;
  for (unsigned number = hasBatch; number < numCoordinates; ++number)
    heads.push_back(getLoopOf(number));
  if (heads.empty())
    heads.push_back(std::nullopt);
  if (isTokenMajor)
    loops.push_back(isLoop(query));
  unsigned firstHead = loops.size();
  llvm::append_range(loops, heads);
  if (!isTokenMajor)
    loops.push_back(isLoop(query));
  loops.push_back(isLoop(valueChannel));
  if (hasGroups) {
    SmallVector<ReassociationIndices> groups;
    SmallVector<int64_t> sizes;
    auto source = cast<RankedTensorType>(attention.getType());
    for (int64_t dim = 0; dim < source.getRank(); ++dim) {
      ReassociationIndices group{int64_t(sizes.size())};
      if (dim == int64_t(firstHead)) {
        group.push_back(sizes.size() + 1);
        llvm::append_range(
            sizes, ArrayRef(shape.coordinateSizes).drop_front(hasBatch));
      } else {
        sizes.push_back(source.getDimSize(dim));
      }
      groups.push_back(group);
    }
    attention = tensor::ExpandShapeOp::create(builder, loc, source.clone(sizes),
                                              attention, groups);
  }
  // Joins dimensions of one loop, and those of size 1 with their neighbours.
  SmallVector<ReassociationIndices> groups;
  SmallVector<unsigned> order;
  ReassociationIndices units;
  for (auto [dim, loop] : llvm::enumerate(loops)) {
    if (loop && (order.empty() || order.back() != *loop)) {
      order.push_back(*loop);
      groups.push_back(units);
      units.clear();
    }
    (groups.empty() ? units : groups.back()).push_back(dim);
  }
  if (groups.empty())
    return reshape(builder, loc, attention, type.getShape());
  if (groups.size() < loops.size())
    attention =
        tensor::CollapseShapeOp::create(builder, loc, attention, groups);
  AffineMap output = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<int64_t> permutation;
  for (AffineExpr result : output.getResults()) {
    std::optional<unsigned> loop =
        isLoop(cast<AffineDimExpr>(result).getPosition());
    if (!loop)
      continue;
    auto *it = llvm::find(order, *loop);
    if (it == order.end())
      return {};
    permutation.push_back(it - order.begin());
  }
  if (permutation.size() != order.size())
    return {};
  attention = transpose(builder, loc, attention, permutation);
  return reshape(builder, loc, attention, type.getShape());
}
