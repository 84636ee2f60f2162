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
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

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

/// The matrix of f32 that an operation only rounds to bf16, or the matrix.
static Value lookThroughRounding(Value matrix) {
  auto generic = matrix.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumDpsInputs() != 1 ||
      !llvm::all_of(generic.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return matrix;
  Block &body = *generic.getBody();
  auto rounding = dyn_cast<arith::TruncFOp>(body.front());
  if (!rounding || rounding.getIn() != body.getArgument(0) ||
      !rounding.getIn().getType().isF32() ||
      body.getTerminator()->getOperand(0) != rounding.getResult())
    return matrix;
  return generic.getDpsInputs().front();
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

/// Whether a size is a multiple of a number in an expression of affine.
static bool isMultiple(RewriterBase &rewriter, Location loc, OpFoldResult size,
                       int64_t number) {
  return isConstantIntValue(
      affine::makeComposedFoldedAffineApply(
          rewriter, loc, rewriter.getAffineDimExpr(0) % number, {size}),
      0);
}

namespace {
/// Copies the matrices of one product to the order and type in which they are
/// read: elements of the sums' type, or words of pairs of bf16.
class MatrixCopies {
public:
  MatrixCopies(RewriterBase &rewriter, const Product &product, bool areWords)
      : b(rewriter), loc(product.op->getLoc()), op(product.op), k(product.k),
        areWords(areWords),
        element(areWords ? Type(b.getI32Type())
                         : getSumType(getElementTypeOrSelf(
                               product.getOperand(2).getType()))) {}

  /// The matrix, or a copy in front of the loops that do not change it; `map`
  /// becomes that of the copy. Its first dimension is the loop `first`, if
  /// there is one.
  Value prepare(Value matrix, AffineMap &map, std::optional<unsigned> first);

private:
  bool isSwapped(AffineMap map, std::optional<unsigned> first) {
    return first && map.getDimPosition(0) != *first;
  }
  unsigned getDepthDim(AffineMap map) {
    return *map.getResultPosition(b.getAffineDimExpr(k));
  }
  Value copy(Value matrix, AffineMap map, bool swapped);
  Value copyAll(Value matrices, AffineMap map, bool swapped);
  Value copyWhole(tensor::ExtractSliceOp slice, AffineMap &map, bool swapped);
  AffineMap order(AffineMap map, bool swapped) {
    return swapped ? AffineMap::get(map.getNumDims(), 0,
                                    {map.getResult(1), map.getResult(0)},
                                    b.getContext())
                   : map;
  }

  RewriterBase &b;
  Location loc;
  Operation *op;
  unsigned k;
  bool areWords;
  Type element;
};
} // namespace

Value MatrixCopies::prepare(Value matrix, AffineMap &map,
                            std::optional<unsigned> first) {
  if (areWords)
    matrix = lookThroughRounding(matrix);
  matrix = lookThroughTranspose(matrix, map);
  bool swapped = isSwapped(map, first);
  if (getElementTypeOrSelf(matrix.getType()) == element && !swapped)
    return matrix;
  OpBuilder::InsertionGuard guard(b);
  if (auto slice = matrix.getDefiningOp<tensor::ExtractSliceOp>())
    if (Value whole = copyWhole(slice, map, swapped))
      return whole;
  if (auto copied = matrix.getDefiningOp<linalg::CopyOp>())
    matrix = copied.getInputs().front();
  setInsertionPointBeforeLoops(b, op, matrix);
  Value result = copy(matrix, map, swapped);
  map = order(map, swapped);
  return result;
}

/// Copies what a slice is taken of, if that is a small tensor too, which may be
/// the same for more loops. Returns the slice of the copy, or null.
Value MatrixCopies::copyWhole(tensor::ExtractSliceOp slice, AffineMap &map,
                              bool swapped) {
  RankedTensorType type = slice.getSourceType();
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  constexpr int64_t mostMatrices = 64;
  if (!type.hasStaticShape() ||
      type.getNumElements() > mostMatrices * kMostElements ||
      !slice.hasUnitStride())
    return nullptr;
  SmallVector<OpFoldResult> offsets = slice.getMixedOffsets(),
                            sizes = slice.getMixedSizes();
  unsigned numDropped = dropped.count();
  bool isOneOfAll = type.getRank() == 3 && numDropped == 1 && dropped.test(0) &&
                    isConstantIntValue(sizes[0], 1) &&
                    slice.getType().getShape() == type.getShape().drop_front();
  bool isPart = numDropped == 0 && type.getNumElements() <= kMostElements;
  unsigned depthDim = getDepthDim(map);
  if (isPart && areWords && !isZeroInteger(offsets[depthDim]))
    return nullptr;
  if (!isOneOfAll && !isPart)
    return nullptr;

  setInsertionPointBeforeLoops(b, op, slice.getSource());
  Value whole = isOneOfAll ? copyAll(slice.getSource(), map, swapped)
                           : copy(slice.getSource(), map, swapped);
  b.setInsertionPoint(op);
  SmallVector<OpFoldResult> wholeSizes = tensor::getMixedSizes(b, loc, whole);
  if (isOneOfAll) {
    std::fill(sizes.begin() + 1, sizes.end(), OpFoldResult());
    std::copy(wholeSizes.begin() + 1, wholeSizes.end(), sizes.begin() + 1);
  } else {
    // The pairs of missing elements have weights of zero.
    if (areWords)
      sizes[depthDim] = getNumDotWords(b, loc, sizes[depthDim]);
    if (swapped) {
      std::swap(offsets[0], offsets[1]);
      std::swap(sizes[0], sizes[1]);
    }
  }
  map = order(map, swapped);
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  SmallVector<int64_t> shape;
  for (OpFoldResult size : ArrayRef<OpFoldResult>(sizes).drop_front(isOneOfAll))
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  return tensor::ExtractSliceOp::create(b, loc,
                                        RankedTensorType::get(shape, element),
                                        whole, offsets, sizes, strides);
}

/// Copies each matrix of a tensor of them.
Value MatrixCopies::copyAll(Value matrices, AffineMap map, bool swapped) {
  auto type = cast<RankedTensorType>(matrices.getType());
  SmallVector<int64_t> shape(type.getShape());
  if (areWords) {
    int64_t &depth = shape[1 + getDepthDim(map)];
    depth = *getConstantIntValue(getNumDotWords(b, loc, b.getIndexAttr(depth)));
  }
  if (swapped)
    std::swap(shape[1], shape[2]);
  auto slice = [&](Value tensor, ArrayRef<int64_t> sizes, Value number) {
    SmallVector<OpFoldResult> offsets(3, b.getIndexAttr(0)),
        ones(3, b.getIndexAttr(1));
    SmallVector<OpFoldResult> all =
        getAsIndexOpFoldResult(b.getContext(), sizes);
    offsets[0] = number;
    all[0] = ones[0];
    return std::tuple(offsets, all, ones);
  };
  Value empty = tensor::EmptyOp::create(b, loc, shape, element);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto loop = scf::ForOp::create(b, loc, constant(0), constant(shape[0]),
                                 constant(1), empty);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  auto [offsets, sizes, ones] = slice(matrices, type.getShape(), number);
  Value one = tensor::ExtractSliceOp::create(
      b, loc,
      RankedTensorType::get(type.getShape().drop_front(),
                            type.getElementType()),
      matrices, offsets, sizes, ones);
  Value copied = copy(one, map, swapped);
  auto [to, ofCopy, strides] = slice(empty, shape, number);
  Value next = tensor::InsertSliceOp::create(
      b, loc, copied, loop.getRegionIterArg(0), to, ofCopy, strides);
  scf::YieldOp::create(b, loc, next);
  return loop.getResult(0);
}

/// Copies one matrix here.
Value MatrixCopies::copy(Value matrix, AffineMap map, bool swapped) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, matrix);
  unsigned depthDim = getDepthDim(map);
  OpFoldResult depth = sizes[depthDim];
  if (areWords)
    sizes[depthDim] = getNumDotWords(b, loc, depth);
  SmallVector<unsigned> permutation{0, 1};
  if (swapped) {
    std::swap(permutation[0], permutation[1]);
    std::swap(sizes[0], sizes[1]);
  }
  Value empty = tensor::EmptyOp::create(b, loc, sizes, element);
  if (areWords)
    return packDotWords(b, loc, matrix, depthDim, depth, empty,
                        permutation[depthDim]);
  return linalg::GenericOp::create(
             b, loc, empty.getType(), matrix, empty,
             ArrayRef{AffineMap::getPermutationMap(permutation, b.getContext()),
                      b.getMultiDimIdentityMap(2)},
             SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
             [&](OpBuilder &nested, Location l, ValueRange args) {
               Value x = args[0];
               if (x.getType() != element)
                 x = arith::ExtFOp::create(nested, l, element, x);
               linalg::YieldOp::create(nested, l, x);
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
  // What is more, or is expanded to more, would need the registers.
  constexpr int64_t mostOperations = 6;
  auto body = user.getBody()->without_terminator();
  bool isCheap = llvm::range_size(body) <= mostOperations &&
                 llvm::all_of(body, [](Operation &inner) {
                   return isa<arith::ArithDialect>(inner.getDialect()) ||
                          isa<math::FmaOp>(inner);
                 });
  return isCheap ? user : linalg::GenericOp();
}

/// On a product of words until its tiles are loops over these: an operation of
/// linalg, of which only the indexing counts.
static constexpr StringLiteral kWordsAttrName = "words";

/// Creates the product of the copied matrices.
static linalg::GenericOp prepareProduct(RewriterBase &rewriter,
                                        const Product &product, bool areWords) {
  linalg::LinalgOp op = product.op;
  SmallVector<AffineMap> maps{product.getMap(0), product.getMap(1),
                              product.getMap(2)};
  MatrixCopies copies(rewriter, product, areWords);
  Value left = copies.prepare(product.getOperand(0), maps[0], std::nullopt);
  Value right = copies.prepare(product.getOperand(1), maps[1], product.k);
  rewriter.setInsertionPoint(op);
  auto generic = linalg::GenericOp::create(
      rewriter, op.getLoc(), op->getResultTypes(), ValueRange{left, right},
      product.getOperand(2), maps, op.getIteratorTypesArray(),
      [&](OpBuilder &b, Location l, ValueRange args) {
        Value x = args[0], y = args[1], sum = args[2];
        if (areWords) {
          x = arith::BitcastOp::create(b, l, sum.getType(), x);
          y = arith::BitcastOp::create(b, l, sum.getType(), y);
        }
        Value added = arith::MulFOp::create(b, l, x, y);
        linalg::YieldOp::create(
            b, l, arith::AddFOp::create(b, l, sum, added).getResult());
      });
  if (areWords)
    generic->setAttr(kWordsAttrName, rewriter.getUnitAttr());
  rewriter.replaceOp(op, generic.getResults());
  return generic;
}

/// Replaces a tile of a product of words by a loop over them.
static void addWords(RewriterBase &rewriter, linalg::GenericOp tile) {
  Location loc = tile.getLoc();
  rewriter.setInsertionPoint(tile);
  Value left = tile.getInputs()[0], right = tile.getInputs()[1];
  // Rows of the tile come first in its result.
  SmallVector<AffineMap> maps = tile.getIndexingMapsArray();
  bool leftSwapped = maps[0].getResult(0) != maps[2].getResult(0);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  Value count = rewriter.createOrFold<tensor::DimOp>(loc, right, 0);
  auto loop = scf::ForOp::create(
      rewriter, loc, zero, count, one, tile.getOutputs().front(),
      [&](OpBuilder &b, Location l, Value word, ValueRange state) {
        Value next =
            addDots(b, l, state[0], left, leftSwapped, zero, right, word);
        scf::YieldOp::create(b, l, next);
      });
  rewriter.replaceOp(tile, loop.getResults());
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
    // Sizes of the tiles become constants.
    OpPassManager canonicalization(getOperation()->getName());
    canonicalization.addPass(createCanonicalizerPass());
    if (failed(runPipeline(canonicalization, getOperation())))
      return signalPassFailure();
    SmallVector<linalg::GenericOp> tiles;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (op->hasAttr(kWordsAttrName))
        tiles.push_back(op);
    });
    for (linalg::GenericOp tile : tiles)
      addWords(rewriter, tile);
  }

