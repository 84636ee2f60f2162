//===- Interpreter.h - runs a function on the oracle ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of a module, op by op, against which what it compiles to is
// measured. Nothing of the compiler's own lowering takes part.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_INTERPRETER_INTERPRETER_H
#define POSENC_INTERPRETER_INTERPRETER_H

#include "posenc/Reference/Tensor.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <optional>
#include <vector>

namespace mlir::posenc {

/// A tensor, or a scalar as a tensor of rank 0. Index is i64.
struct ReferenceValue {
  ::posenc::reference::DType type = ::posenc::reference::DType::F32;
  ::posenc::reference::Array array;
  /// False for a destination: it has a shape but no values yet.
  bool initialized = true;
  /// How far a kernel's result may be off: in units in the last place beyond
  /// an absolute error. Both are 0 for a value that is handed on unchanged.
  double limitUlp = 0;
  double absoluteSlack = 0;
  /// A structured operation's result, whose magnitudes are no more than a way
  /// to tell the error of each element.
  bool isStructured = false;
  /// An attention's result, whose magnitudes are its sums p|v| and which has
  /// limits of its own; `largest` has for each element the largest |v| of its
  /// head.
  bool isAttention = false;
  std::vector<double> largest;
};

/// The oracle's name of an element type, if it knows it.
std::optional<::posenc::reference::DType> getReferenceType(Type elementType);

/// Evaluates a function of one block. Results keep the oracle's precision: they
/// are not rounded to their type, but what another operation reads is. A lane
/// that passes through unchanged has a negative magnitude. Errors are
/// diagnostics.
FailureOr<std::vector<ReferenceValue>>
interpret(FunctionOpInterface function, std::vector<ReferenceValue> arguments);

} // namespace mlir::posenc

#endif // POSENC_INTERPRETER_INTERPRETER_H
