//===- ProductsToTiles.cpp - register tiles of products to AMX ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileProducts.h"

#include "Tiling/ProductTiling.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/IR/IndexArithmetic.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCPRODUCTSTOTILESPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

static_assert(kTileWords == kTileRows, "tiles of both operands are squares");

/// The most words of a row.
static constexpr int64_t kMaxWords = kTileDepth / 2;

/// Returns the sizes of the product, or failure if they are not those of tiles.
/// The depth is 0 if it is dynamic.
static FailureOr<TileSizes> getSizes(linalg::GenericOp op) {
  if (!isTileProduct(op))
    return failure();
  auto isContiguous = [](Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    return memref && memref.getRank() == 2 && memref.isLastDimUnitStride();
  };
  if (!llvm::all_of(op->getOperandTypes(), isContiguous))
    return failure();
  SmallVector<int64_t> ranges =
      cast<linalg::LinalgOp>(op.getOperation()).getStaticLoopRanges();
  TileSizes sizes{ranges[0], ranges[1], ranges[2]};
  if (ShapedType::isDynamic(sizes.depth))
    sizes.depth = 0;
  if (sizes.rows != 2 * kTileRows || sizes.columns != 2 * kTileRows ||
      sizes.depth % kTileRows != 0 || sizes.depth > kMaxWords)
    return failure();
  return sizes;
}

static void lower(linalg::GenericOp op, TileSizes sizes) {
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  Value zero = createIndex(builder, 0);
  auto emit = [&](int64_t depth) {
    sizes.depth = depth;
    emitTileProducts(builder, {op->getOperand(0), {}, zero, zero},
                     {op->getOperand(1), {}, zero, zero},
                     {op->getOperand(2), {}, zero, zero}, sizes,
                     /*accumulates=*/true);
  };
  if (sizes.depth > 0)
    return emit(sizes.depth);
  Value words = memref::DimOp::create(builder, op->getOperand(0), 1);
  Value count =
      arith::DivUIOp::create(builder, words, createIndex(builder, kTileWords));
  emitForCount(builder, count, kMaxWords / kTileWords,
               [&](int64_t tiles) { emit(tiles * kTileWords); });
}

namespace {
struct ProductsToTiles final
    : mlir::posenc::impl::PosencProductsToTilesPassBase<ProductsToTiles> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<linalg::GenericOp> products;
    getOperation().walk([&](linalg::GenericOp op) { products.push_back(op); });
    for (linalg::GenericOp op : products) {
      FailureOr<TileSizes> sizes = getSizes(op);
      if (failed(sizes))
        continue;
      lower(op, *sizes);
      op.erase();
    }
  }
};
} // namespace
