//===- TileInnerProducts.cpp - products of cached matrices ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product within a tile of something else, as attention has them, finds its
// matrices in the caches: no blocks are left to choose. Its user is computed
// tile by tile, while the sums are in registers.
//
//===----------------------------------------------------------------------===//

#include "ProductTiling.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/Transforms/Loops.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCTILEINNERPRODUCTSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// More elements than a matrix has that is left in the caches.
static constexpr int64_t kMostElements = 64 << 10;

/// The loops' numbers of iterations, or their bounds; failure if one has none.
static FailureOr<SmallVector<int64_t>> getBounds(linalg::LinalgOp op,
                                                 const Product &product) {
  SmallVector<int64_t> bounds = op.getStaticLoopRanges();
  for (auto [loop, bound] : llvm::enumerate(bounds)) {
    if (!ShapedType::isDynamic(bound))
      continue;
    AffineExpr expr = getAffineDimExpr(loop, op->getContext());
    for (OpOperand &operand : op->getOpOperands()) {
      std::optional<unsigned> dim =
          op.getMatchingIndexingMap(&operand).getResultPosition(expr);
      if (!dim)
        continue;
      FailureOr<int64_t> most = ValueBoundsConstraintSet::computeConstantBound(
          presburger::BoundType::UB,
          ValueBoundsConstraintSet::Variable(operand.get(), *dim),
          /*stopCondition=*/nullptr, /*closedUB=*/true);
      if (failed(most))
        return failure();
      bound = *most;
      break;
    }
  }
  return bounds;
}

/// The product that the operation is, if it is within a loop, of two matrices
/// of a bounded size that fit into the caches.
static FailureOr<Product> getInnerProduct(linalg::LinalgOp op) {
  if (!op->getParentOfType<LoopLikeOpInterface>())
    return failure();
  FailureOr<Product> product = getProduct(op);
  if (failed(product) || op.getNumLoops() != 3)
    return failure();
  if (ShapedType::isDynamic(op.getStaticLoopRanges()[product->n]))
    return failure();
  FailureOr<SmallVector<int64_t>> sizes = getBounds(op, *product);
  if (failed(sizes) || (*sizes)[product->k] <= 1)
    return failure();
  for (unsigned loop : {product->m, product->n})
    if ((*sizes)[loop] * (*sizes)[product->k] > kMostElements)
      return failure();
  return product;
}

/// The matrix behind operations that only order it otherwise.
static Value lookThroughTranspose(Value matrix, AffineMap &map) {
  auto transpose = matrix.getDefiningOp<linalg::TransposeOp>();
  if (!transpose || !transpose.hasPureTensorSemantics())
    return matrix;
  // Dimension i of the result is dimension permutation[i] of the input.
  SmallVector<AffineExpr> results(map.getNumResults());
  for (auto [dim, from] : llvm::enumerate(transpose.getPermutation()))
    results[from] = map.getResult(dim);
  map = AffineMap::get(map.getNumDims(), 0, results, map.getContext());
  return transpose.getInput();
}

