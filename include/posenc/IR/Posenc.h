//===- Posenc.h - the posenc dialect ----------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialect, its attributes, interfaces and operations. The language
// reference is dialect/README.md.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_POSENC_H
#define POSENC_IR_POSENC_H

#include "posenc/Support/BigFloat.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

#include "posenc/IR/PosencAttrInterfaces.h.inc"
#include "posenc/IR/PosencDialect.h.inc"
#include "posenc/IR/PosencEnums.h.inc"
#include "posenc/IR/PosencOpInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "posenc/IR/PosencAttrs.h.inc"

#include "posenc/IR/PositionalOp.h"

#define GET_OP_CLASSES
#include "posenc/IR/PosencOps.h.inc"

namespace mlir::posenc {

/// Registers BufferizableOpInterface for the operations of the dialect.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace mlir::posenc

#endif // POSENC_IR_POSENC_H