private:
  LogicalResult tileOne(RewriterBase &rewriter, const Product &product);

  /// Whether products of two neighbours in the order of the sum are added by
  /// one instruction. All register tiles are whole then.
  bool hasDots(RewriterBase &rewriter, const Product &product,
               ArrayRef<int64_t> ranges) const {
    auto isBF16 = [&](unsigned operand) {
      return getElementTypeOrSelf(product.getOperand(operand).getType())
          .isBF16();
    };
    AffineMap map = product.getMap(0);
    rewriter.setInsertionPoint(product.op);
    OpFoldResult rows = tensor::getMixedSize(
        rewriter, product.op->getLoc(), product.getOperand(0),
        *map.getResultPosition(rewriter.getAffineDimExpr(product.m)));
    return bf16Dots && vectorBytes == 64 && isBF16(0) && isBF16(1) &&
           getElementTypeOrSelf(product.getOperand(2).getType()).isF32() &&
           ranges[product.n] % 16 == 0 &&
           isMultiple(rewriter, product.op->getLoc(), rows,
                      getRows(ranges[product.m]));
  }

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

/// Makes the tiles of a loop whole: what is left over becomes a loop behind it.
static void makeWhole(RewriterBase &rewriter, scf::ForOp loop) {
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  rewriter.setInsertionPoint(loop);
  AffineExpr d0 = rewriter.getAffineDimExpr(0),
             d1 = rewriter.getAffineDimExpr(1);
  OpFoldResult length = affine::makeComposedFoldedAffineApply(
      rewriter, loop.getLoc(), d0 - d1,
      {loop.getUpperBound(), loop.getLowerBound()});
  if (!step || !isMultiple(rewriter, loop.getLoc(), length, *step)) {
    scf::ForOp rest;
    (void)scf::peelForLoopAndSimplifyBounds(rewriter, loop, rest);
    return;
  }
  // Upstream cannot tell from bounds that are multiples of the step.
  SmallVector<affine::AffineMinOp> sizes;
  for (Operation *user : loop.getInductionVar().getUsers())
    if (auto size = dyn_cast<affine::AffineMinOp>(user);
        size && llvm::any_of(size.getMap().getResults(), [&](AffineExpr expr) {
          return expr == rewriter.getAffineConstantExpr(*step);
        }))
      sizes.push_back(size);
  for (affine::AffineMinOp size : sizes) {
    rewriter.setInsertionPoint(size);
    rewriter.replaceOpWithNewOp<arith::ConstantIndexOp>(size, *step);
  }
}

LogicalResult TileInnerProducts::tileOne(RewriterBase &rewriter,
                                         const Product &product) {
  Type result = getElementTypeOrSelf(product.getOperand(2).getType());
  if (result != getSumType(result))
    return success();
  SmallVector<int64_t> ranges = *getBounds(product.op, product);
  bool areWords = hasDots(rewriter, product, ranges);
  linalg::GenericOp op = prepareProduct(rewriter, product, areWords);
  linalg::GenericOp user = findUser(op);

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
    if (areWords)
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
  for (LoopLikeOpInterface loop : llvm::reverse(tiled->loops))
    makeWhole(rewriter, cast<scf::ForOp>(loop.getOperation()));
  return success();
}
