//===- TensorViews.cpp - DLPack tensors as views of arrays ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorViews.h"

using namespace mlir::posenc;
using ::posenc::runtime::Array;

const TensorView *TensorViews::add(Buffer added, posenc_dtype dtype) {
  enum : uint8_t { Int = 0, Float = 2, BFloat = 4 };
  constexpr int32_t cpu = 1;
  bool isInteger =
      dtype == POSENC_I64 || dtype == POSENC_I32 || dtype == POSENC_INDEX;
  added.view.deviceType = cpu;
  added.view.deviceId = 0;
  added.view.rank = static_cast<int32_t>(added.shape.size());
  added.view.typeCode = isInteger ? Int : dtype == POSENC_BF16 ? BFloat : Float;
  added.view.typeBits = static_cast<uint8_t>(8 * posenc_dtype_size(dtype));
  added.view.typeLanes = 1;
  added.view.byteOffset = 0;
  views.push_back(std::move(added));
  Buffer &stored = views.back();
  stored.view.shape = stored.shape.data();
  stored.view.strides =
      stored.strides.empty() ? nullptr : stored.strides.data();
  return &stored.view;
}

const TensorView *TensorViews::addHeads(const Array &buffer, int64_t firstHead,
                                        int64_t heads) {
  int64_t tokens = buffer.shape()[0], dim = buffer.shape()[2];
  Buffer added;
  added.view.data =
      buffer.dataAs<char>() +
      firstHead * dim * int64_t(posenc_dtype_size(buffer.dtype()));
  added.shape = {tokens, heads, dim};
  added.strides = {buffer.shape()[1] * dim, dim, 1};
  return add(std::move(added), buffer.dtype());
}

const TensorView *TensorViews::add(const Array &array) {
  Buffer added;
  added.view.data = array.data();
  added.shape = array.shape();
  return add(std::move(added), array.dtype());
}
