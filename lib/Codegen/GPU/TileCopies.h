//===- TileCopies.h - bulk copies of tiles of attention ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels for sm_90a copy tiles of keys and values by tensor maps (TMA). A copy
// moves a column of 64 channels, and swizzles units of 16 bytes: unit c of row
// r is at c ^ (r mod 8).
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_TILECOPIES_H
#define POSENC_LIB_CODEGEN_GPU_TILECOPIES_H

#include "AttentionNestParts.h"
#include "TileReader.h"

namespace mlir::posenc {

/// Channels of 16 bits of a copied column.
inline constexpr int64_t kColumnChannels = 64;

/// Whether the loops' keys and values are slices of the queries' type, which
/// bulk copies can read.
bool canCopyTiles(const AttentionNestParts &nest);

/// Passes a map of the tensor of which `tile` is a slice to the kernel, for
/// columns of `rows` rows. Returns its address.
Value addTensorMap(OpBuilder &host, GpuKernel &kernel, ThreadBuilder &b,
                   Value tile, int64_t rows);

/// Returns the coordinates of a tile, i32, innermost first. The scalars that it
/// depends on must have been cloned.
SmallVector<Value> getTileCoordinates(TileReader &reader, ThreadBuilder &b,
                                      Value tile);

/// Returns the rows of the tensor that `tile` is a part of, an index of the host.
Value getNumRows(OpBuilder &host, Location loc, Value tile);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_TILECOPIES_H