/// A matrix with `rows` before `columns`, as elements of this type; a copy, in
/// front of the loops that do not change it, if it is another now.
static Value prepare(RewriterBase &rewriter, linalg::LinalgOp op, Value matrix,
                     AffineMap &map, Type element,
                     std::optional<std::pair<unsigned, unsigned>> order) {
  matrix = lookThroughTranspose(matrix, map);
  // The whole matrix of a slice may be the same for more loops.
  if (auto slice = matrix.getDefiningOp<tensor::ExtractSliceOp>();
      slice && !slice.getDroppedDims().any() &&
      slice.getSourceType().hasStaticShape() &&
      slice.getSourceType().getNumElements() <= kMostElements) {
    AffineMap ofSlice = map;
    Value whole = prepare(rewriter, op, slice.getSource(), map, element, order);
    if (whole == slice.getSource())
      return matrix;
    SmallVector<OpFoldResult> offsets = slice.getMixedOffsets(),
                              sizes = slice.getMixedSizes();
    if (map != ofSlice) {
      std::swap(offsets[0], offsets[1]);
      std::swap(sizes[0], sizes[1]);
    }
    rewriter.setInsertionPoint(op);
    return tensor::ExtractSliceOp::create(
        rewriter, op->getLoc(), whole, offsets, sizes, slice.getMixedStrides());
  }
  auto type = cast<RankedTensorType>(matrix.getType());
  bool isSwapped = order && map.getDimPosition(0) == order->second;
  if (type.getElementType() == element && !isSwapped)
    return matrix;
  OpBuilder::InsertionGuard guard(rewriter);
  setInsertionPointBeforeLoops(rewriter, op, matrix);
  SmallVector<unsigned> permutation{0, 1};
  if (isSwapped) {
    std::swap(permutation[0], permutation[1]);
    map =
        AffineMap::get(map.getNumDims(), 0,
                       {map.getResult(1), map.getResult(0)}, map.getContext());
  }
  Location loc = op->getLoc();
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, matrix);
  SmallVector<OpFoldResult> permuted{sizes[permutation[0]],
                                     sizes[permutation[1]]};
  Value empty = tensor::EmptyOp::create(rewriter, loc, permuted, element);
  return linalg::GenericOp::create(
             rewriter, loc, empty.getType(), matrix, empty,
             ArrayRef{AffineMap::getPermutationMap(permutation,
                                                   rewriter.getContext()),
                      rewriter.getMultiDimIdentityMap(2)},
             SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
             [&](OpBuilder &b, Location l, ValueRange args) {
               Value x = args[0];
               if (x.getType() != element)
                 x = arith::ExtFOp::create(b, l, element, x);
               linalg::YieldOp::create(b, l, x);
             })
      .getResult(0);
}

/// The elementwise operation that alone uses the product.
static linalg::GenericOp findUser(linalg::LinalgOp op) {
  if (!op->getResult(0).hasOneUse())
    return nullptr;
  OpOperand &use = *op->getResult(0).use_begin();
  auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!user || user->getBlock() != op->getBlock() || !user.isDpsInput(&use) ||
      user.getNumLoops() != 2 || !isTiledElementwise(user) ||
      !user.getMatchingIndexingMap(&use).isPermutation())
    return nullptr;
  // What is expanded to many operations would need the registers.
  bool isCheap =
      llvm::all_of(user.getBody()->without_terminator(), [](Operation &inner) {
        return !isa<math::MathDialect>(inner.getDialect()) ||
               isa<math::FmaOp>(inner);
      });
  return isCheap ? user : linalg::GenericOp();
}

namespace {
struct TileInnerProducts final
    : mlir::posenc::impl::PosencTileInnerProductsPassBase<TileInnerProducts> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Product> products;
    getOperation()->walk([&](linalg::LinalgOp op) {
      FailureOr<Product> product = getInnerProduct(op);
      if (succeeded(product))
        products.push_back(*product);
    });
    IRRewriter rewriter(&getContext());
    if (!products.empty())
      getOperation()->setAttr(kByAllAttrName, rewriter.getUnitAttr());
    for (const Product &product : products)
      if (failed(tileOne(rewriter, product)))
        return signalPassFailure();
  }

private:
  LogicalResult tileOne(RewriterBase &rewriter, const Product &product);

  /// The rows of a register tile, which divide this number if any do.
  int64_t getRows(int64_t all) const {
    // Accumulators take half of the 32 registers of AVX-512, or 12 of 16.
    int64_t most = vectorBytes >= 64 ? 8 : 6;
    for (int64_t rows : {most, most - 1, most - 2})
      if (all % rows == 0)
        return rows;
    return std::min(all, most);
  }
};
} // namespace

