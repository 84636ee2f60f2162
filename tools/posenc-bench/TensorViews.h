//===- TensorViews.h - DLPack tensors as views of arrays --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_TENSORVIEWS_H
#define POSENC_TOOLS_BENCH_TENSORVIEWS_H

#include "posenc/runtime/Array.h"

#include <deque>

namespace mlir::posenc {

/// The layout of DLPack's DLTensor.
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

/// DLPack tensors, whose addresses stay valid as long as this object. The
/// arrays own the data and must outlive it.
class TensorViews {
public:
  /// Adds a strided view [tokens, heads, dim] of the heads from `firstHead` on
  /// of a buffer [tokens, all heads, dim].
  const TensorView *addHeads(const ::posenc::runtime::Array &buffer,
                             int64_t firstHead, int64_t heads);
  /// Adds a tensor with the shape of an array.
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

#endif // POSENC_TOOLS_BENCH_TENSORVIEWS_H
