//===- MaskBounds.h - tiles that a mask_mod region masks --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interval analysis of the region `where` of attention. For a tile of queries
// and keys, scalar code bounds each value of the region over all pairs of the
// tile. If the region is false for all of them, the tile is skipped, and if it
// is true for all of them, it need not be evaluated: these are the empty and
// the full blocks of FlexAttention's block masks, found while the kernel runs.
//
// Elements of tensors that are indexed by a query or by a key are bounded by
// their minimum and maximum in the tile, which the code loads: the documents of
// `document[i] == document[j]` need not be sorted, but few tiles are empty if
// they are not.
// Elements that are indexed by both are bounded if there is one for a block of
// queries and keys, as in a table of blocks.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TRANSFORMS_MASKBOUNDS_H
#define POSENC_TRANSFORMS_MASKBOUNDS_H

#include "posenc/IR/Posenc.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <memory>

namespace mlir::posenc {

/// A tile of pairs of queries and keys of one sequence: inclusive ranges of
/// query heads, query positions and keys, as `index`. No range is empty.
struct PairTile {
  Value batch;
  Value firstHead, lastHead;
  Value firstQuery, lastQuery;
  Value firstKey, lastKey;
};

/// Tells for which pairs of a tile a region is true.
struct TileMask {
  /// i1: whether the region may be true for any pair. Null if it may in every
  /// tile.
  Value isAny;
  /// i1: whether the region is known to be true for all pairs. Null if it is
  /// not known in any tile.
  Value isAll;

  explicit operator bool() const { return isAny || isAll; }
};

/// Emits bounds of a region `where`.
class MaskBounds {
public:
  /// `where` is the region of an attention op, or empty. Unless
  /// `readsElements`, the code loads no elements of tensors to bound them.
  explicit MaskBounds(Region &where, bool readsElements = true);
  ~MaskBounds();

  /// Emits the bounds of a tile.
  TileMask emit(ImplicitLocOpBuilder &builder, const PairTile &tile);
  /// Emits the bounds of a part of the tile of the last call of `emit`, whose
  /// code dominates this code: the same keys, and some of the heads and
  /// queries.
  TileMask emitPart(ImplicitLocOpBuilder &builder, const PairTile &part);

  /// The bounds of the elements that an operation of the region loads, by its
  /// number in the region: of their own type; of an i1, whether any and whether
  /// all are true.
  struct Elements {
    unsigned number;
    Value low, high;
  };
  /// Emits the bounds of elements that depend on the sequence and the key
  /// alone, and differ from key to key, for an inclusive range of keys.
  SmallVector<Elements> emitElements(ImplicitLocOpBuilder &builder, Value batch,
                                     Value firstKey, Value lastKey);
  /// Reads these from tensors (sequence, tile of `keys` keys, bound) from here
  /// on. A tensor is null for operations without such elements, and has i8 in
  /// place of i1. Tiles begin at multiples of `keys`.
  void setTables(ArrayRef<Value> newTables, int64_t keys) {
    tables = llvm::to_vector(newTables);
    keysOfTile = keys;
  }

  /// Returns the first operation of the region that bounds nothing, or null.
  Operation *getUnknownOperation() const;

private:
  class Emitter;

  Region &where;
  bool readsElements;
  SmallVector<Value> tables;
  int64_t keysOfTile = 0;
  std::unique_ptr<Emitter> last;
};

/// Reports how a pass handles the tiles of a region `where`, if there is one.
void reportMaskBounds(Operation *op, StringRef pass, const MaskBounds &bounds,
                      const TileMask &mask);

} // namespace mlir::posenc

#endif // POSENC_TRANSFORMS_MASKBOUNDS_H
