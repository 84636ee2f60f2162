//===- PosencEnums.td - enumerations -----------------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_POSENCENUMS_TD
#define POSENC_IR_POSENCENUMS_TD

include "mlir/IR/EnumAttr.td"
include "posenc/IR/PosencDialect.td"

class Posenc_Enum<string name, string summary, list<I32EnumCase> cases>
    : I32Enum<name, summary, cases> {
  let cppNamespace = "::mlir::posenc";
}

def Posenc_Pairing : Posenc_Enum<"Pairing", "which lanes of the window pair up", [
  I32EnumCase<"Half", 0, "half">,
  I32EnumCase<"Interleaved", 1, "interleaved">
]>;
def Posenc_PairingAttr : EnumAttr<PosencDialect, Posenc_Pairing, "pairing">;

def Posenc_Precision : Posenc_Enum<"Precision", "how angles are computed", [
  I32EnumCase<"Exact", 0, "exact">,
  I32EnumCase<"HfF32", 1, "hf_f32">
]>;

def Posenc_TableOrder : Posenc_Enum<"TableOrder",
    "the order of sines and cosines in a sinusoidal row", [
  I32EnumCase<"Interleaved", 0, "interleaved">,
  I32EnumCase<"SinCos", 1, "sin_cos">,
  I32EnumCase<"CosSin", 2, "cos_sin">
]>;
def Posenc_TableOrderAttr : EnumAttr<PosencDialect, Posenc_TableOrder, "order">;

def Posenc_AxisLayout : Posenc_Enum<"AxisLayout",
    "how several position axes share the pairs", [
  I32EnumCase<"Contiguous", 0, "contiguous">,
  I32EnumCase<"Interleaved", 1, "interleaved">,
  I32EnumCase<"Axial", 2, "axial">
]>;

#endif // POSENC_IR_POSENCENUMS_TD
