//===- Report.h - formats results as JSON and as a table --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_REPORT_H
#define POSENC_TEST_HARDWARE_REPORT_H

#include "Measure.h"

#include <string>
#include <vector>

namespace posenc::hardware {

/// Describes the device and the driver in one line.
std::string describe(const Device &device);

/// Formats results as JSON in the format of Google Benchmark, with the counters
/// of posenc-bench.
std::string formatJson(const Device &device, const std::vector<Result> &results,
                       int repetitions);

/// Formats what precedes the rows of a Markdown table of results.
std::string formatTableHeader();

/// Formats one row of the table.
std::string formatRow(const Result &result);

/// Makes text fit in a cell of a table: one line without '|'.
std::string escapeCell(std::string text);

/// A file that only grows, so that it can be read when the program has been
/// killed.
class TableFile {
public:
  /// Nothing is written for an empty path. Throws Failure.
  explicit TableFile(const std::string &path);
  ~TableFile();
  TableFile(const TableFile &) = delete;
  TableFile &operator=(const TableFile &) = delete;

  /// Appends text at once. Throws Failure.
  void write(const std::string &text);

private:
  int file = -1;
  std::string path;
};

/// Writes the file under a temporary name and renames it. Throws Failure.
void writeFile(const std::string &path, const std::string &text);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_REPORT_H
