//===- Report.h - results as JSON and as a table ----------------*- C++ -*-===//
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

/// The device and the driver in one line.
std::string describe(const Device &device);

/// As Google Benchmark's, with the counters of posenc-bench.
std::string formatJson(const Device &device, const std::vector<Result> &results,
                       int repetitions);

/// In Markdown.
std::string formatTable(const Device &device,
                        const std::vector<Result> &results);

/// One line of that.
std::string formatRow(const Result &result);

/// Throws where it cannot be written.
void writeFile(const std::string &path, const std::string &text);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_REPORT_H
