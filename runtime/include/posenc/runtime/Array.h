//===- Array.h - An owned contiguous array ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_ARRAY_H
#define POSENC_RUNTIME_ARRAY_H

#include "posenc/runtime/types.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace posenc::runtime {

/// A contiguous row-major array that owns its memory, aligned to 64 bytes (the
/// size of a cache line and of the widest vector). A default-constructed array
/// has the type POSENC_DTYPE_INVALID and no memory. Not synchronized.
class POSENC_RUNTIME_API Array {
public:
  Array() = default;
  ~Array();
  Array(Array &&other) noexcept { swap(other); }
  Array &operator=(Array &&other) noexcept {
    swap(other);
    return *this;
  }
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;

  /// Sets `out` to an array of zeros with the sizes `shape`, in elements.
  /// Returns false and sets `error` for an unknown type, a negative size, a
  /// product of sizes that overflows, or a lack of memory; `out` is then
  /// unchanged.
  static bool allocate(posenc_dtype dtype, std::vector<int64_t> shape,
                       Array &out, std::string &error);

  posenc_dtype dtype() const { return type; }
  /// Changes the element type without changing the bytes. Returns false and
  /// changes nothing if the elements of `dtype` have another size.
  bool reinterpret(posenc_dtype dtype) {
    if (!posenc_dtype_size(dtype) ||
        posenc_dtype_size(dtype) != posenc_dtype_size(type))
      return false;
    type = dtype;
    return true;
  }
  const std::vector<int64_t> &shape() const { return sizes; }
  void *data() const { return memory; }
  template <typename T> T *dataAs() const { return static_cast<T *>(memory); }
  size_t sizeInBytes() const { return bytes; }
  size_t numElements() const {
    size_t size = posenc_dtype_size(type);
    return size ? bytes / size : 0;
  }

  /// Views of the array, valid until it is moved from, assigned or destroyed.
  posenc_tensor tensor() const {
    return {memory, type, static_cast<int32_t>(sizes.size()), sizes.data()};
  }
  posenc_value value() const { return {POSENC_TENSOR, tensor(), {0}}; }

private:
  void swap(Array &other) noexcept {
    std::swap(type, other.type);
    std::swap(memory, other.memory);
    std::swap(bytes, other.bytes);
    sizes.swap(other.sizes);
  }

  posenc_dtype type = POSENC_DTYPE_INVALID;
  void *memory = nullptr;
  size_t bytes = 0;
  std::vector<int64_t> sizes;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_ARRAY_H
