//===- Report.h - the table and the names of a report -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_REPORT_H
#define POSENC_LIB_DRIVER_BENCH_REPORT_H

#include "Request.h"

namespace mlir::posenc {

// Names of counters. The limit is in bytes per second or, where these are not
// given, in operations per second.
inline constexpr const char *kBytesPerSecond = "bytes_per_second";
inline constexpr const char *kFlopsPerSecond = "flops_per_second";
inline constexpr const char *kLimit = "limit";
inline constexpr const char *kFraction = "fraction_of_limit";
// Of attention with something more: the time for each visited tile over that
// of the plain form. Of a peer: its time over ours. With a baseline: how many
// times as fast as the baseline the kernel is, and 1 where both have the same
// results bit by bit, else 0.
inline constexpr const char *kOverPlain = "tile_time_over_plain";
inline constexpr const char *kOverOurs = "time_over_posenc";
inline constexpr const char *kOverBaseline = "speed_over_baseline";
inline constexpr const char *kSameBits = "same_bits_as_baseline";
inline constexpr const char *kMedian = "p50_seconds";
inline constexpr const char *kSlowest = "p99_seconds";

/// Runs all registered benchmarks: prints a line for each as soon as it is
/// measured, or Google Benchmark's own report if a format is asked for, and
/// writes a file if one is. The names are those that were registered.
void runBenchmarks(const BenchRequest &request);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_REPORT_H
