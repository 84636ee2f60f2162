//===- Ops.h - tables and rotations on plain tensors ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Each function has a check function, which returns an empty string if the
// arguments are valid and otherwise the reason why not. A function aborts if
// its arguments are not valid. Tables have the shape positionsShape x d/2. A
// list of positions has the positions of axis 0, then those of axis 1, and so
// on, each row-major, so it has numAxes() times the elements of positionsShape.

#ifndef POSENC_REFERENCE_OPS_H
#define POSENC_REFERENCE_OPS_H

#include "posenc/Reference/Axes.h"
#include "posenc/Reference/Tensor.h"

#include <optional>
#include <string>
#include <vector>

namespace posenc::reference {

struct CosSinTable {
  Array cos;
  Array sin;
};

/// Returns att * cos(p * f_i) and att * sin(p * f_i), correctly rounded to long
/// double, where att is the attention factor.
CosSinTable sincos(const FrequencySpec &spec, const AxesSpec &axes,
                   const Positions &positions,
                   const std::vector<int64_t> &positionsShape);
std::string checkSinCos(const FrequencySpec &spec, const AxesSpec &axes,
                        const Positions &positions,
                        const std::vector<int64_t> &positionsShape);

/// The factor zeta_i^((p - origin) / base) of pair i at position p, where
/// zeta_i = (2i/d + gamma) / (1 + gamma), or the reciprocal of it. Source: Sun
/// et al., 2022, "A Length-Extrapolatable Transformer" (XPos).
struct PositionScale {
  double base = 512;
  double gamma = 0.4;
  int64_t origin = 0;
  bool reciprocal = false;
};

struct RotateOptions {
  /// Pairs are (2i, 2i+1) if true (GPT-J), else (i, i + d/2) (GPT-NeoX).
  bool interleaved = false;
  /// Channels [windowOffset, windowOffset + d) of the last dimension are
  /// rotated; the others are copied.
  int64_t windowOffset = 0;
  /// Dimension k of the table is dimension positionDims[k] of x. They must not
  /// include the last dimension of x.
  std::vector<int64_t> positionDims;
  /// Rotates by the negative angle: sines are negated.
  bool inverse = false;
  /// Tables of rotate() have an element for each lane of the window, not only
  /// for each pair.
  bool fullTables = false;
  /// Multiplies the tables of rope(), or divides them for an inverse one.
  std::optional<PositionScale> positionScale;
};

/// Maps every pair (x, y) to (x c - y t, y c + x t), where c and t are elements
/// of the tables. The magnitude is max(|result|, hypot(x, y) * hypot(c, t)),
/// which is att * hypot(x, y) for tables of sincos(), and -1 for copied
/// elements.
Array rotate(const Array &x, const Array &cos, const Array &sin,
             const RotateOptions &options);
std::string checkRotate(const Array &x, const Array &cos, const Array &sin,
                        const RotateOptions &options);

/// Applies rotate() with the table of \p positions, whose shape is that of the
/// dimensions positionDims of x. An inverse rotation also divides by att^2, so
/// that it undoes the forward rotation; att must not be 0.
Array rope(const Array &x, const FrequencySpec &spec, const AxesSpec &axes,
           const Positions &positions, const RotateOptions &options);
std::string checkRope(const Array &x, const FrequencySpec &spec,
                      const AxesSpec &axes, const Positions &positions,
                      const RotateOptions &options);

enum class SinusoidalOrder {
  Interleaved, ///< sin, cos, sin, cos, ... (Vaswani et al., 2017).
  SinCos,      ///< All sines, then all cosines (tensor2tensor).
  CosSin,      ///< All cosines, then all sines (time steps of DiT).
};

struct SinusoidalOptions {
  SinusoidalOrder order = SinusoidalOrder::Interleaved;
  /// Adds a zero at the end of each row (tensor2tensor, for an odd width).
  bool zeroPad = false;
  /// The position whose whole row is zero (fairseq).
  std::optional<int64_t> paddingPosition;
};

/// Returns a table with one row of d elements per position, multiplied by the
/// attention factor. With several axes, which must be Axial, a row is the
/// concatenation of one row per axis, each in the order of the options (MAE).
/// The added zeros must match bit for bit.
Array sinusoidal(const FrequencySpec &spec, const AxesSpec &axes,
                 const Positions &positions,
                 const std::vector<int64_t> &positionsShape,
                 const SinusoidalOptions &options);
std::string checkSinusoidal(const FrequencySpec &spec, const AxesSpec &axes,
                            const Positions &positions,
                            const std::vector<int64_t> &positionsShape,
                            const SinusoidalOptions &options);

/// Returns the plain table of N positions, of the shape N x d.
Array sinusoidal(const FrequencySpec &spec, const Positions &positions,
                 SinusoidalOrder order);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_OPS_H
