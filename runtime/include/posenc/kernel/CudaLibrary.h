//===- CudaLibrary.h - constants of the CUDA driver ---------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_CUDALIBRARY_H
#define POSENC_KERNEL_CUDALIBRARY_H

/* The file name of the CUDA driver, which the kernel support library and the
 * runtime open. */
#define POSENC_CUDA_DRIVER "libcuda.so.1"

/* CUdevice_attribute: the number of multiprocessors, the compute capability,
 * and the largest shared memory that a block can have, in bytes. */
enum {
  kCudaMultiprocessorsAttribute = 16,
  kCudaMajorAttribute = 75,
  kCudaMinorAttribute = 76,
  kCudaSharedAttribute = 97
};

#endif
