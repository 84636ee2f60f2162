//===- CudaLibrary.h - the CUDA driver --------------------------*-- C --*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_CUDALIBRARY_H
#define POSENC_KERNEL_CUDALIBRARY_H

/* What the kernel support library and the runtime both call of the CUDA
 * driver. CUDA 12 was the first with libraries of kernels, which serve all
 * contexts. */
#define POSENC_CUDA_DRIVER "libcuda.so.1"

/* CUdevice_attribute: the compute capability. */
enum { kCudaMajorAttribute = 75, kCudaMinorAttribute = 76 };

#endif
