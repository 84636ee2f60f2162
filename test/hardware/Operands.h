//===- Operands.h - the tensors of a case in device memory ------*- C++ -*-===//
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

/// Several copies of the tensors of a case. Without a graph there are enough of
/// them that each has left the L2 cache when it is used again. Integer inputs
/// (positions) are shared by all copies.
class Operands {
public:
  Operands(const Device &device, const posenc_function &function,
           const Case &measured);

  int numCopies() const { return copies; }
  /// Whether there are floating-point inputs.
  bool hasSources() const { return sourceBytes > 0; }
  /// The bytes that the function reads and writes, without positions.
  uint64_t bytes() const {
    return measured.bytes > 0 ? uint64_t(measured.bytes)
                              : readBytes + writtenBytes;
  }

  /// The floating-point operations of a call of attention: two for each
  /// product of a query with a key and of a weight with a value.
  double countOperations() const;

  /// Enqueues a call of the function on the tensors of a copy. Throws Failure.
  void launch(int copy) const;
  /// Enqueues a copy, or a fill without floating-point inputs, of as many
  /// bytes.
  void runLimit(int copy) const;
  /// The bytes that runLimit() reads and writes.
  uint64_t limitBytes() const;

private:
  struct TensorLayout {
    bool isSource;   // a floating-point input
    uint64_t offset; // bytes from the start of the memory of a copy
    posenc_dtype dtype;
    std::vector<int64_t> shape, strides; // in elements
  };
  void layOutInputs();
  void layOutOutputs();
  void chooseCopies();
  void fillSources();
  void writeIntegers(const TensorLayout &layout, const std::string &text);
  uint64_t getAddress(const TensorLayout &layout, int copy) const;
  uint64_t getCopiedBytes() const;

  const Device &device;
  const posenc_function &function;
  const Case &measured;
  std::vector<TensorLayout> inputs, outputs;
  /// The memory of one copy, and the bytes of its tensors.
  uint64_t sourceBytes = 0, resultBytes = 0, readBytes = 0, writtenBytes = 0;
  uint64_t indexBytes = 0;
  int copies = 1;
  std::unique_ptr<Memory> sources, indices, results;
  /// That of all launches, which the stream orders; null if there is none.
  std::unique_ptr<Memory> workspace;
};

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_OPERANDS_H
