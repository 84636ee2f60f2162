//===- Ops.h - The encodings on plain tensors -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A check function returns what is wrong with the arguments, and an empty
// string if nothing is. Every function wants its own to return that, and ends
// the program otherwise. Tables have the shape positionsShape x d/2; a position
// list holds the positions of axis 0, then those of axis 1, and so on, each
// flattened row-major, so it is numAxes() times as long as positionsShape.

#ifndef POSENC_REFERENCE_OPS_H
#define POSENC_REFERENCE_OPS_H

#include "posenc/Reference/Axes.h"
#include "posenc/Reference/Tensor.h"

#include <string>
#include <vector>

namespace posenc::reference {

struct CosSinTable {
  Array cos;
  Array sin;
};

/// att * cos(p * f_i) and att * sin(p * f_i), correctly rounded to long double.
CosSinTable sincos(const FrequencySpec &spec, const AxesSpec &axes,
                   const std::vector<int64_t> &positions,
                   const std::vector<int64_t> &positionsShape);
std::string checkSinCos(const FrequencySpec &spec, const AxesSpec &axes,
                        const std::vector<int64_t> &positions,
                        const std::vector<int64_t> &positionsShape);

struct RotateOptions {
  /// Pairs (2i, 2i+1), as GPT-J; else (i, i + d/2), as GPT-NeoX.
  bool interleaved = false;
  /// The rotated channels are [windowOffset, windowOffset + d) of the last
  /// dimension; the others pass through.
  int64_t windowOffset = 0;
  /// Dimension k of the table is dimension positionDims[k] of x. The last
  /// dimension of x is never one of them.
  std::vector<int64_t> positionDims;
  /// Turns the other way: t -> -t.
  bool inverse = false;
};

/// (x, y) -> (x c - y t, y c + x t) on every pair, with c and t as they stand
/// in the table. magnitude is max(|result|, hypot(x, y) * hypot(c, t)), which
/// is att * hypot(x, y) for a table of ours, and -1 on lanes that pass through.
Array rotate(const Array &x, const Array &cos, const Array &sin,
             const RotateOptions &options);
std::string checkRotate(const Array &x, const Array &cos, const Array &sin,
                        const RotateOptions &options);

/// rotate() with the table of \p positions, whose shape is the dimensions
/// positionDims of x. Inverse also divides by att^2, so that it undoes the
/// forward rotation; it then wants att != 0.
Array rope(const Array &x, const FrequencySpec &spec, const AxesSpec &axes,
           const std::vector<int64_t> &positions, const RotateOptions &options);
std::string checkRope(const Array &x, const FrequencySpec &spec,
                      const AxesSpec &axes,
                      const std::vector<int64_t> &positions,
                      const RotateOptions &options);

enum class SinusoidalOrder {
  Interleaved, ///< sin, cos, sin, cos, ... Vaswani et al., 2017.
  SinCos,      ///< All sines, then all cosines. tensor2tensor.
  CosSin,      ///< All cosines, then all sines. DiT's time steps.
};

/// Rows of d elements, one per position; its shape is N x d. The attention
/// factor applies here too.
Array sinusoidal(const FrequencySpec &spec,
                 const std::vector<int64_t> &positions, SinusoidalOrder order);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_OPS_H
