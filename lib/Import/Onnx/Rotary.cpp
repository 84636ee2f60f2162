//===- Rotary.cpp - RotaryEmbedding ---------------------------------------===//
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

Tensor onnx::takeColumns(NodeImporter &node, Tensor &tensor, const Size &first,
                         const Size &count) {
  SmallVector<Size> offsets(tensor.getRank(), Size(0)), sizes(tensor.shape);
  offsets.back() = first;
  sizes.back() = count;
  return slice(node, tensor, offsets, sizes);
}

FailureOr<Tensor> onnx::splitHeads(NodeImporter &node, Tensor &tensor,
                                   int64_t numHeads) {
  if (tensor.getRank() != 3)
    return node.emitError() << "expected rank 3, found " << tensor.getRank();
  std::optional<Size> dim =
      numHeads > 0 ? tensor.shape[2].divideExactly(numHeads) : std::nullopt;
  if (!dim)
    return node.emitError()
           << "the last dimension is no multiple of " << numHeads << " heads";
  return reshape(node, tensor,
                 {tensor.shape[0], tensor.shape[1], numHeads, *dim});
}

FailureOr<Tensor> onnx::mergeHeads(NodeImporter &node, Tensor &tensor) {
  return reshape(
      node, tensor,
      {tensor.shape[0], tensor.shape[1], tensor.shape[2] * tensor.shape[3]});
}

FailureOr<Tensor> onnx::rotate(NodeImporter &node, Tensor &tensor,
                               bool isHeadMajor, Tensor &cos, Tensor &sin,
                               bool isInterleaved) {
  std::optional<int64_t> width = tensor.shape[3].getConstant(),
                         pairs = cos.shape[2].getConstant();
  if (!width || !pairs || *pairs < 1 || 2 * *pairs > *width || *pairs > 32768)
    return node.emitError() << "the rotated channels do not fit in the head";
  if (!tensor.isFloat() || !cos.isFloat() || cos.element != sin.element ||
      (cos.element.isF64() && !tensor.element.isF64()))
    return node.emitError() << "expected floats of one type";
  Size tokens = tensor.shape[isHeadMajor ? 2 : 1];
  for (auto [size, wanted] :
       {std::pair(cos.shape[1], tokens), std::pair(sin.shape[1], cos.shape[1]),
        std::pair(sin.shape[0], cos.shape[0]),
        std::pair(sin.shape[2], cos.shape[2])})
    if (!requireEqual(node, size, wanted))
      return node.emitError() << "the sizes of the tables do not agree with "
                                 "those of the input";
  SmallVector<int64_t> dims{0, isHeadMajor ? 2 : 1};
  Tensor tables[] = {cos, sin};
  // One table for all sequences.
  bool isShared = cos.shape[0].isConstant(1) && !tensor.shape[0].isConstant(1);
  if (!isShared && !requireEqual(node, cos.shape[0], tensor.shape[0]))
    return node.emitError() << "the sizes of the tables do not agree with "
                               "those of the input";
  if (isShared) {
    dims.erase(dims.begin());
    for (Tensor &table : tables) {
      Size shape[] = {table.shape[1], table.shape[2]};
      if (failed(assign(table, reshape(node, table, shape))))
        return failure();
    }
  }
  Value init = createEmpty(node, tensor.shape, tensor.element);
  Value cosValue = node.getValue(tables[0]),
        sinValue = node.getValue(tables[1]);
  // Tables of equal sizes have equal types.
  if (cosValue.getType() != sinValue.getType())
    sinValue = tensor::CastOp::create(node, cosValue.getType(), sinValue);
  Value result =
      RotateOp::create(node, init.getType(), node.getValue(tensor), cosValue,
                       sinValue, init,
                       isInterleaved ? Pairing::Interleaved : Pairing::Half,
                       dims, /*offset=*/0)
          .getResult(0);
  return createTensor(node, result, tensor.shape);
}

