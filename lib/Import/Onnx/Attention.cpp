//===- Attention.cpp - Attention ------------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "Scalars.h"

#include "posenc/IR/Posenc.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

static LogicalResult checkShapes(NodeImporter &node,
                                 const AttentionParts &parts) {
  const Tensor &q = parts.query, &k = parts.key, &v = parts.value;
  if (q.getRank() != 4 || k.getRank() != 4 || v.getRank() != 4)
    return node.emitError() << "expected queries, keys and values of rank 4";
  if (!q.isFloat() || k.element != q.element || v.element != q.element)
    return node.emitError() << "queries, keys and values differ in element "
                               "type";
  unsigned queryHeads = parts.headMajorQueries ? 1 : 2;
  unsigned keyHeads = parts.headMajorKeys ? 1 : 2, keyTokens = 3 - keyHeads;
  std::optional<int64_t> heads = q.shape[queryHeads].getConstant(),
                         groups = k.shape[keyHeads].getConstant();
  if (heads && groups && (*groups < 1 || *heads < 1 || *heads % *groups))
    return node.emitError()
           << "the number of query heads, " << *heads
           << ", is no multiple of that of key heads, " << *groups;
  for (const Tensor *tensor : {&q, &k, &v}) {
    std::optional<int64_t> width = tensor->shape[3].getConstant();
    if (!width || *width < 1 || *width > 65536)
      return node.emitError() << "the size of a head must be a constant from 1 "
                                 "to 65536";
  }
  bool fits = requireEqual(node, q.shape[0], k.shape[0]) &&
              requireEqual(node, k.shape[0], v.shape[0]) &&
              requireEqual(node, k.shape[keyTokens], v.shape[keyTokens]) &&
              requireEqual(node, k.shape[keyHeads], v.shape[keyHeads]) &&
              requireEqual(node, q.shape[3], k.shape[3]);
  if (!fits)
    return node.emitError() << "the shapes of queries, keys and values do not "
                               "agree";
  return success();
}

/// Returns a mask of rank 4 with the elements of one of a lower rank. A mask
/// with fewer columns than keys hides the other keys.
static FailureOr<Tensor> expandMask(NodeImporter &node, Tensor &mask,
                                    ArrayRef<Size> limits, bool mayPad) {
  if (mask.getRank() < 1 || mask.getRank() > 4)
    return node.emitError()
           << "expected a mask of rank 1 to 4, found " << mask.getRank();
  SmallVector<Size> shape(4 - mask.getRank(), Size(1));
  shape.append(mask.shape);
  bool isPadded =
      shape[3] != limits[3] && (mayPad || shape[3].getConstant() ||
                                node.sizes.isAtMost(shape[3], limits[3]));
  for (auto [dim, size, limit] : llvm::enumerate(shape, limits)) {
    bool fits = dim == 3 && isPadded
                    ? requireAtMost(node, size, limit)
                    : size.isConstant(1) || requireEqual(node, size, limit);
    if (!fits)
      return node.emitError() << "dimension " << dim
                              << " of the mask does not agree with queries and "
                                 "keys";
  }
  FailureOr<Tensor> wide = reshape(node, mask, shape);
  if (failed(wide) || !isPadded)
    return wide;
  SmallVector<Size> missing = shape;
  missing[3] = limits[3] - shape[3];
  double hidden = mask.isBool() ? 0 : -INFINITY;
  Tensor rest = createTensor(
      node, createFilled(node, missing, mask.element, hidden), missing);
  return concat(node, {&*wide, &rest}, 3);
}

/// Adds the region score: cap * tanh(score / cap).
static void addSoftCap(NodeImporter &node, AttentionOp op, double cap) {
  OpBuilder::InsertionGuard guard(node);
  Type index = node.getIndexType();
  SmallVector<Type> types{op.getSumType(), index, index, index, index};
  Block *block = node.createBlock(&op.getScore(), {}, types,
                                  SmallVector<Location>(5, node.getLoc()));
  Scalars s(node, op.getSumType());
  Value scaled = s.div(block->getArgument(0), s.get(cap));
  Value tanh = math::TanhOp::create(s, scaled);
  YieldOp::create(s, s.mul(tanh, s.get(cap)));
}

