//===- ErrorFunction.cpp - erf and erfc -------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/MathBuilder.h"

using namespace mlir;
using namespace mlir::posenc;

Value MathBuilder::erf(Value x) {
  // 1 - exp(-t * q(t)), where q(t) = -log(erfc(t)) / t has no singularity next
  // to the real numbers. The errors of q are weighted by what they do to the
  // result, 2^-31.2 for f32 and 2^-60.3. The result rounds to 1 from the limit
  // on.
  Value limit = number(forF32 ? 4.0 : 6.0);
  Value size = abs(x);
  Value t =
      select(compare(arith::CmpFPredicate::OGT, size, limit), limit, size);
  Value q;
  if (forF32)
    q = series(t, {0x1.40503b412abbfp-20, -0x1.664366b6a2d81p-16,
                   0x1.5f3a937ef3a2fp-13, -0x1.8454897b4160ep-11,
                   0x1.d7b0296a2e65ep-10, -0x1.09593cc669afcp-12,
                   -0x1.39396ec92d2fep-6, 0x1.a4f37ec334f71p-4,
                   0x1.45f308f2b0abep-1, 0x1.20dd750227f9ep+0});
  else
    q = series(
        t,
        {-0x1.2029e816f3b3fp-53, 0x1.e49ec478ca001p-48,  -0x1.7f4b5c383815fp-43,
         0x1.7b1295e98e928p-39,  -0x1.06b6bdf02b732p-35, 0x1.0ed8a8cf3d317p-32,
         -0x1.ada4870cd39cap-30, 0x1.0ac08d3c7a0c7p-27,  -0x1.03ed8443c951bp-25,
         0x1.8631a439d5ad9p-24,  -0x1.a635d735a6a44p-23, 0x1.f702b9dccb2b5p-23,
         0x1.a7997c2fa232fp-23,  -0x1.a844aac315db6p-20, 0x1.6870bee2a604fp-19,
         0x1.d82be4697add1p-19,  -0x1.f3c43b86da6a0p-16, 0x1.0e9eae4c37a66p-14,
         0x1.b2017d5b2de40p-16,  -0x1.3564fb2b1ec9ap-11, 0x1.bca67463271a7p-10,
         -0x1.b6b684fa7ed73p-13, -0x1.39668594d542ap-6,  0x1.a4f4e2a1b466cp-4,
         0x1.45f306dc9c885p-1,   0x1.20dd750429b6dp+0});
  return copySign(expm1(neg(mul(t, q))), x);
}

Value MathBuilder::erfc(Value x) {
  // exp(-t^2) * p(q) / (1 + 2t) with q = (t - 4) / (t + 4) (Shepherd and
  // Laframboise, 1981), with relative errors of 2^-35.9 for f32 and 2^-59.6.
  // The result rounds to 0 from the limit on.
  Value limit = number(forF32 ? 10.1 : 27.3);
  Value size = abs(x), four = number(4.0), one = number(1.0);
  Value t =
      select(compare(arith::CmpFPredicate::OGT, size, limit), limit, size);
  Value q = div(sub(t, four), add(t, four));
  Value p;
  if (forF32)
    p = series(q, {0x1.8603d9f38dddap-15, 0x1.06c533fe3fc63p-12,
                   -0x1.564e9ba11eb3ap-13, -0x1.9f423fcd748a4p-11,
                   0x1.47d0640f65522p-8, -0x1.09609bc963543p-6,
                   0x1.30872c3b1e4ccp-5, -0x1.0faf7372cdc7bp-4,
                   0x1.7fed691c2c3c1p-4, -0x1.9ddb4002585abp-4,
                   0x1.16ecf5966e087p-4, 0x1.f7f5e66b06d63p-7,
                   -0x1.1df1ad1e2b8a5p-3, 0x1.3ba5916e8fdefp+0});
  else
    p = series(
        q,
        {0x1.45ae7d6c0792ap-30,  0x1.c04e838cdf67ap-30,  -0x1.e4265efb8eedap-27,
         -0x1.2a65837cae6a4p-26, 0x1.da5873d46add4p-24,  0x1.3df285754d9bdp-24,
         -0x1.bb8402ceef3d0p-21, 0x1.3bdebddeb5624p-22,  0x1.7f3622a636c27p-18,
         -0x1.788db3d0221a9p-17, -0x1.995afa04bc88ep-16, 0x1.3be06a9ea9734p-13,
         -0x1.a1df14be312e0p-13, -0x1.8d4a9c313742bp-11, 0x1.49c6726d62655p-8,
         -0x1.09623882c1d19p-6,  0x1.3079edf6d97e9p-5,   -0x1.0fb06dfe54538p-4,
         0x1.7fee004e0fc1fp-4,   -0x1.9ddb23c3e89f8p-4,  0x1.16ecefcfa54afp-4,
         0x1.f7f5df66fd6e2p-7,   -0x1.1df1ad154a28fp-3,  0x1.3ba5916e9fd7fp+0});
  Value ratio = div(p, fma(t, number(2.0), one));
  TwoFloats square = twoProduct(t, t);
  // exp(-hi - lo) = exp(-hi) (1 - lo); the factor comes first, as the
  // exponential may be subnormal.
  Value correction = fma(ratio, neg(square.lo), ratio);
  // exp(-hi) is at least 2^-1075, and 2^64 times as large here.
  Value power = exp(neg(square.hi), Base::E, /*exponent=*/64);
  Value result = mul(mul(power, correction), number(0x1p-64));
  Value isNegative = compare(arith::CmpFPredicate::OLT, x, number(0.0));
  result = select(isNegative, sub(number(2.0), result), result);
  // Returns one NaN for all NaN inputs: which of several NaNs an fma returns
  // depends on the operands' registers, so vectors and scalars would differ.
  return select(compare(arith::CmpFPredicate::UNO, x, x), nan(), result);
}
