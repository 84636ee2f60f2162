//===- AttentionWork.h - FLOPs and KV reads of attention --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_ATTENTIONWORK_H
#define POSENC_TOOLS_BENCH_ATTENTIONWORK_H

#include "FunctionInfo.h"
#include "posenc-bench/Limit.h"
#include "posenc-run/Inputs.h"

namespace mlir::posenc {

/// Returns the FLOPs of `q k^T` and `p v` in all heads, for the (query, key)
/// pairs that `causal` and the windows keep. Pairs that mask tensors or the
/// `where` region (a mask_mod) exclude are counted; rotations and exponentials
/// are not.
double getFlops(const AttentionInfo &info, llvm::ArrayRef<Input> inputs);

/// Returns the number of tiles of 16 queries x 16 keys, in all heads, with at
/// least one pair that `causal` and the windows keep. No kernel can skip these.
double getTiles(const AttentionInfo &info, llvm::ArrayRef<Input> inputs);

/// Returns steps that read all keys and values that any query sees, once. Pages
/// are read as if they were contiguous.
std::vector<StreamStep> getReadSteps(const AttentionInfo &info,
                                     llvm::ArrayRef<Input> inputs);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_ATTENTIONWORK_H
