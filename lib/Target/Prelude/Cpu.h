//===- Cpu.h - what the CPU can do ------------------------------*-- C --*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_PRELUDE_CPU_H
#define POSENC_PRELUDE_CPU_H

#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Bits of CpuFeature in include/posenc/Codegen/CInterface.h. */
static int64_t findCpuFeatures(void) {
  int64_t found = 0;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
    return found;
  unsigned leaf1 = c, low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  unsigned extended = 0;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d))
    extended = c;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return found;
  /* All that x86-64-v3 has beyond the floor: the code may use any of it. */
  unsigned leaf1Wanted = bit_SSE3 | bit_SSSE3 | bit_FMA | bit_CMPXCHG16B |
                         bit_SSE4_1 | bit_SSE4_2 | bit_MOVBE | bit_POPCNT |
                         bit_AVX | bit_F16C;
  unsigned extendedWanted = bit_LAHF_LM | bit_LZCNT;
  unsigned leaf7Wanted = bit_AVX2 | bit_BMI | bit_BMI2;
  if ((low & 6) == 6 && (leaf1 & leaf1Wanted) == leaf1Wanted &&
      (extended & extendedWanted) == extendedWanted &&
      (b & leaf7Wanted) == leaf7Wanted)
    found |= 1;
  unsigned v4Wanted =
      bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  if ((found & 1) && (low & 0xe6) == 0xe6 && (b & v4Wanted) == v4Wanted)
    found |= 2;
  unsigned leaf7 = a;
  if ((found & 2) && leaf7 >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) &&
      (a & bit_AVX512BF16))
    found |= 4;
  return found;
}
#endif

static int hasCpuFeatures(int64_t wanted) {
#if defined(__x86_64__)
  /* Threads that come here at once find the same. */
  static int64_t known = -1;
  int64_t features = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (features < 0) {
    features = findCpuFeatures();
    __atomic_store_n(&known, features, __ATOMIC_RELAXED);
  }
  return (features & wanted) == wanted;
#else
  (void)wanted;
  return 1;
#endif
}

#endif
