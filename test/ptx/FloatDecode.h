//===- FloatDecode.h - modifiers of float arithmetic ------------*- C++ -*-===//
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

/// Takes .rn, .rz, .rm or .rp.
std::optional<Rounding> takeRounding(Decoder &decoder);

/// Refuses an instruction without a rounding: ptxas may fuse it.
bool checkContraction(Decoder &decoder, bool hasRounding);

/// Refuses an instruction whose result is the hardware's affair.
bool checkApproximate(Decoder &decoder);

template <template <Rounding, bool, bool> class Op, Rounding rounding>
Handler chooseF32(bool isFlushed, bool isSaturated) {
  if (isFlushed)
    return isSaturated ? lanes<&Op<rounding, true, true>::apply>
                       : lanes<&Op<rounding, true, false>::apply>;
  return isSaturated ? lanes<&Op<rounding, false, true>::apply>
                     : lanes<&Op<rounding, false, false>::apply>;
}

/// The handler of an operation on f32 with all its modifiers.
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

/// One NaN for all, as hardware gives it.
inline float unifyNaN(float value) {
  return value == value ? value : bitCast<float>(0x7fffffffu);
}

/// Arithmetic of f16, bf16 and their pairs, whose type is taken already.
bool decodeHalfSum(Decoder &decoder, Type type, bool isSub);
bool decodeHalfProduct(Decoder &decoder, Type type);
bool decodeHalfFma(Decoder &decoder, Type type);
bool decodeHalfSign(Decoder &decoder, Type type, bool isAbs);
bool decodeHalfMinMax(Decoder &decoder, Type type, bool isMax);

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_FLOATDECODE_H
