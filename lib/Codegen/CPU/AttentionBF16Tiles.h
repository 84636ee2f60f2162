//===- AttentionBF16Tiles.h - bf16 attention with AMX -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The buffers of AttentionBF16Dots.h have the layouts of tiles already:
//
//   scores    a row is a key, a column a query: keys times queries;
//   output    a row is a channel, a column a query: values, transposed to a row
//             for each channel, times weights.
//
// Masks, softmax and rescaling read and write the buffers as they do without
// AMX.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ATTENTIONBF16TILES_H
#define POSENC_LIB_CODEGEN_CPU_ATTENTIONBF16TILES_H

#include "AMXProducts.h"
#include "AttentionCode.h"

namespace mlir::posenc {

/// Columns of values whose weighted sums are in registers at the same time.
constexpr int64_t kColumnsOfTiles = 2 * kTileRows;

/// Computes the scores of a register tile of queries and the rows of keys from
/// `block.firstRow` to at least `block.endRow`, in `code.scores`.
void emitTileScores(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                    const AttentionBlock &block);

/// Transposes the words of `count` values to `code.valueTiles`, and fills the
/// words of absent values up to a multiple of `tiles.getRowStep()` with 0.
void emitValueTiles(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                    Value count);

/// Returns the maximum that weights refer to: `before`, the one of earlier
/// keys, unless `maximum` exceeds it by more than 8. Then most tiles of keys
/// need no rescaling of the accumulators, and weights are at most 2^8.
Value delayMax(ImplicitLocOpBuilder &builder, Value before, Value maximum);

/// Multiplies the accumulators of a register tile of queries by `factors`, one
/// for each vector, and adds the weighted values of all columns.
void emitWeightedTiles(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                       const AttentionBlock &block, ValueRange factors);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ATTENTIONBF16TILES_H
