//===- Tensor.h - tensors and element types of the oracle -------*- C++ -*-===//
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

/// F8E4M3 is f8E4M3FN: it has no infinities, and its largest number is 448.
enum class DType { F64, F32, F16, BF16, I64, I32, I8, F8E4M3, F8E5M2 };

/// The magnitude of an element without an error bound, which any result
/// matches.
constexpr long double kUnknownMagnitude =
    -std::numeric_limits<long double>::infinity();

/// A row-major tensor. A long double has at least 64 significant bits, so it
/// represents every value of every DType.
struct Array {
  std::vector<int64_t> shape;
  std::vector<long double> values;
  /// The magnitude m of each element: errors are measured in ulp(m). If empty,
  /// it is |value|. A negative magnitude marks an element that must match bit
  /// for bit, except that kUnknownMagnitude matches anything.
  std::vector<long double> magnitude;
};

/// Positions, integers or floats. A long double represents every i64 and every
/// double.
struct Positions : std::vector<long double> {
  using std::vector<long double>::vector;
  Positions(const std::vector<int64_t> &integers)
      : vector(integers.begin(), integers.end()) {}
};

/// Returns the product of the dimensions; 1 for a scalar.
int64_t numElements(const std::vector<int64_t> &shape);

/// Returns the indices of the element with the row-major index \p flat.
std::vector<int64_t> unflatten(const std::vector<int64_t> &shape, int64_t flat);

size_t byteWidth(DType type);
bool isFloat(DType type);

/// Rounds \p value once to \p type, to nearest, ties to even, and returns its
/// bits. Subnormals are kept. Overflow gives infinity, or NaN if the type has
/// no infinity. A NaN becomes quiet and keeps its sign, but not its payload.
/// Integers are rounded likewise and saturate; NaN gives 0.
uint64_t encode(DType type, long double value);
/// Returns the exact value of the low bits of \p bits.
long double decode(DType type, uint64_t bits);

// Access an element of an array in memory, with any alignment and in the byte
// order of this machine.
uint64_t loadBits(DType type, const void *data, int64_t index);
void storeBits(DType type, void *data, int64_t index, uint64_t bits);

Array fromBytes(DType type, const void *data, std::vector<int64_t> shape);
std::vector<uint8_t> toBytes(DType type, const Array &array);

long double roundTo(DType type, long double value);

/// Returns the spacing of the numbers of \p type at \p magnitude. Below the
/// smallest normal number, it is the spacing of subnormals, and beyond the
/// largest number, that of the largest numbers. It is 1 for integers.
long double ulp(DType type, long double magnitude);

/// Returns the smallest power of two above all finite numbers of the type.
long double overflowBound(DType type);
long double largestFinite(DType type);
long double smallestNormal(DType type);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_TENSOR_H
