//===- RaiseSinusoidal.cpp - sinusoidal tables to posenc.sinusoidal -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As for rotations, each lane of the last dimension is expanded on its own. It
// must be a sine or cosine; the last one may be a zero. Dimensions that the
// position does not depend on are broadcast from one row.
//
//===----------------------------------------------------------------------===//

#include "AttentionShape.h"
#include "Elements.h"
#include "Materialize.h"
#include "Positions.h"
#include "Raise.h"
#include "SinusoidalAngles.h"
#include "SoftmaxForm.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::raise;

/// The search ignores tables with more lanes.
static constexpr int64_t kMaxTableLanes = 8192;
/// Maximum number of operations between a sine or cosine and the table.
static constexpr unsigned kMaxDistance = 12;

namespace {

/// Looks for a table that is the result of an operation.
class SinusoidalSearch {
public:
  SinusoidalSearch(Operation *op, Precision precision)
      : root(op->getResult(0)), type(cast<RankedTensorType>(root.getType())),
        precision(precision), exprs(op->getContext(), type.getShape()) {}

  /// Whether the result is a table.
  bool find();
  /// Replaces the result, which must have been found.
  void replace(RewriterBase &rewriter);
  /// Why the result is no table, if it resembles one.
  StringRef getReason() const { return reason; }

private:
  bool readLanes(SmallVectorImpl<const Expr *> &functions);
  bool readOrder(ArrayRef<const Expr *> functions);
  Value createPosition(RewriterBase &rewriter, ArrayRef<int64_t> dims,
                       ArrayRef<OpFoldResult> sizes);
  bool miss(const Twine &why) {
    if (reason.empty())
      reason = why.str();
    return false;
  }

  Value root;
  RankedTensorType type;
  Precision precision;
  /// The loops are the dimensions of the table.
  ExprContext exprs;
  TableOrder order = TableOrder::SinCos;
  bool hasZero = false;
  double factor = 1;
  SinusoidalAngles angles;
  std::string reason;
};

} // namespace

/// Returns the value of a size.
static OpFoldResult getSize(OpBuilder &builder, Location loc,
                            SizeOrigin origin) {
  auto [value, number] = origin;
  if (!value)
    return builder.getIndexAttr(number);
  if (number == -1)
    return value;
  return tensor::DimOp::create(builder, loc, value, number).getResult();
}

/// Sets the sines and cosines of the lanes, and whether a zero follows them.
bool SinusoidalSearch::readLanes(SmallVectorImpl<const Expr *> &functions) {
  Elements elements(exprs, [](Value, ElementKind) { return false; });
  SmallVector<const Expr *> indices;
  for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim) {
    indices.push_back(exprs.getLoop(dim));
    SizeOrigin size = getSizeOrigin(root, dim);
    // The operation is replaced, so its sizes must be those of others.
    if (size.first == root)
      return false;
    exprs.addLoopOrigin(dim, size);
  }
  int64_t numLanes = type.getShape().back();
  auto getElement = [&](int64_t lane) {
    indices.push_back(exprs.getIndex(lane));
    const Expr *element = elements.get(root, indices);
    indices.pop_back();
    return element;
  };
  // The tensor of narrower elements is the table, which it rounds.
  if (getElement(0)->is<arith::ExtFOp>() && !isMovement(root.getDefiningOp()))
    return false;
  hasZero = numLanes % 2 == 1 &&
            stripCasts(getElement(numLanes - 1))->getFloatConstant() == 0.0;
  numLanes -= hasZero;
  double ofLane;
  auto getFunction = [&](int64_t lane) {
    return stripFactor(getElement(lane), ofLane);
  };
  // A few lanes show that it is another tensor, such as a table of a rotation.
  bool hasSine = false, hasCosine = false, hasPhases = false;
  for (int64_t lane : {int64_t(0), int64_t(1), numLanes / 2, numLanes - 1}) {
    const Expr *function = getFunction(lane);
    bool isSine = function->is<math::SinOp>();
    if (!isSine && !function->is<math::CosOp>())
      return false;
    (isSine ? hasSine : hasCosine) = true;
    hasPhases |= hasPhase(function->operands[0]);
  }
  if (!(hasSine && hasCosine) && !hasPhases)
    return false;
  bool hasOneFactor = true;
  for (int64_t lane = 0; lane < numLanes; ++lane) {
    functions.push_back(getFunction(lane));
    if (!functions.back()->is<math::SinOp, math::CosOp>())
      return false;
    if (lane == 0)
      factor = ofLane;
    hasOneFactor &= factor == ofLane;
  }
  if (llvm::all_of(functions, [&](const Expr *function) {
        return *function->name == *functions[0]->name;
      })) {
    auto numPhases = llvm::count_if(functions, [](const Expr *function) {
      return hasPhase(function->operands[0]);
    });
    return 2 * numPhases >= numLanes && miss("its angles have a phase");
  }
  if (elements.isExhausted())
    return miss("the expressions are too large");
  if (!hasOneFactor)
    return miss("its sines and cosines have different factors");
  if (!(factor > 0) || !std::isfinite(factor))
    return miss("its sines and cosines have a factor that is not positive");
  return true;
}

