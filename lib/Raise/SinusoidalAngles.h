//===- SinusoidalAngles.h - angles of a sinusoidal table --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_SINUSOIDALANGLES_H
#define POSENC_RAISE_SINUSOIDALANGLES_H

#include "FrequencySearch.h"
#include "RotationAngles.h"

namespace mlir::posenc::raise {

/// Angles that are products of one position and constants.
struct SinusoidalAngles {
  /// An integer, or a float of f32 or f64.
  const Expr *position = nullptr;
  /// One for each angle.
  SmallVector<FoundFrequency> frequencies;
  AngleRounding rounding = AngleRounding::ProductF32;
};

/// Whether the angle is the sum of a constant and of another expression.
bool hasPhase(const Expr *angle);

/// Finds the position of the angles, two for each pair. All numbers that
/// multiply it are frequencies: in `scale * (position * frequency)`, the
/// frequency is the product of both, and in `(scale * position) * frequency`,
/// the position is the product in brackets. Returns nullopt, with the reason
/// unless the angles are constants or one float.
std::optional<SinusoidalAngles>
getSinusoidalAngles(ArrayRef<const Expr *> angles, std::string &reason);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_SINUSOIDALANGLES_H
