//===- SizeExpression.h - Computes sizes of outputs -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_SIZEEXPRESSION_H
#define POSENC_RUNTIME_LIB_SIZEEXPRESSION_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace posenc::runtime {

/// The size of an output as an expression of dynamic sizes, scalar inputs, and
/// elements of inputs that have one. The grammar of the metadata has integers,
/// names, `+`, `-`, `*`, `/` and `%` (rounding towards minus infinity),
/// `min(a, b)`, `max(a, b)`, `(a < b ? c : d)`, `(a == b ? c : d)` and
/// parentheses. The name of the element of `t` is `t[0]`.
class SizeExpression {
public:
  /// Where the value of a name comes from.
  struct Source {
    enum class Kind { Size, Scalar, Element };
    Kind kind;
    int64_t index; ///< of the dynamic size, or of the input
  };
  using FindName = std::function<std::optional<Source>(const std::string &)>;

  /// Returns nullopt if the text is not an expression, is nested too deeply, or
  /// contains a name for which `findName` returns nullopt.
  static std::optional<SizeExpression> parse(const std::string &text,
                                             const FindName &findName);

  /// The sources of the names in the expression.
  const std::vector<Source> &sources() const { return names; }
  /// Returns nullopt if a value overflows int64_t or a divisor is not positive.
  /// Allocates nothing.
  std::optional<int64_t>
  evaluate(const std::function<int64_t(const Source &)> &valueOf) const;

private:
  enum class Action {
    Constant,
    Name,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Min,
    Max,
    IfLess,
    IfEqual
  };
  struct Step {
    Action action;
    int64_t constant;
    Source source;
  };
  class Parser;

  /// In postfix order: operands precede their operation.
  std::vector<Step> steps;
  std::vector<Source> names;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_SIZEEXPRESSION_H
