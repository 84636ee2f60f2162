//===- AMXProducts.cpp - tile products by AMX -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AMXProducts.h"
#include "TileProductUnits.h"

#include "posenc/IR/IndexArithmetic.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::posenc;

TileMatrix mlir::posenc::getTilesOfRows(ImplicitLocOpBuilder &builder,
                                        Value memory, Value row, Value column) {
  return {memory, [=, &builder](int64_t i, int64_t j) -> SmallVector<Value> {
            return {addIndex(builder, row, i * kTileRows),
                    addIndex(builder, column, j * kTileRows)};
          }};
}

TileMatrix mlir::posenc::getTilesOfBlock(ImplicitLocOpBuilder &builder,
                                         Value memory, ValueRange outer,
                                         bool isRowMajor) {
  return {memory,
          [=, &builder, first = llvm::to_vector(outer)](int64_t i, int64_t j) {
            SmallVector<Value> indices(first);
            Value zero = createIndex(builder, 0);
            llvm::append_values(
                indices, createIndex(builder, isRowMajor ? i : j),
                createIndex(builder, isRowMajor ? j : i), zero, zero);
            return indices;
          }};
}

void mlir::posenc::emitTileProducts(ImplicitLocOpBuilder &builder,
                                    const TileMatrix &a, const TileMatrix &b,
                                    const TileMatrix &result, int64_t depth,
                                    bool accumulates,
                                    ProductElements elements) {
  bool isBF16 = elements == ProductElements::BF16Pairs;
  auto sumType = amx::TileType::get({kTileRows, kTileRows},
                                    isBF16 ? Type(builder.getF32Type())
                                           : Type(builder.getI32Type()));
  auto wordType = amx::TileType::get({kTileRows, (isBF16 ? 2 : 4) * kTileRows},
                                     isBF16 ? Type(builder.getBF16Type())
                                            : Type(builder.getI8Type()));
  auto add = [&](Value a, Value b, Value sum) -> Value {
    if (isBF16)
      return amx::TileMulFOp::create(builder, sumType, a, b, sum);
    return amx::TileMulIOp::create(
        builder, sumType, a, b, sum,
        /*isZextLhs=*/elements == ProductElements::U8S8Quads,
        /*isZextRhs=*/elements == ProductElements::S8U8Quads);
  };
  auto load = [&](amx::TileType type, const TileMatrix &matrix, int64_t row,
                  int64_t column) -> Value {
    return amx::TileLoadOp::create(builder, type, matrix.memory,
                                   matrix.getIndices(row, column));
  };
  // The order in which a step finishes its sums.
  constexpr std::pair<int64_t, int64_t> order[] = {
      {0, 0}, {1, 0}, {0, 1}, {1, 1}};
  Value sums[2][2];
  for (auto [i, j] : order)
    sums[i][j] = accumulates ? load(sumType, result, i, j)
                             : Value(amx::TileZeroOp::create(builder, sumType));
  Value left[2], right[2] = {load(wordType, b, 0, 0), nullptr};
  for (int64_t k = 0; k < depth; ++k)
    for (auto [i, j] : order) {
      if (j == 0)
        left[i] = load(wordType, a, i, k);
      else if (i == 0)
        right[1] = load(wordType, b, k, 1);
      else if (k + 1 < depth)
        right[0] = load(wordType, b, k + 1, 0);
      sums[i][j] = add(left[i], right[j], sums[i][j]);
    }
  for (auto [i, j] : order)
    amx::TileStoreOp::create(builder, result.memory, result.getIndices(i, j),
                             sums[i][j]);
}

namespace {
/// Emits the steps of products of 16 rows.
class RowTileStream {
public:
  RowTileStream(ImplicitLocOpBuilder &builder, ArrayRef<TileProduct> products)
      : builder(builder), products(products) {}

  bool isDone() const { return products.empty(); }
  /// Emits the products with one tile of `a`.
  void emitStep();

private:
  Value load(amx::TileType type, const TileMatrix &matrix, int64_t row,
             int64_t column) {
    return amx::TileLoadOp::create(builder, type, matrix.memory,
                                   matrix.getIndices(row, column));
  }

  ImplicitLocOpBuilder &builder;
  ArrayRef<TileProduct> products;
  Value sums[2];
  int64_t step = 0;
};
} // namespace

void RowTileStream::emitStep() {
  auto sumType =
      amx::TileType::get({kTileRows, kTileRows}, builder.getF32Type());
  auto wordType =
      amx::TileType::get({kTileRows, 2 * kTileRows}, builder.getBF16Type());
  const TileProduct &product = products.front();
  Value left = load(wordType, product.a, 0, step);
  for (int64_t j = 0; j < 2; ++j) {
    if (step == 0)
      sums[j] = product.accumulates
                    ? load(sumType, product.result, 0, j)
                    : Value(amx::TileZeroOp::create(builder, sumType));
    sums[j] = amx::TileMulFOp::create(
        builder, sumType, left, load(wordType, product.b, step, j), sums[j]);
  }
  if (++step < product.depth)
    return;
  for (int64_t j = 0; j < 2; ++j)
    amx::TileStoreOp::create(builder, product.result.memory,
                             product.result.getIndices(0, j), sums[j]);
  products = products.drop_front();
  step = 0;
}