/// Adds the region where: visible are keys `j` at most at the query's position,
/// and not before its window. The position is that of the region, plus
/// `offset`.
static void addVisibility(NodeImporter &node, AttentionOp op,
                          const AttentionParts &parts, Value offset,
                          Value shift) {
  OpBuilder::InsertionGuard guard(node);
  SmallVector<Type> types(4, node.getIndexType());
  Block *block = node.createBlock(&op.getWhere(), {}, types,
                                  SmallVector<Location>(4, node.getLoc()));
  Value position = block->getArgument(2), key = block->getArgument(3);
  if (shift) {
    Value number =
        tensor::ExtractOp::create(node, shift, block->getArgument(0));
    number = arith::IndexCastOp::create(node, node.getIndexType(), number);
    position = arith::AddIOp::create(node, position, number);
  }
  if (offset)
    position = arith::AddIOp::create(node, position, offset);
  Value isVisible;
  auto requireAtMost = [&](Value left, Value right) {
    Value holds =
        arith::CmpIOp::create(node, arith::CmpIPredicate::sle, left, right);
    isVisible = isVisible ? Value(arith::AndIOp::create(node, isVisible, holds))
                          : holds;
  };
  auto add = [&](Value index, int64_t count) -> Value {
    Value size = arith::ConstantIndexOp::create(node, count);
    return arith::AddIOp::create(node, index, size);
  };
  if (parts.isCausal)
    requireAtMost(key, position);
  if (parts.window)
    requireAtMost(position, add(key, *parts.window));
  if (parts.windowRight)
    requireAtMost(key, add(position, *parts.windowRight));
  YieldOp::create(node, isVisible);
}

/// Emits posenc.attention; returns the output with the layout of the queries.
static FailureOr<Tensor> emitAttention(NodeImporter &node,
                                       AttentionParts &parts) {
  if (failed(checkShapes(node, parts)))
    return failure();
  Tensor &q = parts.query, &k = parts.key, &v = parts.value;
  unsigned queryTokens = parts.headMajorQueries ? 2 : 1;
  unsigned keyTokens = parts.headMajorKeys ? 2 : 1;
  SmallVector<Size> shape = q.shape;
  shape[3] = v.shape[3];
  Value mask, lengths, sinks, shift, offset;
  if (parts.mask) {
    if (parts.mask->isFloat() && parts.mask->element.isF64() &&
        !q.element.isF64())
      return node.emitError() << "the mask is wider than the queries";
    if (!parts.mask->isFloat() && !parts.mask->isBool())
      return node.emitError() << "expected a mask of bools or floats, found "
                              << parts.mask->element;
    FailureOr<Tensor> wide =
        expandMask(node, *parts.mask,
                   {q.shape[0], q.shape[3 - queryTokens], q.shape[queryTokens],
                    k.shape[keyTokens]},
                   parts.mayPadMask);
    if (failed(wide))
      return failure();
    mask = node.getValue(*wide);
  }
  if (parts.lengths)
    lengths = node.getValue(*parts.lengths);
  if (parts.sinks) {
    Type sum = q.element.isF64() ? q.element : Type(node.getF32Type());
    Tensor wide = convertTensor(node, *parts.sinks, sum);
    sinks = node.getValue(wide);
  }
  bool hasLimits = parts.isCausal || parts.window || parts.windowRight;
  if (hasLimits && parts.shift)
    shift = node.getValue(*parts.shift);
  if (hasLimits && parts.firstPosition) {
    // The difference from the alignment to the end of the keys.
    Size difference =
        *parts.firstPosition - (k.shape[keyTokens] - q.shape[queryTokens]);
    if (!difference.isConstant(0))
      offset = node.materialize(difference);
  }
  Value init = createEmpty(node, shape, q.element);
  Value operands[] = {node.getValue(q), node.getValue(k), node.getValue(v)};
  auto op =
      AttentionOp::create(node, operands[0], operands[1], operands[2], init);
  if (parts.headMajorQueries)
    op.setQueryLayout(HeadLayout::HeadMajor);
  if (parts.headMajorKeys)
    op.setKeyLayout(HeadLayout::HeadMajor);
  if (parts.scale)
    op.setScaleAttr(node.getF64FloatAttr(*parts.scale));
  if (mask)
    op.getMaskMutable().assign(mask);
  if (lengths)
    op.getLengthsMutable().assign(lengths);
  if (sinks)
    op.getSinksMutable().assign(sinks);
  if (parts.softCap > 0)
    addSoftCap(node, op, parts.softCap);
  if (shift || offset) {
    addVisibility(node, op, parts, offset, shift);
  } else {
    op.setCausal(parts.isCausal);
    if (parts.window)
      op.setWindowLeftAttr(node.getI64IntegerAttr(*parts.window));
    if (parts.windowRight)
      op.setWindowRightAttr(node.getI64IntegerAttr(*parts.windowRight));
  }
  return createTensor(node, op.getResult(0), shape);
}

FailureOr<bool> onnx::hasPast(NodeImporter &node, unsigned past) {
  if (node.hasInput(past) != node.hasInput(past + 1))
    return node.emitError() << "expected both past keys and values";
  if (!node.hasInput(past))
    return false;
  if (node.getInput(past).getRank() != 4 ||
      node.getInput(past + 1).getRank() != 4)
    return node.emitError() << "expected past keys and values of rank 4";
  return true;
}

