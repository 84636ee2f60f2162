//===- GroupQuery.cpp - GroupQueryAttention -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Past keys and values are caches: sequence `b` has `seqlens_k[b] + 1` keys
// with the new ones, and its cache may have more rows. Present caches have as
// many rows as the past ones, or `total_sequence_length` if that is more.
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "Scalars.h"

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

namespace {
/// The inputs of GroupQueryAttention and what follows from them.
struct GroupQuery {
  AttentionParts parts;
  int64_t numHeads, numKeyHeads;
  /// Whether there are new keys; layers may share those of another layer.
  bool hasNewKeys;
  /// Number of rows of the past and of the present caches.
  Size pastRows, rows;
  /// Whether the model declares that these are equal: then the new rows are
  /// written into the past caches, and all other rows stay as they are.
  bool isInPlace;
  /// Number of valid keys of each sequence, the new ones included, (batch).
  Tensor totals;
  /// Position of the first query of each sequence, (batch).
  Tensor first;
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
  group.hasNewKeys = !parts.key.shape[1].isConstant(0);
  return success();
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

/// Returns the total length if it follows from sizes.
static std::optional<Size> getKnownTotal(const Tensor &total) {
  if (total.elements && total.elements->size() == 1)
    return total.elements->front();
  return std::nullopt;
}

/// Whether a call may be the first one of its sequences.
static bool mayBeFirst(NodeImporter &node, const Tensor &total,
                       const Size &tokens) {
  std::optional<Size> known = getKnownTotal(total);
  return !known || mayBeEqual(node, *known, tokens);
}

/// Returns the total length as i64.
static Value getTotal(NodeImporter &node, Tensor &total) {
  if (std::optional<Size> known = getKnownTotal(total))
    return convertScalar(node, node.materialize(*known), node.getI64Type());
  SmallVector<Value> at(total.getRank(),
                        createScalar(node, node.getIndexType(), 0));
  Value number = tensor::ExtractOp::create(node, node.getValue(total), at);
  return convertScalar(node, number, node.getI64Type());
}

/// Asserts that the total length is at most `limit`. It is a natural number:
/// entry points check that of an input with one element.
static void assertTotal(NodeImporter &node, Tensor &total, const Size &limit,
                        StringRef message) {
  Value fits = arith::CmpIOp::create(
      node, arith::CmpIPredicate::ule, getTotal(node, total),
      convertScalar(node, node.materialize(limit), node.getI64Type()));
  cf::AssertOp::create(node, fits, node.describe(message));
}

static constexpr llvm::StringLiteral kIsFull =
    "total_sequence_length is larger than the caches: past keys and values "
    "need at least that many rows";

/// Whether the only element of a tensor is computed from those of inputs that
/// have one, by operations that the sizes of results may be computed by.
static bool isComputedFromElements(Value tensor) {
  if (!AbiAttr::isSizeElement(tensor.getType()))
    return false;
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return true;
  if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
    return isComputedFromElements(op->getOperand(0));
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return generic && llvm::all_of(generic.getInputs(), isComputedFromElements) &&
         llvm::all_of(generic.getOps(), [](Operation &step) {
           Type type =
               step.getNumResults() ? step.getResult(0).getType() : Type();
           return isa<linalg::YieldOp, arith::ExtSIOp>(step) ||
                  (isa<arith::TruncIOp>(step) && type.isInteger(32)) ||
                  (isa<arith::ConstantOp, arith::AddIOp, arith::SubIOp,
                       arith::MulIOp, arith::MinSIOp, arith::MaxSIOp>(step) &&
                   type.isInteger(64));
         });
}

/// Sets the number of rows of the present caches, which is a size of the
/// function's results and therefore must follow from the sizes of its inputs,
/// or from elements of inputs that have one.
static LogicalResult computeRows(NodeImporter &node, GroupQuery &group,
                                 Tensor &total) {
  std::optional<Size> known = getKnownTotal(total), declared;
  const ValueInfo *present =
      node.hasOutput(1) ? node.graph.findOutput(node.node.outputs[1]) : nullptr;
  if (present && present->dims.size() == 4)
    declared = node.graph.findSize(present->dims[2]);
  group.isInPlace = declared == group.pastRows;
  Size newRows = group.parts.key.shape[1];
  auto getMax = [&](const Size &size) {
    return node.sizes.createTerm(SizeTable::Term::Max, group.pastRows, size);
  };
  if (group.isInPlace || !group.hasNewKeys) {
    group.rows = group.pastRows;
    if (known && !requireAtMost(node, *known, group.rows))
      return node.emitError() << "total_sequence_length is larger than the "
                                 "caches, whose size does not change";
    // A computed length is trusted: other assertions have no GPU code.
    if (!known && isa<BlockArgument>(node.getValue(total)))
      assertTotal(node, total, group.rows, kIsFull);
  } else if (known) {
    group.rows = getMax(*known);
  } else if (!node.hasOutput(1) && !node.hasOutput(2)) {
    group.rows = group.pastRows + newRows;
  } else if (!declared && isComputedFromElements(node.getValue(total))) {
    // Longer sequences have no memory.
    assertTotal(node, total, INT32_MAX,
                "total_sequence_length is beyond 32 bits");
    group.rows = getMax(node.sizes.createSymbol(
        convertScalar(node, getTotal(node, total), node.getIndexType()),
        /*isNonNegative=*/false));
  } else {
    group.rows = getMax(declared.value_or(newRows));
    assertTotal(node, total, group.rows, kIsFull);
  }
  return success();
}

/// Computes totals, positions and shifts. The first call of a sequence is the
/// one whose total length is the number of tokens; shorter sequences of its
/// batch are padded on the right. Later calls have all tokens at the end.
static void computePositions(NodeImporter &node, GroupQuery &group,
                             Tensor &lengths, Tensor &total) {
  Type i64 = node.getI64Type();
  Size tokens = group.parts.query.shape[1], batch = group.parts.query.shape[0];
  Value count = convertScalar(node, node.materialize(tokens), i64);
  Value isFirst = createScalar(node, node.getI1Type(), 0);
  if (mayBeFirst(node, total, tokens))
    isFirst = arith::CmpIOp::create(node, arith::CmpIPredicate::eq,
                                    getTotal(node, total), count);
  Value limit = convertScalar(node, node.materialize(group.rows), i64);
  // Entry points cannot check numbers that are computed.
  group.totals = mapElementsTo(
      node, &lengths, {batch}, i64, [&](Scalars &s, ValueRange args) -> Value {
        Value sum = s.add(s.convert(args[0]), s.get(1));
        return s.min(s.max(sum, s.get(0)), limit);
      });
  group.shift =
      mapElementsTo(node, &group.totals, {batch}, i64,
                    [&](Scalars &s, ValueRange args) -> Value {
                      return s.select(isFirst, s.sub(count, args[0]), s.get(0));
                    });
  Tensor *parts[] = {&group.totals, &group.shift};
  group.first = mapElementsTo(node, parts, {batch}, i64,
                              [&](Scalars &s, ValueRange args) -> Value {
                                return s.add(s.sub(args[0], count), args[1]);
                              });
  FailureOr<Tensor> column = reshape(node, group.first, {batch, Size(1)});
  group.positions = mapElementsTo(
      node, &*column, {batch, tokens}, i64,
      [&](Scalars &s, ValueRange args) -> Value {
        return s.add(args[0], s.convert(linalg::IndexOp::create(s, 1)));
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
  // Padding may have negative positions if they are computed.
  NegativeIndex negative = NegativeIndex::IsZero;
  if (node.hasInput(9)) {
    negative = NegativeIndex::Fails;
    positions = node.getInput(9);
    if (positions.getRank() != 2 || !isa<IntegerType>(positions.element))
      return node.emitError() << "expected integer positions of rank 2";
  }
  FailureOr<Tensor> cosRows = gather(node, cos, positions, 0, negative),
                    sinRows = gather(node, sin, positions, 0, negative);
  if (failed(cosRows) || failed(sinRows))
    return failure();
  SmallVector<Tensor *> tensors{&group.parts.query};
  if (group.hasNewKeys)
    tensors.push_back(&group.parts.key);
  for (Tensor *tensor : tensors) {
    FailureOr<Tensor> rotated = rotate(node, *tensor, /*isHeadMajor=*/false,
                                       *cosRows, *sinRows, isInterleaved);
    if (failed(assign(*tensor, std::move(rotated))))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

/// Writes the new keys and values to the rows of their positions.
static void writeRows(NodeImporter &node, GroupQuery &group,
                      MutableArrayRef<Tensor> caches) {
  // Slots count the rows of all sequences.
  Type i64 = node.getI64Type();
  auto getValue = [&](const Size &size) {
    return convertScalar(node, node.materialize(size), i64);
  };
  Value length = getValue(group.rows),
        last = getValue(caches[0].shape[0] * group.rows - 1);
  Tensor numbers =
      mapElementsTo(node, &group.positions, group.positions.shape, i64,
                    [&](Scalars &s, ValueRange args) -> Value {
                      Value sequence = s.convert(linalg::IndexOp::create(s, 0));
                      Value slot = s.add(s.mul(sequence, length), args[0]);
                      // Rows outside of their cache are not written.
                      Value isInside = arith::CmpIOp::create(
                          s, arith::CmpIPredicate::ult, args[0], length);
                      return s.min(s.select(isInside, slot, s.get(-1)), last);
                    });
  Value slots = node.getValue(numbers);
  Value inits[] = {node.getValue(caches[0]), node.getValue(caches[1])};
  auto op = KvAppendOp::create(
      node, ValueRange(inits).getTypes(), node.getValue(group.parts.key),
      node.getValue(group.parts.value), Value(), Value(), Value(), slots,
      ValueRange(), /*key_scales=*/Value(), /*value_scales=*/Value(), inits,
      HeadLayoutAttr::get(node.getContext(), HeadLayout::TokenMajor),
      HeadLayoutAttr::get(node.getContext(), HeadLayout::HeadMajor),
      RotationAttr(), FloatAttr(), FloatAttr());
  for (unsigned i : {0, 1})
    caches[i] = createTensor(node, op.getResult(i), caches[i].shape);
}

/// Replaces past caches by caches with as many rows as the present ones have.
/// Rows behind the first `kept` ones of each sequence are 0, as in ONNX
/// Runtime.
static LogicalResult extendCaches(NodeImporter &node, GroupQuery &group,
                                  MutableArrayRef<Tensor> caches,
                                  Tensor &kept) {
  FailureOr<Tensor> limits =
      reshape(node, kept, {caches[0].shape[0], Size(1), Size(1), Size(1)});
  if (failed(limits))
    return failure();
  for (Tensor &cache : caches) {
    Tensor *operands[] = {&cache, &*limits};
    Tensor valid = mapElementsTo(
        node, operands, cache.shape, cache.element,
        [&](Scalars &s, ValueRange args) -> Value {
          Value row = s.convert(linalg::IndexOp::create(s, 2), s.getI64Type());
          Value isKept =
              arith::CmpIOp::create(s, arith::CmpIPredicate::slt, row, args[1]);
          return s.select(isKept, s.convert(args[0]), s.get(0));
        });
    SmallVector<Size> shape = cache.shape;
    cache = valid;
    if (group.rows == group.pastRows)
      continue;
    shape[2] = group.rows - group.pastRows;
    Value zeros = createFilled(node, shape, cache.element, /*value=*/0);
    Tensor rest = createTensor(node, zeros, shape);
    if (failed(assign(cache, concat(node, {&valid, &rest}, 2))))
      return failure();
  }
  return success();
}

/// Makes the past keys and values, with the new ones, the operands of
/// attention, and sets outputs 1 and 2.
static LogicalResult appendToCaches(NodeImporter &node, GroupQuery &group,
                                    const Tensor &total) {
  AttentionParts &parts = group.parts;
  Tensor *rows[] = {&parts.key, &parts.value};
  Tensor caches[2];
  for (unsigned i : {0, 1})
    if (failed(assign(caches[i], setHeadSize(node, node.getInput(3 + i),
                                             rows[i]->shape[3]))))
      return failure();
  Tensor past[] = {caches[0], caches[1]};
  if (!requireEqual(node, caches[1].shape[2], group.pastRows))
    return node.emitError() << "past keys and values differ in length";
  // Later calls have no padding: the rows of one sequence are where they
  // belong.
  bool isAppended = group.hasNewKeys && parts.query.shape[0].isConstant(1) &&
                    getKnownTotal(total) == group.rows &&
                    group.rows == group.pastRows + parts.key.shape[1];
  if (isAppended) {
    for (unsigned i : {0, 1}) {
      Tensor moved = transpose(node, *rows[i], {0, 2, 1, 3});
      if (failed(assign(caches[i], concat(node, {&caches[i], &moved}, 2))))
        return failure();
    }
  } else if (!group.isInPlace &&
             (group.hasNewKeys || node.hasOutput(1) || node.hasOutput(2))) {
    Tensor &kept = group.hasNewKeys ? group.first : group.totals;
    if (failed(extendCaches(node, group, caches, kept)))
      return failure();
  }
  if (group.hasNewKeys && !isAppended)
    writeRows(node, group, caches);
  for (unsigned i : {0, 1}) {
    node.setOutput(1 + i, caches[i]);
    *rows[i] = group.hasNewKeys ? caches[i] : past[i];
  }
  parts.headMajorKeys = true;
  return success();
}

/// Normalizes the heads of queries and new keys, if there are weights for that.
static LogicalResult normalizeHeads(NodeImporter &node, GroupQuery &group) {
  double epsilon = node.getFloat("qk_norm_epsilon", 1e-6);
  double epsilons[] = {node.getFloat("q_norm_epsilon", epsilon),
                       node.getFloat("k_norm_epsilon", epsilon)};
  if (node.hasInput(14) != node.hasInput(15))
    return node.emitError() << "expected weights of both norms";
  if (!node.hasInput(14))
    return success();
  Tensor *tensors[] = {&group.parts.query, &group.parts.key};
  for (unsigned i = 0; i < (group.hasNewKeys ? 2 : 1); ++i)
    if (failed(assign(*tensors[i],
                      normalizeRows(node, *tensors[i], node.getInput(14 + i),
                                    epsilons[i]))))
      return failure();
  return success();
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
  parts.isCausal = node.getInt("causal", 1);
  int64_t window = node.getInt("local_window_size", -1);
  if (window == 0 || window < -1 || (window > 0 && !parts.isCausal))
    return node.emitError()
           << "'local_window_size' must be -1 or positive, and "
              "-1 if 'causal' is 0";
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
  if (node.getInt("sliding_window_cache", 0))
    return node.emitError() << "caches of a sliding window are not supported";
  // These are read with outputs and inputs that are not supported.
  node.ignore("qk_output");
  if (node.hasInput(12) || node.hasInput(13))
    return node.emitError() << "quantized caches are not supported";
  if (node.hasInput(16))
    return node.emitError() << "packed batches are not supported";
  if (node.hasOutput(3))
    return node.emitError() << "output output_qk is not supported: scores are "
                               "not stored";
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
  FailureOr<bool> hasCaches = hasPast(node, 3);
  if (failed(hasCaches))
    return failure();
  bool appends = *hasCaches && !node.getInput(3).shape[2].isConstant(0);
  if (!appends && !group.hasNewKeys)
    return node.emitError() << "expected past keys, as there are no new ones";
  if (appends) {
    group.pastRows = node.getInput(3).shape[2];
    if (failed(computeRows(node, group, total)))
      return failure();
  } else {
    group.rows = parts.key.shape[1];
  }
  if (failed(normalizeHeads(node, group)))
    return failure();
  computePositions(node, group, *flat, total);
  if (rotates && failed(rotateGroup(node, group, isInterleaved)))
    return failure();
  if (appends) {
    if (failed(appendToCaches(node, group, total)))
      return failure();
  } else {
    if (node.hasOutput(1))
      node.setOutput(1, transpose(node, parts.key, {0, 2, 1, 3}));
    if (node.hasOutput(2))
      node.setOutput(2, transpose(node, parts.value, {0, 2, 1, 3}));
  }
  if (node.hasInput(10)) {
    // The bias has a column for each key, not for each row of the caches.
    parts.mask = &node.getInput(10);
    parts.mayPadMask = true;
  }
  Tensor sinks;
  if (node.hasInput(11)) {
    parts.sinks = &node.getInput(11);
  } else if (hasZeroSink) {
    sinks = createConstant(DenseElementsAttr::get(
        RankedTensorType::get({group.numHeads}, node.getF32Type()), 0.0f));
    parts.sinks = &sinks;
  }
  parts.lengths = &group.totals;
  // Only first calls of more than one token may be padded.
  Size tokens = parts.query.shape[1];
  if (!tokens.isConstant(1) && mayBeFirst(node, total, tokens))
    parts.shift = &group.shift;
  return finishAttention(node, parts, /*mergesHeads=*/true);
}

void onnx::addGroupQueryOperators(OperatorTable &table) {
  table["com.microsoft/GroupQueryAttention"] = {1, 17, 4, importGroupQuery};
}
