//===- AttentionShape.cpp - operands of raised attention ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionShape.h"

#include "ConstantFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::raise;

bool mlir::posenc::raise::coversDim(ExprContext &exprs, const Expr *index,
                                    Value tensor, int64_t dim) {
  int64_t size = cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
  IndexRange range = exprs.getRange(index->index);
  // A loop of static size may read a part of a dimension of dynamic size.
  if (ShapedType::isDynamic(size)) {
    std::optional<unsigned> loop = exprs.getLoopNumber(index);
    return range.min == 0 && !range.max &&
           !(loop && exprs.isPartial(*loop) &&
             !exprs.hasSize(*loop, getSizeOrigin(tensor, dim)));
  }
  return range.min == 0 && range.max == size - 1;
}

const Expr *mlir::posenc::raise::stripScale(const Expr *expr, double &scale) {
  while (true) {
    if (expr->is<arith::ExtFOp, arith::TruncFOp>()) {
      expr = expr->operands[0];
      continue;
    }
    bool isProduct = expr->is<arith::MulFOp>();
    if (!isProduct && !expr->is<arith::DivFOp>())
      return expr;
    unsigned side = isProduct && evaluateNumber(expr->operands[0]) ? 0 : 1;
    std::optional<double> factor = evaluateNumber(expr->operands[side]);
    if (!factor)
      return expr;
    scale = isProduct ? scale * *factor : scale / *factor;
    expr = expr->operands[1 - side];
  }
}

std::optional<RowOperand>
mlir::posenc::raise::findRows(ExprContext &exprs, Elements &elements,
                              Value tensor, ArrayRef<const Expr *> indices,
                              unsigned tokenLoop, unsigned channelLoop,
                              Value &found) {
  RowOperand rows;
  const Expr *expr = stripScale(elements.get(tensor, indices), rows.scale);
  if (expr->kind != Expr::Kind::Element)
    return std::nullopt;
  rows.tensor = found = expr->tensor;
  auto type = cast<RankedTensorType>(rows.tensor.getType());
  if (!isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(
          type.getElementType()))
    return std::nullopt;
  const Expr *token = exprs.getLoop(tokenLoop),
             *channel = exprs.getLoop(channelLoop);
  bool hasTokens = token->getIndexConstant().has_value();
  // Dimensions of size 1 may follow the channels.
  int64_t last = type.getRank() - 1;
  while (last > 0 && type.getDimSize(last) == 1 && !channel->getIndexConstant())
    --last;
  rows.channelDim = last;
  for (auto [dim, index] : llvm::enumerate(expr->operands)) {
    if (index->kind != Expr::Kind::Index)
      return std::nullopt;
    if (index->getIndexConstant() == 0 && type.getDimSize(dim) == 1 &&
        int64_t(dim) != last)
      continue;
    if (!coversDim(exprs, index, rows.tensor, dim))
      return std::nullopt;
    if (int64_t(dim) == last) {
      if (index->index != channel->index)
        return std::nullopt;
      continue;
    }
    if (!hasTokens && index->index == token->index) {
      hasTokens = true;
      rows.numBeforeTokens = rows.outer.size();
      continue;
    }
    if (index->index.isFunctionOfDim(tokenLoop) ||
        index->index.isFunctionOfDim(channelLoop))
      return std::nullopt;
    rows.outer.push_back(exprs.getIndex(index->index));
    rows.outerSizes.push_back(type.getDimSize(dim));
  }
  // A single token has any place.
  if (token->getIndexConstant())
    rows.numBeforeTokens = rows.outer.size();
  if (!hasTokens || rows.outer.size() > 3)
    return std::nullopt;
  return rows;
}

/// Returns the layout of rows whose heads are the last `numHeadDims` outer
/// dimensions, or nullopt.
static std::optional<HeadLayout> getLayout(const RowOperand &rows,
                                           unsigned numHeadDims) {
  if (rows.numBeforeTokens == rows.outer.size())
    return HeadLayout::HeadMajor;
  if (rows.numBeforeTokens + numHeadDims == rows.outer.size())
    return HeadLayout::TokenMajor;
  return std::nullopt;
}

