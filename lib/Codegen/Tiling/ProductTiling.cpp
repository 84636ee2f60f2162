//===- ProductTiling.cpp - tiling of one matrix product -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C[m, n] += A[m, k] * B[k, n] becomes
//
//   forall blocks of m, blocks of n
//     for blocks of k
//       pack the block of B into panels of columns             (L2)
//       for panels                                             (L1)
//         for register tiles of rows
//           one posenc.tile_product of rows x columns x k      (registers)
//
// An element of C of f32 is the sum of its initial value and of partial sums of
// kSumDepth elements along k each, both in the order of k, whatever the tile
// sizes are: blocks of k are as deep as a partial sum. Other types have one sum
// in the order of k, which starts with the initial value. Partial tiles at the
// edges of C are copied to scratch of the full tile size, so the same
// micro-kernel computes all tiles.
//
//===----------------------------------------------------------------------===//

#include "ProductTiling.h"

#include "posenc/IR/CreateGeneric.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::posenc;

Type mlir::posenc::getSumType(Type result) {
  if (result.isF16() || result.isBF16())
    return Float32Type::get(result.getContext());
  return result;
}

namespace {
/// Offset and size of each loop's current range.
using Ranges = DenseMap<unsigned, std::pair<OpFoldResult, OpFoldResult>>;

class ProductTiling {
public:
  ProductTiling(RewriterBase &rewriter, const Product &product,
                const ContractionTiles &tiles)
      : b(rewriter), loc(product.op->getLoc()), product(product), tiles(tiles),
        result(getElementTypeOrSelf(product.op->getResult(0).getType())),
        sum(getSumType(result)),
        copied(tiles.usesBF16Dots ? b.getI32Type() : sum) {}

