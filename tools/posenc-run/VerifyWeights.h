//===- VerifyWeights.h - digest of a library's weights ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_RUN_VERIFYWEIGHTS_H
#define POSENC_TOOLS_RUN_VERIFYWEIGHTS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlir::posenc {

/// Reads the weights beside the library at `path`, and those that stay in files
/// of the model, and compares them with the digests in the header. Returns the
/// number of bytes read.
llvm::Expected<int64_t> verifyWeights(llvm::StringRef path);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_RUN_VERIFYWEIGHTS_H
