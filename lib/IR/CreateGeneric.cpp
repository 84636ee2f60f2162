//===- CreateGeneric.cpp - structured operations --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/CreateGeneric.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

Value mlir::posenc::createParallelGeneric(
    OpBuilder &builder, Location loc, ValueRange inputs, Value init,
    ArrayRef<AffineMap> maps,
    function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  int64_t rank = maps.empty() ? cast<RankedTensorType>(init.getType()).getRank()
                              : int64_t(maps.front().getNumDims());
  SmallVector<AffineMap> identities(inputs.size() + 1,
                                    builder.getMultiDimIdentityMap(rank));
  return linalg::GenericOp::create(
             builder, loc, init.getType(), inputs, init,
             maps.empty() ? identities : maps,
             SmallVector<utils::IteratorType>(rank,
                                              utils::IteratorType::parallel),
             [&](OpBuilder &b, Location l, ValueRange args) {
               linalg::YieldOp::create(b, l, body(b, l, args));
             })
      .getResult(0);
}

Value mlir::posenc::extractSlice(OpBuilder &builder, Location loc, Value tensor,
                                 ArrayRef<OpFoldResult> offsets,
                                 ArrayRef<OpFoldResult> sizes,
                                 ArrayRef<int64_t> dropped) {
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (!llvm::is_contained(dropped, static_cast<int64_t>(dim)))
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto type =
      RankedTensorType::get(shape, getElementTypeOrSelf(tensor.getType()));
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, loc, type, tensor, offsets,
                                        sizes, strides);
}
