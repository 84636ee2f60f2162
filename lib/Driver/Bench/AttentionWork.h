//===- AttentionWork.h - what attention computes and reads ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_ATTENTIONWORK_H
#define POSENC_LIB_DRIVER_BENCH_ATTENTIONWORK_H

#include "Meaning.h"
#include "posenc/Driver/Bench/Limit.h"
#include "posenc/Driver/Run/Inputs.h"

namespace mlir::posenc {

/// Products and sums of `q k^T` and `p v` of the pairs of a query and a key
/// that `causal` and the windows leave. What masks and a region `where` take
/// out besides is counted, rotations and exponentials are not.
double getFlops(const AttentionMeaning &meaning, llvm::ArrayRef<Input> inputs);

/// Tiles of 16 queries and 16 keys in which some query sees a key: what cannot
/// be left out.
double getTiles(const AttentionMeaning &meaning, llvm::ArrayRef<Input> inputs);

/// Reads the keys and values that some query sees. Paged ones are read as if
/// they stood one after the other.
std::vector<StreamStep> getReadSteps(const AttentionMeaning &meaning,
                                     llvm::ArrayRef<Input> inputs);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_ATTENTIONWORK_H
