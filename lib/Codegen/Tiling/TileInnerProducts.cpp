//===- TileInnerProducts.cpp - matrix products inside tiles ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A matrix product inside a tile of another operation, as in attention, has its
// matrices in cache, so it needs register tiles but no cache blocks. Its
// elementwise user is fused into the register tiles, while the accumulators are
// in registers.
//
//===----------------------------------------------------------------------===//

#include "ProductTiling.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/CreateGeneric.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Posenc.h"
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

/// Maximum number of elements of a matrix that stays in cache.
static constexpr int64_t kMaxMatrixElements = 64 << 10;

/// Returns the number of iterations of each loop, or a constant upper bound of
/// it. Fails if a loop has no such bound.
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
      FailureOr<int64_t> max = ValueBoundsConstraintSet::computeConstantBound(
          presburger::BoundType::UB,
          ValueBoundsConstraintSet::Variable(operand.get(), *dim),
          /*stopCondition=*/nullptr, /*closedUB=*/true);
      if (failed(max))
        return failure();
      bound = *max;
      break;
    }
  }
  return bounds;
}

/// Returns the operation as a matrix product if it is inside a loop and its
/// matrices have bounded sizes that fit in cache; fails otherwise.
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
    if ((*sizes)[loop] * (*sizes)[product->k] > kMaxMatrixElements)
      return failure();
  return product;
}

/// Returns the f32 matrix if `matrix` is only its rounding to bf16, otherwise
/// `matrix`.
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

/// Returns the input of a linalg.transpose, with `map` changed to index it, or
/// `matrix` if it is not transposed.
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

/// Whether affine simplification proves that `size` is a multiple of `number`.
static bool isMultiple(RewriterBase &rewriter, Location loc, OpFoldResult size,
                       int64_t number) {
  return isConstantIntValue(
      affine::makeComposedFoldedAffineApply(
          rewriter, loc, rewriter.getAffineDimExpr(0) % number, {size}),
      0);
}

namespace {
/// Copies the matrices of one product to the layout and type in which the
/// micro-kernel reads them: elements of the accumulator type, or words of bf16
/// pairs.
class MatrixCopies {
public:
  MatrixCopies(RewriterBase &rewriter, const Product &product,
               bool usesBF16Dots)
      : b(rewriter), loc(product.op->getLoc()), op(product.op), k(product.k),
        usesBF16Dots(usesBF16Dots),
        element(usesBF16Dots ? Type(b.getI32Type())
                             : getSumType(getElementTypeOrSelf(
                                   product.getOperand(2).getType()))) {}

  /// Returns the matrix, or a copy of it that is created before the loops in
  /// which the matrix is invariant; `map` becomes the indexing map of the copy.
  /// If `first` is given, that loop indexes the result's first dimension.
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
  bool usesBF16Dots;
  Type element;
};
} // namespace

Value MatrixCopies::prepare(Value matrix, AffineMap &map,
                            std::optional<unsigned> first) {
  if (usesBF16Dots)
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

/// Copies the source of a slice if it is small enough: it may be invariant in
/// more loops than the slice. Returns the slice of the copy, or null.
Value MatrixCopies::copyWhole(tensor::ExtractSliceOp slice, AffineMap &map,
                              bool swapped) {
  RankedTensorType type = slice.getSourceType();
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  constexpr int64_t maxMatrices = 64;
  if (!type.hasStaticShape() ||
      type.getNumElements() > maxMatrices * kMaxMatrixElements ||
      !slice.hasUnitStride())
    return nullptr;
  SmallVector<OpFoldResult> offsets = slice.getMixedOffsets(),
                            sizes = slice.getMixedSizes();
  unsigned numDropped = dropped.count();
  bool isOneOfAll = type.getRank() == 3 && numDropped == 1 && dropped.test(0) &&
                    isConstantIntValue(sizes[0], 1) &&
                    slice.getType().getShape() == type.getShape().drop_front();
  bool isPart = numDropped == 0 && type.getNumElements() <= kMaxMatrixElements;
  unsigned depthDim = getDepthDim(map);
  if (isPart && usesBF16Dots && !isZeroInteger(offsets[depthDim]))
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
    // A word's second element may lie outside the slice: the other matrix has a
    // zero there.
    if (usesBF16Dots)
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

/// Copies each matrix of a rank-3 tensor, which is a batch of matrices.
Value MatrixCopies::copyAll(Value matrices, AffineMap map, bool swapped) {
  auto type = cast<RankedTensorType>(matrices.getType());
  SmallVector<int64_t> shape(type.getShape());
  if (usesBF16Dots) {
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
  auto [to, copySizes, strides] = slice(empty, shape, number);
  Value next = tensor::InsertSliceOp::create(
      b, loc, copied, loop.getRegionIterArg(0), to, copySizes, strides);
  scf::YieldOp::create(b, loc, next);
  return loop.getResult(0);
}

/// Copies one matrix at the builder's insertion point.
Value MatrixCopies::copy(Value matrix, AffineMap map, bool swapped) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, matrix);
  unsigned depthDim = getDepthDim(map);
  OpFoldResult depth = sizes[depthDim];
  if (usesBF16Dots)
    sizes[depthDim] = getNumDotWords(b, loc, depth);
  SmallVector<unsigned> permutation{0, 1};
  if (swapped) {
    std::swap(permutation[0], permutation[1]);
    std::swap(sizes[0], sizes[1]);
  }
  Value empty = tensor::EmptyOp::create(b, loc, sizes, element);
  if (usesBF16Dots)
    return packDotWords(b, loc, matrix, depthDim, depth, empty,
                        permutation[depthDim]);
  return createParallelGeneric(
      b, loc, matrix, empty,
      {AffineMap::getPermutationMap(permutation, b.getContext()),
       b.getMultiDimIdentityMap(2)},
      [&](OpBuilder &nested, Location l, ValueRange args) -> Value {
        Value x = args[0];
        if (x.getType() != element)
          x = arith::ExtFOp::create(nested, l, element, x);
        return x;
      });
}

/// Returns the cheap elementwise operation that is the only user of the
/// product, or null.
static linalg::GenericOp findUser(Operation *op) {
  if (!op->getResult(0).hasOneUse())
    return nullptr;
  OpOperand &use = *op->getResult(0).use_begin();
  auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!user || user->getBlock() != op->getBlock() || !user.isDpsInput(&use) ||
      user.getNumLoops() != 2 || !isTiledElementwise(user) ||
      !user.getMatchingIndexingMap(&use).isPermutation())
    return nullptr;
  // Longer bodies, and operations that are expanded later, would need registers
  // that hold the accumulators.
  constexpr int64_t maxOperations = 6;
  auto body = user.getBody()->without_terminator();
  bool isCheap = llvm::range_size(body) <= maxOperations &&
                 llvm::all_of(body, [](Operation &inner) {
                   return isa<arith::ArithDialect>(inner.getDialect()) ||
                          isa<math::FmaOp>(inner);
                 });
  return isCheap ? user : linalg::GenericOp();
}

