//===- Microsoft.cpp - attention operators of com.microsoft ---------------===//
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

/// Returns a part of the last dimension.
static Tensor takeColumns(NodeImporter &node, Tensor &tensor, const Size &first,
                          const Size &count) {
  SmallVector<Size> offsets(tensor.getRank(), Size(0)), sizes(tensor.shape);
  offsets.back() = first;
  sizes.back() = count;
  return slice(node, tensor, offsets, sizes);
}

/// Whether past keys and present keys are declared with one size: caches that
/// are updated in place keep theirs.
static bool isUpdatedInPlace(NodeImporter &node) {
  const ValueInfo *present =
      node.hasOutput(1) ? node.graph.findOutput(node.node.outputs[1]) : nullptr;
  for (const ValueInfo &past : node.graph.model.graph.inputs) {
    if (past.name != node.node.inputs[3] || !present || past.dims.size() != 4 ||
        present->dims.size() != 4)
      continue;
    const DimensionProto &a = present->dims[2], &b = past.dims[2];
    return a.size == b.size && a.name == b.name && (a.size || !a.name.empty());
  }
  return false;
}

//===----------------------------------------------------------------------===//
// GroupQueryAttention
//===----------------------------------------------------------------------===//

namespace {
/// The inputs of GroupQueryAttention and what follows from them.
struct GroupQuery {
  AttentionParts parts;
  int64_t numHeads, numKeyHeads;
  /// Number of valid keys of each sequence, the new ones included, (batch).
  Tensor totals;
  /// Positions of the queries, (batch, tokens).
  Tensor positions;
  /// The offset from positions that are aligned to the end, (batch).
  Tensor shift;
};
} // namespace

/// Splits queries, keys and values that are packed in one input.
static LogicalResult unpack(NodeImporter &node, GroupQuery &group) {
  Tensor &input = node.getInput(0);
  AttentionParts &parts = group.parts;
  if (node.hasInput(1) != node.hasInput(2))
    return node.emitError() << "expected both keys and values";
  if (input.getRank() != 3)
    return node.emitError() << "expected queries of rank 3";
  Tensor flat[] = {input, input, input};
  if (node.hasInput(1)) {
    flat[1] = node.getInput(1);
    flat[2] = node.getInput(2);
  } else {
    std::optional<int64_t> width = input.shape[2].getConstant();
    int64_t heads = group.numHeads + 2 * group.numKeyHeads;
    if (!width || *width % heads)
      return node.emitError()
             << "the last dimension is no multiple of " << heads << " heads";
    int64_t dim = *width / heads, keys = group.numKeyHeads * dim;
    flat[0] = takeColumns(node, input, 0, group.numHeads * dim);
    flat[1] = takeColumns(node, input, group.numHeads * dim, keys);
    flat[2] = takeColumns(node, input, group.numHeads * dim + keys, keys);
  }
  Tensor *results[] = {&parts.query, &parts.key, &parts.value};
  for (unsigned i = 0; i < 3; ++i) {
    int64_t heads = i == 0 ? group.numHeads : group.numKeyHeads;
    if (failed(assign(*results[i], splitHeads(node, flat[i], heads))))
      return failure();
  }
  return success();
}

/// Computes totals, positions and shifts. The first call of a sequence is the
/// one whose total length is the number of tokens; shorter sequences of its
/// batch are padded on the right. Later calls have all tokens at the end.
static void computePositions(NodeImporter &node, GroupQuery &group,
                             Tensor &lengths, Tensor &total,
                             const Size &numKeys) {
  Type i64 = node.getI64Type();
  Size tokens = group.parts.query.shape[1], batch = group.parts.query.shape[0];
  Value count = convertScalar(node, node.materialize(tokens), i64);
  Value isFirst;
  if (total.elements && total.elements->size() == 1 &&
      node.sizes.areDifferent(total.elements->front(), tokens)) {
    isFirst = createScalar(node, node.getI1Type(), 0);
  } else {
    SmallVector<Value> at(total.getRank(),
                          createScalar(node, node.getIndexType(), 0));
    Value number = tensor::ExtractOp::create(node, node.getValue(total), at);
    isFirst = arith::CmpIOp::create(node, arith::CmpIPredicate::eq,
                                    convertScalar(node, number, i64), count);
  }
  Value limit = convertScalar(node, node.materialize(numKeys), i64);
  // Entry points cannot check numbers that are computed.
  group.totals = mapElementsTo(
      node, &lengths, {batch}, i64, [&](Scalars &s, ValueRange args) -> Value {
        Value one = s.get(1);
        Value sum = arith::AddIOp::create(s, s.convert(args[0]), one);
        return s.min(s.max(sum, s.get(0)), limit);
      });
  group.shift = mapElementsTo(
      node, &group.totals, {batch}, i64,
      [&](Scalars &s, ValueRange args) -> Value {
        Value missing = arith::SubIOp::create(s, count, args[0]);
        return arith::SelectOp::create(s, isFirst, missing, s.get(0));
      });
  FailureOr<Tensor> columns[] = {reshape(node, group.totals, {batch, Size(1)}),
                                 reshape(node, group.shift, {batch, Size(1)})};
  Tensor *operands[] = {&*columns[0], &*columns[1]};
  group.positions =
      mapElementsTo(node, operands, {batch, tokens}, i64,
                    [&](Scalars &s, ValueRange args) -> Value {
                      Value index = linalg::IndexOp::create(s, 1);
                      Value first = arith::SubIOp::create(s, args[0], count);
                      first = arith::AddIOp::create(s, first, args[1]);
                      return arith::AddIOp::create(s, first, s.convert(index));
                    });
}

