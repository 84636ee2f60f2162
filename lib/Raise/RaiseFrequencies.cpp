//===- RaiseFrequencies.cpp - tables of rotations to frequencies ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The elements of both tables are expanded lane by lane, down to positions and
// constants. Both lanes of a pair must have one angle, and all pairs one
// position. Other tables are kept.
//
//===----------------------------------------------------------------------===//

#include "Elements.h"
#include "FrequencySearch.h"
#include "Positions.h"
#include "Raise.h"
#include "RotationAngles.h"
#include "RotationTables.h"
#include "posenc/IR/Remarks.h"

#include "llvm/ADT/SmallBitVector.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::raise;

namespace {
/// Looks for the angles of one rotation.
class TableSearch {
public:
  TableSearch(RotateOp op, Precision precision, RewriterBase &rewriter)
      : op(op), precision(precision), rewriter(rewriter),
        type(cast<RankedTensorType>(op.getCos().getType())),
        exprs(op.getContext(), type.getShape()) {}

  /// Replaces the rotation if its angles are found.
  bool run();
  StringRef getReason() const { return reason; }

private:
  bool findPairs(const TableAngles &angles);
  Value createRowPositions(SmallVectorImpl<int64_t> &tableDims);
  void replace(FrequenciesAttr frequencies);
  bool miss(const Twine &why) {
    if (reason.empty())
      reason = why.str();
    return false;
  }

  RotateOp op;
  Precision precision;
  RewriterBase &rewriter;
  RankedTensorType type;
  /// The loops are the dimensions of the tables.
  ExprContext exprs;
  /// An integer that is a function of the loops without the last.
  const Expr *position = nullptr;
  SmallVector<FoundFrequency> pairs;
  std::string reason;
};
} // namespace

/// Sets the frequencies of the pairs, and their position.
bool TableSearch::findPairs(const TableAngles &angles) {
  position = angles.lanes.front().position;
  for (const Angle &angle : angles.lanes) {
    if (angle.position != position)
      return miss("its lanes have different positions");
    if (precision == Precision::HfF32 &&
        angle.rounding != AngleRounding::ProductF32)
      return miss("its angles are not f32 products of positions and "
                  "frequencies");
  }
  int64_t numPairs = op.getRotaryDim() / 2;
  bool isHalf = op.getPairing() == Pairing::Half;
  for (int64_t pair = 0; pair < numPairs; ++pair) {
    const Angle *angle = &angles.lanes[pair];
    FrequencyRange range = angle->frequency;
    if (op.getFullTables()) {
      angle = &angles.lanes[isHalf ? pair : 2 * pair];
      const Angle &other =
          angles.lanes[isHalf ? pair + numPairs : 2 * pair + 1];
      range = {std::max(angle->frequency.min, other.frequency.min),
               std::min(angle->frequency.max, other.frequency.max)};
      if (range.min > range.max)
        return miss("the lanes of pair " + Twine(pair) +
                    " have different frequencies");
    }
    // An exponent x that is rounded to f32 makes an error of x units.
    double tolerance = 1;
    if (angle->isExponential && range.max > 0)
      tolerance += std::abs(std::log(range.max));
    pairs.push_back({range, tolerance});
  }
  return true;
}

/// Creates the tensor of positions. `tableDims` is set to the dimensions of the
/// tables that it has.
Value TableSearch::createRowPositions(SmallVectorImpl<int64_t> &tableDims) {
  Location loc = op.getLoc();
  llvm::SmallBitVector loops;
  collectLoops(exprs, position, loops);
  // Positions that are the same for all rows need a dimension, too.
  if (loops.none())
    loops.set(0, loops.size() - 1);
  tableDims.append(loops.set_bits_begin(), loops.set_bits_end());
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim : tableDims)
    sizes.push_back(tensor::getMixedSize(rewriter, loc, op.getInputs().front(),
                                         op.getDims()[dim]));
  return createPositions(rewriter, loc, exprs, position, tableDims, sizes);
}

