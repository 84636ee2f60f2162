//===- TileCopies.h - bulk copies of tiles of attention ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels for sm_90a copy tiles of keys and values by tensor maps (TMA). A copy
// moves a column of 64 channels of a tile, or of the part of it that is in one
// page, and swizzles units of 16 bytes: unit c of row r is at c ^ (r mod 8).
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ATTENTION_TILECOPIES_H
#define POSENC_LIB_CODEGEN_GPU_ATTENTION_TILECOPIES_H

#include "AttentionNestParts.h"
#include "GPU/Threads/TileReader.h"

#include "posenc/TargetInfo/GpuTiles.h"

namespace mlir::posenc {

/// Channels of 16 bits of a copied column.
inline constexpr int64_t kColumnChannels = 64;

/// Returns the maximum number of rows of a box that is in one page wherever it
/// begins: tiles of `keys` keys and pages of `pageSize` tokens consist of such
/// boxes. nullopt if they would be smaller than the unit of the swizzle. If the
/// size of pages is dynamic, returns that unit, of which boxes have one or
/// several.
std::optional<int64_t> getPageBoxRows(int64_t keys, int64_t pageSize);

/// Emits an i1 on the host: whether pages of a dynamic size consist of boxes,
/// and an index in a page has 32 bits.
Value havePagesBoxes(OpBuilder &host, Location loc, Value pageSize);

/// Whether the loops' keys and values are slices of the queries' type, or in
/// pages of that type, which bulk copies can read as tiles of `keys` keys.
bool canCopyTiles(const AttentionNestParts &nest, int64_t keys);

/// Whether a memref of values is that of the keys, or a view of the first
/// channels of all keys, as in multi-head latent attention (MLA).
bool areFirstChannels(Value values, Value keys);

/// Returns the sizes of the loops' tile. Few queries, whose loops have KV
/// splits, may have values that are in the keys.
GpuAttentionSizes getNestSizes(const AttentionNestParts &nest);

/// Returns the rows of a box of a tile of `keys` keys, or the fewest if the
/// size of pages is dynamic.
int64_t getBoxRows(Value tile, int64_t keys);

/// Whether the size of pages, and so the rows of a box, are dynamic.
bool hasDynamicBoxes(Value tile);

/// Returns the rows of a box, an index in the kernel: a constant, or an
/// argument if the size of pages is dynamic.
Value addBoxRows(OpBuilder &host, GpuKernel &kernel, Location loc, Value tile,
                 int64_t keys);

/// Whether a tile is in pages, and the number of coordinates of a box.
bool arePages(Value tile);
int64_t getNumCoordinates(Value tile);

/// Passes a map of the tensor that `tile` is a part of to the kernel, for boxes
/// of one column. Returns its address.
Value addTensorMap(OpBuilder &host, GpuKernel &kernel, ThreadBuilder &b,
                   Value tile, int64_t keys);

/// Returns the coordinates of a box of a tile, i32, innermost first. The box
/// begins at `row`, an index and a multiple of its rows; one without existing
/// keys is the first box of the tile. The scalars that it depends on must have
/// been cloned, and the tile must have keys.
SmallVector<Value> getBoxCoordinates(TileReader &reader, ThreadBuilder &b,
                                     Value tile, Value row);

/// Returns the rows of the tensor that `tile` is a part of, an index of the
/// host.
Value getNumSourceRows(OpBuilder &host, Location loc, Value tile);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_TILECOPIES_H
