//===- InputText.cpp - parser of --input values ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InputText.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir::posenc;
using llvm::StringRef;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

/// Parses a type like `1x32xbf16`, or `f32` for a scalar.
static llvm::Error parseType(StringRef text, InputText &input) {
  StringRef rest = text;
  while (!rest.empty() && !llvm::isAlpha(rest.front())) {
    size_t end = rest.find('x');
    int64_t size;
    if (end == StringRef::npos || rest.take_front(end).getAsInteger(10, size))
      return makeError("expected a size, got '" +
                       rest.take_front(std::min<size_t>(end, 24)) + "'");
    if (size < 0)
      return makeError("the size " + llvm::Twine(size) + " is negative");
    input.shape.push_back(size);
    if (input.shape.size() > POSENC_MAX_RANK)
      return makeError("the rank exceeds " + llvm::Twine(POSENC_MAX_RANK));
    rest = rest.drop_front(end + 1);
  }
  input.dtype = posenc_dtype_from_name(rest.str().c_str());
  if (input.dtype == POSENC_DTYPE_INVALID)
    return makeError("unknown element type '" + rest.take_front(24) + "'");
  return llvm::Error::success();
}

static llvm::Error parseFill(StringRef text, InputText &input) {
  if (text == "iota") {
    input.kind = InputText::Kind::Iota;
    return llvm::Error::success();
  }
  StringRef options = text;
  if (!options.consume_front("random")) {
    input.kind = InputText::Kind::Value;
    input.value = text.str();
    return llvm::Error::success();
  }
  input.kind = InputText::Kind::Random;
  if (options.empty())
    return llvm::Error::success();
  uint64_t seed;
  if (!options.consume_front(":seed=") || options.getAsInteger(10, seed))
    return makeError("expected random:seed=N, N a number from 0 to 2^64-1");
  input.seed = seed;
  return llvm::Error::success();
}

llvm::Expected<InputText> mlir::posenc::parseInputText(StringRef text) {
  InputText input;
  if (text.consume_front("@")) {
    input.kind = InputText::Kind::File;
    input.path = text.str();
    return input;
  }
  auto [type, fill] = text.split('=');
  if (type.size() == text.size()) {
    // createInputs() checks the range, which depends on the argument's type.
    StringRef digits = text;
    digits.consume_front("-");
    bool isInteger = !digits.empty() && llvm::all_of(digits, llvm::isDigit);
    double real;
    if (!isInteger && text.getAsDouble(real))
      return makeError(
          "expected @FILE.npy, SHAPExTYPE=random, =iota or =VALUE, or a "
          "number");
    input.value = text.str();
    return input;
  }
  if (llvm::Error error = parseType(type, input))
    return std::move(error);
  if (llvm::Error error = parseFill(fill, input))
    return std::move(error);
  return input;
}
