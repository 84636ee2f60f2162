//===- TensorViews.cpp - tensors that share a buffer ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorViews.h"

using namespace mlir::posenc;
using ::posenc::runtime::Array;

const TensorView *TensorViews::add(Entry entry, posenc_dtype dtype) {
  enum : uint8_t { Int = 0, Float = 2, BFloat = 4 };
  constexpr int32_t cpu = 1;
  bool isInteger =
      dtype == POSENC_I64 || dtype == POSENC_I32 || dtype == POSENC_INDEX;
  entry.view.deviceType = cpu;
  entry.view.deviceId = 0;
  entry.view.rank = static_cast<int32_t>(entry.shape.size());
  entry.view.typeCode = isInteger ? Int : dtype == POSENC_BF16 ? BFloat : Float;
  entry.view.typeBits = static_cast<uint8_t>(8 * posenc_dtype_size(dtype));
  entry.view.typeLanes = 1;
  entry.view.byteOffset = 0;
  entries.push_back(std::move(entry));
  Entry &stored = entries.back();
  stored.view.shape = stored.shape.data();
  stored.view.strides =
      stored.strides.empty() ? nullptr : stored.strides.data();
  return &stored.view;
}

const TensorView *TensorViews::addHeads(const Array &buffer, int64_t firstHead,
                                        int64_t heads) {
  int64_t tokens = buffer.shape()[0], dim = buffer.shape()[2];
  Entry entry;
  entry.view.data =
      buffer.dataAs<char>() +
      firstHead * dim * int64_t(posenc_dtype_size(buffer.dtype()));
  entry.shape = {tokens, heads, dim};
  entry.strides = {buffer.shape()[1] * dim, dim, 1};
  return add(std::move(entry), buffer.dtype());
}

const TensorView *TensorViews::add(const Array &array) {
  Entry entry;
  entry.view.data = array.data();
  entry.shape = array.shape();
  return add(std::move(entry), array.dtype());
}
