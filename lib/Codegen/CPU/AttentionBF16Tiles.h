//===- AttentionBF16Tiles.h - bf16 attention with AMX -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instruction tdpbf16ps multiplies a tile of 16 rows of 16 words, pairs of
// bf16, by a tile of 16 rows of words for 16 columns. The buffers of
// AttentionBF16Dots.h have these layouts already:
//
//   scores    a row is a key, a column a query: keys times queries;
//   output    a row is a channel, a column a query: values, transposed to a row
//             for each channel, times weights.
//
// Four tiles of sums, for 32 rows and 32 queries, are in registers, beside two
// tiles of one operand and one of the other. Masks, softmax and rescaling read
// and write the buffers as they do without AMX.
//
// For each result the instruction adds the products of the even elements of 16
// words, those of the odd elements, both sums, and then the accumulator. It
// rounds to nearest even whatever MXCSR says, and treats subnormal inputs and
// results as 0.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ATTENTIONBF16TILES_H
#define POSENC_LIB_CODEGEN_CPU_ATTENTIONBF16TILES_H

#include "AttentionCode.h"

namespace mlir::posenc {

/// Rows of a tile, and the 32-bit words or f32 numbers of a row.
constexpr int64_t kTileRows = 16;
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
