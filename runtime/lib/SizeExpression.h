//===- SizeExpression.h - Sizes that follow from others ---------*- C++ -*-===//
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

/// An expression of sizes and scalar inputs, as the shapes of metadata have it:
/// integers and names with `+`, `-`, `*`, `/`, `%` (rounded towards minus
/// infinity), `min(a, b)`, `max(a, b)`, `(a < b ? c : d)`, `(a == b ? c : d)`
/// and parentheses.
class SizeExpression {
public:
  /// Where the value of a name comes from.
  struct Source {
    bool isScalar;
    int64_t index; ///< of the size, or of the input
  };
  using FindName = std::function<std::optional<Source>(const std::string &)>;

  /// Nothing if the text is no expression, is nested too deep, or names
  /// something that `findName` does not know.
  static std::optional<SizeExpression> parse(const std::string &text,
                                             const FindName &findName);

  /// Where the values of its names come from.
  const std::vector<Source> &sources() const { return names; }
  /// Nothing if a part overflows 64 bits or is divided by what is not positive.
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

  /// Operands come first.
  std::vector<Step> steps;
  std::vector<Source> names;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_SIZEEXPRESSION_H
