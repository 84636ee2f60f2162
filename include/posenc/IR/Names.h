//===- Names.h - names in the C interface -----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_NAMES_H
#define POSENC_IR_NAMES_H

#include "llvm/ADT/StringRef.h"

namespace mlir::posenc {

/// Whether a parameter may have this name in C and in C++.
bool isArgumentName(llvm::StringRef name);

} // namespace mlir::posenc

#endif // POSENC_IR_NAMES_H
