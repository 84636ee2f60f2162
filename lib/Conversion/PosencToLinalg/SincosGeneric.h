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

/// Emits a linalg.generic over (position loops..., pair). Its results are
/// `att*cos(p*f)`, written to `cosInit`, and `att*sin(p*f)`, written to
/// `sinInit`; `att` is the attention factor. `positions`, `turns` (which may be
/// empty) and `axes` (which may be null) are as in a `posenc.sincos` with these
/// destinations. At a position
/// equal to `paddingPosition`, both results are 0.
linalg::GenericOp
createSincosGeneric(OpBuilder &builder, Location loc,
                    FrequenciesAttr frequencies, AxesAttr axes, Value positions,
                    ValueRange turns, Value cosInit, Value sinInit,
                    std::optional<int64_t> paddingPosition = std::nullopt);

/// Whether a tensor has a static size of 0; slices of it would be invalid.
bool isEmptyTensor(Value tensor);

} // namespace mlir::posenc

#endif // POSENC_LIB_CONVERSION_POSENCTOLINALG_SINCOSGENERIC_H
