//===- Microsoft.cpp - attention of com.microsoft -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "Products.h"
#include "Scalars.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

/// Adds a part of the bias of (queries, keys, values) to a tensor.
static FailureOr<Tensor> addBias(NodeImporter &node, Tensor &tensor,
                                 const Size &first) {
  Tensor &bias = node.getInput(3);
  Tensor part = takeColumns(node, bias, first, tensor.shape.back());
  return addTensors(node, {&tensor, &part});
}

/// Sets the mask to that of padded keys: (batch) lengths or (batch, keys) bits.
static LogicalResult addKeyPadding(NodeImporter &node, AttentionParts &parts,
                                   Tensor &padding, Tensor &mask) {
  if (!isa<IntegerType>(padding.element))
    return node.emitError() << "expected an integer mask";
  if (padding.getRank() == 1 &&
      requireEqual(node, padding.shape[0], parts.query.shape[0])) {
    parts.lengths = &padding;
    // Lengths move the queries, which concerns nothing without causality.
    if (parts.isCausal)
      return node.emitError() << "lengths of keys with 'unidirectional' are "
                                 "not supported";
    return success();
  }
  if (padding.getRank() != 2)
    return node.emitError() << "expected a mask of rank 1 or 2";
  if (parts.mask)
    return node.emitError() << "key_padding_mask together with attention_bias "
                               "is not supported";
  // As in ONNX Runtime, a key is visible if its number is positive.
  Tensor bits =
      mapElementsTo(node, {&padding}, padding.shape, node.getI1Type(),
                    [](Scalars &s, ValueRange args) -> Value {
                      Value zero = arith::ConstantOp::create(
                          s, cast<TypedAttr>(s.getZeroAttr(args[0].getType())));
                      return arith::CmpIOp::create(s, arith::CmpIPredicate::sgt,
                                                   args[0], zero);
                    });
  parts.mask = &mask;
  return assign(
      mask, reshape(node, bits, {padding.shape[0], 1, 1, padding.shape[1]}));
}

/// Masked keys get minus infinity. The scores of ONNX Runtime, the default
/// -10000, have the same weights, 0, unless other scores are as small.
static LogicalResult checkFilterValue(NodeImporter &node) {
  double value = node.getFloat("mask_filter_value", -10000);
  if (!(value <= -1000))
    return node.emitError() << "'mask_filter_value' of " << value
                            << " is not supported, expected at most -1000";
  return success();
}

static LogicalResult importMultiHead(NodeImporter &node) {
  AttentionParts parts;
  int64_t numHeads = node.getInt("num_heads", 0);
  if (double scale = node.getFloat("scale", 0))
    parts.scale = scale;
  if (failed(checkFilterValue(node)))
    return failure();
  parts.isCausal = node.getInt("unidirectional", 0);
  if (!node.hasInput(1) || !node.hasInput(2))
    return node.emitError() << "packed queries, keys and values are not "
                               "supported";
  if (node.hasInput(8) || node.hasInput(9) || node.hasOutput(3))
    return node.emitError() << "beams and caches of fixed size are not "
                               "supported";
  parts.query = node.getInput(0);
  parts.key = node.getInput(1);
  parts.value = node.getInput(2);
  Size offset(0);
  // Keys of cross attention may have their heads split already.
  parts.headMajorKeys = parts.key.getRank() == 4;
  for (Tensor *tensor : {&parts.query, &parts.key, &parts.value}) {
    if (tensor->getRank() == 4 && tensor != &parts.query)
      continue;
    if (tensor->getRank() != 3)
      return node.emitError() << "expected inputs of rank 3";
    if (node.hasInput(3)) {
      Size width = tensor->shape[2];
      if (failed(assign(*tensor, addBias(node, *tensor, offset))))
        return failure();
      offset = offset + width;
    }
    if (failed(assign(*tensor, splitHeads(node, *tensor, numHeads))))
      return failure();
  }
  if (failed(appendToPast(node, parts, 6)))
    return failure();
  if (node.hasInput(5))
    parts.mask = &node.getInput(5);
  Tensor mask;
  if (node.hasInput(4) &&
      failed(addKeyPadding(node, parts, node.getInput(4), mask)))
    return failure();
  return finishAttention(node, parts, /*mergesHeads=*/true);
}

/// Attention of com.microsoft: queries, keys and values are one product.
static LogicalResult importPackedAttention(NodeImporter &node) {
  AttentionParts parts;
  int64_t numHeads = node.getInt("num_heads", 0);
  if (double scale = node.getFloat("scale", 0))
    parts.scale = scale;
  if (failed(checkFilterValue(node)))
    return failure();
  node.ignore("rotary_embedding_dim");
  parts.isCausal = node.getInt("unidirectional", 0);
  for (StringRef name : {"do_rotary", "past_present_share_buffer"})
    if (node.getInt(name, 0))
      return node.emitError() << "attribute '" << name << "' is not supported";
  if (node.hasInput(4) || node.hasInput(6) || node.hasOutput(1))
    return node.emitError() << "past keys and values are not supported";
  Tensor &input = node.getInput(0), &weight = node.getInput(1);
  if (input.getRank() != 3 || weight.getRank() != 2 || !input.isFloat())
    return node.emitError() << "expected an input of rank 3 and a matrix";
  FailureOr<Tensor> all = multiply(node, input, weight);
  if (failed(all))
    return failure();
  if (node.hasInput(2)) {
    Tensor &bias = node.getInput(2);
    if (bias.getRank() != 1 || bias.element != input.element)
      return node.emitError() << "expected a bias of rank 1";
    if (failed(assign(*all, addTensors(node, {&*all, &bias}))))
      return failure();
  }
  std::optional<int64_t> width = all->shape[2].getConstant();
  SmallVector<int64_t> widths(3, width.value_or(0) / 3);
  if (std::optional<SmallVector<int64_t>> given =
          node.getInts("qkv_hidden_sizes"))
    widths = *given;
  if (!width || widths.size() != 3 || widths[0] != widths[1] || widths[0] < 1 ||
      widths[2] < 1 || widths[0] + widths[1] + widths[2] != *width)
    return node.emitError() << "the sizes of queries, keys and values do not "
                               "add up to the columns of the weight";
  int64_t first = 0;
  Tensor *tensors[] = {&parts.query, &parts.key, &parts.value};
  for (auto [tensor, count] : llvm::zip_equal(tensors, widths)) {
    Tensor part = takeColumns(node, *all, first, count);
    if (failed(assign(*tensor, splitHeads(node, part, numHeads))))
      return failure();
    first += count;
  }
  parts.firstPosition = Size(0);
  if (node.hasInput(5))
    parts.mask = &node.getInput(5);
  Tensor mask;
  if (node.hasInput(3) &&
      failed(addKeyPadding(node, parts, node.getInput(3), mask)))
    return failure();
  return finishAttention(node, parts, /*mergesHeads=*/true);
}

void onnx::addMicrosoftOperators(OperatorTable &table) {
  table["com.microsoft/Attention"] = {2, 7, 2, importPackedAttention};
  table["com.microsoft/MultiHeadAttention"] = {1, 10, 4, importMultiHead};
}
