//===- TuningFile.h - choices in a file -------------------------*- C++ -*-===//
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

/// Reads a file of posenc-tune and gives its choices to the targets that are
/// the CPU it is for; it is an error if none is. An error is printed as
/// `file:line:col: error:`.
llvm::LogicalResult applyTuningFile(llvm::StringRef path,
                                    llvm::MutableArrayRef<TargetSpec> targets);

/// The text of such a file, for the CPU of the target.
std::string formatTuningFile(const TargetSpec &target);

} // namespace mlir::posenc

#endif // POSENC_DRIVER_TUNINGFILE_H
