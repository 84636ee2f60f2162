//===- RaiseCaches.cpp - writes to KV caches to posenc.kv_append ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function that takes caches, writes rows of tokens into them and returns
// them copies both caches. posenc.kv_append writes only the rows if the caller
// passes one buffer for a cache and the updated cache.
//
// An update is a slice that is inserted at a position, or a choice between the
// new row and the old one under the condition that the index of the token is
// the row's position. Two updates of one shape at the same positions become one
// operation; which of them has the keys does not matter.
//
//===----------------------------------------------------------------------===//

#include "AttentionShape.h"
#include "Elements.h"
#include "Materialize.h"
#include "Raise.h"
#include "SoftmaxForm.h"
#include "posenc/IR/CreateGeneric.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::raise;

namespace {

/// The loops of updates: the dimensions of the cache, then the new rows.
constexpr unsigned kBatch = 0, kChannel = 3, kRow = 4;

/// Rows that are written to a cache.
struct CacheUpdate {
  Value updated;
  BlockArgument cache;
  /// (batch, tokens, heads, channels) or (batch, heads, tokens, channels), by
  /// the layout.
  Value rows;
  HeadLayout layout, cacheLayout;
  /// The position of a row in its sequence: a function of the batch and of the
  /// row, to which the row's number is added if rows are consecutive.
  const Expr *position;
  bool isConsecutive;
  /// The first sequence of the cache.
  int64_t firstSequence;
};

/// Updates of caches of one type by the same number of rows.
struct UpdateGroup {
  UpdateGroup(MLIRContext *context, ArrayRef<int64_t> loops)
      : exprs(context, loops),
        // Positions are computed from integers.
        elements(exprs, [](Value value, ElementKind kind) {
          auto producer = value.getDefiningOp<linalg::LinalgOp>();
          return (kind == ElementKind::Compute &&
                  !getElementTypeOrSelf(value).isIntOrIndex()) ||
                 (producer && producer.getNumReductionLoops() > 0);
        }) {}

  ExprContext exprs;
  Elements elements;
  SmallVector<CacheUpdate> updates;
};

/// Finds the updates of caches among the results of a function.
class CacheSearch {
public:
  explicit CacheSearch(Block &body) : body(body) {}

  void run(RewriterBase &rewriter);

private:
  UpdateGroup &getGroup(RankedTensorType cache, int64_t numRows);
  void find(Value updated);
  void findInserted(tensor::InsertSliceOp op);
  void findScattered(Value updated);
  void create(RewriterBase &rewriter, UpdateGroup &group,
              const CacheUpdate &first, const CacheUpdate &second);
  Value createSlots(OpBuilder &builder, UpdateGroup &group,
                    const CacheUpdate &update);
  bool isCache(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == &body;
  }

  Block &body;
  llvm::MapVector<std::pair<Type, int64_t>, std::unique_ptr<UpdateGroup>>
      groups;
};

} // namespace

UpdateGroup &CacheSearch::getGroup(RankedTensorType cache, int64_t numRows) {
  std::unique_ptr<UpdateGroup> &group = groups[{cache, numRows}];
  if (!group) {
    SmallVector<int64_t> loops(cache.getShape());
    loops.push_back(numRows);
    group = std::make_unique<UpdateGroup>(cache.getContext(), loops);
  }
  return *group;
}

/// Finds rows that are inserted as a slice.
void CacheSearch::findInserted(tensor::InsertSliceOp op) {
  RankedTensorType type = op.getType();
  if (!isCache(op.getDest()) || op.getSourceType().getRank() != 4 ||
      !op.hasUnitStride())
    return;
  // One of the inner dimensions is that of the tokens, the others are whole.
  std::optional<unsigned> tokens;
  for (unsigned dim : {1, 2, 3}) {
    OpFoldResult offset = op.getMixedOffsets()[dim],
                 size = op.getMixedSizes()[dim];
    if (isZeroInteger(offset) &&
        getSizeOrigin(size) == getSizeOrigin(op.getDest(), dim))
      continue;
    if (tokens || dim == kChannel)
      return;
    tokens = dim;
  }
  std::optional<int64_t> sequence =
      getConstantIntValue(op.getMixedOffsets()[kBatch]);
  if (!tokens || !sequence)
    return;
  UpdateGroup &group = getGroup(type, op.getSourceType().getDimSize(*tokens));
  const Expr *position = group.elements.getValue(op.getMixedOffsets()[*tokens]);
  HeadLayout layout =
      *tokens == 1 ? HeadLayout::TokenMajor : HeadLayout::HeadMajor;
  if (position)
    group.updates.push_back({op.getResult(), cast<BlockArgument>(op.getDest()),
                             op.getSource(), layout, layout, position,
                             /*isConsecutive=*/true, *sequence});
}

