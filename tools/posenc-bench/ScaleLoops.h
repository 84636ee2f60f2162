//===- ScaleLoops.h - x *= a for each element type and ISA ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The limit of kernels in place: hand-written vector loops that load, multiply
// and store; elements of 16 bits are widened to f32, multiplied and rounded.
// Files that are compiled for more than the baseline instruction set include
// this header. As PeakLoops.h, it calls no inline functions of other headers.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_SCALELOOPS_H
#define POSENC_TOOLS_BENCH_SCALELOOPS_H

#include "posenc-bench/ByteRun.h"

#include <stddef.h>
#include <stdint.h>

namespace mlir::posenc {

/// The memory that a loop scales, as ByteRows in Limit.h, without std::vector.
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

/// Copies with streaming stores. `to` is aligned to 64 bytes and `bytes` is a
/// multiple of 64.
using StreamingCopy = void (*)(char *to, const char *from, int64_t bytes);
#if defined(__x86_64__)
void copyAVX2(char *to, const char *from, int64_t bytes);
void copyAVX512(char *to, const char *from, int64_t bytes);
#endif

/// Calls step(address, factor), which scales 64 bytes, for all of a run. The
/// bytes after the last whole line are scaled in a copy.
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

/// Scales all runs of all rows.
template <typename Step>
inline __attribute__((always_inline)) void scaleAll(const Rows &rows,
                                                    float factor, Step step) {
  for (int64_t row = 0; row < rows.rows; ++row)
    for (int64_t i = 0; i < rows.numRuns; ++i)
      scaleRun(rows.data + row * rows.stride + rows.runs[i].offset,
               rows.runs[i].bytes, factor, step);
}

/// Scales rows of `Lines` whole cache lines each. The loop over the lines of a
/// row is unrolled, so that loads of several rows overlap.
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

/// Returns the number of cache lines of a row; 0 if any is incomplete.
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

#endif // POSENC_TOOLS_BENCH_SCALELOOPS_H
