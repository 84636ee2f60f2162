//===- Run.h - entry point of posenc-run ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_RUN_RUN_H
#define POSENC_TOOLS_RUN_RUN_H

namespace mlir::posenc {

/// Runs posenc-run and returns its exit code.
int runMain(int argc, char **argv);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_RUN_RUN_H
