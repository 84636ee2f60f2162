//===- ScalingSupport.h - parts that scaling rules share --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IR_SCALINGSUPPORT_H
#define POSENC_LIB_IR_SCALINGSUPPORT_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

using EmitError = function_ref<InFlightDiagnostic()>;

inline double toDouble(FloatAttr value) { return value.getValueAsDouble(); }

/// Whether an optional real is absent, or finite and positive. Every real of
/// the dialect is an f64; the generic form could carry another type.
bool isPositive(FloatAttr value);

/// Bases and factors are divisors. Below this limit, frequencies would be so
/// large that their computed bits no longer include the fraction of a turn.
inline constexpr double kMinDivisor = 0x1p-64;

/// Whether a real is finite and at least `kMinDivisor`.
bool isDivisor(double value);
bool isDivisor(FloatAttr value);

/// Reports a number below `kMinDivisor`.
LogicalResult verifyDivisor(EmitError emitError, FloatAttr value,
                            StringRef what, StringRef constraint);

/// Checks a list with a divisor for each of the `dim/2` pairs.
LogicalResult verifyDivisors(EmitError emitError, DenseF64ArrayAttr values,
                             int64_t dim, StringRef what,
                             StringRef countConstraint,
                             StringRef valueConstraint);

/// Returns `b^(-2i/d)` for `i < d/2`.
SmallVector<::posenc::BigFloat>
unscaledFrequencies(int64_t dim, const ::posenc::BigFloat &base);

/// Returns `b * scale^(d/(d-2))`, which divides the last frequency by `scale`.
::posenc::BigFloat scaleBase(const ::posenc::BigFloat &base,
                             const ::posenc::BigFloat &scale, int64_t dim);

/// Whether a scaled base is between `kMinDivisor` and 2^1023.
bool isScaledBase(const ::posenc::BigFloat &base);

/// Divides each frequency by the number of its pair.
void divideFrequencies(MutableArrayRef<::posenc::BigFloat> frequencies,
                       ArrayRef<double> divisors);

} // namespace mlir::posenc

#endif // POSENC_LIB_IR_SCALINGSUPPORT_H
