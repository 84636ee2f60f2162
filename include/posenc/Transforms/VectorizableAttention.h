//===- VectorizableAttention.h - what the CPU kernels handle ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TRANSFORMS_VECTORIZABLEATTENTION_H
#define POSENC_TRANSFORMS_VECTORIZABLEATTENTION_H

#include "posenc/IR/Posenc.h"

#include <optional>
#include <string>

namespace mlir::posenc {

/// Why convert-posenc-attention-to-vector does not convert an attention, on
/// tensors or on memrefs, which then is decomposed to linalg; nothing if it
/// converts it.
std::optional<std::string> getVectorUnsupportedReason(AttentionOp op);

} // namespace mlir::posenc

#endif // POSENC_TRANSFORMS_VECTORIZABLEATTENTION_H
