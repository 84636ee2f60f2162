//===- HeadRows.cpp - RMS norm and rotation of head rows ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadRows.h"

#include "posenc/IR/CreateGeneric.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

static Value convertFloat(OpBuilder &builder, Location loc, Value value,
                          Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  if (value.getType() == type)
    return value;
  if (from < type.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(builder, loc, type, value);
  return arith::TruncFOp::create(builder, loc, type, value);
}

Value mlir::posenc::createEmptyLike(OpBuilder &builder, Location loc,
                                    Value tensor, Type element) {
  return tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, tensor), element);
}

Value mlir::posenc::transpose(OpBuilder &builder, Location loc, Value tensor,
                              ArrayRef<int64_t> order) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  SmallVector<OpFoldResult> permuted;
  for (int64_t dim : order)
    permuted.push_back(sizes[dim]);
  Value init = tensor::EmptyOp::create(builder, loc, permuted,
                                       getElementTypeOrSelf(tensor.getType()));
  return linalg::TransposeOp::create(builder, loc, tensor, init, order)
      ->getResult(0);
}

/// Computes `x * (1 / sqrt(mean(x^2) + eps)) * (w + offset)` in the type `sum`
/// and rounds it to `result`. The mean is over the last dimension, and also
/// over `otherDim` if it is given; then `norm` has rank 2.
static Value normalize(OpBuilder &builder, Location loc, Value rows,
                       std::optional<unsigned> otherDim, Value norm,
                       const RowTransform &transform, Type sum, Type result) {
  auto type = cast<RankedTensorType>(rows.getType());
  unsigned rank = type.getRank();
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  SmallVector<unsigned> normed{rank - 1}, others;
  if (otherDim)
    normed.insert(normed.begin(), *otherDim);
  SmallVector<OpFoldResult> allSizes =
      tensor::getMixedSizes(builder, loc, rows);
  SmallVector<OpFoldResult> sizes;
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  int64_t count = 1;
  for (unsigned dim = 0; dim < rank; ++dim) {
    if (llvm::is_contained(normed, dim)) {
      loops[dim] = utils::IteratorType::reduction;
      count *= type.getDimSize(dim);
      continue;
    }
    others.push_back(dim);
    sizes.push_back(allSizes[dim]);
  }
  AffineMap row = all.getSubMap(others), weight = all.getSubMap(normed);
  auto constant = [&](OpBuilder &b, double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(sum, value));
  };

  Value factors = tensor::EmptyOp::create(builder, loc, sizes, sum);
  factors =
      linalg::FillOp::create(builder, loc, constant(builder, 0.0), factors)
          .getResult(0);
  factors =
      linalg::GenericOp::create(builder, loc, factors.getType(), rows, factors,
                                ArrayRef<AffineMap>{all, row}, loops,
                                [&](OpBuilder &b, Location l, ValueRange args) {
                                  Value x = convertFloat(b, l, args[0], sum);
                                  Value squares =
                                      math::FmaOp::create(b, l, x, x, args[1]);
                                  linalg::YieldOp::create(b, l, squares);
                                })
          .getResult(0);
  factors = createParallelGeneric(
      builder, loc, {}, factors, {},
      [&](OpBuilder &b, Location l, ValueRange args) -> Value {
        Value mean = arith::DivFOp::create(b, l, args[0], constant(b, count));
        Value shifted =
            arith::AddFOp::create(b, l, mean, constant(b, transform.eps));
        Value root = math::SqrtOp::create(b, l, shifted);
        return arith::DivFOp::create(b, l, constant(b, 1.0), root);
      });
  Value init = createEmptyLike(builder, loc, rows, result);
  return createParallelGeneric(
      builder, loc, {rows, factors, norm}, init, {all, row, weight, all},
      [&](OpBuilder &b, Location l, ValueRange args) -> Value {
        Value x = convertFloat(b, l, args[0], sum);
        Value w = convertFloat(b, l, args[2], sum);
        if (transform.weightOffset != 0)
          w = arith::AddFOp::create(b, l, w,
                                    constant(b, transform.weightOffset));
        Value scaled = arith::MulFOp::create(b, l, x, args[1]);
        Value normed = arith::MulFOp::create(b, l, scaled, w);
        return convertFloat(b, l, normed, result);
      });
}

/// Returns the type in which rows are normed and rotated.
static Type getSumType(OpBuilder &builder, Type element) {
  return element.isF64() ? element : Type(builder.getF32Type());
}

Value mlir::posenc::normalizeHeads(OpBuilder &builder, Location loc,
                                   Value tensor, unsigned headDim,
                                   const RowTransform &transform) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Type element = type.getElementType();
  auto weightsType =
      RankedTensorType::get({type.getDimSize(headDim), type.getShape().back()},
                            getElementTypeOrSelf(transform.norm.getType()));
  Value weights =
      tensor::ExpandShapeOp::create(builder, loc, weightsType, transform.norm,
                                    ArrayRef<ReassociationIndices>{{0, 1}});
  return normalize(builder, loc, tensor, headDim, weights, transform,
                   getSumType(builder, element), element);
}

/// Rounds each element to the type `element`.
static Value roundTo(OpBuilder &builder, Location loc, Value tensor,
                     Type element) {
  Value init = createEmptyLike(builder, loc, tensor, element);
  return createParallelGeneric(
      builder, loc, tensor, init, {},
      [&](OpBuilder &b, Location l, ValueRange args) -> Value {
        return convertFloat(b, l, args[0], element);
      });
}

Value mlir::posenc::transformRows(OpBuilder &builder, Location loc, Value rows,
                                  unsigned tokenDim, Value positions,
                                  const RowTransform &transform,
                                  bool keepsSum) {
  Type element = getElementTypeOrSelf(rows.getType());
  Type sum = getSumType(builder, element);
  if (transform.norm)
    rows = normalize(builder, loc, rows, /*otherDim=*/std::nullopt,
                     transform.norm, transform, sum,
                     transform.rotation || keepsSum ? sum : element);
  if (RotationAttr rotation = transform.rotation) {
    // The normed rows are a temporary, so rotates them in place.
    Value init =
        transform.norm ? rows : createEmptyLike(builder, loc, rows, element);
    rows =
        RopeOp::create(
            builder, loc, init.getType(), rows, positions, transform.turns,
            init, PairingAttr::get(builder.getContext(), rotation.getPairing()),
            rotation.getFrequencies(), rotation.getAxes(), /*scale=*/nullptr,
            builder.getDenseI64ArrayAttr({static_cast<int64_t>(tokenDim)}),
            builder.getI64IntegerAttr(rotation.getOffset()),
            /*inverse=*/nullptr)
            .getResult(0);
    if (transform.norm && sum != element)
      rows = roundTo(builder, loc, rows, element);
  }
  return rows;
}
