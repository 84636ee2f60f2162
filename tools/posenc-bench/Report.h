//===- Report.h - counters and output of a run ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_REPORT_H
#define POSENC_TOOLS_BENCH_REPORT_H

#include "Request.h"

namespace mlir::posenc {

// Names of counters. The limit is in bytes per second or, for cases without
// bytes_per_second, in operations per second.
inline constexpr const char *kBytesPerSecond = "bytes_per_second";
inline constexpr const char *kFlopsPerSecond = "flops_per_second";
inline constexpr const char *kLimit = "limit";
inline constexpr const char *kFraction = "fraction_of_limit";
/// Attention with a score_mod or a window: the ratio of its time per tile to
/// that of plain attention.
inline constexpr const char *kOverPlain = "tile_time_over_plain";
/// Other implementations: the ratio of their time to ours.
inline constexpr const char *kOverOurs = "time_over_posenc";
/// With a baseline: the ratio of the kernel's speed to the baseline's, and 1 if
/// the results have equal bits, else 0.
inline constexpr const char *kOverBaseline = "speed_over_baseline";
inline constexpr const char *kSameBits = "same_bits_as_baseline";
inline constexpr const char *kMedian = "p50_seconds";
inline constexpr const char *kSlowest = "p99_seconds";

/// Runs all registered benchmarks. Prints a line for each as soon as it is
/// measured, or Google Benchmark's own report with --benchmark_format, and
/// writes the file of --benchmark_out. Names are printed as registered.
void runBenchmarks(const BenchRequest &request);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_REPORT_H
