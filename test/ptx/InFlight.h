//===- InFlight.h - bytes that asynchronous operations use ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_INFLIGHT_H
#define POSENC_TEST_PTX_INFLIGHT_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace posenc::ptx {

struct Instruction;

/// For each byte of shared memory, the asynchronous operations that are still
/// writing or reading it. A byte that is being written may hold its old or its
/// new value; one that is being read must not change.
class InFlightBytes {
public:
  void reset(std::size_t size) {
    bytes.assign(size, Byte());
    numWritten = numRead = 0;
  }

  /// Returns the instruction that is writing a byte of the range, or null.
  const Instruction *findWriter(uint64_t begin, uint64_t end) const {
    for (; numWritten && begin < end; ++begin)
      if (bytes[begin].writer)
        return bytes[begin].writer;
    return nullptr;
  }
  /// Returns an instruction that is reading a byte of the range, or null.
  const Instruction *findReader(uint64_t begin, uint64_t end) const {
    for (; numRead && begin < end; ++begin)
      if (bytes[begin].numReaders)
        return bytes[begin].reader;
    return nullptr;
  }

  void beginWrite(uint64_t begin, uint64_t end, const Instruction *writer) {
    numWritten += end - begin;
    for (; begin < end; ++begin)
      bytes[begin].writer = writer;
  }
  void endWrite(uint64_t begin, uint64_t end) {
    numWritten -= end - begin;
    for (; begin < end; ++begin)
      bytes[begin].writer = nullptr;
  }
  void beginRead(uint64_t begin, uint64_t end, const Instruction *reader) {
    numRead += end - begin;
    for (; begin < end; ++begin) {
      bytes[begin].reader = reader;
      ++bytes[begin].numReaders;
    }
  }
  void endRead(uint64_t begin, uint64_t end) {
    numRead -= end - begin;
    for (; begin < end; ++begin)
      --bytes[begin].numReaders;
  }

private:
  struct Byte {
    const Instruction *writer = nullptr;
    const Instruction *reader = nullptr; // the last one that began
    uint32_t numReaders = 0;
  };
  std::vector<Byte> bytes;
  uint64_t numWritten = 0, numRead = 0; // bytes, with repetitions
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_INFLIGHT_H
