//===- CudaTensorMap.h - tensor maps of bulk copies ---------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_CUDATENSORMAP_H
#define POSENC_KERNEL_CUDATENSORMAP_H

#include "CudaDriver.h"
#include "Gpu.h"

/* Returns cuTensorMapEncodeTiled, which only kernels for sm_90 and newer need,
 * so that its absence is no error before. NULL if the driver has none. */
static CudaFunction getTensorMapEncoder(void) {
  static CudaFunction encoder;
  CudaFunction found = __atomic_load_n(&encoder, __ATOMIC_RELAXED);
  if (!found) {
    found = (CudaFunction)dlsym(cudaDriver, "cuTensorMapEncodeTiled");
    __atomic_store_n(&encoder, found, __ATOMIC_RELAXED);
  }
  return found;
}

/* Sets *map, a CUtensorMap. Returns the driver's error, or a text in *reason.
 */
static int encodeOnCuda(struct GpuTensorMap *map,
                        const struct TensorMapWords *words,
                        const char **reason) {
  enum { kMaxRank = 5, kStrideUnit = 16 };
  CudaFunction encoder = getTensorMapEncoder();
  if (!encoder) {
    *reason = "the CUDA driver has no cuTensorMapEncodeTiled";
    return 0;
  }
  uint64_t sizes[kMaxRank], strides[kMaxRank];
  uint32_t box[kMaxRank], steps[kMaxRank];
  const int64_t rank = words->rank, *values = words->values;
  uint64_t bytes = (uint64_t)words->elementBytes;
  uint64_t address = (uint64_t)words->address;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t size = values[i];
    /* The driver refuses empty tensors, of which a kernel copies nothing, and
     * which may have no memory. */
    sizes[i] = size > 0 ? (uint64_t)size : 1;
    if (size <= 0)
      address = kStrideUnit;
    box[i] = (uint32_t)values[2 * rank - 1 + i];
    steps[i] = 1;
    bytes *= sizes[i];
    if (i + 1 == rank)
      break;
    /* The stride of one element is arbitrary, and need not be a multiple. */
    strides[i] = values[i + 1] > 1
                     ? (uint64_t)values[rank + i]
                     : (bytes + kStrideUnit - 1) / kStrideUnit * kStrideUnit;
  }
  typedef int (*Encode)(struct GpuTensorMap *, int, uint32_t, uint64_t,
                        const uint64_t *, const uint64_t *, const uint32_t *,
                        const uint32_t *, int, int, int, int);
  return ((Encode)encoder)(map, (int)words->dataType, (uint32_t)rank, address,
                           sizes, strides, box, steps,
                           /*interleave=*/0, (int)words->swizzle,
                           (int)words->l2Promotion, /*outOfBounds=*/0);
}

#endif
