//===- TuningFile.h - reading and writing of tuning files -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_TUNINGFILE_H
#define POSENC_DRIVER_TUNINGFILE_H

#include "posenc/TargetInfo/TargetSpec.h"

#include "llvm/Support/LogicalResult.h"

namespace mlir::posenc {

/// Reads a file written by posenc-tune and stores its parameters in the targets
/// whose CPU the file is for. Fails if there is no such target. An error is
/// printed as `file:line:col: error: text`.
llvm::LogicalResult applyTuningFile(llvm::StringRef path,
                                    llvm::MutableArrayRef<TargetSpec> targets);

/// Returns the text of a tuning file with the parameters of the target, for its
/// CPU.
std::string formatTuningFile(const TargetSpec &target);

} // namespace mlir::posenc

#endif // POSENC_DRIVER_TUNINGFILE_H