/// Creates the product of matrices in the order and type in which it is read
/// here.
static linalg::GenericOp prepareProduct(RewriterBase &rewriter,
                                        const Product &product) {
  linalg::LinalgOp op = product.op;
  Type sum = getSumType(getElementTypeOrSelf(product.getOperand(2).getType()));
  SmallVector<AffineMap> maps{product.getMap(0), product.getMap(1),
                              product.getMap(2)};
  Value left =
      prepare(rewriter, op, product.getOperand(0), maps[0], sum, std::nullopt);
  Value right = prepare(rewriter, op, product.getOperand(1), maps[1], sum,
                        std::pair(product.k, product.n));
  rewriter.setInsertionPoint(op);
  auto generic = linalg::GenericOp::create(
      rewriter, op.getLoc(), op->getResultTypes(), ValueRange{left, right},
      product.getOperand(2), maps, op.getIteratorTypesArray(),
      [&](OpBuilder &b, Location l, ValueRange args) {
        Value x = arith::MulFOp::create(b, l, args[0], args[1]);
        x = arith::AddFOp::create(b, l, args[2], x);
        linalg::YieldOp::create(b, l, x);
      });
  rewriter.replaceOp(op, generic.getResults());
  return generic;
}

LogicalResult TileInnerProducts::tileOne(RewriterBase &rewriter,
                                         const Product &product) {
  Type result = getElementTypeOrSelf(product.getOperand(2).getType());
  if (result != getSumType(result))
    return success();
  linalg::GenericOp op = prepareProduct(rewriter, product);
  linalg::GenericOp user = findUser(op);

  SmallVector<int64_t> ranges = *getBounds(op, product);
  int64_t columns = 16 * int64_t{vectorBytes} / result.getIntOrFloatBitWidth();
  SmallVector<int64_t> sizes(op.getNumLoops(), 0);
  sizes[product.m] = getRows(ranges[product.m]);
  sizes[product.n] = std::min(columns, ranges[product.n]);
  linalg::GenericOp root = user ? user : op;
  if (user) {
    AffineMap ofUser =
        user.getMatchingIndexingMap(&*op->getResult(0).use_begin());
    AffineMap ofProduct = product.getMap(2);
    SmallVector<int64_t> userSizes(2, 0);
    for (unsigned dim = 0; dim < 2; ++dim)
      userSizes[ofUser.getDimPosition(dim)] =
          sizes[ofProduct.getDimPosition(dim)];
    sizes = userSizes;
  }
  scf::SCFTileAndFuseOptions options;
  options.tilingOptions.setTileSizes(
      getAsIndexOpFoldResult(op->getContext(), sizes));
  options.setFusionControlFn(
      [&](tensor::ExtractSliceOp, OpResult producer,
          bool) -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
        if (producer.getOwner() == op ||
            isa<linalg::FillOp>(producer.getOwner()))
          return scf::SCFTileAndFuseOptions::ControlFnResult{false};
        return std::nullopt;
      });
  rewriter.setInsertionPoint(root);
  FailureOr<scf::SCFTileAndFuseResult> tiled =
      scf::tileConsumerAndFuseProducersUsingSCF(
          rewriter, cast<TilingInterface>(root.getOperation()), options);
  if (failed(tiled))
    return success();
  for (OpResult old : root->getResults())
    rewriter.replaceAllUsesWith(old, tiled->replacements.lookup(old));
  rewriter.eraseOp(root);
  if (user && op->use_empty())
    rewriter.eraseOp(op);

  for (Operation *inner : tiled->tiledAndFusedOps) {
    auto tile = dyn_cast<linalg::GenericOp>(inner);
    if (!tile || tile.getNumReductionLoops() == 0)
      continue;
    SmallVector<int64_t> steps(tile.getNumLoops(), 0);
    steps[product.k] = 1;
    scf::SCFTilingOptions loop;
    loop.setTileSizes(getAsIndexOpFoldResult(op->getContext(), steps));
    rewriter.setInsertionPoint(tile);
    FailureOr<scf::SCFTilingResult> sum = scf::tileUsingSCF(
        rewriter, cast<TilingInterface>(tile.getOperation()), loop);
    if (failed(sum))
      return tile.emitOpError("cannot be tiled");
    rewriter.replaceOp(tile, sum->replacements);
  }
  for (LoopLikeOpInterface loop : llvm::reverse(tiled->loops)) {
    scf::ForOp rest;
    (void)scf::peelForLoopAndSimplifyBounds(
        rewriter, cast<scf::ForOp>(loop.getOperation()), rest);
  }
  return success();
}
