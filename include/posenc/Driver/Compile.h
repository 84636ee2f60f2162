//===- Compile.h - entry point of posenc-compile ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_COMPILE_H
#define POSENC_DRIVER_COMPILE_H

namespace mlir::posenc {

/// Runs posenc-compile and returns its exit code.
int compileMain(int argc, char **argv);

} // namespace mlir::posenc

#endif // POSENC_DRIVER_COMPILE_H
