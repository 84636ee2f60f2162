//===- TextDepth.h - how deep MLIR text nests -------------------*- C++ -*-===//
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

/// Both 1-based; the column counts bytes.
struct TextPosition {
  unsigned line, column;
};

/// The first place of MLIR text where brackets, or runs of prefix and infix
/// operators, nest deeper than `limit`. The parser recurses on both.
std::optional<TextPosition> findTooDeep(llvm::StringRef text, unsigned limit);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_TEXTDEPTH_H