/// Sets the order of the sines and cosines.
bool SinusoidalSearch::readOrder(ArrayRef<const Expr *> functions) {
  SmallVector<bool> isSine;
  for (const Expr *function : functions)
    isSine.push_back(function->is<math::SinOp>());
  int64_t numLanes = isSine.size(), numSines = llvm::count(isSine, true);
  if (2 * numSines != numLanes)
    return miss("it has " + Twine(numSines) + " sines and " +
                Twine(numLanes - numSines) + " cosines");
  auto hasSines = [&](llvm::function_ref<bool(int64_t)> isExpected) {
    for (int64_t lane = 0; lane < numLanes; ++lane)
      if (isSine[lane] != isExpected(lane))
        return false;
    return true;
  };
  if (hasSines([&](int64_t lane) { return lane < numLanes / 2; }))
    order = TableOrder::SinCos;
  else if (hasSines([&](int64_t lane) { return lane >= numLanes / 2; }))
    order = TableOrder::CosSin;
  else if (hasSines([&](int64_t lane) { return lane % 2 == 0; }))
    order = TableOrder::Interleaved;
  else if (hasSines([&](int64_t lane) { return lane % 2 == 1; }))
    return miss("the cosine of each pair is before its sine");
  else
    return miss("its sines and cosines are in no known order");
  return true;
}

bool SinusoidalSearch::find() {
  SmallVector<const Expr *> functions;
  if (!readLanes(functions) || !readOrder(functions))
    return false;
  SmallVector<const Expr *> ofLanes;
  for (const Expr *function : functions)
    ofLanes.push_back(function->operands[0]);
  std::optional<SinusoidalAngles> found = getSinusoidalAngles(ofLanes, reason);
  if (!found)
    return false;
  angles = *found;
  // Both lanes of a pair have one frequency, which may be computed twice.
  int64_t numPairs = functions.size() / 2;
  SmallVector<FoundFrequency> ofPairs;
  for (int64_t pair = 0; pair < numPairs; ++pair) {
    bool isInterleaved = order == TableOrder::Interleaved;
    const FoundFrequency
        &first = angles.frequencies[isInterleaved ? 2 * pair : pair],
        &second =
            angles.frequencies[isInterleaved ? 2 * pair + 1 : pair + numPairs];
    if (first.range.max != second.range.max)
      return miss("the sine and the cosine of pair " + Twine(pair) +
                  " have different angles");
    ofPairs.push_back(first);
  }
  angles.frequencies = ofPairs;
  if (precision == Precision::HfF32 &&
      angles.rounding != AngleRounding::ProductF32)
    return miss("its angles are not f32 products of positions and "
                "frequencies, which needs the precision exact");
  return true;
}