void mlir::posenc::emitRowTileProducts(ImplicitLocOpBuilder &builder,
                                       ArrayRef<TileProduct> some,
                                       ArrayRef<TileProduct> others) {
  RowTileStream streams[] = {{builder, some}, {builder, others}};
  while (!streams[0].isDone() || !streams[1].isDone())
    for (RowTileStream &stream : streams)
      if (!stream.isDone())
        stream.emitStep();
}

void mlir::posenc::emitForCount(ImplicitLocOpBuilder &builder, Value count,
                                int64_t maxCount,
                                function_ref<void(int64_t)> body) {
  auto cases = llvm::to_vector(llvm::seq_inclusive<int64_t>(1, maxCount));
  OpBuilder::InsertionGuard guard(builder);
  auto choice = scf::IndexSwitchOp::create(builder, TypeRange(), count, cases,
                                           cases.size());
  for (auto [region, number] :
       llvm::zip_equal(choice.getCaseRegions(), cases)) {
    builder.setInsertionPointToStart(&region.emplaceBlock());
    body(number);
    scf::YieldOp::create(builder);
  }
  builder.setInsertionPointToStart(&choice.getDefaultRegion().emplaceBlock());
  scf::YieldOp::create(builder);
}

//===----------------------------------------------------------------------===//
// The unit
//===----------------------------------------------------------------------===//

/// The maximum number of words of a row of which the products are written out
/// at once, where their number is known and where it is not, which takes code
/// for each number.
static constexpr int64_t kMaxKnownWords = 512, kMaxTileWords = 128;

/// Returns the depth if it is known: a constant, or the size of a slice.
static OpFoldResult findDepth(TileProductOp op) {
  if (int64_t depth = op.getDepth(); !ShapedType::isDynamic(depth))
    return IntegerAttr::get(IndexType::get(op.getContext()), depth);
  Operation *slice = op.getB().getDefiningOp();
  auto view = dyn_cast_or_null<OffsetSizeAndStrideOpInterface>(slice);
  if (!view || !isa<memref::SubViewOp, tensor::ExtractSliceOp>(slice))
    return {};
  llvm::SmallBitVector dropped =
      isa<memref::SubViewOp>(slice)
          ? cast<memref::SubViewOp>(slice).getDroppedDims()
          : cast<tensor::ExtractSliceOp>(slice).getDroppedDims();
  for (auto [dim, size] : llvm::enumerate(view.getMixedSizes()))
    if (!dropped.test(dim))
      return size;
  return {};
}

/// Whether the depth is a multiple of the words of a tile.
static bool hasWholeTiles(TileProductOp op) {
  OpFoldResult depth = findDepth(op);
  if (!depth)
    return false;
  if (std::optional<int64_t> words = getConstantIntValue(depth))
    return *words % kTileRows == 0;
  auto apply = cast<Value>(depth).getDefiningOp<affine::AffineApplyOp>();
  return apply && apply.getAffineMap().getResult(0).isMultipleOf(kTileRows);
}

namespace {
struct AMXUnit {
  static bool computes(TileProductOp op, const ProductTarget &target);
  static void lower(RewriterBase &rewriter, TileProductOp op);
};
} // namespace

bool AMXUnit::computes(TileProductOp op, const ProductTarget &target) {
  bool hasAMX =
      op.hasQuads()
          ? target.hasAMXInt8
          : target.hasAMXBF16 && op.getElements() == ProductElements::BF16Pairs;
  if (!hasAMX || op.getTransposed() || (op.getSkipsZeros() && !op.hasQuads()) ||
      op.hasVectorSums())
    return false;
  auto hasContiguousRows = [](Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    return !memref || memref.isLastDimUnitStride();
  };
  return llvm::all_of(op->getOperandTypes(), hasContiguousRows) &&
         op.getNumRows() == 2 * kTileRows &&
         op.getNumColumns() == 2 * kTileRows && hasWholeTiles(op);
}

void AMXUnit::lower(RewriterBase &rewriter, TileProductOp op) {
  rewriter.setInsertionPoint(op);
  ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
  Value zero = createIndex(builder, 0);
  // Emits the products of `count` words from the word `first` on.
  auto emit = [&](Value first, int64_t count) {
    emitTileProducts(builder, getTilesOfRows(builder, op.getA(), zero, first),
                     getTilesOfRows(builder, op.getB(), first, zero),
                     getTilesOfRows(builder, op.getSums(), zero, zero),
                     count / kTileRows, /*accumulates=*/true, op.getElements());
  };
  int64_t depth = op.getDepth();
  if (!ShapedType::isDynamic(depth)) {
    for (int64_t first = 0; first < depth; first += kMaxKnownWords)
      emit(createIndex(builder, first),
           std::min(kMaxKnownWords, depth - first));
    return rewriter.eraseOp(op);
  }
  Value end = builder.createOrFold<memref::DimOp>(op.getB(), zero);
  auto loop = scf::ForOp::create(builder, zero, end,
                                 createIndex(builder, kMaxTileWords));
  builder.setInsertionPointToStart(loop.getBody());
  Value first = loop.getInductionVar();
  Value words = minIndex(builder, subIndex(builder, end, first),
                         createIndex(builder, kMaxTileWords));
  Value tiles =
      arith::DivUIOp::create(builder, words, createIndex(builder, kTileRows));
  emitForCount(builder, tiles, kMaxTileWords / kTileRows,
               [&](int64_t count) { emit(first, count * kTileRows); });
  rewriter.eraseOp(op);
}

ProductUnit mlir::posenc::getAMXUnit() {
  return {AMXUnit::computes, AMXUnit::lower, /*needsMemory=*/true};
}
