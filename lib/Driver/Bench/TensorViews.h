//===- TensorViews.h - tensors that share a buffer --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_TENSORVIEWS_H
#define POSENC_LIB_DRIVER_BENCH_TENSORVIEWS_H

#include "posenc/runtime/Array.h"

#include <deque>

namespace mlir::posenc {

/// DLTensor of DLPack.
struct TensorView {
  void *data;
  int32_t deviceType, deviceId;
  int32_t rank;
  uint8_t typeCode, typeBits;
  uint16_t typeLanes;
  int64_t *shape;
  int64_t *strides;
  uint64_t byteOffset;
};

/// Tensors for an entry point that takes DLPack's, which stay where they are.
class TensorViews {
public:
  /// `heads` heads of a buffer [tokens, heads, dim], from a first one.
  const TensorView *addHeads(const ::posenc::runtime::Array &buffer,
                             int64_t firstHead, int64_t heads);
  /// All of an array.
  const TensorView *add(const ::posenc::runtime::Array &array);

private:
  struct Buffer {
    TensorView view;
    std::vector<int64_t> shape, strides;
  };
  const TensorView *add(Buffer added, posenc_dtype dtype);

  std::deque<Buffer> views;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_TENSORVIEWS_H
