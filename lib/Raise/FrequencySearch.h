//===- FrequencySearch.h - rules of lists of frequencies --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_FREQUENCYSEARCH_H
#define POSENC_RAISE_FREQUENCYSEARCH_H

#include "ConstantAngles.h"

#include "posenc/IR/Posenc.h"

namespace mlir::posenc::raise {

/// A number that a graph has for a frequency.
struct FoundFrequency {
  FrequencyRange range;
  /// Units in the last place of f32 by which the frequency of a rule may
  /// differ.
  double tolerance;
};

/// Returns the frequencies with a base of at most 5 significant digits and
/// without a scaling, or with a linear, llama3 or yarn one, that agree with the
/// numbers: each, computed in f32 as in transformers, is in its range, widened
/// by the tolerance. Returns null if there are none. Their precision is exact,
/// and they have no factor of cos and sin.
FrequenciesAttr findRule(MLIRContext *context, ArrayRef<FoundFrequency> found);

/// Returns the frequencies with the precision and the factor of cos and sin.
/// For `hf_f32`, they are numbers in the ranges. For `exact`, they are those of
/// the rule if there is one, or of a geometric sequence, else the numbers.
FrequenciesAttr createFrequencies(MLIRContext *context,
                                  ArrayRef<FoundFrequency> found, double factor,
                                  Precision precision);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_FREQUENCYSEARCH_H
