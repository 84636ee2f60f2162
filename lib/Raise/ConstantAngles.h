//===- ConstantAngles.h - frequencies of constant tables --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_CONSTANTANGLES_H
#define POSENC_RAISE_CONSTANTANGLES_H

#include "Expr.h"

#include <string>

namespace mlir::posenc::raise {

/// A column of a constant table of f32.
struct TableColumn {
  /// The index of the row.
  const Expr *row = nullptr;
  SmallVector<float, 0> values;
};

/// Neighbouring numbers of f32, from `min` to `max`, that a frequency may be.
struct FrequencyRange {
  double min, max;
};

/// Returns the column whose element the expression is, or nullopt.
std::optional<TableColumn> getColumn(const Expr *element);

/// Returns the frequency f of a column of angles, if each is the f32 product of
/// its row number and f.
std::optional<float> getAngleFrequency(const TableColumn &angles);

/// Finds the frequencies of columns of cosines and sines: each element is
/// within 1 unit in the last place of `factor * cos(angle)`, or 2 for factors
/// other than 1, where the angle is the f32 product of row number and
/// frequency. `factor` is set to the cosines of row 0. Returns nullopt, with
/// the reason, if there are none.
std::optional<SmallVector<FrequencyRange>>
getTableFrequencies(ArrayRef<TableColumn> cos, ArrayRef<TableColumn> sin,
                    double &factor, std::string &reason);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_CONSTANTANGLES_H
