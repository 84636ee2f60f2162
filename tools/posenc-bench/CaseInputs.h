//===- CaseInputs.h - inputs of a case --------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_CASEINPUTS_H
#define POSENC_TOOLS_BENCH_CASEINPUTS_H

#include "Case.h"
#include "FunctionInfo.h"
#include "posenc-run/Inputs.h"

namespace mlir::posenc {

/// Allocates and fills the inputs; returns an error if memory is short.
llvm::Expected<std::vector<Input>>
createCaseInputs(llvm::ArrayRef<CaseInput> inputs);

/// Recognizes attention in a compiled function by the argument names that
/// functions of a config.json have, as a library's metadata has no operations.
/// Returns nullopt if there are no query, key and value. Windows and `causal`
/// are not recognized: decode counts all keys as read.
std::optional<AttentionInfo>
inferAttentionInfo(::posenc::runtime::Function function);

/// Returns inputs for any function: batch 1, and a sequence so long that the
/// outputs have about `outputBytes` bytes or, if that is 0, four times the size
/// of the last-level cache; positions are 0, 1, 2, ... Attention gets 1024
/// tokens. Decode gets a full cache whose keys and values have about four times
/// the size of the last-level cache, at most 256 MiB.
std::vector<CaseInput> getDefaultInputs(::posenc::runtime::Function function,
                                        const FunctionInfo &info,
                                        int64_t outputBytes = 0);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_CASEINPUTS_H
