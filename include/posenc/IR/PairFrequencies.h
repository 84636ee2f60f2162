//===- PairFrequencies.h - axis and frequency of each pair ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_PAIRFREQUENCIES_H
#define POSENC_IR_PAIRFREQUENCIES_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// The angle of a pair is `positions[axis] * frequency` radians.
struct PairFrequency {
  int64_t axis;
  ::posenc::BigFloat frequency;
};

/// Returns the axis and frequency of each pair, in the order of the tables'
/// last dimension. `axes` may be null.
SmallVector<PairFrequency> computePairFrequencies(FrequenciesAttr frequencies,
                                                  AxesAttr axes);

} // namespace mlir::posenc

#endif // POSENC_IR_PAIRFREQUENCIES_H
