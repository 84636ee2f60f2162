//===- SincosGeneric.h - cos and sin of positions in linalg -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CONVERSION_POSENCTOLINALG_SINCOSGENERIC_H
#define POSENC_LIB_CONVERSION_POSENCTOLINALG_SINCOSGENERIC_H

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::posenc {

/// Emits a generic over (position loops..., pair) that writes
/// `att*cos(p*f)` to `cosInit` and `att*sin(p*f)` to `sinInit`, in this order.
/// `positions` and `axes` (which may be null) are those of a `posenc.sincos`
/// with these destinations.
linalg::GenericOp createSincosGeneric(OpBuilder &builder, Location loc,
                                      FrequenciesAttr frequencies,
                                      AxesAttr axes, Value positions,
                                      Value cosInit, Value sinInit);

/// Whether a tensor has no elements by its type: slices of it are not valid.
bool isEmptyTensor(Value tensor);

} // namespace mlir::posenc

#endif // POSENC_LIB_CONVERSION_POSENCTOLINALG_SINCOSGENERIC_H
