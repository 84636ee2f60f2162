//===- Specs.h - conversion of attributes for the oracle --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_INTERPRETER_SPECS_H
#define POSENC_LIB_INTERPRETER_SPECS_H

#include "Evaluator.h"

#include "posenc/Interpreter/Frequencies.h"
#include "posenc/Reference/Ops.h"

namespace mlir::posenc {

/// Converts frequencies; if `turns` are given, those that the `posenc.turns`
/// which computed them stands for, as exact numbers. Reports an error at `op`
/// for other turns. `axes` may be null.
FailureOr<::posenc::reference::FrequencySpec>
getFrequencySpec(Operation *op, FrequenciesAttr frequencies, AxesAttr axes,
                 ValueRange turns, Evaluator &values);

/// Returns the numbers of `values` of a posenc.turns as frequencies.
std::vector<double> getGivenFrequencies(TurnsOp op, Evaluator &values);

/// Returns the length of a posenc.turns.
double getGivenLength(TurnsOp op, Evaluator &values);

/// Converts position axes. `axes` may be null.
::posenc::reference::AxesSpec getAxesSpec(AxesAttr axes);

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_SPECS_H
