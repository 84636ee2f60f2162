//===- TileContractions.cpp - tile sizes of matrix products ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Panels.h"
#include "ProductTiling.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCTILECONTRACTIONSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-tile-contractions"

/// Returns the longest of `loops`, where dynamic loops count as long, and the
/// last one of equally long loops. The others are added to `others`.
static unsigned takeLongest(linalg::LinalgOp op, ArrayRef<unsigned> loops,
                            SmallVectorImpl<unsigned> &others) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  auto isLonger = [&](unsigned a, unsigned b) {
    auto getLength = [&](unsigned loop) {
      return ShapedType::isDynamic(ranges[loop])
                 ? std::numeric_limits<int64_t>::max()
                 : ranges[loop];
    };
    return getLength(a) >= getLength(b);
  };
  unsigned longest = loops.front();
  for (unsigned loop : loops.drop_front())
    if (isLonger(loop, longest))
      longest = loop;
  for (unsigned loop : loops)
    if (loop != longest)
      others.push_back(loop);
  return longest;
}

/// Whether a slice of an operand would keep a loop of one iteration and drop a
/// dimension behind it. The types of rank-reducing slices do not say which unit
/// dimensions they keep, and canonicalization keeps the last ones.
static bool hasAmbiguousSlice(const Product &product) {
  linalg::LinalgOp op = product.op;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (AffineMap map : op.getIndexingMapsArray()) {
    bool keepsUnit = false;
    for (AffineExpr result : map.getResults()) {
      unsigned loop = cast<AffineDimExpr>(result).getPosition();
      bool isKept = loop == product.m || loop == product.n || loop == product.k;
      if (!isKept && keepsUnit)
        return true;
      keepsUnit |= isKept && ranges[loop] == 1;
    }
  }
  return false;
}

FailureOr<Product> mlir::posenc::getProduct(linalg::LinalgOp op) {
  // Slices of loops with zero iterations would be out of bounds.
  if (!op.hasPureTensorSemantics() || !linalg::isaContractionOpInterface(op) ||
      llvm::is_contained(op.getStaticLoopRanges(), 0))
    return failure();
  FailureOr<linalg::ContractionDimensions> dims =
      linalg::inferContractionDims(op);
  if (failed(dims) || dims->m.empty() || dims->n.empty() || dims->k.empty())
    return failure();
  auto getType = [&](unsigned operand) {
    return getElementTypeOrSelf(op->getOperand(operand).getType());
  };
  Type sum = getSumType(getType(2));
  if (!sum.isF32() && !sum.isF64())
    return failure();
  for (unsigned operand : {0, 1})
    if (!isa<FloatType>(getType(operand)) ||
        getType(operand).getIntOrFloatBitWidth() > sum.getIntOrFloatBitWidth())
      return failure();
  // Accepts mulf and addf in the result's type, and extf of the operands.
  for (Operation &inner : op->getRegion(0).front().without_terminator())
    if (!isa<arith::MulFOp, arith::AddFOp, arith::ExtFOp>(inner) ||
        inner.getResult(0).getType() != getType(2))
      return failure();
  // The verifier accepts results with an index per iteration of a reduction.
  if (dims->batch.size() + dims->m.size() + dims->n.size() !=
      op.getIndexingMapsArray()[2].getNumResults())
    return failure();
  SmallVector<unsigned> batch(dims->batch.begin(), dims->batch.end());
  unsigned m = takeLongest(op, dims->m, batch);
  unsigned n = takeLongest(op, dims->n, batch);
  SmallVector<unsigned> sums;
  unsigned k = takeLongest(op, dims->k, sums);
  Product product{op, op.getIndexingMapsArray(), batch, sums, m, n, k};
  AffineMap out = product.getMap(2);
  MLIRContext *context = op->getContext();
  auto getPosition = [&](unsigned loop) {
    return *out.getResultPosition(getAffineDimExpr(loop, context));
  };
  if (getPosition(product.m) > getPosition(product.n)) {
    std::swap(product.m, product.n);
    product.isReversed = true;
  }
  if (hasAmbiguousSlice(product))
    return failure();
  return product;
}

