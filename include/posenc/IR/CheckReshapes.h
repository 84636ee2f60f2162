//===- CheckReshapes.h - dimensions of reshapes -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_CHECKRESHAPES_H
#define POSENC_IR_CHECKRESHAPES_H

#include "mlir/IR/Operation.h"

namespace mlir::posenc {

/// Checks that `tensor.collapse_shape` and `tensor.expand_shape` in `root`, or
/// `root` itself, group dimensions that exist; emits an error if not. The
/// verifiers of these operations take the numbers modulo 2^32.
LogicalResult checkReshapes(Operation *root);

} // namespace mlir::posenc

#endif // POSENC_IR_CHECKRESHAPES_H
