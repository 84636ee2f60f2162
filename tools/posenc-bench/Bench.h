//===- Bench.h - main function of posenc-bench ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_BENCH_H
#define POSENC_TOOLS_BENCH_BENCH_H

namespace mlir::posenc {

/// Runs posenc-bench and returns its exit code.
int benchMain(int argc, char **argv);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_BENCH_H