/// Returns the number of the loop of the tokens of the cache, if the condition
/// says that it is the position of a row, which is set.
static std::optional<unsigned>
getTokenLoop(ExprContext &exprs, const Expr *condition, const Expr *&position) {
  if (!condition->is<arith::CmpIOp>() ||
      cast<DictionaryAttr>(condition->properties)
              .getAs<arith::CmpIPredicateAttr>("predicate")
              .getValue() != arith::CmpIPredicate::eq)
    return std::nullopt;
  for (unsigned loop : {1, 2})
    for (unsigned side : {0, 1}) {
      const Expr *index = condition->operands[side];
      position = condition->operands[1 - side];
      if (index->kind == Expr::Kind::Index &&
          index->index == exprs.getLoop(loop)->index &&
          exprs.getSizes()[loop] != 1 && !dependsOnLoop(position, 1) &&
          !dependsOnLoop(position, 2) && !dependsOnLoop(position, kChannel))
        return loop;
    }
  return std::nullopt;
}

/// Finds rows that are chosen where the index of the token is their position.
void CacheSearch::findScattered(Value updated) {
  auto type = cast<RankedTensorType>(updated.getType());
  auto getLoops = [](ExprContext &exprs) {
    SmallVector<const Expr *> loops;
    for (unsigned loop = 0; loop < 4; ++loop)
      loops.push_back(exprs.getLoop(loop));
    return loops;
  };
  UpdateGroup near(updated.getContext(), type.getShape());
  const Expr *moved = near.elements.get(updated, getLoops(near.exprs));
  auto op = moved->kind == Expr::Kind::Element
                ? moved->tensor.getDefiningOp<linalg::LinalgOp>()
                : nullptr;
  if (!op || !op.hasPureTensorSemantics() || op.getNumReductionLoops() > 1 ||
      op->getNumResults() != 1 || op->getNumRegions() != 1)
    return;
  int64_t numRows = 1;
  for (auto [size, kind] :
       llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      numRows = size;
  UpdateGroup &group = getGroup(type, numRows);
  ExprContext &exprs = group.exprs;
  moved = group.elements.get(updated, getLoops(exprs));
  // Its budget of expressions may be used up by other updates.
  if (moved->kind != Expr::Kind::Element || moved->tensor != op->getResult(0))
    return;
  SmallVector<const Expr *> loops(op.getNumLoops(), exprs.getLoop(kRow));
  OpOperand *init = op.getDpsInitOperand(0);
  for (auto [index, result] : llvm::zip_equal(
           moved->operands, op.getMatchingIndexingMap(init).getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(result);
    if (!dim)
      return;
    loops[dim.getPosition()] = index;
  }
  const Expr *old = group.elements.get(init->get(), moved->operands);
  const Expr *written = group.elements.getYielded(op, 0, loops, old);
  if (!written || !written->is<arith::SelectOp>())
    return;
  const Expr *position, *row = written->operands[1],
                        *kept = written->operands[2];
  std::optional<unsigned> tokens =
      getTokenLoop(exprs, written->operands[0], position);
  if (!tokens || kept->kind != Expr::Kind::Element || !isCache(kept->tensor) ||
      kept->tensor.getType() != type ||
      kept->operands != ArrayRef<const Expr *>(getLoops(exprs)) ||
      row->kind != Expr::Kind::Element)
    return;
  // The order of the row's dimensions.
  auto source = cast<RankedTensorType>(row->tensor.getType());
  SmallVector<unsigned> order;
  for (auto [dim, index] : llvm::enumerate(row->operands)) {
    if (index->getIndexConstant() == 0 && source.getDimSize(dim) == 1)
      continue;
    std::optional<unsigned> loop = exprs.getLoopNumber(index);
    if (!loop || source.getDimSize(dim) != exprs.getSizes()[*loop])
      return;
    order.push_back(*loop);
  }
  unsigned heads = 3 - *tokens;
  for (HeadLayout layout : {HeadLayout::HeadMajor, HeadLayout::TokenMajor}) {
    bool isHeadMajor = layout == HeadLayout::HeadMajor;
    unsigned dims[] = {kBatch, isHeadMajor ? heads : kRow,
                       isHeadMajor ? kRow : heads, kChannel};
    SmallVector<unsigned> expected;
    SmallVector<int64_t> shape;
    for (unsigned dim : dims) {
      shape.push_back(exprs.getSizes()[dim]);
      if (shape.back() != 1)
        expected.push_back(dim);
    }
    if (order != expected)
      continue;
    OpBuilder builder(updated.getDefiningOp());
    Value rows = reshape(builder, updated.getLoc(), row->tensor, shape);
    if (rows)
      group.updates.push_back(
          {updated, cast<BlockArgument>(kept->tensor), rows, layout,
           *tokens == 1 ? HeadLayout::TokenMajor : HeadLayout::HeadMajor,
           position, /*isConsecutive=*/false, 0});
    return;
  }
}

void CacheSearch::find(Value updated) {
  auto type = dyn_cast<RankedTensorType>(updated.getType());
  if (!type || type.getRank() != 4 || type.isDynamicDim(3) ||
      !isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(
          type.getElementType()))
    return;
  if (auto insert = updated.getDefiningOp<tensor::InsertSliceOp>())
    return findInserted(insert);
  if (updated.getDefiningOp())
    findScattered(updated);
}

/// Returns the slots of the rows: tensor<batch x rows x i64>.
Value CacheSearch::createSlots(OpBuilder &builder, UpdateGroup &group,
                               const CacheUpdate &update) {
  Location loc = update.updated.getLoc();
  unsigned rowDim = update.layout == HeadLayout::HeadMajor ? 2 : 1,
           tokenDim = update.cacheLayout == HeadLayout::HeadMajor ? 2 : 1;
  SmallVector<OpFoldResult> sizes{
      tensor::getMixedSize(builder, loc, update.rows, 0),
      tensor::getMixedSize(builder, loc, update.rows, rowDim)};
  AffineExpr a = builder.getAffineSymbolExpr(0),
             b = builder.getAffineSymbolExpr(1);
  OpFoldResult tokens =
      tensor::getMixedSize(builder, loc, update.cache, tokenDim);
  OpFoldResult end = affine::makeComposedFoldedAffineApply(
      builder, loc, a * b - 1,
      {tensor::getMixedSize(builder, loc, update.cache, 0), tokens});
  auto getNumber = [&](OpFoldResult size) -> Value {
    if (std::optional<int64_t> number = getConstantIntValue(size))
      return arith::ConstantOp::create(builder, loc,
                                       builder.getI64IntegerAttr(*number));
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                      cast<Value>(size));
  };
  Value numTokens = getValueOrCreateConstantIndexOp(builder, loc, tokens),
        last = getNumber(end);
  Value init =
      tensor::EmptyOp::create(builder, loc, sizes, builder.getI64Type());
  return createParallelGeneric(
      builder, loc, {}, init, {},
      [&](OpBuilder &b, Location loc, ValueRange) -> Value {
        Value batch = linalg::IndexOp::create(b, loc, 0),
              row = linalg::IndexOp::create(b, loc, 1),
              zero = arith::ConstantIndexOp::create(b, loc, 0);
        SmallVector<Value> loops(group.exprs.getSizes().size(), zero);
        loops[kBatch] = batch;
        loops[kRow] = row;
        Value position = getValueOrCreateCastToIndexLike(
            b, loc, b.getIndexType(),
            Materializer(b, loc, group.exprs, loops).get(update.position));
        if (update.isConsecutive)
          position = arith::AddIOp::create(b, loc, position, row);
        // Rows outside of the cache are not written.
        Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                             position, numTokens);
        Value first =
            arith::ConstantIndexOp::create(b, loc, update.firstSequence);
        Value sequence = arith::AddIOp::create(b, loc, batch, first);
        Value slot = arith::AddIOp::create(
            b, loc, arith::MulIOp::create(b, loc, sequence, numTokens),
            position);
        Value none = arith::ConstantIndexOp::create(b, loc, -1);
        slot = arith::SelectOp::create(b, loc, exists, slot, none);
        // Entry points accept numbers that a function clamps.
        slot = arith::IndexCastOp::create(b, loc, b.getI64Type(), slot);
        slot = arith::MinSIOp::create(b, loc, slot, last);
        return slot;
      });
}

