/*===- guarded.h - numbers in memory between guard pages ----------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#ifndef GUARDED_H
#define GUARDED_H

/* Must be included first: mmap needs this macro before any header. */

#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif

#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

enum DType { F32, BF16, F16, F64 };
static const size_t kBytes[] = {4, 2, 2, 8};

static inline double load(enum DType dtype, const void *data, size_t i) {
  const char *at = (const char *)data + i * kBytes[dtype];
  uint16_t bits;
  uint32_t wide;
  float single;
  double result;
  switch (dtype) {
  case F32:
    memcpy(&single, at, 4);
    return (double)single;
  case F64:
    memcpy(&result, at, 8);
    return result;
  case BF16:
    memcpy(&bits, at, 2);
    wide = (uint32_t)bits << 16;
    memcpy(&single, &wide, 4);
    return (double)single;
  default:
    memcpy(&bits, at, 2);
    /* Infinities and NaNs are not expected. */
    CHECK((bits & 0x7c00) != 0x7c00);
    result = bits & 0x7c00
                 ? ldexp(1024 + (bits & 0x3ff), ((bits >> 10) & 31) - 25)
                 : ldexp(bits & 0x3ff, -24);
    return bits & 0x8000 ? -result : result;
  }
}

/* Stores a number in [-1, 1], rounded to the type. */
static inline void store(enum DType dtype, void *data, size_t i, double value) {
  char *at = (char *)data + i * kBytes[dtype];
  float single = (float)value;
  uint32_t wide;
  uint16_t bits;
  switch (dtype) {
  case F32:
    memcpy(at, &single, 4);
    return;
  case F64:
    memcpy(at, &value, 8);
    return;
  case BF16:
    memcpy(&wide, &single, 4);
    bits = (uint16_t)(wide >> 16);
    memcpy(at, &bits, 2);
    return;
  default:
    /* Magnitudes from 0.5 to 1 are normal numbers. */
    bits = (uint16_t)(0x3800 | (unsigned)(fabs(value) * 1023.0));
    if (value < 0)
      bits |= 0x8000;
    memcpy(at, &bits, 2);
  }
}

/* Memory between two inaccessible pages. */
struct Guarded {
  char *begin;
  size_t size;
};

static inline struct Guarded makeGuarded(size_t bytes) {
  struct Guarded result;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *all;
  result.size = (bytes + page - 1) / page * page;
  all = (char *)mmap(NULL, result.size + 2 * page, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(all != (char *)MAP_FAILED);
  result.begin = all + page;
  CHECK(mprotect(result.begin, result.size, PROT_READ | PROT_WRITE) == 0);
  return result;
}

static inline void *place(const struct Guarded *memory, size_t bytes,
                          int atEnd) {
  CHECK(bytes <= memory->size);
  return memory->begin + (atEnd ? memory->size - bytes : 0);
}

#endif