/// Returns the rows of a table (positions, pairs) at `positions` of (batch,
/// tokens), or at consecutive ones from a single position.
static FailureOr<Tensor> gatherTable(NodeImporter &node, Tensor &table,
                                     Tensor &positions, const Size &tokens) {
  if (table.getRank() != 2)
    return node.emitError()
           << "with positions, tables need rank 2, found " << table.getRank();
  if (!isa<IntegerType>(positions.element) || positions.isBool())
    return node.emitError() << "expected integer positions";
  if (positions.getRank() == 2)
    return gather(node, table, positions, 0, NegativeIndex::Fails);
  if (positions.getRank() != 1 || !positions.shape[0].isConstant(1))
    return node.emitError() << "expected positions of rank 2, or one offset";
  Tensor rows =
      mapElementsTo(node, &positions, {Size(1), tokens}, positions.element,
                    [&](Scalars &s, ValueRange args) -> Value {
                      Value index = linalg::IndexOp::create(s, 1);
                      return arith::AddIOp::create(
                          s, args[0], s.convert(index, positions.element));
                    });
  return gather(node, table, rows, 0, NegativeIndex::Fails);
}

/// RotaryEmbedding of both domains.
static LogicalResult importRotary(NodeImporter &node) {
  bool isMicrosoft = !node.node.domain.empty();
  Tensor input = node.getInput(0);
  Tensor &cos = node.getInput(isMicrosoft ? 2 : 1);
  Tensor &sin = node.getInput(isMicrosoft ? 3 : 2);
  Tensor *positions = nullptr;
  unsigned number = isMicrosoft ? 1 : 3;
  if (node.hasInput(number))
    positions = &node.getInput(number);
  bool isInterleaved = node.getInt("interleaved", 0);
  int64_t rotaryDim = node.getInt("rotary_embedding_dim", 0);
  int64_t numHeads = node.getInt("num_heads", 0);
  if (isMicrosoft && node.getInt("is_packed_batching", 0))
    return node.emitError() << "packed batches are not supported";
  if (isMicrosoft && node.getFloat("scale", 1) != 1)
    return node.emitError() << "attribute 'scale' is not supported";
  bool isFlat = input.getRank() == 3;
  if (!isFlat && input.getRank() != 4)
    return node.emitError()
           << "expected rank 3 or 4, found " << input.getRank();
  if (cos.getRank() < 2 || cos.getRank() != sin.getRank())
    return node.emitError() << "expected tables of rank 2 or 3";
  if (isFlat) {
    std::optional<int64_t> width = input.shape[2].getConstant(),
                           pairs = cos.shape.back().getConstant();
    // The head is as wide as the window if the number of heads is not given.
    if (numHeads == 0 && isMicrosoft && width && pairs && *pairs > 0)
      numHeads = *width / (2 * *pairs);
    if (numHeads == 0)
      return node.emitError() << "without 'num_heads', the sizes of the last "
                                 "dimension and of the tables must be constant";
    if (failed(assign(input, splitHeads(node, input, numHeads))))
      return failure();
  }
  std::optional<int64_t> pairs = cos.shape.back().getConstant();
  if (rotaryDim != 0 && pairs && *pairs * 2 != rotaryDim)
    return node.emitError() << "'rotary_embedding_dim' is " << rotaryDim
                            << ", but the tables have " << *pairs << " pairs";
  if (!isMicrosoft && rotaryDim == 0 && pairs &&
      !requireEqual(node, input.shape[3], 2 * *pairs))
    return node.emitError() << "the tables have " << *pairs
                            << " pairs, which is not half of the head";
  Size tokens = input.shape[isFlat ? 1 : 2];
  FailureOr<Tensor> tables[] = {cos, sin};
  if (positions)
    for (FailureOr<Tensor> &table : tables) {
      Tensor whole = *table;
      table = gatherTable(node, whole, *positions, tokens);
      if (failed(table))
        return failure();
    }
  if (tables[0]->getRank() != 3)
    return node.emitError() << "without positions, tables need rank 3, found "
                            << tables[0]->getRank();
  FailureOr<Tensor> result = rotate(node, input, /*isHeadMajor=*/!isFlat,
                                    *tables[0], *tables[1], isInterleaved);
  if (succeeded(result) && isFlat)
    result = mergeHeads(node, *result);
  return node.setResult(std::move(result));
}

void onnx::addRotaryOperators(OperatorTable &table) {
  table["RotaryEmbedding"] = {3, 4, 1, importRotary};
  table["com.microsoft/RotaryEmbedding"] = {4, 4, 1, importRotary};
  setFirstOpsets(table, {{"RotaryEmbedding", 23}});
}
