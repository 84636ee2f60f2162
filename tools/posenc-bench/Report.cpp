//===- Report.cpp - console table and reporters ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "posenc-bench/Limit.h"

#include "benchmark/benchmark.h"

#include "llvm/Support/FormatAdapters.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_os_ostream.h"

#include <ostream>

using namespace mlir::posenc;
using ::benchmark::BenchmarkReporter;

namespace {

/// Forwards to another reporter, without the suffix `/manual_time` that Google
/// Benchmark appends to every name.
class CaseNameReporter : public BenchmarkReporter {
public:
  explicit CaseNameReporter(std::unique_ptr<BenchmarkReporter> inner)
      : inner(std::move(inner)) {}

  bool ReportContext(const Context &context) override {
    inner->SetOutputStream(&GetOutputStream());
    inner->SetErrorStream(&GetErrorStream());
    return inner->ReportContext(context);
  }
  void ReportRuns(const std::vector<Run> &runs) override {
    std::vector<Run> renamed = runs;
    for (Run &run : renamed)
      run.run_name.time_type.clear();
    inner->ReportRuns(renamed);
  }
  void Finalize() override { inner->Finalize(); }

private:
  std::unique_ptr<BenchmarkReporter> inner;
};

/// Prints one line per case.
class TableReporter : public BenchmarkReporter {
public:
  bool ReportContext(const Context &context) override;
  void ReportRuns(const std::vector<Run> &runs) override;

private:
  void print(const Run &run);
};

} // namespace

static constexpr int kNameWidth = 60;

bool TableReporter::ReportContext(const Context &context) {
  llvm::raw_os_ostream os(GetOutputStream());
  os << llvm::formatv("{0} CPUs, last-level cache {1} MiB. Times are medians; "
                      "the limit is measured in turn with the kernel, in GB/s "
                      "or, for cases without GB/s, in Gflop/s.\n",
                      context.cpu_info.num_cpus, getLastLevelCacheBytes() >> 20)
     << llvm::left_justify("case", kNameWidth)
     << "        p50        p99     GB/s  Gflop/s    limit  fraction\n";
  return true;
}

/// Formats a time in ns, us, ms or s.
static std::string formatSeconds(double seconds) {
  for (auto [scale, unit] : {std::pair(1e9, "ns"), {1e6, "us"}, {1e3, "ms"}})
    if (seconds * scale < 1000)
      return llvm::formatv("{0:f1} {1}", seconds * scale, unit);
  return llvm::formatv("{0:f2} s", seconds);
}

void TableReporter::print(const Run &run) {
  llvm::raw_os_ostream os(GetOutputStream());
  ::benchmark::BenchmarkName named = run.run_name;
  named.time_type.clear();
  os << llvm::left_justify(named.str(), kNameWidth) << " ";
  if (run.error_occurred) {
    os << run.error_message << "\n";
    return;
  }
  auto get = [&](const char *counter) {
    auto found = run.counters.find(counter);
    return found == run.counters.end() ? 0.0 : double(found->second.value);
  };
  auto formatRate = [&](const char *counter) {
    double rate = get(counter);
    return rate > 0 ? llvm::formatv("{0:f1}", rate / 1e9).str()
                    : std::string("-");
  };
  os << llvm::formatv("{0,10} {1,10} {2,8} {3,8} {4,8:f1} {5,9:f3}",
                      formatSeconds(get(kMedian)), formatSeconds(get(kSlowest)),
                      formatRate(kBytesPerSecond), formatRate(kFlopsPerSecond),
                      get(kLimit) / 1e9, get(kFraction));
  if (double ratio = get(kOverPlain))
    os << llvm::formatv("  {0:f2} times the time per tile of plain attention",
                        ratio);
  if (double ratio = get(kOverOurs))
    os << llvm::formatv("  {0:f2} times posenc's time", ratio);
  if (double ratio = get(kOverBaseline))
    os << llvm::formatv("  {0:f3} times the baseline's speed, {1} bits", ratio,
                        get(kSameBits) ? "equal" : "different");
  os << "\n";
}

void TableReporter::ReportRuns(const std::vector<Run> &runs) {
  for (const Run &run : runs)
    if (run.run_type == Run::RT_Iteration)
      print(run);
  GetOutputStream().flush();
}

static std::unique_ptr<BenchmarkReporter>
createFileReporter(const std::string &format) {
  if (format == "json")
    return std::make_unique<::benchmark::JSONReporter>();
  return std::make_unique<::benchmark::ConsoleReporter>(
      ::benchmark::ConsoleReporter::OO_None);
}

void mlir::posenc::runBenchmarks(const BenchRequest &request) {
  auto rename = [](std::unique_ptr<BenchmarkReporter> reporter) {
    return std::make_unique<CaseNameReporter>(std::move(reporter));
  };
  std::unique_ptr<BenchmarkReporter> display, file;
  if (request.hasFormat)
    display = rename(std::unique_ptr<BenchmarkReporter>(
        ::benchmark::CreateDefaultDisplayReporter()));
  else
    display = std::make_unique<TableReporter>();
  if (request.hasFile)
    file = rename(createFileReporter(request.fileFormat));
  ::benchmark::AddCustomContext("posenc_version", POSENC_VERSION);
  ::benchmark::RunSpecifiedBenchmarks(display.get(), file.get());
}