  Value tile();

private:
  OpFoldResult attr(int64_t value) { return b.getIndexAttr(value); }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value toValue(OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(b, loc, value);
  }
  /// Returns min(step, end - first).
  OpFoldResult clip(OpFoldResult step, OpFoldResult first, OpFoldResult end) {
    AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1),
               d2 = b.getAffineDimExpr(2);
    return affine::makeComposedFoldedAffineMin(
        b, loc, AffineMap::get(3, 0, {d2, d0 - d1}, b.getContext()),
        {end, first, step});
  }
  OpFoldResult clip(int64_t step, OpFoldResult first, OpFoldResult end) {
    return clip(attr(step), first, end);
  }
  OpFoldResult getSize(unsigned loop);
  /// Returns the rows of a block of C, of which `all` are distributed evenly.
  OpFoldResult getBlockRows(OpFoldResult all);
  /// Returns the number of steps along k in a block of `depth` elements: words
  /// of two for bf16 dot products. `getCopiedDepth` is the number in a full
  /// block.
  OpFoldResult getSteps(OpFoldResult depth) {
    return tiles.usesBF16Dots
               ? getNumDotWords(b, loc, depth, tiles.getWordMultiple())
               : depth;
  }
  int64_t getCopiedDepth() const {
    return tiles.usesBF16Dots ? tiles.blockReduction / 2 : tiles.blockReduction;
  }
  /// Computes the slice of an operand for the ranges. `isKept` is false for
  /// dimensions of `batch` and `sums` loops, which the slice drops.
  void getSlice(AffineMap map, const Ranges &ranges,
                SmallVector<OpFoldResult> &offsets,
                SmallVector<OpFoldResult> &sizes, SmallVector<bool> &isKept);
  Value extract(Value tensor, AffineMap map, const Ranges &ranges);
  Value extract(Value tensor, ArrayRef<OpFoldResult> offsets,
                ArrayRef<OpFoldResult> sizes);
  Value insert(Value source, Value tensor, ArrayRef<OpFoldResult> offsets,
               ArrayRef<OpFoldResult> sizes);
  /// Whether loop `second` comes before loop `first` in an operand.
  bool isSwapped(unsigned operand, unsigned first, unsigned second) const;
  /// Copies a matrix of `sizes`, transposed if `swapped`, to the upper left
  /// corner of scratch of the static shape `shape`, in the accumulator type.
  /// The rest of the scratch is zero if `isPadded`, else undefined; results
  /// computed from it are not stored.
  Value pack(Value source, bool swapped, ArrayRef<int64_t> shape,
             ArrayRef<OpFoldResult> sizes, bool isPadded = false);
  /// Returns a new tensor of zeros.
  Value createZeros(ArrayRef<int64_t> shape);
  /// Copies a matrix, transposed if `swapped`, and converts it to the element
  /// type of the destination.
  Value convert(Value source, bool swapped, Value destination);
  /// Copies rows of A, a matrix that is transposed if `swapped`, as words of
  /// bf16 pairs to scratch of `numRows` rows.
  Value packRows(Value left, bool swapped, int64_t numRows, OpFoldResult depth);
  /// Returns the steps for `depth` elements along k and `tiles.columns` columns
  /// of the prepacked panels.
  Value extractPrepacked(OpFoldResult firstColumn, OpFoldResult depthFrom,
                         OpFoldResult depth);
  /// Copies rows of a prepacked panel as words of bf16 pairs.
  Value packPrepacked(Value panel, OpFoldResult depth);
  /// Packs a block of B into panels x k x `tiles.columns`.
  Value packPanels(Value block, bool swapped, OpFoldResult depth,
                   OpFoldResult columns);
  /// Emits a loop over the panels of a block, which carries a tensor. `number`
  /// is the panel's index, `first` its first column, `width` the number of its
  /// columns.
  Value forEachPanel(OpFoldResult columns, Value init,
                     function_ref<Value(Value number, OpFoldResult first,
                                        OpFoldResult width, Value state)>
                         body);
  /// Adds the product of a row block of A and a panel of B to `part`, rows x
  /// columns of C.
  Value addPanel(Value part, Value left, bool leftSwapped, Value panel,
                 OpFoldResult rows, OpFoldResult columns, OpFoldResult depth);
  /// Returns the initial value of a register tile of C: `start` or `tile`.
  Value startTile(Value tile);
  /// Emits the micro-kernel: adds to one register tile.
  Value addTile(Value tile, Value left, bool leftSwapped, OpFoldResult firstRow,
                Value panel, OpFoldResult depth);
  /// Returns the initial value of a block of C: `block` itself, the block's
  /// slice of `argument` if that is not null, or the value of `fill` if that is
  /// not null. If the first block of k is peeled, sets `start` instead of
  /// filling the block.
  Value initBlock(Value block, Value argument, linalg::FillOp fill);
  /// Adds all products to a block of C, in loops over `sums` and over blocks of
  /// k.
  Value addReductions(ArrayRef<unsigned> sums, Value state);
  /// Adds the product of `rows` rows of A and all panels of a block to `state`,
  /// those rows of a block of C.
  Value addPanels(Value state, Value left, bool leftSwapped, Value panels,
                  OpFoldResult rows, OpFoldResult firstDepth,
                  OpFoldResult depth);
  /// Adds the products of one block of k to a block of C.
  Value addDepthBlock(Value firstDepth, Value state);

  RewriterBase &b;
  Location loc;
  const Product &product;
  const ContractionTiles &tiles;
  /// Element types of the result, the accumulators and the packed matrices.
  Type result, sum, copied;
  /// Current ranges of all loops: the block of C and the slices of A and B.
  Ranges ranges;
  Value firstColumn;
  OpFoldResult rows, columns, allDepth;
  /// While the first block of k is peeled: the initial value of all elements of
  /// C, which has not been stored. Otherwise null.
  Value start;
};
} // namespace

OpFoldResult ProductTiling::getSize(unsigned loop) {
  for (unsigned operand : {0, 1, 2})
    if (std::optional<unsigned> dim =
            product.getMap(operand).getResultPosition(b.getAffineDimExpr(loop)))
      return tensor::getMixedSize(b, loc, product.getOperand(operand), *dim);
  llvm_unreachable("every loop indexes an operand");
}

OpFoldResult ProductTiling::getBlockRows(OpFoldResult all) {
  if (!tiles.hasEvenBlocks)
    return attr(tiles.blockRows);
  auto divideUp = [&](Value x, Value y) -> Value {
    return arith::CeilDivUIOp::create(b, loc, x, y);
  };
  // A product without rows has a step, too.
  Value one = constant(1), tileRows = constant(tiles.rows);
  Value count = divideUp(toValue(all), constant(tiles.blockRows));
  count = arith::MaxUIOp::create(b, loc, count, one);
  Value numTiles = divideUp(divideUp(toValue(all), count), tileRows);
  numTiles = arith::MaxUIOp::create(b, loc, numTiles, one);
  return arith::MulIOp::create(b, loc, numTiles, tileRows).getResult();
}