/// Returns the elementwise operation that is the only user of a product and can
/// be fused into its tiles, or null.
static linalg::GenericOp findUser(const Product &product) {
  Operation *op = product.op;
  // Upstream cannot fuse along rank-reducing slices, which a batch has.
  if (!product.batch.empty() || !op->getResult(0).hasOneUse() ||
      readsInPlaceInput(op))
    return nullptr;
  OpOperand &use = *op->getResult(0).use_begin();
  auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!user || user->getBlock() != op->getBlock() ||
      user->getNumResults() != 1 || !user.isDpsInput(&use) ||
      !isTiledElementwise(user) ||
      !user.getMatchingIndexingMap(&use).isPermutation())
    return nullptr;
  return user;
}

/// Returns B prepacked into panels, or null: the source of a linalg.unpack, or
/// a constant that is packed at compile time.
static Value findPanels(RewriterBase &rewriter, const Product &product,
                        int64_t columns, bool usesBF16Dots) {
  Value matrix = product.getOperand(1);
  unsigned dim = product.getColumnsDim();
  if (auto unpack = matrix.getDefiningOp<linalg::UnPackOp>())
    return arePanels(unpack, dim) &&
                   unpack.getStaticTiles().front() % columns == 0
               ? unpack.getSource()
               : Value();
  ElementsAttr elements;
  if (!matchPattern(matrix, m_Constant(&elements)) ||
      !canPackPanels(elements) || !product.hasLastMatrices())
    return nullptr;
  // The panels of a batch are those of its matrices.
  int64_t rank = elements.getShapedType().getRank();
  dim -= rank - 2;
  Location loc = product.op->getLoc();
  if (usesBF16Dots) {
    // A number of words for AMX is right for all dot products.
    int64_t depth = elements.getShapedType().getDimSize(rank - 1 - dim);
    OpFoldResult words =
        getNumDotWords(rewriter, loc, rewriter.getIndexAttr(depth), kTileWords);
    elements = packPairs(elements, dim, columns, *getConstantIntValue(words));
  } else {
    elements = packPanels(elements, dim, columns);
  }
  return arith::ConstantOp::create(rewriter, loc, cast<TypedAttr>(elements));
}

/// Returns the elements of the right matrix if it is a constant, else null.
static ElementsAttr getElements(const Product &product) {
  ElementsAttr elements;
  return matchPattern(product.getOperand(1), m_Constant(&elements)) ? elements
                                                                    : nullptr;
}

/// Whether the operation is a tile already, created by this pass or by a
/// schedule: it is in a loop and has few iterations.
static bool isContractionTile(linalg::LinalgOp op) {
  constexpr int64_t kMaxSteps = 8192;
  int64_t steps = 1;
  for (int64_t size : op.getStaticLoopRanges())
    if (ShapedType::isDynamic(size) || llvm::MulOverflow(steps, size, steps))
      return false;
  return steps <= kMaxSteps && op->getParentOfType<LoopLikeOpInterface>();
}

bool mlir::posenc::isTiledContraction(linalg::LinalgOp op) {
  return succeeded(getProduct(op));
}

namespace {
struct TileContractions final
    : mlir::posenc::impl::PosencTileContractionsPassBase<TileContractions> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<Product> products;
    getOperation()->walk([&](linalg::LinalgOp op) {
      FailureOr<Product> product = getProduct(op);
      if (succeeded(product) && !isContractionTile(op))
        products.push_back(*product);
    });
    if (!products.empty())
      updateKernelConfig(getOperation(), &KernelConfig::tasksBy, TasksBy::All);
    // The constants that were packed, with their panels and dimension of
    // columns.
    llvm::MapVector<Attribute, std::pair<ElementsAttr, unsigned>> packed;
    for (Product &product : products) {
      Type sum =
          getSumType(getElementTypeOrSelf(product.getOperand(2).getType()));
      unsigned width = sum.getIntOrFloatBitWidth();
      rewriter.setInsertionPoint(product.op);
      product.panels = findPanels(rewriter, product, getColumns(product, width),
                                  usesBF16Dots(product));
      if (ElementsAttr matrix = getElements(product), panels;
          matrix && product.panels && matrix.getShapedType().getRank() == 2 &&
          matchPattern(product.panels, m_Constant(&panels)))
        packed[matrix] = {panels, product.getColumnsDim()};
      ContractionTiles tiles = getTiles(product, width);
      // With its user fused, a product's tiles stay in the L1 and L2 caches.
      linalg::GenericOp user = findUser(product);
      report(product, tiles, user);
      scf::ForallOp tiled = tileProduct(rewriter, product, tiles);
      rewriter.replaceOp(product.op, tiled.getResults());
      SmallVector<LoopLikeOpInterface> loops{tiled};
      // If upstream cannot fuse the user, it stays after the loop.
      if (user)
        (void)scf::tileAndFuseConsumer(rewriter, user, loops);
    }
    for (auto &[matrix, panels] : packed)
      // Small tables are read faster as they are.
      if (isa<DenseResourceElementsAttr>(panels.first))
        readTableFromPanels(rewriter, getOperation(),
                            cast<ElementsAttr>(matrix), panels.first,
                            panels.second);
  }

