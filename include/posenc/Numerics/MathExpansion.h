//===- MathExpansion.h - support of math operations -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_MATHEXPANSION_H
#define POSENC_NUMERICS_MATHEXPANSION_H

#include "mlir/IR/Value.h"

#include <cstdint>
#include <optional>

namespace mlir::posenc {

/// Powers with a constant integer exponent up to this magnitude are expanded
/// into multiplications; larger exponents of floats into logarithms.
constexpr int64_t kMaxConstantPower = 64;

/// Whether posenc-expand-math converts an operation of the math dialect, on
/// scalars or vectors, to arithmetic or to an instruction that all targets
/// have.
bool hasMathExpansion(Operation *op);

/// Whether all operands and results have an element type (f64, f32, f16, bf16,
/// an integer or index) for which expansions exist.
bool hasExpandableTypes(Operation *op);

/// Whether a scalar type is f16 or bf16.
bool isNarrowFloat(Type type);

/// Returns the value of an integer exponent if it is a constant of at most 32
/// bits, else nullopt.
std::optional<int64_t> getIntegerExponent(Value exponent);

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_MATHEXPANSION_H