/// Returns the only reader of the rows if it splits dimensions other than the
/// last and those of the positions. Attention then reads the rope itself.
static tensor::ExpandShapeOp getSplit(RotateOp op, ArrayRef<int64_t> dims) {
  if (op->getNumResults() != 1 || !op->hasOneUse())
    return {};
  auto split = dyn_cast<tensor::ExpandShapeOp>(*op->user_begin());
  if (!split)
    return {};
  SmallVector<ReassociationIndices> groups = split.getReassociationIndices();
  bool keepsDims =
      groups.back().size() == 1 &&
      llvm::all_of(dims, [&](int64_t dim) { return groups[dim].size() == 1; });
  return keepsDims ? split : nullptr;
}

void TableSearch::replace(FrequenciesAttr frequencies) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  SmallVector<int64_t> dims;
  Value positions = createRowPositions(dims);
  for (int64_t &dim : dims)
    dim = op.getDims()[dim];
  SmallVector<Value> inputs(op.getInputs()), inits(op.getInits());
  Operation *replaced = op;
  if (tensor::ExpandShapeOp split = getSplit(op, dims)) {
    replaced = split;
    rewriter.setInsertionPoint(split);
    SmallVector<ReassociationIndices> groups = split.getReassociationIndices();
    for (int64_t &dim : dims)
      dim = groups[dim].front();
    RankedTensorType wide = split.getResultType();
    SmallVector<OpFoldResult> sizes = split.getMixedOutputShape();
    inputs = {tensor::ExpandShapeOp::create(rewriter, loc, wide, inputs[0],
                                            groups, sizes)};
    inits = {
        tensor::EmptyOp::create(rewriter, loc, sizes, wide.getElementType())};
  }
  auto rope = RopeOp::create(
      rewriter, loc, TypeRange(ValueRange(inits)), inputs, positions,
      /*turns=*/ValueRange(), inits, op.getPairing(), frequencies,
      /*axes=*/AxesAttr(), /*scale=*/XposAttr(), dims, op.getOffset(),
      op.getInverse());
  reportChoice(
      rope, kPassName,
      llvm::formatv("found the frequencies of a rotation: {0}", frequencies));
  rewriter.replaceOp(replaced, rope.getResults());
  if (replaced != op)
    rewriter.eraseOp(op);
}

bool TableSearch::run() {
  if (type.getRank() < 2)
    return miss("its tables have no rows");
  Elements elements(exprs, [](Value, ElementKind) { return false; });
  SmallVector<const Expr *> indices;
  for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim)
    indices.push_back(exprs.getLoop(dim));
  SmallVector<const Expr *> cos, sin;
  for (int64_t lane = 0; lane < type.getShape().back(); ++lane) {
    indices.push_back(exprs.getIndex(lane));
    cos.push_back(elements.get(op.getCos(), indices));
    sin.push_back(elements.get(op.getSin(), indices));
    indices.pop_back();
  }
  if (elements.isExhausted())
    return miss("the expressions are too large");
  std::string why;
  std::optional<TableAngles> angles = getAngles(exprs, cos, sin, why);
  if (!angles)
    return miss(why);
  if (op.getInverse() && angles->factor != 1)
    return miss("an inverse rope divides by the factor of its tables");
  if (!findPairs(*angles))
    return false;
  if (!position->type.isSignlessIntOrIndex() ||
      (!position->type.isIndex() &&
       position->type.getIntOrFloatBitWidth() > 64) ||
      position->type.isInteger(1))
    return miss("its positions are not integers of 64 bits");
  replace(createFrequencies(op.getContext(), pairs, angles->factor, precision));
  return true;
}

void mlir::posenc::raise::raiseFrequencies(FunctionOpInterface function,
                                           Precision precision,
                                           RewriterBase &rewriter) {
  SmallVector<RotateOp> ops;
  function.walk([&](RotateOp op) {
    if (op.hasPureTensorSemantics())
      ops.push_back(op);
  });
  for (RotateOp op : ops) {
    TableSearch search(op, precision, rewriter);
    if (!search.run())
      reportMissed(op, kPassName,
                   "keeps the tables of a rotation: " + search.getReason());
  }
}
