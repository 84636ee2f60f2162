//===- SizePosencOps.cpp - sizes of posenc operations ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/SizeAnalysis.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::posenc;

/// Requires that dimensions with the same symbol be equal.
static void requireSymbols(PositionalOpInterface op, SizeAnalysis &analysis) {
  DenseMap<int64_t, SizeExpr> sizes;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<ShapedType>(operand.get().getType()))
      continue;
    for (auto [symbol, size] :
         llvm::zip_equal(op.getDimSymbols(operand.getOperandNumber()),
                         analysis.getShape(operand.get()))) {
      if (symbol < 0)
        continue;
      auto [known, isNew] = sizes.try_emplace(symbol, size);
      if (!isNew)
        analysis.requireEqual(known->second, size, op);
    }
  }
}

/// Whether a number is known to be at most `limit`, or, if `isLower`, at least
/// that: by minima and maxima that it is computed with.
static bool isWithin(Value number, const SizeExpr &limit, bool isLower,
                     SizeAnalysis &analysis) {
  SizeSymbols &symbols = analysis.getSymbols();
  SizeExpr value = analysis.getInteger(number);
  SizeExpr distance = symbols.resolve(isLower ? value - limit : limit - value,
                                      /*useConstants=*/true);
  if (symbols.isNonNegative(distance))
    return true;
  Operation *op = number.getDefiningOp();
  if (!isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp>(op))
    return false;
  // One operand is enough for the bound that the operation imposes.
  auto holds = [&](Value operand) {
    return isWithin(operand, limit, isLower, analysis);
  };
  bool isEnough = isa<arith::MaxSIOp>(op) == isLower;
  return isEnough ? llvm::any_of(op->getOperands(), holds)
                  : llvm::all_of(op->getOperands(), holds);
}

/// Whether the elements of a tensor are computed by a function that clamps them
/// to at most `high`, and to at least 0 if `isNatural`.
static bool isClamped(Value tensor, const SizeExpr &high, bool isNatural,
                      SizeAnalysis &analysis) {
  auto result = dyn_cast<OpResult>(tensor);
  auto op = result ? dyn_cast<linalg::GenericOp>(result.getOwner())
                   : linalg::GenericOp();
  if (!op || op.getNumReductionLoops() != 0)
    return false;
  Value element =
      op.getBody()->getTerminator()->getOperand(result.getResultNumber());
  return isWithin(element, high, /*isLower=*/false, analysis) &&
         (!isNatural || isWithin(element, 0, /*isLower=*/true, analysis));
}