void ProductTiling::getSlice(AffineMap map, const Ranges &ranges,
                             SmallVector<OpFoldResult> &offsets,
                             SmallVector<OpFoldResult> &sizes,
                             SmallVector<bool> &isKept) {
  for (AffineExpr expr : map.getResults()) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    auto [offset, size] = ranges.lookup(loop);
    offsets.push_back(offset);
    sizes.push_back(size);
    isKept.push_back(!llvm::is_contained(product.batch, loop) &&
                     !llvm::is_contained(product.sums, loop));
  }
}

Value ProductTiling::extract(Value tensor, AffineMap map,
                             const Ranges &ranges) {
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<bool> isKept;
  getSlice(map, ranges, offsets, sizes, isKept);
  SmallVector<int64_t> dropped;
  for (auto [dim, kept] : llvm::enumerate(isKept))
    if (!kept)
      dropped.push_back(dim);
  return extractSlice(b, loc, tensor, offsets, sizes, dropped);
}

Value ProductTiling::extract(Value tensor, ArrayRef<OpFoldResult> offsets,
                             ArrayRef<OpFoldResult> sizes) {
  return extractSlice(b, loc, tensor, offsets, sizes);
}

Value ProductTiling::insert(Value source, Value tensor,
                            ArrayRef<OpFoldResult> offsets,
                            ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> strides(sizes.size(), attr(1));
  return tensor::InsertSliceOp::create(b, loc, source, tensor, offsets, sizes,
                                       strides);
}

bool ProductTiling::isSwapped(unsigned operand, unsigned first,
                              unsigned second) const {
  AffineMap map = product.getMap(operand);
  return *map.getResultPosition(b.getAffineDimExpr(first)) >
         *map.getResultPosition(b.getAffineDimExpr(second));
}

Value ProductTiling::convert(Value source, bool swapped, Value destination) {
  AffineMap identity = b.getMultiDimIdentityMap(2);
  AffineMap from = swapped ? AffineMap::getPermutationMap(
                                 ArrayRef<unsigned>{1, 0}, b.getContext())
                           : identity;
  Type to = getElementTypeOrSelf(destination.getType());
  return createParallelGeneric(
      b, loc, source, destination, {from, identity},
      [&](OpBuilder &nested, Location l, ValueRange args) -> Value {
        Value x = args[0];
        if (to.getIntOrFloatBitWidth() > x.getType().getIntOrFloatBitWidth())
          x = arith::ExtFOp::create(nested, l, to, x);
        else if (to != x.getType())
          x = arith::TruncFOp::create(nested, l, to, x);
        return x;
      });
}

Value ProductTiling::createZeros(ArrayRef<int64_t> shape) {
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(sum));
  Value empty = tensor::EmptyOp::create(b, loc, shape, sum);
  return linalg::FillOp::create(b, loc, zero, empty).getResult(0);
}

Value ProductTiling::pack(Value source, bool swapped, ArrayRef<int64_t> shape,
                          ArrayRef<OpFoldResult> sizes, bool isPadded) {
  Value scratch = isPadded ? createZeros(shape)
                           : tensor::EmptyOp::create(b, loc, shape, sum);
  SmallVector<OpFoldResult> offsets(2, attr(0));
  Value corner = extract(scratch, offsets, sizes);
  return insert(convert(source, swapped, corner), scratch, offsets, sizes);
}

Value ProductTiling::forEachPanel(
    OpFoldResult columns, Value init,
    function_ref<Value(Value, OpFoldResult, OpFoldResult, Value)> body) {
  AffineExpr d0 = b.getAffineDimExpr(0);
  OpFoldResult count = affine::makeComposedFoldedAffineApply(
      b, loc, d0.ceilDiv(tiles.columns), {columns});
  return scf::ForOp::create(
             b, loc, constant(0), toValue(count), constant(1), init,
             [&](OpBuilder &, Location, Value number, ValueRange state) {
               OpFoldResult first = affine::makeComposedFoldedAffineApply(
                   b, loc, d0 * tiles.columns, {number});
               OpFoldResult width = clip(tiles.columns, first, columns);
               scf::YieldOp::create(b, loc,
                                    body(number, first, width, state[0]));
             })
      .getResult(0);
}

