//===- Cpu.h - features and family of the CPU ---------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_CPU_H
#define POSENC_KERNEL_CPU_H

#include "Description.h"

#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* CpuTest.cpp defines these macros to simulate CPUs. POSENC_CPUID returns 0 if
 * the leaf does not exist. POSENC_REQUEST_TILES returns whether the process may
 * use the tile registers of AMX, for which it has to ask Linux by
 * arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA). */
#ifndef POSENC_CPUID
#define POSENC_CPUID __get_cpuid_count
static unsigned readXcr0(void) {
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}
#define POSENC_XCR0() readXcr0()
static int requestTiles(void) {
  enum { kUnknown, kAllowed, kRefused };
  static int known = kUnknown;
  int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (answer == kUnknown) {
    const long archPrctl = 158, requestPermission = 0x1023, tileData = 18;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(archPrctl), "D"(requestPermission), "S"(tileData)
                     : "rcx", "r11", "memory");
    answer = result == 0 ? kAllowed : kRefused;
    __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
  }
  return answer == kAllowed;
}
#define POSENC_REQUEST_TILES() requestTiles()
#endif

/* Leaf 7, EDX. */
enum {
  POSENC_BIT_AMX_BF16 = 1 << 22,
  POSENC_BIT_AMX_TILE = 1 << 24,
  POSENC_BIT_AMX_INT8 = 1 << 25
};

/* Returns bits of PosencCpuFeature. */
static int64_t findCpuFeatures(void) {
  int64_t found = 0;
  unsigned a, b, c, d;
  if (!POSENC_CPUID(1, 0, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
    return found;
  unsigned leaf1 = c, low = POSENC_XCR0();
  unsigned extended = 0;
  if (POSENC_CPUID(0x80000001, 0, &a, &b, &c, &d))
    extended = c;
  if (!POSENC_CPUID(7, 0, &a, &b, &c, &d))
    return found;
  /* All instruction sets of x86-64-v3 beyond x86-64: the code may use any. */
  unsigned leaf1Wanted = bit_SSE3 | bit_SSSE3 | bit_FMA | bit_CMPXCHG16B |
                         bit_SSE4_1 | bit_SSE4_2 | bit_MOVBE | bit_POPCNT |
                         bit_AVX | bit_F16C;
  unsigned extendedWanted = bit_LAHF_LM | bit_LZCNT;
  unsigned leaf7Wanted = bit_AVX2 | bit_BMI | bit_BMI2;
  if ((low & 6) == 6 && (leaf1 & leaf1Wanted) == leaf1Wanted &&
      (extended & extendedWanted) == extendedWanted &&
      (b & leaf7Wanted) == leaf7Wanted)
    found |= kCpuFeatureX86V3;
  unsigned v4Wanted =
      bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  if ((found & kCpuFeatureX86V3) && (low & 0xe6) == 0xe6 &&
      (b & v4Wanted) == v4Wanted)
    found |= kCpuFeatureX86V4;
  unsigned leaf7 = a, amxWanted = POSENC_BIT_AMX_BF16 | POSENC_BIT_AMX_TILE |
                                  POSENC_BIT_AMX_INT8;
  int hasAMX = (d & amxWanted) == amxWanted && (low & 0x60000) == 0x60000;
  int hasVnni = (c & bit_AVX512VNNI) != 0;
  if ((found & kCpuFeatureX86V4) && hasVnni)
    found |= kCpuFeatureAvx512Vnni;
  if ((found & kCpuFeatureAvx512Vnni) && leaf7 >= 1 &&
      POSENC_CPUID(7, 1, &a, &b, &c, &d) && (a & bit_AVX512BF16))
    found |= kCpuFeatureAvx512Bf16;
  if ((found & kCpuFeatureAvx512Bf16) && hasAMX)
    found |= kCpuFeatureAmxBf16;
  return found;
}

/* Returns a PosencCpuFamily. */
static int64_t findCpuFamily(void) {
  unsigned a, b, c, d;
  if (!POSENC_CPUID(0, 0, &a, &b, &c, &d) || b != signature_AMD_ebx ||
      c != signature_AMD_ecx || d != signature_AMD_edx ||
      !POSENC_CPUID(1, 0, &a, &b, &c, &d))
    return kCpuFamilyOther;
  unsigned family = a >> 8 & 0xf, model = (a >> 4 & 0xf) | (a >> 12 & 0xf0);
  if (family == 0xf)
    family += a >> 20 & 0xff;
  if (family == 0x19) {
    int isZen4 = (model >= 0x10 && model <= 0x1f) ||
                 (model >= 0x60 && model <= 0x7f) || model >= 0xa0;
    return isZen4 ? kCpuFamilyZen4 : kCpuFamilyZen3;
  }
  int isZen5 = model < 0x50 || (model >= 0x60 && model <= 0x7f);
  return family == 0x1a && isZen5 ? kCpuFamilyZen5 : kCpuFamilyOther;
}
#endif

/* Returns the features and the family of the CPU in the layout of
 * Variant::cpuFeatures. */
static int64_t findCpu(void) {
#if defined(__x86_64__)
  /* Concurrent threads compute and store the same value. */
  static int64_t known = -1;
  int64_t cpu = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (cpu < 0) {
    cpu = findCpuFeatures() | findCpuFamily() << kCpuFamilyShift;
    __atomic_store_n(&known, cpu, __ATOMIC_RELAXED);
  }
  return cpu;
#else
  return 0;
#endif
}

/* Returns the index of the variant to run on a CPU: the first that is tuned for
 * its family, else the first whose features it supports, else -1. */
static int64_t chooseVariant(const struct Variant *variants,
                             int64_t numVariants, int64_t cpu) {
  int64_t first = -1;
  for (int64_t i = 0; i < numVariants; ++i) {
    int64_t wanted = variants[i].cpuFeatures & POSENC_CPU_FEATURE_BITS;
    int64_t family = variants[i].cpuFeatures >> kCpuFamilyShift;
    if ((cpu & wanted) != wanted)
      continue;
    if (family && family == cpu >> kCpuFamilyShift)
      return i;
    if (first < 0)
      first = i;
  }
  return first;
}

/* Like chooseVariant, for this process on the CPU. Asks for tile registers only
 * if the variant uses them, because Linux then wants larger alternate stacks
 * for signals. */
static int64_t findVariant(const struct Variant *variants, int64_t numVariants,
                           int64_t cpu) {
  int64_t best = chooseVariant(variants, numVariants, cpu);
#if defined(__x86_64__)
  if (best >= 0 && (variants[best].cpuFeatures & kCpuFeatureAmxBf16) &&
      !POSENC_REQUEST_TILES())
    best = chooseVariant(variants, numVariants, cpu & ~kCpuFeatureAmxBf16);
#endif
  return best;
}

#endif
