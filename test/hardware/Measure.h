//===- Measure.h - how long a case takes, and its limit ---------*- C++ -*-===//
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
  /// Of the device, for the launches of one repetition.
  double seconds = 0.01;
  int graphLaunches = 100;
};

/// Times are those of one launch; medians, unless they say otherwise.
struct Result {
  std::string name, error;
  double seconds = 0, slowest = 0;
  double limitSeconds = 0;
  double fraction = 0; ///< the limit's time as a part of ours, in each turn
  double enqueueSeconds = 0; ///< of the host, without a graph
  uint64_t bytes = 0;        ///< that are read and written
  const char *limit = "";    ///< what is done instead: copy or fill
  int64_t launches = 0;      ///< of all repetitions
  int copies = 0;            ///< of the tensors, which take turns
  bool isGraph = false;
};

/// Throws where a case cannot be measured.
Result measure(const Device &device, const posenc_function &function,
               const Case &measured, const MeasureOptions &options);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_MEASURE_H