Value ProductTiling::packPanels(Value block, bool swapped, OpFoldResult depth,
                                OpFoldResult columns) {
  int64_t numPanels = tiles.blockColumns / tiles.columns;
  Value scratch = tensor::EmptyOp::create(
      b, loc, ArrayRef<int64_t>{numPanels, getCopiedDepth(), tiles.columns},
      copied);
  OpFoldResult steps = getSteps(depth);
  // Packs one panel at a time: rows are short or transposed.
  auto packEach = [&]() -> Value {
    return forEachPanel(
        columns, scratch,
        [&](Value number, OpFoldResult first, OpFoldResult width,
            Value state) -> Value {
          SmallVector<OpFoldResult> from{attr(0), first}, sizes{depth, width};
          SmallVector<OpFoldResult> fromSizes(sizes);
          if (swapped) {
            std::swap(from[0], from[1]);
            std::swap(fromSizes[0], fromSizes[1]);
          }
          SmallVector<OpFoldResult> offsets{number, attr(0), attr(0)},
              panelSizes{attr(1), steps, width}, strides(3, attr(1));
          SmallVector<int64_t> shape;
          for (OpFoldResult size : {steps, width})
            shape.push_back(
                getConstantIntValue(size).value_or(ShapedType::kDynamic));
          Value panel = tensor::ExtractSliceOp::create(
              b, loc, RankedTensorType::get(shape, copied), state, offsets,
              panelSizes, strides);
          Value part = extract(block, from, fromSizes);
          panel =
              tiles.usesBF16Dots
                  ? packDotWords(b, loc, part, swapped ? 1 : 0, depth, panel,
                                 /*wordsDim=*/0, tiles.getWordMultiple())
                  : convert(part, swapped, panel);
          return insert(panel, state, offsets, panelSizes);
        });
  };
  if (swapped || numPanels == 1)
    return packEach();
  // Packs whole rows of the block, so they are read in order.
  auto packAll = [&]() -> Value {
    Value whole =
        extract(block, {attr(0), attr(0)}, {depth, attr(tiles.blockColumns)});
    auto type = cast<RankedTensorType>(whole.getType());
    Value rows = tensor::ExpandShapeOp::create(
        b, loc,
        RankedTensorType::get({type.getDimSize(0), numPanels, tiles.columns},
                              type.getElementType()),
        whole, SmallVector<ReassociationIndices>{{0}, {1, 2}},
        {depth, attr(numPanels), attr(tiles.columns)});
    if (tiles.usesBF16Dots)
      return packDotWords(b, loc, rows, /*depthDim=*/0, depth, scratch,
                          /*wordsDim=*/1, tiles.getWordMultiple());
    SmallVector<OpFoldResult> offsets(3, attr(0)),
        sizes{attr(numPanels), steps, attr(tiles.columns)};
    Value panels = extract(scratch, offsets, sizes);
    AffineMap identity = b.getMultiDimIdentityMap(3);
    AffineMap to = AffineMap::getPermutationMap(ArrayRef<unsigned>{1, 0, 2},
                                                b.getContext());
    Value copy = createParallelGeneric(
        b, loc, rows, panels, {identity, to},
        [&](OpBuilder &nested, Location l, ValueRange args) -> Value {
          Value x = args[0];
          if (x.getType() != sum)
            x = arith::ExtFOp::create(nested, l, sum, x);
          return x;
        });
    return insert(copy, scratch, offsets, sizes);
  };
  if (getConstantIntValue(columns) == tiles.blockColumns)
    return packAll();
  Value isWhole =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, toValue(columns),
                            constant(tiles.blockColumns));
  auto branch = scf::IfOp::create(b, loc, scratch.getType(), isWhole,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, packAll());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, packEach());
  return branch.getResult(0);
}

bool Product::hasLastMatrices() const {
  ArrayRef<AffineExpr> dims = getMap(1).getResults();
  auto isOf = [](AffineExpr expr, ArrayRef<unsigned> loops) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    return dim && llvm::is_contained(loops, dim.getPosition());
  };
  return dims.size() >= 2 &&
         llvm::all_of(dims.take_back(2),
                      [&](AffineExpr expr) { return isOf(expr, {n, k}); }) &&
         llvm::all_of(dims.drop_back(2),
                      [&](AffineExpr expr) { return isOf(expr, batch); });
}