/// Creates the product of the copied matrices.
static TileProductOp prepareProduct(RewriterBase &rewriter,
                                    const Product &product, bool usesBF16Dots) {
  linalg::LinalgOp op = product.op;
  SmallVector<AffineMap> maps{product.getMap(0), product.getMap(1)};
  MatrixCopies copies(rewriter, product, usesBF16Dots);
  Value left = copies.prepare(product.getOperand(0), maps[0], std::nullopt);
  Value right = copies.prepare(product.getOperand(1), maps[1], product.k);
  rewriter.setInsertionPoint(op);
  auto tile = TileProductOp::create(
      rewriter, op.getLoc(), left, right, product.getOperand(2),
      usesBF16Dots ? ProductElements::BF16Pairs : ProductElements::Floats,
      /*transposed=*/maps[0].getDimPosition(0) == product.k);
  rewriter.replaceOp(op, tile.getResult());
  return tile;
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
      updateKernelConfig(getOperation(), &KernelConfig::tasksBy, TasksBy::All);
    for (const Product &product : products)
      if (failed(tileOne(rewriter, product)))
        return signalPassFailure();
    // Canonicalization makes the tile sizes constants.
    OpPassManager canonicalization(getOperation()->getName());
    canonicalization.addPass(createCanonicalizerPass());
    if (failed(runPipeline(canonicalization, getOperation())))
      return signalPassFailure();
  }

private:
  LogicalResult tileOne(RewriterBase &rewriter, const Product &product);

  /// Whether the product can use bf16 dot products (VDPBF16PS), which requires
  /// that all register tiles are full.
  bool canUseBF16Dots(RewriterBase &rewriter, const Product &product,
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

  /// Returns the rows of a register tile; prefers a divisor of `all`.
  int64_t getRows(int64_t all) const {
    // Accumulators take half of the 32 registers of AVX-512, or 12 of 16.
    int64_t max = vectorBytes >= 64 ? 8 : 6;
    for (int64_t rows : {max, max - 1, max - 2})
      if (all % rows == 0)
        return rows;
    return std::min(all, max);
  }
};
} // namespace

/// Makes all tiles of a loop full: the remainder becomes a loop after it.
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
  // Upstream does not infer full tiles from bounds that are multiples of the
  // step, so sets the tile sizes here.
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
  bool usesBF16Dots = canUseBF16Dots(rewriter, product, ranges);
  TileProductOp op = prepareProduct(rewriter, product, usesBF16Dots);
  linalg::GenericOp user = findUser(op);

  int64_t columns = 16 * int64_t{vectorBytes} / result.getIntOrFloatBitWidth();
  SmallVector<int64_t> sizes{getRows(ranges[product.m]),
                             std::min(columns, ranges[product.n]), 0};
  Operation *root = op;
  if (user) {
    root = user;
    AffineMap map = user.getMatchingIndexingMap(&*op->getResult(0).use_begin());
    SmallVector<int64_t> userSizes(2, 0);
    for (unsigned dim = 0; dim < 2; ++dim)
      userSizes[map.getDimPosition(dim)] = sizes[dim];
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
          rewriter, cast<TilingInterface>(root), options);
  if (failed(tiled))
    return success();
  for (OpResult old : root->getResults())
    rewriter.replaceAllUsesWith(old, tiled->replacements.lookup(old));
  rewriter.eraseOp(root);
  if (user && op->use_empty())
    rewriter.eraseOp(op);

  for (LoopLikeOpInterface loop : llvm::reverse(tiled->loops))
    makeWhole(rewriter, cast<scf::ForOp>(loop.getOperation()));
  return success();
}