/// Returns the positions of the rows `dims`. An integer that each row adds its
/// number to is a scalar.
Value SinusoidalSearch::createPosition(RewriterBase &rewriter,
                                       ArrayRef<int64_t> dims,
                                       ArrayRef<OpFoldResult> sizes) {
  Location loc = root.getLoc();
  const Expr *position = angles.position;
  Type number = position->type;
  if (position->kind == Expr::Kind::Index && dims.size() == 1 &&
      (number.isIndex() || number.isInteger(32) || number.isInteger(64))) {
    AffineExpr first = exprs.simplify(
        position->index - getAffineDimExpr(dims[0], exprs.getContext()));
    if (!first.isFunctionOfDim(dims[0]))
      return Materializer(rewriter, loc, exprs,
                          SmallVector<Value>(exprs.getSizes().size()))
          .get(exprs.getIndex(first, number));
  }
  return createPositions(rewriter, loc, exprs, position, dims, sizes);
}

void SinusoidalSearch::replace(RewriterBase &rewriter) {
  Operation *op = root.getDefiningOp();
  Location loc = root.getLoc();
  rewriter.setInsertionPoint(op);
  SmallVector<int64_t> dims, broadcast;
  SmallVector<OpFoldResult> allSizes, sizes;
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim) {
    allSizes.push_back(getSize(rewriter, loc, getSizeOrigin(root, dim)));
    if (!dependsOnLoop(angles.position, dim)) {
      broadcast.push_back(dim);
      continue;
    }
    dims.push_back(dim);
    sizes.push_back(allSizes.back());
    shape.push_back(type.getDimSize(dim));
  }
  allSizes.push_back(rewriter.getIndexAttr(type.getShape().back()));
  bool isBroadcast = llvm::any_of(
      broadcast, [&](int64_t dim) { return type.getDimSize(dim) != 1; });
  // A table has one row at least.
  if (dims.empty()) {
    sizes.push_back(rewriter.getIndexAttr(1));
    shape.push_back(1);
  }
  Value position = createPosition(rewriter, dims, sizes);
  sizes.push_back(allSizes.back());
  shape.push_back(type.getShape().back());
  Value init =
      tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
  FrequenciesAttr frequencies = createFrequencies(
      rewriter.getContext(), angles.frequencies, factor, precision);
  auto table = SinusoidalOp::create(
      rewriter, loc, init.getType(), position, init, order, frequencies,
      /*axes=*/AxesAttr(), hasZero, /*padding_position=*/IntegerAttr());
  reportChoice(table, kPassName,
               llvm::formatv("found a sinusoidal table of {0} elements a row",
                             table.getRowSize()));
  Value result = table.getResult(0);
  if (!isBroadcast) {
    result = reshape(rewriter, loc, result, type.getShape());
  } else {
    if (dims.empty())
      result = reshape(rewriter, loc, result, type.getShape().back());
    Value wide =
        tensor::EmptyOp::create(rewriter, loc, allSizes, type.getElementType());
    result = linalg::BroadcastOp::create(rewriter, loc, result, wide, broadcast)
                 ->getResult(0);
  }
  rewriter.replaceOp(op, result);
}

/// Whether the result of the operation may be a table: the operation moves
/// lanes, or is the last conversion of its elements.
static bool mayBeTable(Operation *op) {
  if (op->getNumResults() != 1 || op->use_empty())
    return false;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || type.getRank() < 1 || type.getShape().back() < 2 ||
      type.getShape().back() > kMaxTableLanes ||
      !isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(
          type.getElementType()))
    return false;
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return int64_t(concat.getDim()) + 1 == type.getRank();
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return collapse.getReassociationIndices().back().size() > 1;
  if (isa<tensor::InsertSliceOp, tensor::PadOp, arith::TruncFOp,
          arith::SelectOp, math::SinOp>(op))
    return true;
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return structured &&
         structured.getNumParallelLoops() == structured.getNumLoops();
}

