//===- AttentionIndices.h - sequences and keys of attention -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The scalars of loops around attention, on tensors and on memrefs: the tokens
// and the keys of a sequence, the keys that a query sees by its position, and
// the page of a key. All values are of type `index`.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TRANSFORMS_ATTENTIONINDICES_H
#define POSENC_TRANSFORMS_ATTENTIONINDICES_H

#include "posenc/IR/Posenc.h"
#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <optional>
#include <utility>

namespace mlir::posenc {

/// Loads an integer or index from a tensor or memref and converts it to index.
Value loadIndex(OpBuilder &builder, Location loc, Value list,
                ValueRange indices);

//===----------------------------------------------------------------------===//
// Masks by position
//===----------------------------------------------------------------------===//

/// Inclusive ranges of query positions and keys.
struct PositionTile {
  Value firstQuery, lastQuery, firstKey, lastKey;
};

/// The keys that each query of a vector, or one query, sees by its position:
/// [begin, end), integers of one type. Null where there is no limit.
struct VisibleKeys {
  Value begin, end;
};
/// Emits, for each query, whether it sees `key`; null if nothing limits keys.
Value emitIsVisible(ElementwiseBuilder &b, Value key, const VisibleKeys &keys);

/// How many keys before and after its own position a query sees; nullopt where
/// there is no limit.
class PositionMask {
public:
  /// Windows of `maxWindow` keys and more, which exceed any sequence, have no
  /// limit. Thus sums of positions and windows do not overflow.
  template <typename AnyAttentionOp>
  explicit PositionMask(AnyAttentionOp op,
                        uint64_t maxWindow = uint64_t{1} << 40)
      : left(getWindow(op.getWindowLeft(), maxWindow)),
        right(op.getCausal() ? std::optional<int64_t>(0)
                             : getWindow(op.getWindowRight(), maxWindow)) {}

  std::optional<int64_t> getLeft() const { return left; }
  std::optional<int64_t> getRight() const { return right; }
  explicit operator bool() const { return left || right; }

  /// Emit the first key that a query at `position` sees, and the end of the
  /// keys that it sees (exclusive), of `numKeys`.
  Value emitFirstKey(ImplicitLocOpBuilder &builder, Value position) const;
  Value emitEndKey(ImplicitLocOpBuilder &builder, Value position,
                   Value numKeys) const;

  /// Emits an i1: whether any query of the tile sees any of its keys. Returns
  /// null without limits.
  Value emitIsAnyVisible(ImplicitLocOpBuilder &builder,
                         const PositionTile &tile) const;
  /// Emits an i1: whether any query of the tile does not see one of its keys.
  /// Returns null without limits.
  Value emitIsPartial(ImplicitLocOpBuilder &builder,
                      const PositionTile &tile) const;

  /// Emits the keys that queries see. `getKey` returns the keys at an offset
  /// from the queries' own positions; `end`, unless null, is the end of the
  /// keys.
  VisibleKeys emitVisibleKeys(ElementwiseBuilder &b,
                              function_ref<Value(int64_t offset)> getKey,
                              Value end) const;

private:
  static std::optional<int64_t> getWindow(std::optional<uint64_t> window,
                                          uint64_t max) {
    if (!window || *window >= max)
      return std::nullopt;
    return static_cast<int64_t>(*window);
  }

  std::optional<int64_t> left, right;
};

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

/// The queries and keys of one sequence.
struct AttentionSequence {
  /// The index of the sequence.
  Value batch;
  /// The first row in ragged queries and in ragged keys; null where these have
  /// a batch dimension.
  Value queryStart, keyStart;
  Value numQueries, numKeys;

  /// Emits the position of query number `query`.
  Value emitPosition(ImplicitLocOpBuilder &builder, AttentionOp op,
                     Value query) const;
};

/// Emits the sequence `batch` of an attention op. Tokens after the last
/// sequence of ragged queries count as one more sequence, which has no keys.
/// Lists and lengths are clamped to the tensors for any contents. `numQueries`
/// and `numKeys` are the sizes of the token dimensions; null sizes are emitted.
AttentionSequence emitSequence(ImplicitLocOpBuilder &builder, AttentionOp op,
                               Value batch, Value numQueries = nullptr,
                               Value numKeys = nullptr);

/// The same; in pages, the sizes of a mask and of the positions of keys bound
/// the number of keys, too. The loops of `createAttentionNest` have these
/// sequences.
AttentionSequence emitBoundedSequence(ImplicitLocOpBuilder &builder,
                                      AttentionOp op, Value batch,
                                      Value numQueries = nullptr,
                                      Value numKeys = nullptr);

/// A list `cu_seqlens` of the first rows of sequences in a ragged tensor of
/// `size` rows, and tiles of the tokens of each sequence. The tiles of all
/// sequences are numbered in order; a sequence may have one tile more than it
/// needs.
class RaggedTokens {
public:
  RaggedTokens(ImplicitLocOpBuilder &builder, Value starts, Value size);

  Value getNumSequences() const { return numSequences; }
  /// Returns the first row of a sequence.
  Value getStart(Value sequence);
  /// Returns the number of tokens of a sequence. `endOfLast` is the end of the
  /// additional sequence after the last one.
  Value getLength(Value sequence, Value endOfLast);
  /// Returns the number of the first tile, of `step` tokens, of a sequence.
  Value getFirstTile(Value sequence, Value step);
  Value getNumTiles(Value step);
  /// A sequence, and a tile of its tokens.
  struct Tile {
    Value sequence, number;
  };
  /// Emits a binary search for the sequence of a tile.
  Tile findTile(Value tile, Value step);

private:
  Value findSequence(Value tile, Value step);

  ImplicitLocOpBuilder &b;
  Value starts, size, numSequences;
};

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

/// Where a key of a paged cache is.
struct PagedKey {
  Value page, slot;
};

/// Finds a key of a sequence in pages of `numSlots` keys.
PagedKey emitPagedKey(ImplicitLocOpBuilder &builder, Value blockTable,
                      Value batch, Value key, Value numSlots);

} // namespace mlir::posenc

#endif // POSENC_TRANSFORMS_ATTENTIONINDICES_H