std::optional<AttentionShape>
mlir::posenc::raise::getShape(ExprContext &exprs, const RowOperand &queries,
                              const RowOperand &keys, const RowOperand &values,
                              bool hasGroups, std::string &reason) {
  auto miss = [&](StringRef why) {
    reason = why.str();
    return std::nullopt;
  };
  AttentionShape shape;
  shape.coordinates = queries.outer;
  shape.coordinateSizes = queries.outerSizes;
  const Expr *zero = exprs.getIndex(0);
  shape.batch = shape.head = zero;
  shape.batchSize = shape.numHeads = 1;
  unsigned numDims = queries.outer.size();
  // A single dimension of a static size is that of the heads.
  bool hasBatch = numDims > 1 || (numDims == 1 &&
                                  ShapedType::isDynamic(queries.outerSizes[0]));
  // Dimensions behind the tokens are those of heads that share keys, and of
  // such groups: a batch of 1 has no dimension.
  if (numDims == 2 && (queries.numBeforeTokens == 0 || hasGroups) &&
      !ShapedType::isDynamic(queries.outerSizes[0]))
    hasBatch = false;
  unsigned numHeadDims = numDims - (hasBatch ? 1 : 0);
  if (hasBatch) {
    shape.batch = queries.outer[0];
    shape.batchSize = queries.outerSizes[0];
  }
  const Expr *group = nullptr;
  if (numHeadDims > 0) {
    shape.head = queries.outer[hasBatch];
    shape.numHeads = queries.outerSizes[hasBatch];
  }
  if (numHeadDims == 2) {
    group = shape.head;
    int64_t perGroup = queries.outerSizes[hasBatch + 1];
    if (ShapedType::isDynamic(shape.numHeads) ||
        ShapedType::isDynamic(perGroup))
      return miss("the number of heads is not static");
    shape.head = exprs.getIndex(group->index * perGroup +
                                queries.outer[hasBatch + 1]->index);
    shape.numHeads *= perGroup;
  }
  if (ShapedType::isDynamic(shape.numHeads))
    return miss("the number of heads is not static");
  std::optional<HeadLayout> layout = getLayout(queries, numHeadDims);
  if (!layout)
    return miss("the dimensions of the queries have another order than batch, "
                "head and token");
  shape.queryLayout = *layout;

  std::optional<int64_t> numKeyHeads;
  for (auto [rows, rowLayout] :
       {std::pair(&keys, &shape.keyLayout), {&values, &shape.valueLayout}}) {
    ArrayRef<const Expr *> outer(rows->outer);
    ArrayRef<int64_t> sizes(rows->outerSizes);
    if (hasBatch) {
      if (outer.empty() || outer.front() != shape.batch)
        return miss("keys or values have another batch than the queries");
      outer = outer.drop_front();
      sizes = sizes.drop_front();
    }
    if (outer.size() > 2)
      return miss("keys or values have more dimensions than attention");
    int64_t heads = ShapedType::isDynamicShape(sizes)
                        ? 0
                        : ShapedType::getNumElements(sizes);
    if (!outer.empty()) {
      AffineExpr head =
          heads == 0 || shape.numHeads % heads != 0 ? AffineExpr()
          : group && outer.size() == 1
              ? group->index
              : shape.head->index.floorDiv(shape.numHeads / heads);
      // Two dimensions are those of heads that are repeated for a group.
      bool areHeads =
          head && (outer.size() == 1
                       ? outer[0] == exprs.getIndex(head)
                       : outer[0] == exprs.getIndex(head.floorDiv(sizes[1])) &&
                             outer[1] == exprs.getIndex(head % sizes[1]));
      if (!areHeads)
        return miss(
            "the heads of keys or values are not those of the queries, nor "
            "groups of them");
    }
    if (numKeyHeads && *numKeyHeads != heads)
      return miss("keys and values have different numbers of heads");
    numKeyHeads = heads;
    std::optional<HeadLayout> layout = getLayout(*rows, outer.size());
    if (!layout)
      return miss(
          "the dimensions of keys or values have another order than batch, "
          "head and token");
    *rowLayout = *layout;
  }
  shape.numKeyHeads = *numKeyHeads;
  return shape;
}

