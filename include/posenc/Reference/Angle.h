//===- Angle.h - cosine and sine of an exact angle --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_REFERENCE_ANGLE_H
#define POSENC_REFERENCE_ANGLE_H

#include "posenc/Reference/Real.h"

namespace posenc::reference {

struct CosSin {
  long double cos;
  long double sin;
};

/// Returns scale * cos(p * f) and scale * sin(p * f) for any position p, an
/// integer or a float, and a frequency f in radians per position. The product p
/// * f and its range reduction are exact; each result is rounded once, after
/// the scale.
CosSin cosSin(long double position, const Real &frequency, const Real &scale);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_ANGLE_H
