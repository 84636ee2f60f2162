//===- Report.cpp - formats results as JSON and as a table ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <thread>
#include <unistd.h>

using namespace posenc;
using namespace posenc::hardware;

__attribute__((format(printf, 1, 2))) static std::string
format(const char *text, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, text);
  std::vsnprintf(line, sizeof(line), text, arguments);
  va_end(arguments);
  return line;
}

std::string hardware::describe(const Device &device) {
  return format("%s (sm_%d, %.1f GiB, L2 cache of %.1f MiB), driver for CUDA "
                "%d.%d",
                device.facts.name, device.facts.arch,
                device.facts.memory_bytes / double(1 << 30),
                device.l2Bytes / double(1 << 20), device.driverVersion / 1000,
                device.driverVersion % 1000 / 10);
}

static std::string quote(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + "\"";
}

static std::string formatContext(const Device &device) {
  char host[256] = "", date[64] = "";
  ::gethostname(host, sizeof(host) - 1);
  std::time_t now = std::time(nullptr);
  std::tm parts;
  std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S+00:00",
                ::gmtime_r(&now, &parts));
  return "  \"context\": {\n    \"date\": " + quote(date) +
         ",\n    \"host_name\": " + quote(host) + ",\n    \"num_cpus\": " +
         std::to_string(std::thread::hardware_concurrency()) +
         ",\n    \"posenc_version\": " + quote(POSENC_VERSION) +
         ",\n    \"device\": " + quote(device.facts.name) +
         format(",\n    \"device_arch\": %d", device.facts.arch) +
         format(",\n    \"device_memory_bytes\": %llu",
                static_cast<unsigned long long>(device.facts.memory_bytes)) +
         format(",\n    \"device_l2_bytes\": %d", device.l2Bytes) +
         format(",\n    \"cuda_driver_version\": %d\n  },\n",
                device.driverVersion);
}

/// Returns the operations of attention, or the bytes, of one launch.
static double getWork(const Result &result) {
  return result.operations > 0 ? result.operations : double(result.bytes);
}

static std::string formatCase(const Result &result, size_t index,
                              int repetitions) {
  std::string name = quote(result.name);
  std::string text =
      "    {\n      \"name\": " + name +
      format(",\n      \"family_index\": %zu,"
             "\n      \"per_family_instance_index\": 0",
             index) +
      ",\n      \"run_name\": " + name +
      ",\n      \"run_type\": \"iteration\"" +
      format(",\n      \"repetitions\": %d,\n      \"repetition_index\": 0,"
             "\n      \"threads\": 1",
             repetitions);
  if (!result.error.empty())
    return text +
           ",\n      \"error_occurred\": true,\n      "
           "\"error_message\": " +
           quote(result.error) + "\n    }";
  double work = getWork(result);
  text += format(
      ",\n      \"iterations\": %lld,\n      \"real_time\": %.9g,"
      "\n      \"cpu_time\": %.9g,\n      \"time_unit\": \"ns\","
      "\n      \"%s_per_second\": %.9g,\n      \"p50_seconds\": %.9g,"
      "\n      \"p99_seconds\": %.9g,\n      \"copies\": %d",
      static_cast<long long>(result.launches), result.seconds * 1e9,
      result.enqueueSeconds * 1e9, result.operations > 0 ? "flops" : "bytes",
      work / result.seconds, result.seconds, result.slowest, result.copies);
  if (result.limitSeconds > 0)
    text += format(",\n      \"limit\": %.9g,"
                   "\n      \"fraction_of_limit\": %.9g",
                   work / result.limitSeconds, result.fraction);
  return text + ",\n      \"label\": " +
         quote(std::string("limit: ") + result.limit +
               (result.isGraph ? ", in a graph" : "")) +
         "\n    }";
}

std::string hardware::formatJson(const Device &device,
                                 const std::vector<Result> &results,
                                 int repetitions) {
  std::string text = "{\n" + formatContext(device) + "  \"benchmarks\": [\n";
  for (size_t i = 0; i < results.size(); ++i)
    text += formatCase(results[i], i, repetitions) +
            (i + 1 < results.size() ? ",\n" : "\n");
  return text + "  ]\n}\n";
}

std::string hardware::formatRow(const Result &result) {
  if (!result.error.empty())
    return "| " + result.name + " | failed: " + escapeCell(result.error) +
           " | | | | |\n";
  // The device waits for the host if that needs longer to enqueue a launch.
  bool isHostBound = result.enqueueSeconds > 0.9 * result.seconds;
  double unit = result.operations > 0 ? 1e12 : 1e9;
  std::string text = format("| %s | %.2f | %.2f | %.1f |", result.name.c_str(),
                            result.seconds * 1e6, result.slowest * 1e6,
                            getWork(result) / result.seconds / unit);
  if (result.limitSeconds > 0)
    text +=
        format(" %.1f %s | %.3f", getWork(result) / result.limitSeconds / unit,
               result.limit, result.fraction);
  else
    text += " unknown |";
  return text + (isHostBound ? " (host-bound) |\n" : " |\n");
}

std::string hardware::formatTableHeader() {
  return "\nMedian and slowest time of one launch. Rates are GB/s, or TFLOP/s "
         "where operations are\ncounted. The limit is the bandwidth of a copy "
         "or fill by the driver, measured in turn with\nthe kernel, or the "
         "peak "
         "or bandwidth of the datasheet.\n\n"
         "| case | p50 us | slowest us | rate | limit | fraction |\n"
         "|---|---:|---:|---:|---:|---:|\n";
}

std::string hardware::escapeCell(std::string text) {
  for (char &c : text)
    if (c == '|' || c == '\n')
      c = '/';
  return text;
}

TableFile::TableFile(const std::string &path) : path(path) {
  if (path.empty())
    return;
  file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0)
    throw Failure("cannot write " + path);
}

TableFile::~TableFile() {
  if (file >= 0)
    ::close(file);
}

void TableFile::write(const std::string &text) {
  if (file >= 0 &&
      ::write(file, text.data(), text.size()) != ssize_t(text.size()))
    throw Failure("cannot write " + path);
}

void hardware::writeFile(const std::string &path, const std::string &text) {
  std::string temporary = path + ".part";
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0)
    throw Failure("cannot write " + path);
}
