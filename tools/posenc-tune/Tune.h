//===- Tune.h - main function of posenc-tune --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_TUNE_TUNE_H
#define POSENC_TOOLS_TUNE_TUNE_H

namespace mlir::posenc {

/// Runs posenc-tune and returns its exit code.
int tuneMain(int argc, char **argv);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_TUNE_TUNE_H
