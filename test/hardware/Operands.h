//===- Operands.h - tensors of a case on the device -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_OPERANDS_H
#define POSENC_TEST_HARDWARE_OPERANDS_H

#include "Case.h"
#include "Device.h"

#include <memory>
#include <vector>

namespace posenc::hardware {

/// Several copies of the tensors of a case, so many that each is out of the
/// cache when it is used again. A copy has its inputs in one piece of memory,
/// and its outputs in another one.
class Operands {
public:
  Operands(const Device &device, const posenc_function &function,
           const Case &measured);

  int numCopies() const { return copies; }
  /// Whether there is an input of numbers, apart from positions.
  bool hasSources() const { return sourceBytes > 0; }
  /// What the function has to read and write, without positions.
  uint64_t bytes() const { return readBytes + writtenBytes; }

  /// Puts a call of the function into the device's stream.
  void launch(int copy) const;
  /// The same read and written, or only written, by the driver.
  void runLimit(int copy) const;
  /// What that reads and writes.
  uint64_t limitBytes() const;

private:
  struct Place {
    bool isSource;
    uint64_t offset;
    posenc_dtype dtype;
    std::vector<int64_t> shape, strides;
  };
  void placeInputs();
  void placeOutputs();
  void chooseCopies();
  void fillSources();
  uint64_t getAddress(const Place &place, int copy) const;
  uint64_t getCopiedBytes() const;

  const Device &device;
  const posenc_function &function;
  const Case &measured;
  std::vector<Place> inputs, outputs;
  /// Of the memory of one copy, and of the tensors in it.
  uint64_t sourceBytes = 0, resultBytes = 0, readBytes = 0, writtenBytes = 0;
  uint64_t indexBytes = 0;
  int copies = 1;
  std::unique_ptr<Memory> sources, indices, results;
};

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_OPERANDS_H
