//===- MergeSplits.h - results of KV splits ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention over KV splits gives an output o_p and a log-sum-exp l_p for each
// split p. With L = log(sum of exp(l_p)), the output over all keys is the sum
// of exp(l_p - L) o_p. The splits of a group, kKeysPerGroup keys, are added in
// their order, and then the groups, so that the result does not depend on who
// computed a split, or when; one without a visible key changes no bit.
//
// Splits of a group are added to its state: a running max, a running sum and
// accumulators, of which memory has one for each group and row. The warp that
// computes the first split of a group adds all that it computes of it. Other
// warps store their splits of this group by themselves, up to seven each, and
// the kernel that merges splits adds them. So the memory of outputs has a state
// for each group, and a limited number of rows of splits, whatever the length
// of the keys. The memory of log-sum-exps has a pair of numbers for each split
// and row: for the number of a group's first split, the maximum and the sum of
// the group; for others, the log-sum-exp, which is minus infinity if the
// group's state has the split, and the number of the row of its outputs.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ATTENTION_MERGESPLITS_H
#define POSENC_LIB_CODEGEN_GPU_ATTENTION_MERGESPLITS_H

#include "posenc/IR/Posenc.h"
#include "posenc/TargetInfo/GpuTiles.h"

namespace mlir::posenc {

class ThreadSoftmax;

/// Splits of a group, and the maximum number of warps that compute splits: more
/// than GPUs hold of these kernels at once.
inline constexpr int64_t kSplitsPerGroup = kKeysPerGroup / kKeysPerSplit,
                         kMaxSplitWarps = 1536;

/// Returns the maximum number of rows of splits, if tiles have `rows` rows,
/// that are not part of a group's state.
inline int64_t getMaxSplitRows(int64_t rows) {
  return kMaxSplitWarps * (kSplitsPerGroup - 1) * rows;
}
static_assert(kMaxSplitWarps * (kSplitsPerGroup - 1) *
                      (2 * GpuAttentionTiles::kRowTile) <
                  1 << 24,
              "numbers of rows are exact in f32");

/// Memrefs of outputs, and of log-sum-exps without the last dimension.
struct AttentionResults {
  Value output;
  Value logSums;
  /// The number of groups, and that of the rows of splits behind their states,
  /// which the type of `output` does not count; indices. Null if results are of
  /// splits that are a group each, or of all keys.
  Value numGroups = nullptr, numRows = nullptr;
};

/// Emits the state of a row, a running max, a running sum and accumulators, of
/// which there may be none, after a split with this log-sum-exp and these
/// outputs. A split is a state with its log-sum-exp as running max, 1 as
/// running sum, and its outputs as accumulators; it changes nothing without
/// a visible key, or unless `exists`, an i1 that may be null.
SmallVector<Value> addSplit(ThreadSoftmax &softmax, Value logSum,
                            ValueRange outputs, Value exists,
                            ArrayRef<Value> before);

/// Emits the kernel and its launch at `host`. `op` is an attention on memrefs;
/// its KV splits are the first dimension of `splits`, whose elements
/// have the type of sums. A row takes the first split and those with keys that
/// it sees by its position; the others need not be written. `results` may have
/// no log-sum-exps. Of ragged queries, `createSplitRow` says where the splits
/// have a sequence's rows; sequences with more than `maxQueries` queries have
/// no splits, and their results are not written.
void mergeSplits(OpBuilder &host, AttentionOp op,
                 const AttentionResults &splits,
                 const AttentionResults &results, int64_t maxQueries);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_MERGESPLITS_H
