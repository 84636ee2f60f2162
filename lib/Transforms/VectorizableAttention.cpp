//===- VectorizableAttention.cpp - attention ops for CPU kernels ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Transforms/VectorizableAttention.h"

#include "posenc/Numerics/MathExpansion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

/// Whether an operation on vectors can be compiled to instructions instead of
/// library calls, possibly after posenc-expand-math.
static bool hasVectorForm(Operation *op) {
  if (isa<arith::ArithDialect>(op->getDialect()))
    return !isa<arith::RemFOp>(op);
  // The expansion of math.ipowi needs a constant scalar exponent.
  return hasMathExpansion(op) && !isa<math::IPowIOp>(op);
}

/// Returns a reason that names the first operation in the score_mod and
/// mask_mod regions that has no vector form, or nullopt.
static std::optional<std::string> getUnsupportedOperation(AttentionOp op) {
  for (Region *region : {&op.getScore(), &op.getWhere()}) {
    if (region->empty())
      continue;
    for (Operation &inner : region->front().without_terminator())
      if (!hasVectorForm(&inner) &&
          !isa<AlibiOp, T5BucketOp, memref::LoadOp, tensor::ExtractOp>(inner))
        return ("its region contains " + inner.getName().getStringRef()).str();
  }
  return std::nullopt;
}

std::optional<std::string>
mlir::posenc::getVectorUnsupportedReason(AttentionOp op) {
  Type element = getElementTypeOrSelf(op.getQuery().getType());
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return "elements are not f32, f16 or bf16";
  // A norm over all heads of a token reads the stored rows, without scales.
  if (op.getKeyScales() && op.normsAllKeyHeads())
    return "a norm over all heads of quantized keys is not supported";
  auto query = cast<ShapedType>(op.getQuery().getType());
  auto key = cast<ShapedType>(op.getKey().getType());
  if (query.isDynamicDim(op.getQueryHeadDim()) ||
      key.isDynamicDim(op.getKeyHeadDim()))
    return "the number of heads is dynamic";
  if (query.getDimSize(op.getQueryHeadDim()) == 0)
    return "it has no heads";
  for (Value tensor : {op.getKey(), op.getValue()}) {
    int64_t dim = cast<ShapedType>(tensor.getType()).getShape().back();
    constexpr int64_t kMaxHeadDim = 576;
    if (dim > kMaxHeadDim)
      return ("a head of " + Twine(dim) + " is wider than " +
              Twine(kMaxHeadDim))
          .str();
  }
  return getUnsupportedOperation(op);
}