FailureOr<Tensor> onnx::setHeadSize(NodeImporter &node, Tensor &cache,
                                    const Size &width) {
  if (!requireEqual(node, cache.shape[3], width))
    return node.emitError() << "the heads of past keys and values have another "
                               "size than those of new ones";
  if (cache.shape[3].getConstant() || !width.getConstant())
    return cache;
  SmallVector<Size> shape = cache.shape;
  shape[3] = width;
  return createTensor(node, node.getValue(cache), shape);
}

LogicalResult onnx::appendToPast(NodeImporter &node, AttentionParts &parts,
                                 unsigned past) {
  FailureOr<bool> isGiven = hasPast(node, past);
  if (failed(isGiven))
    return failure();
  parts.firstPosition = Size(0);
  bool hasPresent = node.hasOutput(1) || node.hasOutput(2);
  if (!parts.headMajorKeys && (*isGiven || hasPresent)) {
    for (Tensor *tensor : {&parts.key, &parts.value})
      *tensor = transpose(node, *tensor, {0, 2, 1, 3});
    parts.headMajorKeys = true;
  }
  if (*isGiven) {
    Tensor &pastKey = node.getInput(past), &pastValue = node.getInput(past + 1);
    parts.firstPosition = pastKey.shape[2];
    FailureOr<Tensor> key = concat(node, {&pastKey, &parts.key}, 2),
                      value = concat(node, {&pastValue, &parts.value}, 2);
    if (failed(assign(parts.key, std::move(key))) ||
        failed(assign(parts.value, std::move(value))))
      return failure();
  }
  node.setOutput(1, parts.key);
  node.setOutput(2, parts.value);
  return success();
}

LogicalResult onnx::finishAttention(NodeImporter &node, AttentionParts &parts,
                                    bool mergesHeads) {
  FailureOr<Tensor> result = emitAttention(node, parts);
  if (succeeded(result) && mergesHeads)
    result = mergeHeads(node, *result);
  return node.setResult(std::move(result));
}

//===----------------------------------------------------------------------===//
// Attention of the default domain
//===----------------------------------------------------------------------===//

static LogicalResult importAttention(NodeImporter &node) {
  AttentionParts parts;
  parts.query = node.getInput(0);
  parts.key = node.getInput(1);
  parts.value = node.getInput(2);
  int64_t queryHeads = node.getInt("q_num_heads", 0);
  int64_t keyHeads = node.getInt("kv_num_heads", 0);
  parts.isCausal = node.getInt("is_causal", 0);
  parts.softCap = node.getFloat("softcap", 0);
  if (node.getAttribute("scale"))
    parts.scale = node.getFloat("scale", 0);
  // The softmax is computed in f32, or f64 for f64.
  node.ignore("softmax_precision");
  node.ignore("qk_matmul_output_mode");
  auto getWindow = [&](StringRef name, std::optional<int64_t> &window) {
    int64_t size = node.getInt(name, -1);
    if (size >= 0)
      window = size;
  };
  getWindow("left_window_size", parts.window);
  getWindow("right_window_size", parts.windowRight);
  if (node.hasOutput(3))
    return node.emitError() << "output qk_matmul_output is not supported: "
                               "scores are not stored";
  bool isFlat = parts.query.getRank() == 3;
  parts.headMajorQueries = parts.headMajorKeys = !isFlat;
  if (isFlat) {
    for (auto [tensor, heads] :
         {std::pair(&parts.query, queryHeads), std::pair(&parts.key, keyHeads),
          std::pair(&parts.value, keyHeads)}) {
      if (failed(assign(*tensor, splitHeads(node, *tensor, heads))))
        return failure();
    }
  }
  if (failed(checkShapes(node, parts)))
    return failure();
  if (failed(appendToPast(node, parts, 4)))
    return failure();
  if (node.hasInput(3))
    parts.mask = &node.getInput(3);
  if (node.hasInput(6)) {
    // Keys of an outer cache; queries are aligned to their end.
    parts.lengths = &node.getInput(6);
    if (node.hasInput(4) || parts.lengths->getRank() != 1 ||
        !isa<IntegerType>(parts.lengths->element))
      return node.emitError() << "nonpad_kv_seqlen needs rank 1 and no past";
    parts.firstPosition.reset();
    // Keys behind the valid ones need no columns.
    parts.mayPadMask = true;
  }
  return finishAttention(node, parts, /*mergesHeads=*/isFlat);
}

void onnx::addAttentionOperators(OperatorTable &table) {
  table["Attention"] = {3, 7, 4, importAttention};
  setFirstOpsets(table, {{"Attention", 23}});
}
