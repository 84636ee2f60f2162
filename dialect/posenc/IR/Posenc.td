//===- Posenc.td - the whole dialect, for tablegen ---------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_POSENC_TD
#define POSENC_IR_POSENC_TD

include "posenc/IR/AttentionOps.td"
include "posenc/IR/BiasOps.td"
include "posenc/IR/ConvertPairingOp.td"
include "posenc/IR/KvAppendOp.td"
include "posenc/IR/RopeOps.td"
include "posenc/IR/SinusoidalOp.td"
include "posenc/IR/TileProductOp.td"
include "posenc/IR/TurnsOp.td"

#endif // POSENC_IR_POSENC_TD