Value ProductTiling::extractPrepacked(OpFoldResult firstColumn,
                                      OpFoldResult depthFrom,
                                      OpFoldResult depth) {
  auto type = cast<RankedTensorType>(product.panels.getType());
  int64_t width = type.getShape().back();
  AffineExpr d0 = b.getAffineDimExpr(0);
  // The panels of the matrices before, and those of this one.
  AffineMap map = product.getMap(1);
  auto matrices = cast<RankedTensorType>(product.getOperand(1).getType());
  AffineExpr panel = d0.floorDiv(width);
  SmallVector<OpFoldResult> operands{firstColumn};
  if (int64_t numBatch = map.getNumResults() - 2) {
    AffineExpr matrix = b.getAffineConstantExpr(0);
    for (auto [expr, size] : llvm::zip(map.getResults().take_front(numBatch),
                                       matrices.getShape())) {
      matrix = matrix * size + b.getAffineDimExpr(operands.size());
      operands.push_back(ranges[cast<AffineDimExpr>(expr).getPosition()].first);
    }
    panel = panel +
            matrix * llvm::divideCeil(
                         matrices.getDimSize(product.getColumnsDim()), width);
  }
  OpFoldResult number =
      affine::makeComposedFoldedAffineApply(b, loc, panel, operands);
  OpFoldResult within =
      affine::makeComposedFoldedAffineApply(b, loc, d0 % width, {firstColumn});
  if (product.hasPairPanels()) {
    // Blocks of k are multiples of kDotBlock.
    depthFrom = affine::makeComposedFoldedAffineApply(b, loc, d0.floorDiv(2),
                                                      {depthFrom});
    depth = getSteps(depth);
  }
  int64_t staticDepth =
      getConstantIntValue(depth).value_or(ShapedType::kDynamic);
  return tensor::ExtractSliceOp::create(
      b, loc,
      RankedTensorType::get({staticDepth, tiles.columns},
                            type.getElementType()),
      product.panels, ArrayRef<OpFoldResult>{number, depthFrom, within},
      ArrayRef<OpFoldResult>{attr(1), depth, attr(tiles.columns)},
      SmallVector<OpFoldResult>(3, attr(1)));
}

Value ProductTiling::packRows(Value left, bool swapped, int64_t numRows,
                              OpFoldResult depth) {
  Value scratch = tensor::EmptyOp::create(
      b, loc, ArrayRef<int64_t>{numRows, getCopiedDepth()}, copied);
  return packDotWords(b, loc, left, /*depthDim=*/swapped ? 0 : 1, depth,
                      scratch, /*wordsDim=*/1, tiles.getWordMultiple());
}

Value ProductTiling::packPrepacked(Value panel, OpFoldResult depth) {
  Value scratch = tensor::EmptyOp::create(
      b, loc, ArrayRef<int64_t>{getCopiedDepth(), tiles.columns}, copied);
  return packDotWords(b, loc, panel, /*depthDim=*/0, depth, scratch,
                      /*wordsDim=*/0, tiles.getWordMultiple());
}

