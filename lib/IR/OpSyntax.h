//===- OpSyntax.h - custom directives of the assembly formats ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IR_OPSYNTAX_H
#define POSENC_LIB_IR_OPSYNTAX_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

using UnresolvedOperands = SmallVectorImpl<OpAsmParser::UnresolvedOperand>;

/// `outs(%a, %b : type, type)`; there is a result for each tensor.
ParseResult parseDestinations(OpAsmParser &parser, UnresolvedOperands &inits,
                              SmallVectorImpl<Type> &initTypes,
                              SmallVectorImpl<Type> &resultTypes);
void printDestinations(OpAsmPrinter &printer, Operation *op, OperandRange inits,
                       TypeRange initTypes, TypeRange resultTypes);

/// `half` or `interleaved`.
ParseResult parsePairing(OpAsmParser &parser, PairingAttr &pairing);
void printPairing(OpAsmPrinter &printer, Operation *op, PairingAttr pairing);

/// `interleaved`, `sin_cos` or `cos_sin`.
ParseResult parseTableOrder(OpAsmParser &parser, TableOrderAttr &order);
void printTableOrder(OpAsmPrinter &printer, Operation *op,
                     TableOrderAttr order);

/// `token_major` or `head_major`.
ParseResult parseHeadLayout(OpAsmParser &parser, HeadLayoutAttr &layout);
void printHeadLayout(OpAsmPrinter &printer, Operation *op,
                     HeadLayoutAttr layout);

/// A rotation without its prefix, a real that may lack a fraction, an integer:
/// ODS reads optional attributes less well.
ParseResult parseRotation(OpAsmParser &parser, RotationAttr &rotation);
void printRotation(OpAsmPrinter &printer, Operation *op, RotationAttr rotation);
ParseResult parseReal(OpAsmParser &parser, FloatAttr &value);
void printReal(OpAsmPrinter &printer, Operation *op, FloatAttr value);
ParseResult parseInteger(OpAsmParser &parser, IntegerAttr &value);
void printInteger(OpAsmPrinter &printer, Operation *op, IntegerAttr value);

/// One type for both tables, or both types where they differ, as memrefs of
/// different layouts do.
ParseResult parseTableTypes(OpAsmParser &parser, Type &cos, Type &sin);
void printTableTypes(OpAsmPrinter &printer, Operation *op, Type cos, Type sin);

/// `score(%s, %b, %h, %i, %j) {...} where(%b, %h, %i, %j) {...}`, each
/// optional. The types of the arguments follow from that of the queries.
ParseResult parseScoreRegions(OpAsmParser &parser, Region &score, Region &where,
                              Type query);
void printScoreRegions(OpAsmPrinter &printer, Operation *op, Region &score,
                       Region &where, Type query);

} // namespace mlir::posenc

#endif // POSENC_LIB_IR_OPSYNTAX_H
