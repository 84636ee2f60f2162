//===- TimeShares.h - estimated shares of time ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_TIMESHARES_H
#define POSENC_LIB_DRIVER_TIMESHARES_H

#include "posenc/Driver/CompileReport.h"

namespace mlir::posenc {

/// Dynamic sizes count as this one in estimates.
inline constexpr int64_t kSampleSize = 128;

/// Estimates the time that each operation of a function on whole tensors takes,
/// in units of the time that a byte of memory takes, in their order. Bytes of
/// memory and floating-point operations overlap, so the longer of both counts;
/// a vector of `vectorBytes` bytes does as many operations as it has elements
/// of f32 while one byte is read. Loops that are not vectorized do one.
///
/// Results of elementwise operations with one user are not stored, as they are
/// fused. Operations in loops count once.
std::vector<ReportTime> estimateTimes(ModuleOp module, unsigned vectorBytes);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_TIMESHARES_H
