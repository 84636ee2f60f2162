//===- TextDepth.h - nesting depth of MLIR text -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_TEXTDEPTH_H
#define POSENC_LIB_DRIVER_TEXTDEPTH_H

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mlir::posenc {

/// A position in text. Line and column start at 1; the column counts bytes.
struct TextPosition {
  unsigned line, column;
};

/// Returns the first position in MLIR text where the number of open brackets
/// plus the operators of the current affine expression exceeds `limit`; nullopt
/// if it never does. MLIR's parser recurses on both.
std::optional<TextPosition> findTooDeep(llvm::StringRef text, unsigned limit);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_TEXTDEPTH_H
