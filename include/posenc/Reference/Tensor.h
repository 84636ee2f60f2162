//===- Tensor.h - Tensors as plain values -----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_REFERENCE_TENSOR_H
#define POSENC_REFERENCE_TENSOR_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace posenc::reference {

/// F8E4M3 is the format without infinities, whose largest number is 448.
enum class DType { F64, F32, F16, BF16, I64, I32, I8, F8E4M3, F8E5M2 };

/// The magnitude of an element of which nothing is known, so that any result
/// will do.
constexpr long double kUnknownMagnitude =
    -std::numeric_limits<long double>::infinity();

/// A row-major tensor. A long double (64 bits of significand at least) holds
/// every value of every DType.
struct Array {
  std::vector<int64_t> shape;
  std::vector<long double> values;
  /// The size m against which an error at this element is measured, one per
  /// value; empty stands for |value|. A negative element marks a lane that
  /// passes through and must come out bit-equal, but for kUnknownMagnitude.
  std::vector<long double> magnitude;
};

/// The product of the dimensions; 1 for a scalar.
int64_t numElements(const std::vector<int64_t> &shape);

/// The indices of element \p flat, counted row-major.
std::vector<int64_t> unflatten(const std::vector<int64_t> &shape, int64_t flat);

size_t byteWidth(DType type);
bool isFloat(DType type);

/// The bits of \p value rounded once to \p type, to nearest, ties to even;
/// subnormals kept, overflow to infinity, or NaN if there is none. A NaN stays
/// one (quiet, its sign kept, its payload not). Integers are rounded likewise
/// and saturate; NaN gives 0.
uint64_t encode(DType type, long double value);
/// The exact value of the low bits of \p bits.
long double decode(DType type, uint64_t bits);

/// One element of an array in memory, of either alignment and in the byte order
/// of this machine.
uint64_t loadBits(DType type, const void *data, int64_t index);
void storeBits(DType type, void *data, int64_t index, uint64_t bits);

Array fromBytes(DType type, const void *data, std::vector<int64_t> shape);
std::vector<uint8_t> toBytes(DType type, const Array &array);

long double roundTo(DType type, long double value);

/// The distance between neighbours of \p type at \p magnitude: that of the
/// subnormals below the smallest normal number, that of the largest numbers
/// beyond them; 1 for integers.
long double ulp(DType type, long double magnitude);

/// 2^(e+1) if the largest finite number is below it and at least 2^e.
long double overflowBound(DType type);
long double largestFinite(DType type);
long double smallestNormal(DType type);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_TENSOR_H
