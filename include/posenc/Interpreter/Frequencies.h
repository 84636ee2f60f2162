//===- Frequencies.h - frequencies for the oracle ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_INTERPRETER_FREQUENCIES_H
#define POSENC_INTERPRETER_FREQUENCIES_H

#include "posenc/IR/Posenc.h"
#include "posenc/Reference/Frequencies.h"

namespace mlir::posenc {

/// Converts frequencies. The oracle computes those without a scaling itself.
/// The others are the numbers of 256 bits of the attribute, which
/// test/IR/golden-frequencies.py checks. `axes`, which may be null, are those
/// that a scaling restarts on.
::posenc::reference::FrequencySpec getFrequencySpec(FrequenciesAttr frequencies,
                                                    AxesAttr axes);

} // namespace mlir::posenc

#endif // POSENC_INTERPRETER_FREQUENCIES_H
