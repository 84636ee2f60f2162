//===- Threads.h - threads of kernels and limits ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_THREADS_H
#define POSENC_TOOLS_BENCH_THREADS_H

#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::posenc {

/// Runs body(0) ... body(threads - 1) concurrently, on libgomp's threads, which
/// kernels use, too: idle threads of two pools would spin against each other.
void runThreads(int threads, llvm::function_ref<void(int)> body);

/// Sets the number of threads of kernels that the calling thread runs from now
/// on.
void setKernelThreads(int threads);
int getKernelThreads();

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_THREADS_H
