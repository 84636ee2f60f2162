//===- Quantize.h - quantized rows of KV caches -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_REFERENCE_QUANTIZE_H
#define POSENC_REFERENCE_QUANTIZE_H

#include "posenc/Reference/Attention.h"

namespace posenc::reference {

/// Returns the largest number of a quantized type: 127 for i8, 448 for f8E4M3,
/// 57344 for f8E5M2.
long double quantizedLimit(DType type);

/// Returns an empty string if the shape of \p scales matches \p rows, otherwise
/// the reason why not. The shape is (sequence or page) x head x token, or head
/// x token for ragged rows; sizes of 1 are broadcast.
std::string checkScales(const Array &rows, TokenLayout layout,
                        const Array &scales);

/// Multiplies each row by its scale. The products are exact: a long double has
/// more significant bits than both numbers together.
Array scaleRows(const Array &rows, TokenLayout layout, const Array &scales);

/// A quantized row. Element i is values[i] * scale.
struct QuantizedRow {
  long double scale = 0;
  std::vector<long double> values;
  /// Whether the values are quotients by the scale. False for rows that are all
  /// zero, or have an infinity or a NaN; their values are 0.
  bool hasQuotients = false;
};

/// Quantizes a row of f32 numbers. The scale and the quotients are rounded to
/// f32, and the quotients then to \p type, as posenc.kv_append is defined. If
/// the row is inexact (\p isInexact), nothing is rounded, so that a comparison
/// can tell how close a quotient is to a tie.
QuantizedRow quantizeRow(DType type, const long double *row, int64_t width,
                         bool isInexact);

/// Quantizes a row by a scale that is given, with the same rounding.
QuantizedRow quantizeRowBy(DType type, const long double *row, int64_t width,
                           long double scale, bool isInexact);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_QUANTIZE_H
