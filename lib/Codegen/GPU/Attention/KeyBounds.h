//===- KeyBounds.h - bounds of elements by tile of keys ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A region `where` may read elements that depend on the sequence and the key
// alone, such as the document of a key. All blocks need their minimum and
// maximum in each tile of keys, which a kernel computes once for a call.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ATTENTION_KEYBOUNDS_H
#define POSENC_LIB_CODEGEN_GPU_ATTENTION_KEYBOUNDS_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// Allocates tables of the bounds for an attention on memrefs, with space for
/// tiles of at least 8 keys. Returns them as `AttentionNestOptions::keyBounds`
/// has them, but as memrefs; empty if no element has bounds, or if sequences
/// may have fewer keys than there is space for.
SmallVector<Value> allocateKeyBounds(OpBuilder &host, AttentionOp op);

/// Emits the kernel that computes the tables of tiles of `keys` keys, and its
/// launch at `host`.
void emitKeyBounds(OpBuilder &host, AttentionOp op, ArrayRef<Value> tables,
                   int64_t keys);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_KEYBOUNDS_H
