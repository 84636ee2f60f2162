//===- InputText.h - the text of one --input --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_RUN_INPUTTEXT_H
#define POSENC_LIB_DRIVER_RUN_INPUTTEXT_H

#include "posenc/runtime/types.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// What `--input` asks for.
struct InputText {
  enum class Kind { File, Random, Iota, Value };
  Kind kind = Kind::Value;
  std::string path;
  /// POSENC_DTYPE_INVALID for a number without a type.
  posenc_dtype dtype = POSENC_DTYPE_INVALID;
  std::vector<int64_t> shape;
  std::optional<uint64_t> seed;
  /// As written: what it means depends on the type.
  std::string value;
};

llvm::Expected<InputText> parseInputText(llvm::StringRef text);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_RUN_INPUTTEXT_H
