//===- Angle.cpp - cosine and sine of an exact angle ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Reference/Angle.h"

namespace posenc::reference {

CosSin cosSin(long double position, const Real &frequency, const Real &scale) {
  // The product is exact in 64 bits more than the frequency has. mpfr_sin_cos
  // reduces arguments of any size correctly.
  constexpr mpfr_prec_t anglePrecision = Real::kPrecision + 64;
  // Intermediate results have twice the bits of a long double, so the double
  // rounding matters in one of 2^64 cases.
  constexpr mpfr_prec_t resultPrecision = 128;

  mpfr_t angle, sine, cosine;
  mpfr_init2(angle, anglePrecision);
  mpfr_init2(sine, resultPrecision);
  mpfr_init2(cosine, resultPrecision);

  mpfr_set_ld(angle, position, MPFR_RNDN);
  mpfr_mul(angle, angle, frequency.get(), MPFR_RNDN);
  mpfr_sin_cos(sine, cosine, angle, MPFR_RNDN);
  mpfr_mul(sine, sine, scale.get(), MPFR_RNDN);
  mpfr_mul(cosine, cosine, scale.get(), MPFR_RNDN);
  CosSin result{mpfr_get_ld(cosine, MPFR_RNDN), mpfr_get_ld(sine, MPFR_RNDN)};

  mpfr_clear(angle);
  mpfr_clear(sine);
  mpfr_clear(cosine);
  return result;
}

} // namespace posenc::reference
