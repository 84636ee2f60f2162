//===- KnownFaults.h - faults of LLVM and MLIR that are known ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_KNOWNFAULTS_H
#define POSENC_TEST_FUZZ_KNOWNFAULTS_H

#include "llvm/ADT/StringRef.h"

namespace posenc::fuzz {

/// Whether Inputs/known-faults.txt names a function of the backtrace.
bool isKnownFault(llvm::StringRef backtrace);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_KNOWNFAULTS_H
