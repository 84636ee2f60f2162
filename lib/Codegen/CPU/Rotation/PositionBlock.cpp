//===- PositionBlock.cpp - sizes of blocks and tiles of positions ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionBlock.h"

#include "posenc/IR/Posenc.h"

using namespace mlir;
using namespace mlir::posenc;

/// Returns the bytes of all rows of one position, or nullopt if unknown.
static std::optional<int64_t> getRowBytes(PositionalOpInterface op) {
  int64_t total = 0;
  auto inits =
      cast<DestinationStyleOpInterface>(op.getOperation()).getDpsInitsMutable();
  for (OpOperand &init : inits) {
    auto type = cast<ShapedType>(init.get().getType());
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    for (auto [size, symbol] : llvm::zip_equal(
             type.getShape(), op.getDimSymbols(init.getOperandNumber()))) {
      if (symbol >= 0 && symbol < op.getNumLoops())
        continue;
      if (ShapedType::isDynamic(size))
        return std::nullopt;
      bytes *= size;
    }
    total += bytes;
  }
  return total;
}

/// Up to this size, rotating the rows of a position takes no longer than
/// computing its cos and sin.
static constexpr uint64_t kFewRowBytes = 4 << 10;

LogicalResult mlir::posenc::checkPositionsPerBlock(Operation *op,
                                                   const Tuning &tuning) {
  constexpr uint64_t maxPositions = 64;
  for (uint64_t positions : {tuning.blockPositions, tuning.smallBlockPositions})
    if (positions < 1 || positions > maxPositions)
      return op->emitOpError("cannot have blocks of ")
             << positions << " positions: expected 1 to " << maxPositions;
  return success();
}

bool mlir::posenc::areRowsApart(PositionalOpInterface op) {
  int64_t lastLoop = op.getNumLoops() - 1;
  auto inits =
      cast<DestinationStyleOpInterface>(op.getOperation()).getDpsInitsMutable();
  return llvm::any_of(inits, [&](OpOperand &init) {
    SmallVector<int64_t> symbols = op.getDimSymbols(init.getOperandNumber());
    auto isRow = [&](int64_t symbol) {
      return symbol < 0 || symbol > lastLoop;
    };
    return llvm::is_contained(symbols, lastLoop) &&
           std::any_of(symbols.begin(), llvm::find(symbols, lastLoop), isRow);
  });
}

int64_t mlir::posenc::getPositionsPerBlock(PositionalOpInterface op,
                                           const Tuning &tuning) {
  // The tables are on the stack.
  constexpr int64_t positionsApart = 32, tableBytes = 128 << 10;
  auto rope = dyn_cast<RopeOp>(op.getOperation());
  if (!rope || op.getNumLoops() == 0)
    return 1;
  int64_t maxTableBytes = 2 * sizeof(double) * rope.getFrequencies().getDim();
  auto limit = [&](int64_t positions) {
    return std::clamp<int64_t>(tableBytes / maxTableBytes, 1, positions);
  };
  if (areRowsApart(op))
    return limit(positionsApart);
  // If rows are not rotated whole, several streams conflict in the cache.
  bool isWhole = llvm::all_of(rope.getInits(), [&](Value init) {
    return cast<ShapedType>(init.getType()).getShape().back() ==
           rope.getFrequencies().getDim();
  });
  uint64_t maxRowBytes =
      isWhole ? tuning.blockBelow : std::min(tuning.blockBelow, kFewRowBytes);
  std::optional<int64_t> bytes = getRowBytes(op);
  bool hasFewRows = bytes && uint64_t(*bytes) <= maxRowBytes;
  if (!hasFewRows)
    return 1;
  int64_t positions = limit(tuning.blockPositions);
  // The rows of a small block are too close together for several streams.
  if (uint64_t(positions * *bytes) < tuning.streamBlockBytes)
    positions = std::min<int64_t>(positions, tuning.smallBlockPositions);
  return positions;
}

int64_t mlir::posenc::getPositionsPerTile(PositionalOpInterface op,
                                          const Tuning &tuning) {
  if (op.getNumLoops() == 0 || !isa<SincosOp, SinusoidalOp>(op.getOperation()))
    return getPositionsPerBlock(op, tuning);
  constexpr int64_t bytes = 1 << 20, minPositions = 256, maxPositions = 1024;
  return std::clamp(bytes / std::max<int64_t>(getRowBytes(op).value_or(1), 1),
                    minPositions, maxPositions);
}