/// Rotates queries and keys.
static LogicalResult rotateGroup(NodeImporter &node, GroupQuery &group,
                                 bool isInterleaved) {
  if (!node.hasInput(7) || !node.hasInput(8))
    return node.emitError() << "'do_rotary' needs tables of cos and sin";
  Tensor &cos = node.getInput(7), &sin = node.getInput(8);
  if (cos.getRank() != 2 || sin.getRank() != 2)
    return node.emitError() << "expected tables of rank 2";
  Tensor positions = group.positions;
  if (node.hasInput(9)) {
    positions = node.getInput(9);
    if (positions.getRank() != 2 || !isa<IntegerType>(positions.element))
      return node.emitError() << "expected integer positions of rank 2";
  }
  Tensor cosRows = gather(node, cos, positions, 0, /*wraps=*/false);
  Tensor sinRows = gather(node, sin, positions, 0, /*wraps=*/false);
  for (Tensor *tensor : {&group.parts.query, &group.parts.key}) {
    FailureOr<Tensor> rotated = rotate(node, *tensor, /*isHeadMajor=*/false,
                                       cosRows, sinRows, isInterleaved);
    if (failed(assign(*tensor, std::move(rotated))))
      return failure();
  }
  return success();
}

/// Writes the new keys and values behind the past ones. Returns the caches.
static FailureOr<std::pair<Tensor, Tensor>>
appendCaches(NodeImporter &node, GroupQuery &group, Tensor &pastKey,
             Tensor &pastValue, bool isInPlace) {
  AttentionParts &parts = group.parts;
  Tensor caches[] = {pastKey, pastValue};
  Tensor *rows[] = {&parts.key, &parts.value};
  if (!isInPlace)
    for (unsigned i : {0, 1}) {
      Tensor moved = transpose(node, *rows[i], {0, 2, 1, 3});
      if (failed(assign(caches[i], concat(node, {&caches[i], &moved}, 2))))
        return failure();
    }
  // Without padding, the rows are where they belong already.
  if (!isInPlace && parts.query.shape[0].isConstant(1))
    return std::pair(caches[0], caches[1]);
  // Slots count the rows of all sequences.
  Type i64 = node.getI64Type();
  auto getValue = [&](const Size &size) {
    return convertScalar(node, node.materialize(size), i64);
  };
  Size tokens = caches[0].shape[2];
  Value length = getValue(tokens),
        last = getValue(caches[0].shape[0] * tokens - 1);
  Tensor numbers =
      mapElementsTo(node, &group.positions, group.positions.shape, i64,
                    [&](Scalars &s, ValueRange args) -> Value {
                      Value sequence = s.convert(linalg::IndexOp::create(s, 0));
                      Value slot = s.add(s.mul(sequence, length), args[0]);
                      // Tokens beyond the end of their cache are not written.
                      Value isInside = arith::CmpIOp::create(
                          s, arith::CmpIPredicate::slt, args[0], length);
                      return s.min(s.select(isInside, slot, s.get(-1)), last);
                    });
  Value slots = node.getValue(numbers);
  Value inits[] = {node.getValue(caches[0]), node.getValue(caches[1])};
  auto layout = [&](HeadLayout value) {
    return HeadLayoutAttr::get(node.getContext(), value);
  };
  auto op = KvAppendOp::create(
      node, ValueRange(inits).getTypes(), node.getValue(parts.key),
      node.getValue(parts.value), Value(), Value(), Value(), slots,
      ValueRange(), /*key_scales=*/Value(), /*value_scales=*/Value(), inits,
      layout(HeadLayout::TokenMajor), layout(HeadLayout::HeadMajor),
      RotationAttr(), FloatAttr(), FloatAttr());
  return std::pair(createTensor(node, op.getResult(0), caches[0].shape),
                   createTensor(node, op.getResult(1), caches[1].shape));
}