/// Whether the value is computed from the other one.
static bool dependsOn(Value value, Value other) {
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (unsigned next = 0; next < reached.size(); ++next) {
    if (reached[next] == other)
      return true;
    Operation *op = reached[next].getDefiningOp();
    if (!op)
      continue;
    reached.insert(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), reached);
  }
  return false;
}

/// Whether one operation can do both updates.
static bool isPair(const CacheUpdate &first, const CacheUpdate &second) {
  return first.cache != second.cache &&
         first.rows.getType() == second.rows.getType() &&
         first.layout == second.layout &&
         first.cacheLayout == second.cacheLayout &&
         first.position == second.position &&
         first.isConsecutive == second.isConsecutive &&
         first.firstSequence == second.firstSequence &&
         !dependsOn(first.rows, second.updated) &&
         !dependsOn(second.rows, first.updated);
}

void CacheSearch::create(RewriterBase &rewriter, UpdateGroup &group,
                         const CacheUpdate &first, const CacheUpdate &second) {
  Operation *last = second.updated.getDefiningOp();
  rewriter.setInsertionPoint(last);
  Value slots = createSlots(rewriter, group, first);
  auto op = KvAppendOp::create(
      rewriter, last->getLoc(),
      TypeRange{first.cache.getType(), second.cache.getType()}, first.rows,
      second.rows, /*positions=*/Value(), /*norm=*/Value(),
      /*lengths=*/Value(), slots, /*turns=*/ValueRange(),
      /*key_scales=*/Value(), /*value_scales=*/Value(),
      ValueRange{first.cache, second.cache}, first.layout, first.cacheLayout,
      /*rotation=*/nullptr, /*norm_eps=*/nullptr, /*norm_offset=*/nullptr);
  auto rows = cast<RankedTensorType>(first.rows.getType());
  reportChoice(op, kPassName,
               llvm::formatv("found writes to caches of {0} heads",
                             rows.getDimSize(op.getHeadDim())));
  rewriter.replaceAllUsesWith(first.updated, op.getResult(0));
  rewriter.replaceAllUsesWith(second.updated, op.getResult(1));
}

void CacheSearch::run(RewriterBase &rewriter) {
  llvm::SetVector<Value> results;
  for (Value result : body.getTerminator()->getOperands())
    if (result.getDefiningOp())
      results.insert(result);
  SmallVector<Value> ordered(results.begin(), results.end());
  llvm::sort(ordered, [](Value a, Value b) {
    return a.getDefiningOp() != b.getDefiningOp() &&
           a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp());
  });
  for (Value result : ordered)
    find(result);
  for (auto &[key, group] : groups) {
    SmallVector<CacheUpdate> &updates = group->updates;
    while (updates.size() > 1) {
      CacheUpdate first = updates.front();
      updates.erase(updates.begin());
      auto *second = llvm::find_if(updates, [&](const CacheUpdate &other) {
        return isPair(first, other);
      });
      if (second == updates.end())
        continue;
      create(rewriter, *group, first, *second);
      updates.erase(second);
      // Readers of the first cache may precede the rows of the second one.
      sortTopologically(&body);
    }
  }
}

void mlir::posenc::raise::raiseCaches(FunctionOpInterface function,
                                      RewriterBase &rewriter) {
  Region &region = function.getFunctionBody();
  if (region.hasOneBlock())
    CacheSearch(region.front()).run(rewriter);
}
