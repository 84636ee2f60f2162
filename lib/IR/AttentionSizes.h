//===- AttentionSizes.h - size symbols of posenc.attention ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IR_ATTENTIONSIZES_H
#define POSENC_LIB_IR_ATTENTIONSIZES_H

#include <cstdint>

namespace mlir::posenc::attention {

/// Symbols of the sizes of operands. Dimensions with the same symbol must be
/// equal; see `AttentionOp::getDimSymbols`.
enum Size : int64_t {
  Own = -1,
  Batch,
  Queries,
  Keys,
  QueryHeads,
  KeyHeads,
  Dim,
  ValueDim,
  Pages,
  PageSlots,
  Boundaries
};

} // namespace mlir::posenc::attention

#endif // POSENC_LIB_IR_ATTENTIONSIZES_H
