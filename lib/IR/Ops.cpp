//===- Ops.cpp - generated definitions of the operations ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpSyntax.h"

using namespace mlir;
using namespace mlir::posenc;

#define GET_OP_CLASSES
#include "posenc/IR/PosencOps.cpp.inc"
