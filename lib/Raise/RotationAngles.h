//===- RotationAngles.h - angles in tables of cos and sin -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_ROTATIONANGLES_H
#define POSENC_RAISE_ROTATIONANGLES_H

#include "ConstantAngles.h"
#include "Expr.h"

#include <string>

namespace mlir::posenc::raise {

/// Removes conversions, signs and constant factors from an element of a table.
/// `factor` is their product.
const Expr *stripFactor(const Expr *expr, double &factor);

/// How the angle of a lane is rounded.
enum class AngleRounding {
  /// The f32 product of the position, rounded to f32, and the frequency.
  ProductF32,
  /// In another way.
  Other
};

/// An angle, `position * frequency`.
struct Angle {
  /// An integer.
  const Expr *position = nullptr;
  /// In radians per position; numbers of f32 for ProductF32.
  FrequencyRange frequency = {0, 0};
  AngleRounding rounding = AngleRounding::ProductF32;
  /// Whether the frequency is computed by an exponential in f32.
  bool isExponential = false;
};

/// The angles of the lanes of two tables:
/// `cos = factor * cos(angle)`, `sin = factor * sin(angle)`.
struct TableAngles {
  double factor = 1;
  SmallVector<Angle> lanes;
};

/// Returns the angles of tables with the elements `cos` and `sin`, by lane, or
/// nullopt, with the reason. Tables that are constant are compared with the
/// cosines and sines of all their rows.
std::optional<TableAngles> getAngles(ExprContext &exprs,
                                     ArrayRef<const Expr *> cos,
                                     ArrayRef<const Expr *> sin,
                                     std::string &reason);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_ROTATIONANGLES_H
