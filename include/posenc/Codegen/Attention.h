//===- Attention.h - what attention becomes vectors -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_ATTENTION_H
#define POSENC_CODEGEN_ATTENTION_H

#include "posenc/IR/Posenc.h"

#include <optional>
#include <string>

namespace mlir::posenc {

/// Why `convert-posenc-attention-to-vector` leaves an attention as it is, on
/// tensors or on memrefs; nothing if it converts it.
std::optional<std::string> getVectorObstacle(AttentionOp op);

} // namespace mlir::posenc

#endif // POSENC_CODEGEN_ATTENTION_H