static LogicalResult importGroupQuery(NodeImporter &node) {
  GroupQuery group;
  AttentionParts &parts = group.parts;
  group.numHeads = node.getInt("num_heads", 0);
  group.numKeyHeads = node.getInt("kv_num_heads", 0);
  if (group.numHeads < 1 || group.numKeyHeads < 1 || group.numHeads > 65536 ||
      group.numHeads % group.numKeyHeads)
    return node.emitError() << "'num_heads' must be a multiple of "
                               "'kv_num_heads'";
  if (double scale = node.getFloat("scale", 0))
    parts.scale = scale;
  parts.softCap = node.getFloat("softcap", 0);
  int64_t window = node.getInt("local_window_size", -1);
  if (window > 0)
    parts.window = window - 1;
  bool rotates = node.getInt("do_rotary", 0);
  bool isInterleaved = node.getInt("rotary_interleaved", 0);
  bool hasZeroSink = node.getInt("smooth_softmax", 0) == 1;
  for (StringRef name : {"k_quant_type", "v_quant_type"})
    if (StringRef type = node.getString(name, "NONE"); type != "NONE")
      return node.emitError() << "quantized caches are not supported";
  if (node.getInt("kv_cache_bit_width", 0))
    return node.emitError() << "quantized caches are not supported";
  node.ignore("qk_output");
  if (node.hasInput(12) || node.hasInput(13))
    return node.emitError() << "quantized caches are not supported";
  if (!node.hasInput(5) || !node.hasInput(6))
    return node.emitError() << "the lengths of the sequences are missing";
  if (failed(unpack(node, group)))
    return failure();
  Tensor &lengths = node.getInput(5), &total = node.getInput(6);
  FailureOr<Tensor> flat = reshape(node, lengths, parts.query.shape[0]);
  if (failed(flat))
    return failure();
  if (!isa<IntegerType>(lengths.element) || total.getRank() > 1 ||
      !isa<IntegerType>(total.element))
    return node.emitError() << "expected integer lengths";
  FailureOr<bool> isGiven = hasPast(node, 3);
  if (failed(isGiven))
    return failure();
  bool appends = *isGiven && !node.getInput(3).shape[2].isConstant(0);
  bool isInPlace = appends && isUpdatedInPlace(node);
  Size numKeys = parts.key.shape[1];
  if (appends)
    numKeys = node.getInput(3).shape[2] + (isInPlace ? Size(0) : numKeys);
  computePositions(node, group, *flat, total, numKeys);
  if (rotates && failed(rotateGroup(node, group, isInterleaved)))
    return failure();
  Tensor presentKey, presentValue;
  if (appends) {
    Tensor &pastKey = node.getInput(3), &pastValue = node.getInput(4);
    auto caches = appendCaches(node, group, pastKey, pastValue, isInPlace);
    if (failed(caches))
      return failure();
    std::tie(parts.key, parts.value) = std::move(*caches);
    parts.headMajorKeys = true;
    presentKey = parts.key;
    presentValue = parts.value;
  } else if (node.hasOutput(1) || node.hasOutput(2)) {
    presentKey = transpose(node, parts.key, {0, 2, 1, 3});
    presentValue = transpose(node, parts.value, {0, 2, 1, 3});
  }
  if (node.hasOutput(1))
    node.setOutput(1, std::move(presentKey));
  if (node.hasOutput(2))
    node.setOutput(2, std::move(presentValue));
  if (node.hasOutput(3))
    return node.emitError() << "output output_qk is not supported: scores are "
                               "not stored";
  if (node.hasInput(10))
    parts.mask = &node.getInput(10);
  Tensor sinks;
  if (node.hasInput(11)) {
    parts.sinks = &node.getInput(11);
  } else if (hasZeroSink) {
    sinks = createConstant(DenseElementsAttr::get(
        RankedTensorType::get({group.numHeads}, node.getF32Type()), 0.0f));
    parts.sinks = &sinks;
  }
  parts.lengths = &group.totals;
  parts.isCausal = true;
  // One token, or one sequence, cannot be padded.
  bool isPadded = !parts.query.shape[1].isConstant(1) &&
                  !parts.query.shape[0].isConstant(1);
  if (isPadded)
    parts.shift = &group.shift;
  return finishAttention(node, parts, /*mergesHeads=*/true);
}

//===----------------------------------------------------------------------===//
// MultiHeadAttention
//===----------------------------------------------------------------------===//

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
  Tensor bits = convertTensor(node, padding, node.getI1Type());
  parts.mask = &mask;
  return assign(
      mask, reshape(node, bits, {padding.shape[0], 1, 1, padding.shape[1]}));
}

static LogicalResult importMultiHead(NodeImporter &node) {
  AttentionParts parts;
  int64_t numHeads = node.getInt("num_heads", 0);
  if (double scale = node.getFloat("scale", 0))
    parts.scale = scale;
  // Masked keys get minus infinity.
  node.ignore("mask_filter_value");
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

void onnx::addMicrosoftOperators(OperatorTable &table) {
  table["com.microsoft/GroupQueryAttention"] = {1, 14, 4, importGroupQuery};
  table["com.microsoft/MultiHeadAttention"] = {1, 10, 4, importMultiHead};
}
