//===- ScaleLoops.h - x *= a for each type and vector width -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// What a programmer writes by hand: load, multiply, store; types of 16 bits are
// widened, multiplied and rounded. Included where the compiler may use more
// instructions than elsewhere, thus without any inline function of others.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_SCALELOOPS_H
#define POSENC_LIB_DRIVER_BENCH_SCALELOOPS_H

#include "posenc/Driver/Bench/ByteRun.h"

#include <stddef.h>
#include <stdint.h>

namespace mlir::posenc {

/// The memory that a loop goes through, as ByteRows in Limit.h.
struct Rows {
  char *data;
  int64_t rows, stride;
  const ByteRun *runs;
  int64_t numRuns;
};

using ScaleLoop = void (*)(Rows rows, float factor);

struct ScaleLoops {
  ScaleLoop f64, f32, f16, bf16;
};

extern const ScaleLoops kPortableLoops;
#if defined(__x86_64__)
extern const ScaleLoops kAVX2Loops;
extern const ScaleLoops kAVX512Loops;
extern const ScaleLoops kAVX512BF16Loops;
#endif

/// Copies past the caches; `to` is aligned to 64 bytes and `bytes` is a
/// multiple.
using StreamingCopy = void (*)(char *to, const char *from, int64_t bytes);
#if defined(__x86_64__)
void copyAVX2(char *to, const char *from, int64_t bytes);
void copyAVX512(char *to, const char *from, int64_t bytes);
#endif

/// Calls step(address, factor), which multiplies 64 bytes, all along a run.
template <typename Step>
inline __attribute__((always_inline)) void scaleRun(char *data, int64_t bytes,
                                                    float factor, Step step) {
  int64_t i = 0;
  for (; i + 128 <= bytes; i += 128) {
    step(data + i, factor);
    step(data + i + 64, factor);
  }
  for (; i + 64 <= bytes; i += 64) {
    step(data + i, factor);
  }
  if (i == bytes)
    return;
  char rest[64] = {};
  __builtin_memcpy(rest, data + i, static_cast<size_t>(bytes - i));
  step(rest, factor);
  __builtin_memcpy(data + i, rest, static_cast<size_t>(bytes - i));
}

template <typename Step>
inline __attribute__((always_inline)) void scaleAll(const Rows &rows,
                                                    float factor, Step step) {
  for (int64_t row = 0; row < rows.rows; ++row)
    for (int64_t i = 0; i < rows.numRuns; ++i)
      scaleRun(rows.data + row * rows.stride + rows.runs[i].offset,
               rows.runs[i].bytes, factor, step);
}

/// The same where each row has few lines: without a loop for them, so that the
/// processor sees many rows at a time.
template <int Lines, typename Step>
inline __attribute__((always_inline)) void scaleLines(const Rows &rows,
                                                      float factor, Step step) {
  int64_t offsets[Lines] = {};
  for (int64_t i = 0, line = 0; i < rows.numRuns; ++i)
    for (int64_t at = 0; at < rows.runs[i].bytes; at += 64)
      offsets[line++] = rows.runs[i].offset + at;
  char *data = rows.data;
  int64_t numRows = rows.rows, stride = rows.stride;
  for (int64_t row = 0; row < numRows; ++row, data += stride) {
    for (int line = 0; line < Lines; ++line)
      step(data + offsets[line], factor);
  }
}

/// The number of lines in a row; 0 if some are incomplete.
inline int64_t countLines(const Rows &rows) {
  int64_t lines = 0;
  for (int64_t i = 0; i < rows.numRuns; ++i) {
    if (rows.runs[i].bytes % 64 != 0)
      return 0;
    lines += rows.runs[i].bytes / 64;
  }
  return lines;
}

template <typename Step>
inline __attribute__((always_inline)) void scaleRows(const Rows &rows,
                                                     float factor, Step step) {
  switch (rows.rows > 1 ? countLines(rows) : 0) {
  case 1:
    return scaleLines<1>(rows, factor, step);
  case 2:
    return scaleLines<2>(rows, factor, step);
  case 3:
    return scaleLines<3>(rows, factor, step);
  case 4:
    return scaleLines<4>(rows, factor, step);
  case 5:
    return scaleLines<5>(rows, factor, step);
  case 6:
    return scaleLines<6>(rows, factor, step);
  case 7:
    return scaleLines<7>(rows, factor, step);
  case 8:
    return scaleLines<8>(rows, factor, step);
  default:
    return scaleAll(rows, factor, step);
  }
}

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_SCALELOOPS_H
