//===- VectorizableAttention.h - attention ops for CPU kernels --*- C++ -*-===//
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

/// Returns the reason why convert-posenc-attention-to-vector does not support
/// an attention op on tensors or memrefs, or nullopt if it does. Unsupported
/// ops are decomposed to linalg instead.
std::optional<std::string> getVectorUnsupportedReason(AttentionOp op);

} // namespace mlir::posenc

#endif // POSENC_TRANSFORMS_VECTORIZABLEATTENTION_H