Value ProductTiling::addTile(Value tile, Value left, bool leftSwapped,
                             OpFoldResult firstRow, Value panel,
                             OpFoldResult depth) {
  OpFoldResult steps = getSteps(depth), zero = attr(0);
  SmallVector<OpFoldResult> offsets{firstRow, zero},
      sizes{attr(tiles.rows), steps};
  if (leftSwapped) {
    std::swap(offsets[0], offsets[1]);
    std::swap(sizes[0], sizes[1]);
  }
  Value sums =
      tiles.hasPartialSums ? createZeros({tiles.rows, tiles.columns}) : tile;
  sums = TileProductOp::create(
             b, loc, extract(left, offsets, sizes),
             extract(panel, {zero, zero}, {steps, attr(tiles.columns)}), sums,
             tiles.usesBF16Dots ? ProductElements::BF16Pairs
                                : ProductElements::Floats,
             leftSwapped)
             .getResult();
  if (!tiles.hasPartialSums)
    return sums;
  AffineMap identity = b.getMultiDimIdentityMap(2);
  auto add = [&](Value part, Value to) -> Value {
    return linalg::GenericOp::create(
               b, loc, to.getType(), part, to,
               ArrayRef<AffineMap>{identity, identity},
               SmallVector<utils::IteratorType>(2,
                                                utils::IteratorType::parallel),
               [&](OpBuilder &nested, Location l, ValueRange args) {
                 Value total =
                     arith::AddFOp::create(nested, l, args[1], args[0]);
                 linalg::YieldOp::create(nested, l, total);
               })
        .getResult(0);
  };
  if (tiles.vectorColumns == tiles.columns)
    return add(sums, tile);
  for (int64_t column = 0; column < tiles.columns;
       column += tiles.vectorColumns) {
    SmallVector<OpFoldResult> at{zero, attr(column)},
        vectors{attr(tiles.rows), attr(tiles.vectorColumns)};
    Value part = add(extract(sums, at, vectors), extract(tile, at, vectors));
    tile = insert(part, tile, at, vectors);
  }
  return tile;
}

Value ProductTiling::startTile(Value tile) {
  return start ? linalg::FillOp::create(b, loc, start, tile).getResult(0)
               : tile;
}

Value ProductTiling::addPanel(Value part, Value left, bool leftSwapped,
                              Value panel, OpFoldResult rows,
                              OpFoldResult columns, OpFoldResult depth) {
  auto isFull = [&](OpFoldResult size, int64_t of) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                 toValue(size), constant(of));
  };
  auto loop = scf::ForOp::create(
      b, loc, constant(0), toValue(rows), constant(tiles.rows), part,
      [&](OpBuilder &, Location, Value first, ValueRange state) {
        OpFoldResult count = clip(tiles.rows, first, rows);
        SmallVector<OpFoldResult> offsets{first, attr(0)};
        auto whole = [&] {
          SmallVector<OpFoldResult> sizes{attr(tiles.rows),
                                          attr(tiles.columns)};
          Value tile = startTile(extract(state[0], offsets, sizes));
          tile = addTile(tile, left, leftSwapped, first, panel, depth);
          scf::YieldOp::create(b, loc, insert(tile, state[0], offsets, sizes));
        };
        auto partial = [&] {
          SmallVector<OpFoldResult> sizes{count, columns}, zeros(2, attr(0));
          Value edge = extract(state[0], offsets, sizes);
          SmallVector<int64_t> shape{tiles.rows, tiles.columns};
          Value tile =
              start ? startTile(tensor::EmptyOp::create(b, loc, shape, sum))
                    : pack(edge, /*swapped=*/false, shape, sizes);
          if (tiles.usesBF16Dots) {
            // The packed rows of A always fill whole register tiles.
            tile = addTile(tile, left, leftSwapped, first, panel, depth);
          } else {
            SmallVector<OpFoldResult> from{first, attr(0)},
                leftSizes{count, depth};
            if (leftSwapped) {
              std::swap(from[0], from[1]);
              std::swap(leftSizes[0], leftSizes[1]);
            }
            // Subnormal numbers in missing rows would take time.
            Value padded = pack(extract(left, from, leftSizes), leftSwapped,
                                {tiles.rows, tiles.blockReduction},
                                {count, depth}, /*isPadded=*/true);
            tile = addTile(tile, padded, /*leftSwapped=*/false, attr(0), panel,
                           depth);
          }
          // Copies back explicitly, to the slice that `pack` has read above.
          Value result =
              linalg::CopyOp::create(b, loc, extract(tile, zeros, sizes), edge)
                  .getResult(0);
          scf::YieldOp::create(b, loc,
                               insert(result, state[0], offsets, sizes));
        };
        Value isWhole = arith::AndIOp::create(b, loc, isFull(count, tiles.rows),
                                              isFull(columns, tiles.columns));
        auto branch = scf::IfOp::create(b, loc, part.getType(), isWhole,
                                        /*withElseRegion=*/true);
        {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToStart(branch.thenBlock());
          whole();
          b.setInsertionPointToStart(branch.elseBlock());
          partial();
        }
        scf::YieldOp::create(b, loc, branch.getResult(0));
      });
  return loop.getResult(0);
}

