//===- CaseInputs.h - the arguments of a case -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_CASEINPUTS_H
#define POSENC_LIB_DRIVER_BENCH_CASEINPUTS_H

#include "Case.h"
#include "Meaning.h"
#include "posenc/Driver/Run/Inputs.h"

namespace mlir::posenc {

/// Arrays with these values.
llvm::Expected<std::vector<Input>>
createCaseInputs(llvm::ArrayRef<CaseInput> inputs);

/// Guesses the meaning of a compiled function from the names of its arguments,
/// which are those of a config's functions: a library does not say more. A
/// window has no name: of one query, all keys count as read.
std::optional<AttentionMeaning>
guessAttention(::posenc::runtime::Function function);

/// Arguments for any function: one batch of as many tokens as make about
/// `outputBytes` or, if that is 0, as need memory beyond what caches hold;
/// positions one after the other. Attention gets 1024 tokens or, if it has one
/// query, a full cache of about as many bytes, 256 MiB at most.
std::vector<CaseInput> getDefaultInputs(::posenc::runtime::Function function,
                                        const Meaning &meaning,
                                        int64_t outputBytes = 0);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_CASEINPUTS_H
