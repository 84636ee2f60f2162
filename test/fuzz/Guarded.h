//===- Guarded.h - memory between inaccessible pages ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_GUARDED_H
#define POSENC_TEST_FUZZ_GUARDED_H

#include <cstddef>
#include <sys/mman.h>
#include <utility>

namespace posenc::fuzz {

/// A buffer between two inaccessible pages. It ends at the second one, or
/// begins right after the first one.
class Guarded {
public:
  Guarded(size_t bytes, bool atEnd) {
    size_t pages = (bytes + kPage - 1) / kPage;
    size = (pages + 2) * kPage;
    base = static_cast<char *>(
        mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (pages)
      mprotect(base + kPage, pages * kPage, PROT_READ | PROT_WRITE);
    data = base + kPage + (atEnd ? pages * kPage - bytes : 0);
  }
  Guarded(Guarded &&other) : base(other.base), data(other.data) {
    size = std::exchange(other.size, 0);
  }
  ~Guarded() {
    if (size)
      munmap(base, size);
  }
  template <typename T> T *as() const { return reinterpret_cast<T *>(data); }

private:
  static constexpr size_t kPage = 4096;
  char *base, *data;
  size_t size;
};

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_GUARDED_H