Value ProductTiling::addDepthBlock(Value firstDepth, Value state) {
  OpFoldResult depth = clip(tiles.blockReduction, firstDepth, allDepth);
  // Tiles of a known number need no loop, and their sums stay in registers.
  std::optional<int64_t> all = getConstantIntValue(allDepth);
  if (tiles.usesAMX && all && *all % tiles.blockReduction == 0)
    depth = attr(tiles.blockReduction);
  ranges[product.k] = {firstDepth, depth};
  bool leftSwapped = isSwapped(0, product.m, product.k);
  bool rightSwapped = isSwapped(1, product.k, product.n);
  Value left = extract(product.getOperand(0), product.getMap(0), ranges);
  bool copiesRows = tiles.copiedRows != 0 &&
                    (tiles.usesBF16Dots ||
                     (!leftSwapped && getElementTypeOrSelf(left) == sum));
  if (tiles.usesBF16Dots) {
    if (!copiesRows) {
      left = packRows(left, leftSwapped, tiles.blockRows, depth);
      leftSwapped = false;
    }
  } else if (getElementTypeOrSelf(left.getType()) != sum) {
    left = pack(left, leftSwapped, {tiles.blockRows, tiles.blockReduction},
                {rows, depth});
    leftSwapped = false;
  }
  Value panels;
  if (!product.panels)
    panels =
        packPanels(extract(product.getOperand(1), product.getMap(1), ranges),
                   rightSwapped, depth, columns);
  if (!copiesRows)
    return addPanels(state, left, leftSwapped, panels, rows, firstDepth, depth);
  auto loop = scf::ForOp::create(
      b, loc, constant(0), toValue(rows), constant(tiles.copiedRows), state,
      [&](OpBuilder &, Location, Value first, ValueRange states) {
        OpFoldResult count = clip(tiles.copiedRows, first, rows);
        SmallVector<OpFoldResult> offsets{first, attr(0)};
        SmallVector<OpFoldResult> from(offsets), fromSizes{count, depth};
        if (leftSwapped) {
          std::swap(from[0], from[1]);
          std::swap(fromSizes[0], fromSizes[1]);
        }
        Value part = extract(left, from, fromSizes);
        Value copy = tiles.usesBF16Dots
                         ? packRows(part, leftSwapped, tiles.copiedRows, depth)
                         : pack(part, /*swapped=*/false,
                                {tiles.copiedRows, tiles.getCopiedStride()},
                                {count, depth});
        SmallVector<OpFoldResult> sizes{count, columns};
        part = extract(states[0], offsets, sizes);
        part = addPanels(part, copy, /*leftSwapped=*/false, panels, count,
                         firstDepth, depth);
        scf::YieldOp::create(b, loc, insert(part, states[0], offsets, sizes));
      });
  return loop.getResult(0);
}

Value ProductTiling::addPanels(Value state, Value left, bool leftSwapped,
                               Value panels, OpFoldResult rows,
                               OpFoldResult firstDepth, OpFoldResult depth) {
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  return forEachPanel(
      columns, state,
      [&](Value number, OpFoldResult first, OpFoldResult width, Value all) {
        Value panel;
        if (product.panels) {
          panel = extractPrepacked(affine::makeComposedFoldedAffineApply(
                                       b, loc, d0 + d1, {firstColumn, first}),
                                   firstDepth, depth);
          if (tiles.usesBF16Dots && !product.hasPairPanels())
            panel = packPrepacked(panel, depth);
        } else {
          panel = tensor::ExtractSliceOp::create(
              b, loc,
              RankedTensorType::get({getCopiedDepth(), tiles.columns}, copied),
              panels, ArrayRef<OpFoldResult>{number, attr(0), attr(0)},
              ArrayRef<OpFoldResult>{attr(1), attr(getCopiedDepth()),
                                     attr(tiles.columns)},
              SmallVector<OpFoldResult>(3, attr(1)));
        }
        SmallVector<OpFoldResult> offsets{attr(0), first}, sizes{rows, width};
        Value part = extract(all, offsets, sizes);
        part = addPanel(part, left, leftSwapped, panel, rows, width, depth);
        return insert(part, all, offsets, sizes);
      });
}

