//===- Threads.h - the threads of kernels and limits ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_THREADS_H
#define POSENC_LIB_DRIVER_BENCH_THREADS_H

#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::posenc {

/// Runs body(0) ... body(threads - 1) at the same time, on the threads that
/// kernels use too: two pools would spin against each other.
void runThreads(int threads, llvm::function_ref<void(int)> body);

/// Kernels that the calling thread runs from now on use as many threads.
void setKernelThreads(int threads);
int getKernelThreads();

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_THREADS_H