/// Requires a bound on the elements of `indices`, which entry points check.
static LogicalResult
requireIndices(Operation *op, StringRef name, BoundKind kind, Value indices,
               ArrayRef<SizeExpr> limit, SizeAnalysis &analysis,
               std::optional<SizeExpr> each = {}, Value lengths = {}) {
  std::optional<unsigned> input = analysis.getInput(indices);
  std::optional<unsigned> lengthsInput =
      lengths ? analysis.getInput(lengths) : 0;
  if (!input || !lengthsInput)
    return op->emitError() << "expected " << name
                           << " to be an argument of the function: entry "
                              "points cannot check numbers that it computes";
  return analysis.requireBound(
      {kind, *input, SmallVector<SizeExpr>(limit.begin(), limit.end()), each,
       lengths ? int64_t{*lengthsInput} : -1},
      op);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Requires that query heads are a multiple of key heads, and that there are
/// key heads if there are query heads.
static LogicalResult requireHeads(AttentionOp op, SizeAnalysis &analysis) {
  SizeExpr queryHeads = analysis.getShape(op.getQuery())[op.getQueryHeadDim()];
  SizeExpr keyHeads = analysis.getShape(op.getKey())[op.getKeyHeadDim()];
  // The verifier checks static numbers of heads.
  if (queryHeads == keyHeads ||
      (queryHeads.getConstant() && keyHeads.getConstant()))
    return success();
  if (std::optional<unsigned> query = analysis.getInput(op.getQuery()))
    return analysis.requireBound(
        {BoundKind::Heads, *query, {keyHeads}, queryHeads}, op);
  SizeSymbols &symbols = analysis.getSymbols();
  analysis.requireAtMost(queryHeads, queryHeads * keyHeads, op);
  SizeExpr divisor = symbols.createTerm(TermKind::Max, {keyHeads, 1});
  analysis.requireEqual(
      symbols.createTerm(TermKind::Remainder, {queryHeads, divisor}), 0, op);
  return success();
}

/// Whether the slices of lengths and of a block table select the same
/// sequences, with whole rows of the table.
static bool areSameSequences(tensor::ExtractSliceOp lengths,
                             tensor::ExtractSliceOp table) {
  auto isSame = [](ArrayRef<OpFoldResult> a, ArrayRef<OpFoldResult> b) {
    return isEqualConstantIntOrValue(a.front(), b.front());
  };
  if (!isSame(lengths.getMixedOffsets(), table.getMixedOffsets()) ||
      !isSame(lengths.getMixedSizes(), table.getMixedSizes()) ||
      !isSame(lengths.getMixedStrides(), table.getMixedStrides()) ||
      table.getSourceType().getRank() != 2 || table.getType().getRank() != 2)
    return false;
  OpFoldResult size = table.getMixedSizes()[1];
  int64_t width = table.getSourceType().getDimSize(1);
  auto dim = dyn_cast_or_null<tensor::DimOp>(
      isa<Value>(size) ? cast<Value>(size).getDefiningOp() : nullptr);
  bool isWhole = isConstantIntValue(size, width) ||
                 (dim && dim.getSource() == table.getSource() &&
                  dim.getConstantIndex() == 1);
  return isWhole && isZeroInteger(table.getMixedOffsets()[1]) &&
         isOneInteger(table.getMixedStrides()[1]);
}

static LogicalResult requireNumbers(AttentionOp op, SizeAnalysis &analysis) {
  SmallVector<SizeExpr> key = analysis.getShape(op.getKey());
  Value table = op.getBlockTable();
  SizeExpr slots = op.hasRaggedKeys() ? SizeExpr(0) : key[op.getKeyTokenDim()];
  auto require = [&](StringRef name, BoundKind kind, Value indices,
                     ArrayRef<SizeExpr> limit,
                     std::optional<SizeExpr> each = {}, Value lengths = {}) {
    return requireIndices(op, name, kind, indices, limit, analysis, each,
                          lengths);
  };
  if (Value lengths = op.getLengths()) {
    SmallVector<SizeExpr> limit{slots};
    if (table)
      limit.insert(limit.begin(), analysis.getShape(table)[1]);
    bool isSafe =
        !table && isClamped(lengths, slots, /*isNatural=*/true, analysis);
    if (!isSafe &&
        failed(require("lengths", BoundKind::Lengths, lengths, limit)))
      return failure();
    // With pages, only these tensors determine the number of keys.
    for (Value tensor : {op.getMask(), op.getKeyPositions()})
      if (table && tensor &&
          cast<ShapedType>(tensor.getType()).getShape().back() != 1 &&
          failed(require("lengths", BoundKind::Lengths, lengths,
                         analysis.getShape(tensor).back())))
        return failure();
  }
  if (table) {
    // Entry points check all lengths against all rows of the table, so lengths
    // and rows must be the same slice.
    auto rows = table.getDefiningOp<tensor::ExtractSliceOp>();
    auto lengths = op.getLengths().getDefiningOp<tensor::ExtractSliceOp>();
    if (lengths && (!rows || !areSameSequences(lengths, rows)))
      return op.emitError(
          "expected lengths of paged keys that are not a slice, "
          "or a slice of the same rows as block_table: entry "
          "points cannot tell which pages are read");
    if (failed(require("block_table", BoundKind::Pages,
                       lengths ? rows.getSource() : table, key[0], slots,
                       op.getLengths())))
      return failure();
  }
  for (auto [number, starts] : llvm::enumerate(op.getCuSeqlens())) {
    SizeExpr tokens =
        number == 0 ? analysis.getShape(op.getQuery())[op.getQueryTokenDim()]
                    : key[op.getKeyTokenDim()];
    std::optional<SizeExpr> batch;
    if (op.getLengths())
      batch = analysis.getShape(op.getLengths())[0];
    if (failed(require("cu_seqlens", BoundKind::Starts, starts, tokens, batch)))
      return failure();
  }
  return success();
}

/// The arguments of regions are a sequence, a head, and the positions of an
/// existing query and an existing key.
static LogicalResult visitRegions(AttentionOp op, SizeAnalysis &analysis) {
  SmallVector<SizeExpr> query = analysis.getShape(op.getQuery());
  SmallVector<SizeExpr> key = analysis.getShape(op.getKey());
  SizeExpr queries = query[op.getQueryTokenDim()];
  SizeExpr keys = key[op.getKeyTokenDim()];
  if (op.getBlockTable())
    keys = keys * analysis.getShape(op.getBlockTable())[1];
  bool isRagged = op.hasRaggedQueries() || op.hasRaggedKeys();
  SizeExpr batch = !isRagged ? query[0]
                   : op.getLengths()
                       ? analysis.getShape(op.getLengths())[0]
                       : analysis.getShape(op.getCuSeqlens().front())[0] - 1;
  // Query positions end at the last key of their sequence.
  SizeExpr first =
      op.getLengths() || isRagged ? SizeExpr(1) - queries : keys - queries;
  SizeExpr trailing = op.getTrailingQueries()
                          ? analysis.getInteger(op.getTrailingQueries())
                          : SizeExpr(0);
  SmallVector<SizeExpr> ranges{
      analysis.createLoop(0, batch - 1),
      analysis.createLoop(0, query[op.getQueryHeadDim()] - 1),
      analysis.createLoop(first - trailing, keys - 1 - trailing),
      analysis.createLoop(0, keys - 1)};
  SmallVector<SizeAnalysis::Guard> guards{
      {0, batch}, {0, queries}, {0, keys}, {0, query[op.getQueryHeadDim()]}};
  for (Region *region : {&op.getScore(), &op.getWhere()}) {
    if (region->empty())
      continue;
    for (auto [argument, range] :
         llvm::zip_equal(region->getArguments().take_back(4), ranges))
      analysis.setInteger(argument, range);
    if (failed(analysis.visitRegion(*region, guards)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static LogicalResult requireNumbers(KvAppendOp op, SizeAnalysis &analysis) {
  SmallVector<SizeExpr> cache = analysis.getShape(op.getInits()[0]);
  SizeExpr tokens = cache[op.getCacheTokenDim()];
  if (Value lengths = op.getLengths())
    return requireIndices(op, "lengths", BoundKind::Lengths, lengths, tokens,
                          analysis);
  // A token with a negative slot is not written.
  if (isClamped(op.getSlots(), cache[0] * tokens - 1, /*isNatural=*/false,
                analysis))
    return success();
  return requireIndices(op, "slots", BoundKind::Slots, op.getSlots(),
                        {cache[0], tokens}, analysis);
}

std::optional<LogicalResult>
mlir::posenc::visitPosencOp(Operation *op, SizeAnalysis &analysis) {
  if (auto bucket = dyn_cast<T5BucketOp>(op)) {
    analysis.setInteger(
        bucket.getResult(),
        analysis.createLoop(0, static_cast<int64_t>(bucket.getBuckets()) - 1));
    return success();
  }
  if (auto convert = dyn_cast<ConvertPairingOp>(op)) {
    analysis.setShape(convert.getResult(),
                      analysis.getShape(convert.getInput()), op);
    return success();
  }
  auto positional = dyn_cast<PositionalOpInterface>(op);
  if (!positional)
    return std::nullopt;
  requireSymbols(positional, analysis);
  auto dps = cast<DestinationStyleOpInterface>(op);
  for (OpResult result : op->getResults())
    analysis.setShape(
        result, analysis.getShape(dps.getTiedOpOperand(result)->get()), op);
  if (auto append = dyn_cast<KvAppendOp>(op))
    return requireNumbers(append, analysis);
  auto attention = dyn_cast<AttentionOp>(op);
  if (!attention) {
    for (Region &region : op->getRegions())
      if (failed(analysis.visitRegion(region, {})))
        return failure();
    return success();
  }
  if (failed(requireHeads(attention, analysis)) ||
      failed(requireNumbers(attention, analysis)))
    return failure();
  return visitRegions(attention, analysis);
}
