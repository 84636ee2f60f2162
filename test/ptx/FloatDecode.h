//===- FloatDecode.h - decoding of float arithmetic -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_FLOATDECODE_H
#define POSENC_TEST_PTX_FLOATDECODE_H

#include "Lanes.h"
#include "Rounding.h"

namespace posenc::ptx {

/// Removes .rn, .rz, .rm or .rp from the modifiers; nullopt if there is none.
std::optional<Rounding> takeRounding(Decoder &decoder);

/// Fails on an instruction without a rounding modifier, which ptxas may fuse,
/// unless ParseOptions::allowContraction is set.
bool checkContraction(Decoder &decoder, bool hasRounding);

/// Fails on an instruction that hardware approximates, unless
/// ParseOptions::allowApproximate is set.
bool checkApproximate(Decoder &decoder);

template <template <Rounding, bool, bool> class Op, Rounding rounding>
Handler chooseF32(bool isFlushed, bool isSaturated) {
  if (isFlushed)
    return isSaturated ? lanes<&Op<rounding, true, true>::apply>
                       : lanes<&Op<rounding, true, false>::apply>;
  return isSaturated ? lanes<&Op<rounding, false, true>::apply>
                     : lanes<&Op<rounding, false, false>::apply>;
}

/// Returns the handler of an f32 operation with these modifiers.
template <template <Rounding, bool, bool> class Op>
Handler chooseF32(Rounding rounding, bool isFlushed, bool isSaturated) {
  switch (rounding) {
  case Rounding::Zero:
    return chooseF32<Op, Rounding::Zero>(isFlushed, isSaturated);
  case Rounding::Down:
    return chooseF32<Op, Rounding::Down>(isFlushed, isSaturated);
  case Rounding::Up:
    return chooseF32<Op, Rounding::Up>(isFlushed, isSaturated);
  default:
    return chooseF32<Op, Rounding::Nearest>(isFlushed, isSaturated);
  }
}

template <template <Rounding> class Op> Handler chooseF64(Rounding rounding) {
  switch (rounding) {
  case Rounding::Zero:
    return lanes<&Op<Rounding::Zero>::apply>;
  case Rounding::Down:
    return lanes<&Op<Rounding::Down>::apply>;
  case Rounding::Up:
    return lanes<&Op<Rounding::Up>::apply>;
  default:
    return lanes<&Op<Rounding::Nearest>::apply>;
  }
}

/// Replaces any NaN by the canonical NaN of f32, as NVIDIA GPUs do.
inline float unifyNaN(float value) {
  return value == value ? value : bitCast<float>(0x7fffffffu);
}

/// Decode operations on f16, bf16, f16x2 and bf16x2. The type modifier has been
/// removed.
bool decodeHalfSum(Decoder &decoder, Type type, bool isSub);
bool decodeHalfProduct(Decoder &decoder, Type type);
bool decodeHalfFma(Decoder &decoder, Type type);
bool decodeHalfSign(Decoder &decoder, Type type, bool isAbs);
bool decodeHalfMinMax(Decoder &decoder, Type type, bool isMax);

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_FLOATDECODE_H