private:
  static void report(const Product &product, const ContractionTiles &tiles,
                     bool isFused) {
    reportChoice(
        product.op, DEBUG_TYPE,
        llvm::formatv("blocks of {0} x {1} x {2}, register tiles of {3} x {4}, "
                      "{5}, {6}{7}",
                      tiles.blockRows, tiles.blockColumns, tiles.blockReduction,
                      tiles.rows, tiles.columns,
                      tiles.usesAMX        ? "AMX"
                      : tiles.usesBF16Dots ? "bf16 dot products"
                                           : "FMA",
                      product.panels ? "panels of the caller"
                                     : "panels are packed",
                      isFused ? ", fused with its elementwise user" : ""));
  }

  /// Columns of a register tile whose accumulators have `width` bits. The last
  /// tile of a row of C may be partial but takes the time of a full one.
  int64_t getColumns(const Product &product, unsigned width) const {
    int64_t lanes = 8 * int64_t{vectorBytes} / width;
    int64_t narrow = 2 * lanes, wide = productTileVectors * lanes;
    if (vectorBytes < 64 || usesBF16Dots(product))
      return narrow;
    // Panels of the caller.
    if (auto unpack = product.getOperand(1).getDefiningOp<linalg::UnPackOp>())
      if (unpack.getStaticTiles().front() % wide != 0)
        return narrow;
    // A column of a wide tile takes 7/8 of the time of a narrow one's.
    linalg::LinalgOp op = product.op;
    int64_t columns = op.getStaticLoopRanges()[product.n];
    return ShapedType::isDynamic(columns) ||
                   7 * llvm::alignTo(columns, wide) <=
                       8 * llvm::alignTo(columns, narrow)
               ? wide
               : narrow;
  }

  ContractionTiles getTiles(const Product &product, unsigned width) const {
    ContractionTiles tiles;
    int64_t bytes = width / 8;
    // With two vectors of 32 bytes, accumulators take 12 of 16 registers. With
    // three of 64 bytes, they take 24 or 27 of 32.
    constexpr uint64_t maxNarrowRows = 6, maxWideRows = 9;
    tiles.columns = getColumns(product, width);
    uint64_t maxRows = vectorBytes < 64 ? maxNarrowRows
                       : tiles.columns > 16 * int64_t{vectorBytes} / width
                           ? maxWideRows
                           : productTileRows;
    tiles.rows = std::min<uint64_t>(productTileRows, maxRows);
    tiles.vectorColumns = llvm::isPowerOf2_64(tiles.columns)
                              ? tiles.columns
                              : 8 * int64_t{vectorBytes} / width;
    Type sum = getSumType(getType(product, 2));
    // A block of C needs scratch if it is not accumulated in its own memory.
    bool hasScratch = getType(product, 2) != sum || findUser(product);
    linalg::LinalgOp op = product.op;
    int64_t rows = op.getStaticLoopRanges()[product.m];
    bool hasFewRows = !ShapedType::isDynamic(rows) && rows <= kFewRows;
    // A partial tile takes as long as a full one, so prefers a divisor of rows.
    int64_t minRows = tiles.rows > 8 ? 8 : tiles.rows - 2;
    if (hasFewRows && rows < minRows)
      tiles.rows = rows;
    for (int64_t count = tiles.rows; hasFewRows && count >= minRows; --count)
      if (rows % count == 0) {
        tiles.rows = count;
        break;
      }
    // A prepacked panel is read sequentially.
    tiles.blockColumns = hasScratch || product.panels ? tiles.columns
                         : hasFewRows                 ? kBlockColumnsOfFew
                                                      : productColumns;
    tiles.blockColumns = llvm::alignTo(tiles.blockColumns, tiles.columns);
    tiles.usesBF16Dots = usesBF16Dots(product);
    tiles.hasPartialSums = sum.isF32() && !tiles.usesBF16Dots;
    tiles.blockReduction = tiles.hasPartialSums ? kSumDepth
                           : product.panels
                               ? kDepthOfPanels
                               : productPanelBytes / bytes / tiles.blockColumns;
    tiles.blockRows =
        hasScratch ? kScratchBytes / bytes / tiles.columns : productRows;
    if (!hasScratch && !product.panels) {
      tiles.peelsFirst = productPeel;
      if (!hasFewRows)
        tiles.copiedRows =
            std::min<int64_t>(productCopiedRows,
                              kCopiedBytes / bytes / tiles.getCopiedStride()) /
            tiles.rows * tiles.rows;
    }
    if (product.panels) {
      // Equal blocks: a short one would read all panels for few rows.
      int64_t maxRows = std::max(
          std::min<int64_t>(tiles.blockRows, productPanelRows) / tiles.rows,
          int64_t{1});
      tiles.blockRows = maxRows * tiles.rows;
      if (!ShapedType::isDynamic(rows))
        tiles.blockRows =
            llvm::divideCeil(rows, llvm::divideCeil(rows, tiles.blockRows));
      // Upstream fuses a user into loops of a known step.
      tiles.hasEvenBlocks = ShapedType::isDynamic(rows) && !findUser(product);
      tiles.blockRows = llvm::alignTo(tiles.blockRows, tiles.rows);
    }
    if (tiles.usesBF16Dots) {
      // Products with few columns have smaller blocks, so that there are blocks
      // for more threads.
      int64_t columns = op.getStaticLoopRanges()[product.n];
      bool hasFewColumns =
          !ShapedType::isDynamic(columns) &&
          columns < 4 * static_cast<int64_t>(productDotColumns);
      tiles.blockColumns = productDotColumns / (hasFewColumns ? 2 : 1);
      tiles.blockReduction = productDotDepth;
      tiles.blockRows = productDotRows;
      tiles.peelsFirst = false;
      tiles.hasEvenBlocks = false;
      tiles.copiedRows = 0;
      tiles.usesAMX = amxBF16;
      if (tiles.usesAMX) {
        // The rows of one register tile stay in the L1 cache, which the panels
        // pass by.
        tiles.rows = kTileRowsOfProduct;
        tiles.copiedRows = kTileRowsOfProduct;
      }
    } else if (getType(product, 0) != sum)
      // Rows of A that must be extended are copied to scratch.
      tiles.blockRows = std::min(tiles.blockRows,
                                 kScratchBytes / bytes / tiles.blockReduction);
    tiles.blockRows = tiles.blockRows / tiles.rows * tiles.rows;
    return tiles;
  }

  /// Whether dot products of bf16 compute the product.
  bool usesBF16Dots(const Product &product) const {
    return bf16Dots && vectorBytes == 64 &&
           getSumType(getType(product, 2)).isF32() &&
           getType(product, 0).isBF16() && getType(product, 1).isBF16();
  }

  static Type getType(const Product &product, unsigned operand) {
    return getElementTypeOrSelf(product.getOperand(operand).getType());
  }

  /// Maximum bytes of a packed block; larger ones would not be on the stack.
  static constexpr int64_t kScratchBytes = int64_t{64} << 10;
  /// Maximum bytes of the copied rows of A.
  static constexpr int64_t kCopiedBytes = int64_t{128} << 10;
  /// Products with at most kFewRows rows use wider blocks of columns.
  static constexpr int64_t kFewRows = 64, kBlockColumnsOfFew = 128;
  /// Block of k for prepacked panels: this many rows of a register tile's
  /// columns stay in L1, or most of them with three vectors.
  static constexpr int64_t kDepthOfPanels = kSumDepth;
  /// Rows of a register tile of AMX: two tiles.
  static constexpr int64_t kTileRowsOfProduct = 32;
};
} // namespace