using OpSet = llvm::SetVector<Operation *>;

/// Adds the operations that are computed from those of the set by at most so
/// many others.
static void addUsers(OpSet &ops, unsigned distance) {
  for (size_t first = 0; distance > 0; --distance) {
    size_t end = ops.size();
    for (; first < end; ++first) {
      Block *block = ops[first]->getBlock();
      for (Operation *user : ops[first]->getUsers())
        if (Operation *inBlock = block->findAncestorOpInBlock(*user))
          ops.insert(inBlock);
    }
  }
}

/// Returns the operations of the function that compute sines or cosines.
template <typename Function>
static OpSet getFunctions(FunctionOpInterface function) {
  OpSet ops;
  function.walk([&](Function op) {
    auto structured = op->template getParentOfType<linalg::LinalgOp>();
    ops.insert(structured ? structured.getOperation() : op);
  });
  return ops;
}

/// Takes sizes of the operations from where these have them, so that they are
/// not computed for their sizes alone.
static void replaceSizes(const OpSet &ops, RewriterBase &rewriter) {
  SmallVector<tensor::DimOp> sizes;
  for (Operation *op : ops)
    if (auto size = dyn_cast<tensor::DimOp>(op))
      sizes.push_back(size);
  for (tensor::DimOp size : sizes) {
    SizeOrigin origin = getSizeOrigin(size.getResult());
    if (origin.first == size.getSource() || origin.first == size.getResult())
      continue;
    rewriter.setInsertionPoint(size);
    rewriter.replaceOp(size, getValueOrCreateConstantIndexOp(
                                 rewriter, size.getLoc(),
                                 getSize(rewriter, size.getLoc(), origin)));
  }
}

/// Returns the operations of the function whose results may be tables.
static SmallVector<Operation *> getCandidates(FunctionOpInterface function) {
  OpSet nearSines = getFunctions<math::SinOp>(function),
        nearCosines = getFunctions<math::CosOp>(function), sines = nearSines;
  addUsers(nearSines, kMaxDistance);
  addUsers(nearCosines, kMaxDistance);
  SmallVector<Operation *> candidates;
  function.walk([&](Operation *op) {
    // Sines alone may be those of angles with phases.
    if (((nearSines.contains(op) && nearCosines.contains(op)) ||
         sines.contains(op)) &&
        mayBeTable(op))
      candidates.push_back(op);
  });
  return candidates;
}

void mlir::posenc::raise::raiseSinusoidal(FunctionOpInterface function,
                                          Precision precision,
                                          RewriterBase &rewriter) {
  // Later operations first: a table that is padded or rounded at its end is
  // found with the zero or the rounding.
  auto raiseLast = [&] {
    SmallVector<Operation *> candidates = getCandidates(function);
    for (Operation *op : llvm::reverse(candidates)) {
      SinusoidalSearch search(op, precision);
      if (!search.find())
        continue;
      search.replace(rewriter);
      for (OpSet ops : {getFunctions<math::SinOp>(function),
                        getFunctions<math::CosOp>(function)}) {
        addUsers(ops, kMaxDistance);
        replaceSizes(ops, rewriter);
      }
      // Values that are used in a region stay until its operation is erased.
      while (succeeded(runRegionDCE(rewriter, function->getRegions())))
        continue;
      return true;
    }
    return false;
  };
  while (raiseLast())
    continue;
  // Operations behind a near miss resemble a table, too.
  OpSet reported;
  for (Operation *op : getCandidates(function)) {
    SinusoidalSearch search(op, precision);
    if (reported.contains(op) || search.find() || search.getReason().empty())
      continue;
    reported.insert(op);
    addUsers(reported, kMaxDistance);
    reportMissed(op, kPassName,
                 "'" + op->getName().getStringRef() +
                     "' looks like a sinusoidal table, but " +
                     search.getReason());
  }
}
