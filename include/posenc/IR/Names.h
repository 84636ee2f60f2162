//===- Names.h - names in the C interface -----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_NAMES_H
#define POSENC_IR_NAMES_H

#include "mlir/IR/BuiltinTypes.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace mlir::posenc {

/// The attribute of an argument or a result whose elements of type i8 are u8 in
/// the C signature.
inline constexpr llvm::StringLiteral kUnsignedAttrName = "posenc.unsigned";

/// Returns the type of such a value in the C signature, or null if it is not a
/// tensor of i8.
RankedTensorType getUnsignedType(Type type);

/// Whether a parameter may have this name in C and in C++: an identifier that
/// is no keyword, not the type of a parameter, and no macro of a standard
/// header.
bool isArgumentName(llvm::StringRef name);

/// Returns a name for a parameter, and adds it to the names that are taken: the
/// text with `_` instead of other characters than letters and digits, with `_`
/// at the end if the name is taken or not possible. A text that no name begins
/// with gets `kind`, such as "in", and `_` in front.
std::string createArgumentName(llvm::StringRef text, llvm::StringRef kind,
                               llvm::StringSet<> &taken);

} // namespace mlir::posenc

#endif // POSENC_IR_NAMES_H