Value ProductTiling::addReductions(ArrayRef<unsigned> sums, Value state) {
  Value first = constant(0);
  if (start) {
    state = addDepthBlock(first, state);
    start = nullptr;
    first = constant(tiles.blockReduction);
  }
  auto loop = scf::ForOp::create(
      b, loc, first, toValue(sums.empty() ? allDepth : getSize(sums.front())),
      constant(sums.empty() ? tiles.blockReduction : 1), state,
      [&](OpBuilder &, Location, Value at, ValueRange states) {
        Value next;
        if (sums.empty()) {
          next = addDepthBlock(at, states[0]);
        } else {
          ranges[sums.front()] = {at, attr(1)};
          next = addReductions(sums.drop_front(), states[0]);
        }
        scf::YieldOp::create(b, loc, next);
      });
  return loop.getResult(0);
}

Value ProductTiling::initBlock(Value block, Value argument,
                               linalg::FillOp fill) {
  // A function argument must not be written, so each block starts with a copy
  // of its slice.
  Value from = argument ? extract(argument, product.getMap(2), ranges) : block;
  Value part = block;
  if (sum != result)
    part = extract(
        tensor::EmptyOp::create(
            b, loc, ArrayRef<int64_t>{tiles.blockRows, tiles.getSumsStride()},
            sum),
        {attr(0), attr(0)}, {rows, columns});
  if (!fill)
    return from == part ? part : convert(from, /*swapped=*/false, part);
  Value value = fill.getInputs().front();
  if (sum != result)
    value = arith::ExtFOp::create(b, loc, sum, value);
  if (tiles.peelsFirst && product.sums.empty()) {
    start = value;
    return part;
  }
  return linalg::FillOp::create(b, loc, value, part).getResult(0);
}

Value ProductTiling::tile() {
  SmallVector<OpFoldResult> ends, steps;
  for (unsigned loop : product.batch) {
    ends.push_back(getSize(loop));
    steps.push_back(attr(1));
  }
  OpFoldResult allRows = getSize(product.m), allColumns = getSize(product.n);
  allDepth = getSize(product.k);
  ends.append({allRows, allColumns});
  OpFoldResult blockRows = getBlockRows(allRows);
  steps.append({blockRows, attr(tiles.blockColumns)});
  SmallVector<OpFoldResult> begins(ends.size(), attr(0));
  // A fill of the result becomes a fill of each block.
  Value init = product.getOperand(2);
  auto fill = init.getDefiningOp<linalg::FillOp>();
  if (fill &&
      (!fill->hasOneUse() || fill.getInputs().front().getType() != result))
    fill = nullptr;
  Value argument = isa<BlockArgument>(init) ? init : Value();
  if (fill)
    init = fill.getDpsInits().front();
  else if (argument)
    init = tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, init),
                                   result);
  auto forall = scf::ForallOp::create(b, loc, begins, ends, steps, init,
                                      /*mapping=*/std::nullopt);
  b.setInsertionPoint(forall.getTerminator());
  SmallVector<Value> variables(forall.getInductionVars());
  for (auto [loop, variable] : llvm::zip(product.batch, variables))
    ranges[loop] = {variable, attr(1)};
  Value firstRow = variables[variables.size() - 2];
  firstColumn = variables.back();
  rows = clip(blockRows, firstRow, allRows);
  columns = clip(tiles.blockColumns, firstColumn, allColumns);
  ranges[product.m] = {firstRow, rows};
  ranges[product.n] = {firstColumn, columns};

  AffineMap outMap = product.getMap(2);
  Value output = forall.getRegionIterArgs().front();
  Value block = extract(output, outMap, ranges);
  Value computed =
      addReductions(product.sums, initBlock(block, argument, fill));
  if (sum != result)
    computed = convert(computed, /*swapped=*/false, block);
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<bool> isKept;
  getSlice(outMap, ranges, offsets, sizes, isKept);
  SmallVector<OpFoldResult> strides(sizes.size(), attr(1));
  b.setInsertionPointToEnd(forall.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(b, loc, computed, output, offsets,
                                        sizes, strides);
  return forall.getResult(0);
}

scf::ForallOp mlir::posenc::tileProduct(RewriterBase &rewriter,
                                        const Product &product,
                                        const ContractionTiles &tiles) {
  return ProductTiling(rewriter, product, tiles)
      .tile()
      .getDefiningOp<scf::ForallOp>();
}
