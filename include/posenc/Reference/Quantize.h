//===- Quantize.h - Rows of caches with scales ------------------*- C++ -*-===//
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

/// The largest number of a quantized row: 127 of i8, 448 or 57344 of f8.
long double quantizedLimit(DType type);

/// Empty if \p scales fit \p rows: (sequence or page, head, token), or (head,
/// token) of ragged rows, where a size of 1 stands for all.
std::string checkScales(const Array &rows, TokenLayout layout,
                        const Array &scales);

/// Each row times its scale, which is exact: a long double has more bits than
/// both numbers together.
Array scaleRows(const Array &rows, TokenLayout layout, const Array &scales);

/// A row as a quantized cache holds it: element i is values[i] * scale.
struct QuantizedRow {
  long double scale = 0;
  std::vector<long double> values;
  /// Whether the values are those of the definition before they are rounded:
  /// not in a row of zeros, or with infinities or NaN, whose values are 0.
  bool hasRatios = false;
};

/// Quantizes a row of numbers of f32. The scale and the quotients are rounded
/// to f32, and the quotients then to \p type, as the definition says. If the
/// row is known only \p roughly, nothing is rounded, so that who compares sees
/// how near to a tie a quotient is.
QuantizedRow quantizeRow(DType type, const long double *row, int64_t width,
                         bool roughly);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_QUANTIZE_H
