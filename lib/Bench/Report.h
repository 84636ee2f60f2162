//===- Report.h - the table and the names of a report -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_BENCH_REPORT_H
#define POSENC_LIB_BENCH_REPORT_H

#include "benchmark/benchmark.h"

#include <memory>
#include <string>

namespace mlir::posenc {

// Names of counters.
inline constexpr const char *kBytesPerSecond = "bytes_per_second";
inline constexpr const char *kFlopsPerSecond = "flops_per_second";
inline constexpr const char *kLimit = "limit";
inline constexpr const char *kFraction = "fraction_of_limit";
inline constexpr const char *kMedian = "p50_seconds";
inline constexpr const char *kSlowest = "p99_seconds";

/// A line for each case, as soon as it is measured.
std::unique_ptr<::benchmark::BenchmarkReporter> createTable();

/// Google Benchmark's own for a format, json, csv or console. Its names are
/// those of the cases: `/manual_time`, which all would end in, is left out.
std::unique_ptr<::benchmark::BenchmarkReporter>
createReporter(const std::string &format);
std::unique_ptr<::benchmark::BenchmarkReporter> createDefaultReporter();

} // namespace mlir::posenc

#endif // POSENC_LIB_BENCH_REPORT_H
