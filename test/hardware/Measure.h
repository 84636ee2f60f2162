//===- Measure.h - measures a case and its bandwidth limit ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_MEASURE_H
#define POSENC_TEST_HARDWARE_MEASURE_H

#include "Case.h"
#include "Device.h"

#include <string>

namespace posenc::hardware {

struct MeasureOptions {
  int repetitions = 9;
  /// The device time of the launches of one repetition.
  double seconds = 0.01;
  int graphLaunches = 100;
};

/// The result of a case. Times are seconds per launch, medians over the
/// repetitions.
struct Result {
  std::string name, error;
  double seconds = 0;
  double slowest = 0; ///< maximum over the repetitions
  double limitSeconds = 0;
  double fraction = 0;       ///< time of the limit / time of the function
  double enqueueSeconds = 0; ///< host time; 0 with a graph
  uint64_t bytes = 0;        ///< read and written by one launch
  double operations = 0;     ///< of one launch of attention; else 0
  const char *limit = "";    ///< kind of the limit: copy, fill or datasheet
  int64_t launches = 0;      ///< of all repetitions
  int copies = 0;            ///< copies of the tensors, used in turn
  bool isGraph = false;
};

/// Measures the function and, alternating with it, a copy or fill of the driver
/// of as many bytes. The limit of attention and of cases that only read is the
/// peak or the bandwidth of the GPU's datasheet, and 0 seconds if that is not
/// known. Throws Failure if the case cannot be
/// measured.
Result measure(const Device &device, const posenc_function &function,
               const Case &measured, const MeasureOptions &options);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_MEASURE_H
