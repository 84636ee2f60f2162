//===- Interpreter.h - reference evaluation of functions --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates a module op by op with the reference implementation
// (posenc/Reference), the oracle, and bounds the error that a compiled kernel
// may have. Uses none of the compiler's lowerings.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_INTERPRETER_INTERPRETER_H
#define POSENC_INTERPRETER_INTERPRETER_H

#include "posenc/Reference/Tensor.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <optional>
#include <vector>

namespace mlir::posenc {

/// A tensor, or a scalar as a tensor of rank 0. Values of type index are i64.
struct ReferenceValue {
  ::posenc::reference::DType type = ::posenc::reference::DType::F32;
  ::posenc::reference::Array array;
  /// False for a destination, which has a shape but no elements.
  bool initialized = true;
  /// The allowed error of a kernel's element: `limitUlp` units in the last
  /// place of its magnitude plus `absoluteSlack`. Both are 0 for values that
  /// are passed on unchanged.
  double limitUlp = 0;
  double absoluteSlack = 0;
  /// Whether this is the result of a structured operation. Its magnitudes only
  /// encode the error of each element.
  bool isStructured = false;
  /// Whether this is the result of an attention. Its magnitudes are the sums
  /// p|v|, and getAttentionLimit() gives its limits. `largest` has for each
  /// element the largest |v| of its head.
  bool isAttention = false;
  std::vector<double> largest;
};

/// Returns the element type of the oracle, or nullopt if it is not supported.
std::optional<::posenc::reference::DType> getReferenceType(Type elementType);

/// Evaluates a function with a single block. Operands of operations are rounded
/// to their type; the results of the function are not. Elements that are passed
/// on unchanged have a negative magnitude. Returns failure after a diagnostic.
FailureOr<std::vector<ReferenceValue>>
interpret(FunctionOpInterface function, std::vector<ReferenceValue> arguments);

} // namespace mlir::posenc

#endif // POSENC_INTERPRETER_INTERPRETER_H
