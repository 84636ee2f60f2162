//===- InputText.h - parser of --input values -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_RUN_INPUTTEXT_H
#define POSENC_TOOLS_RUN_INPUTTEXT_H

#include "posenc/runtime/types.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// A parsed value of `--input`.
struct InputText {
  enum class Kind { File, Random, Iota, Value };
  Kind kind = Kind::Value;
  std::string path;
  /// The element type; POSENC_DTYPE_INVALID for a number without a type.
  posenc_dtype dtype = POSENC_DTYPE_INVALID;
  std::vector<int64_t> shape;
  std::optional<uint64_t> seed;
  /// The text of a number, which is parsed when the argument's type is known.
  std::string value;
};

/// Parses a value of `--input`; see createInputs() for the syntax.
llvm::Expected<InputText> parseInputText(llvm::StringRef text);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_RUN_INPUTTEXT_H