Value mlir::posenc::raise::reshape(OpBuilder &builder, Location loc,
                                   Value tensor, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto target = type.clone(shape);
  if (type == target)
    return tensor;
  // Dimensions of size 1 are removed first, and added last.
  auto getCore = [](ArrayRef<int64_t> shape) {
    return llvm::filter_to_vector(shape,
                                  [](int64_t size) { return size != 1; });
  };
  auto getGroups = [](ArrayRef<int64_t> wide) {
    SmallVector<ReassociationIndices> groups;
    ReassociationIndices group;
    for (auto [dim, size] : llvm::enumerate(wide)) {
      if (size != 1 && llvm::any_of(group, [&](int64_t other) {
            return wide[other] != 1;
          })) {
        groups.push_back(group);
        group.clear();
      }
      group.push_back(dim);
    }
    if (!group.empty())
      groups.push_back(group);
    return groups;
  };
  SmallVector<int64_t> core = getCore(type.getShape()),
                       targetCore = getCore(shape);
  // Sizes that are dynamic on one side only may differ.
  if (core.empty() || llvm::count(core, ShapedType::kDynamic) !=
                          llvm::count(targetCore, ShapedType::kDynamic))
    return nullptr;
  if (core.size() != size_t(type.getRank()))
    tensor = tensor::CollapseShapeOp::create(
        builder, loc, type.clone(core), tensor, getGroups(type.getShape()));
  if (core != targetCore) {
    std::optional<SmallVector<ReassociationIndices>> groups =
        getReassociationIndicesForReshape(type.clone(core),
                                          type.clone(targetCore));
    if (!groups || core.size() == targetCore.size())
      return nullptr;
    tensor = core.size() > targetCore.size()
                 ? Value(tensor::CollapseShapeOp::create(
                       builder, loc, type.clone(targetCore), tensor, *groups))
                 : Value(tensor::ExpandShapeOp::create(
                       builder, loc, type.clone(targetCore), tensor, *groups));
  }
  if (targetCore.size() != shape.size())
    tensor = tensor::ExpandShapeOp::create(builder, loc, target, tensor,
                                           getGroups(shape));
  return tensor;
}

FailureOr<SmallVector<LoopCoordinates>> mlir::posenc::raise::joinCoordinates(
    ExprContext &exprs, const AttentionShape &shape, ArrayRef<unsigned> loops) {
  SmallVector<LoopCoordinates> result;
  ArrayRef<int64_t> sizes = shape.coordinateSizes;
  llvm::SmallBitVector used(shape.coordinates.size());
  for (unsigned loop : loops) {
    if (exprs.getSizes()[loop] == 1)
      continue;
    AffineExpr index = exprs.getLoop(loop)->index;
    LoopCoordinates joined{loop, {}};
    for (auto [number, coordinate] : llvm::enumerate(shape.coordinates))
      if (coordinate->index.isFunctionOfDim(loop))
        joined.coordinates.push_back(number);
    if (joined.coordinates.empty())
      return failure();
    int64_t stride = 1;
    for (unsigned number : llvm::reverse(joined.coordinates)) {
      bool isFirst = number == joined.coordinates.front();
      AffineExpr expected = index.floorDiv(stride);
      if (!isFirst) {
        if (ShapedType::isDynamic(sizes[number]))
          return failure();
        expected = expected % sizes[number];
        stride *= sizes[number];
      }
      if (exprs.simplify(expected) != shape.coordinates[number]->index ||
          used.test(number))
        return failure();
      used.set(number);
    }
    // Neighbours only: they become one dimension of the result.
    for (auto [a, b] : llvm::zip(joined.coordinates,
                                 ArrayRef(joined.coordinates).drop_front()))
      if (b != a + 1)
        return failure();
    result.push_back(joined);
  }
  if (!used.all())
    return failure();
  return result;
}
