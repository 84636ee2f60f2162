//===- RoundedFrequencies.h - frequencies in f32 ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IR_ROUNDEDFREQUENCIES_H
#define POSENC_LIB_IR_ROUNDEDFREQUENCIES_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// Whether the frequencies of a scaling, which may be null, have a recipe in
/// f32.
bool canRoundFrequencies(Attribute scaling);

/// Returns the `dim / 2` frequencies as `transformers` (5.23,
/// modeling_rope_utils) computes them: in f32, in its order of operations. Each
/// operation is correctly rounded. Requires `canRoundFrequencies`.
SmallVector<::posenc::BigFloat>
computeRoundedFrequencies(Attribute scaling, int64_t dim, double base);

} // namespace mlir::posenc

#endif // POSENC_LIB_IR_ROUNDEDFREQUENCIES_H
