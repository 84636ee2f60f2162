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

/// Parses `outs(%a, %b : type, type)`. There is one result per tensor.
ParseResult parseDestinations(OpAsmParser &parser, UnresolvedOperands &inits,
                              SmallVectorImpl<Type> &initTypes,
                              SmallVectorImpl<Type> &resultTypes);
void printDestinations(OpAsmPrinter &printer, Operation *op, OperandRange inits,
                       TypeRange initTypes, TypeRange resultTypes);

/// Parses `sums(%c : type)`. There is a result unless the sums are a memref.
ParseResult parseTileSums(OpAsmParser &parser,
                          OpAsmParser::UnresolvedOperand &sums, Type &sumsType,
                          Type &resultType);
void printTileSums(OpAsmPrinter &printer, Operation *op, Value sums,
                   Type sumsType, Type resultType);

/// `floats`, `bf16_pairs` or `f16_pairs`.
ParseResult parseProductElements(OpAsmParser &parser,
                                 ProductElementsAttr &elements);
void printProductElements(OpAsmPrinter &printer, Operation *op,
                          ProductElementsAttr elements);

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

/// Parse optional attributes in a shorter form than ODS does: a rotation
/// without its prefix, a real without a fraction, and an integer without a
/// type.
ParseResult parseRotation(OpAsmParser &parser, RotationAttr &rotation);
void printRotation(OpAsmPrinter &printer, Operation *op, RotationAttr rotation);
ParseResult parseReal(OpAsmParser &parser, FloatAttr &value);
void printReal(OpAsmPrinter &printer, Operation *op, FloatAttr value);
ParseResult parseInteger(OpAsmParser &parser, IntegerAttr &value);
void printInteger(OpAsmPrinter &printer, Operation *op, IntegerAttr value);

/// Parses one type for both tables, or two types if they differ. Memrefs with
/// different layouts have different types.
ParseResult parseTableTypes(OpAsmParser &parser, Type &cos, Type &sin);
void printTableTypes(OpAsmPrinter &printer, Operation *op, Type cos, Type sin);

/// Parses `score(%s, %b, %h, %i, %j) {...} where(%b, %h, %i, %j) {...}`; both
/// are optional. The type of the queries determines those of the arguments.
ParseResult parseScoreRegions(OpAsmParser &parser, Region &score, Region &where,
                              Type query);
void printScoreRegions(OpAsmPrinter &printer, Operation *op, Region &score,
                       Region &where, Type query);

} // namespace mlir::posenc

#endif // POSENC_LIB_IR_OPSYNTAX_H
