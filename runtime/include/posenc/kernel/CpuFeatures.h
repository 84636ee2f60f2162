//===- CpuFeatures.h - CPU features and families ------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_CPUFEATURES_H
#define POSENC_KERNEL_CPUFEATURES_H

#include <stdint.h>

/* Instruction sets that a kernel library checks for before it picks one of its
 * variants. One bit each, in the lower half of a word. Each level includes
 * those before it, but kCpuFeatureAvx512Vnni is between kCpuFeatureX86V4 and
 * kCpuFeatureAvx512Bf16; kCpuFeatureAmxBf16 is AMX-TILE, AMX-BF16 and
 * AMX-INT8. */
enum PosencCpuFeature {
  kCpuFeatureX86V3 = 1,
  kCpuFeatureX86V4 = 2,
  kCpuFeatureAvx512Bf16 = 4,
  kCpuFeatureAmxBf16 = 8,
  kCpuFeatureAvx512Vnni = 16
};

/* CPU families that a variant may be tuned for, in the upper half of the same
 * word. */
enum PosencCpuFamily {
  kCpuFamilyOther = 0,
  kCpuFamilyZen3 = 1,
  kCpuFamilyZen4 = 2,
  kCpuFamilyZen5 = 3
};
enum { kCpuFamilyShift = 32 };
#define POSENC_CPU_FEATURE_BITS ((INT64_C(1) << kCpuFamilyShift) - 1)

#endif
