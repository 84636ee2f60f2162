//===- Threads.cpp - threads of kernels and limits ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Threads.h"

using namespace mlir::posenc;

// libgomp's functions, declared as in kernel libraries. `#pragma omp` would use
// LLVM's OpenMP runtime, with threads of its own, if the compiler is clang.
extern "C" {
void GOMP_parallel(void (*body)(void *), void *arg, unsigned numThreads,
                   unsigned flags);
int omp_get_thread_num(void);
void omp_set_num_threads(int numThreads);
int omp_get_max_threads(void);
void omp_set_dynamic(int isDynamic);
}

void mlir::posenc::runThreads(int threads, llvm::function_ref<void(int)> body) {
  if (threads <= 1)
    return body(0);
  GOMP_parallel(
      [](void *arg) {
        (*static_cast<llvm::function_ref<void(int)> *>(arg))(
            omp_get_thread_num());
      },
      &body, static_cast<unsigned>(threads), 0);
}

void mlir::posenc::setKernelThreads(int threads) {
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
}

int mlir::posenc::getKernelThreads() { return omp_get_max_threads(); }
