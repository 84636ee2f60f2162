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

/// One type for both tables, or both types where they differ, as memrefs of
/// different layouts do.
ParseResult parseTableTypes(OpAsmParser &parser, Type &cos, Type &sin);
void printTableTypes(OpAsmPrinter &printer, Operation *op, Type cos, Type sin);

} // namespace mlir::posenc

#endif // POSENC_LIB_IR_OPSYNTAX_H
