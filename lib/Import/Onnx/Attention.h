//===- Attention.h - emission of rotations and attention --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IMPORT_ONNX_ATTENTION_H
#define POSENC_LIB_IMPORT_ONNX_ATTENTION_H

#include "Ops.h"

namespace mlir::posenc::onnx {

/// Attention of 4-dimensional queries, keys and values.
struct AttentionParts {
  Tensor query, key, value;
  /// Whether heads precede tokens.
  bool headMajorQueries = false, headMajorKeys = false;
  std::optional<double> scale;
  /// 0 for none.
  double softCap = 0;
  /// The mask, bool or float; null for none.
  Tensor *mask = nullptr;
  /// Whether the mask may have fewer columns than there are keys. If not, a
  /// dynamic number of columns is assumed to be that of the keys, which entry
  /// points check.
  bool mayPadMask = false;
  /// Number of valid keys of each sequence; null for all.
  Tensor *lengths = nullptr;
  /// One logit for each head; null for none.
  Tensor *sinks = nullptr;
  bool isCausal = false;
  /// Keys at most this far before a query are visible; nullopt for all.
  std::optional<int64_t> window, windowRight;
  /// Position of the first query among the keys. Without it, queries are
  /// aligned to the end of the keys.
  std::optional<Size> firstPosition;
  /// A tensor with what is added to the position of the queries of each
  /// sequence, which are otherwise aligned to the end of the keys; or null.
  Tensor *shift = nullptr;
};

/// Whether a node has past keys and values, which are inputs `past` and
/// `past + 1`. Fails if one of them is missing or not of rank 4.
FailureOr<bool> hasPast(NodeImporter &node, unsigned past);

/// Returns a cache with heads of that size, for which the model may have a
/// name: posenc operations need a constant.
FailureOr<Tensor> setHeadSize(NodeImporter &node, Tensor &cache,
                              const Size &width);
/// Appends the keys and values to those of inputs `past` and `past + 1`, if
/// these exist, and sets outputs 1 and 2 to the result. Such keys and values
/// have heads before tokens.
LogicalResult appendToPast(NodeImporter &node, AttentionParts &parts,
                           unsigned past);
/// Emits posenc.attention, and sets output 0 to the result, which has the
/// layout of the queries; its rank is 3 if `mergesHeads`.
LogicalResult finishAttention(NodeImporter &node, AttentionParts &parts,
                              bool mergesHeads);

/// Returns a part of the last dimension.
Tensor takeColumns(NodeImporter &node, Tensor &tensor, const Size &first,
                   const Size &count);
/// Splits the last dimension of (batch, tokens, heads * dim).
FailureOr<Tensor> splitHeads(NodeImporter &node, Tensor &tensor,
                             int64_t numHeads);
/// Merges the last two dimensions.
FailureOr<Tensor> mergeHeads(NodeImporter &node, Tensor &tensor);

/// Rotates a tensor of rank 4 by tables of shape (batch, tokens, pairs), of
/// which the batch may be 1.
FailureOr<Tensor> rotate(NodeImporter &node, Tensor &tensor, bool isHeadMajor,
                         Tensor &cos, Tensor &sin, bool isInterleaved);

} // namespace mlir::posenc::onnx

#endif // POSENC_LIB_IMPORT_ONNX_ATTENTION_H
