//===- RaiseRotations.cpp - rotary embeddings to posenc.rotate ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last dimension is static, so each lane of it is expanded on its own, with
// a constant index: slices, concatenations and selections of lanes then fold
// away, however they were written. Each lane must be a sum of products with
// lanes of one tensor x. Everything that does not depend on x is a factor.
//
// Factors are compared by their full expansions, as the two lanes of a pair may
// read different elements of a table that are equal, such as those of
// cos(concat(f, f)). The tables of the rotation are made from tensors that
// exist already.
//
//===----------------------------------------------------------------------===//

#include "AttentionShape.h"
#include "Dependence.h"
#include "Elements.h"
#include "LinearForm.h"
#include "Raise.h"
#include "RotationMiss.h"
#include "RotationTables.h"
#include "SoftmaxForm.h"
#include "posenc/IR/Posenc.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::raise;

/// Wider dimensions are not searched for rotations.
static constexpr int64_t kMaxLanes = 1024;
/// How many values behind a result are tried as the rotated tensor.
static constexpr unsigned kMaxCandidates = 64;

namespace {

/// A lane of the result: `factor * x[lane]`, plus a term with its partner.
struct RotatedLane {
  /// The lane of the partner, or -1 if the lane is that of x.
  int64_t partner = -1;
  /// Factors of the lane itself and of the partner.
  LinearTerm self, other;
};

/// Pairs in a contiguous range of lanes.
struct Window {
  int64_t offset, size;
  bool isHalf;

  int64_t getFirst(int64_t pair) const {
    return offset + (isHalf ? pair : 2 * pair);
  }
  int64_t getSecond(int64_t pair) const {
    return getFirst(pair) + (isHalf ? size / 2 : 1);
  }
};

/// How the lanes of the result are numbered in x: as there, or after the even
/// lanes were moved before the odd ones, or the reverse of that.
enum class LaneOrder { Same, EvenFirst, Alternating };

/// Looks for a rotation whose result is `root`. The lanes are the last
/// dimension, or the last two, as for pairs that are a dimension of their own.
class RotationSearch {
public:
  RotationSearch(Value root, int64_t numLanes, unsigned numLaneDims,
                 Dependence &dependence)
      : root(root), type(cast<RankedTensorType>(root.getType())),
        numLanes(numLanes), outerShape(type.getShape().drop_back(numLaneDims)),
        dependence(dependence) {}

  /// Replaces the root if it is a rotation.
  bool run(RewriterBase &rewriter);
  /// Why the root is not a rotation, if it resembles one.
  StringRef getReason() const { return reason; }

private:
  /// The factors of one window, and how its tables are made of them.
  struct Tables {
    const Expr *cos, *sin;
    bool isInverse, isFull;
  };

  SmallVector<Value> getCandidates();
  bool tryTensor(Value x, RewriterBase &rewriter);
  bool rotates(Value x, ExprContext &exprs, Elements &near,
               RewriterBase &rewriter);
  bool resembles(Value x, ExprContext &exprs, Elements &near);
  const Expr *getResult(ExprContext &exprs, Elements &elements, int64_t lane);
  bool expandLane(ExprContext &exprs, Elements &elements, LinearForm &form,
                  int64_t lane, RotatedLane &result);
  bool setLane(Value x, LinearTerm term, int64_t lane, RotatedLane &result);
  bool expandLanes(ExprContext &exprs, Elements &elements, LinearForm &form,
                   MutableArrayRef<RotatedLane> lanes);
  Value alignRows(ExprContext &exprs, OpBuilder &builder, Value x);
  Value reorderLanes(OpBuilder &builder, Value x);
  bool findWindows(ArrayRef<RotatedLane> lanes);
  std::optional<Tables> getTables(ExprContext &exprs,
                                  ArrayRef<RotatedLane> lanes,
                                  ArrayRef<RotatedLane> expanded,
                                  const Window &window);
  bool miss(const Twine &why) {
    if (reason.empty())
      reason = why.str();
    return false;
  }

  Value root;
  RankedTensorType type;
  int64_t numLanes;
  /// Sizes of the other dimensions.
  ArrayRef<int64_t> outerShape;
  Dependence &dependence;
  /// The indices of the row of x that a row of the result is computed from.
  SmallVector<const Expr *> row;
  SmallVector<Window> windows;
  LaneOrder order = LaneOrder::Same;
  /// Whether a lane is a sum of two others, so that their order may differ.
  bool isReordered = false;
  /// Why the tensor that is tried is not rotated, then why the nearest one that
  /// the root resembles a rotation of is not.
  std::string reason;
};

} // namespace

/// Returns the value and tensors from which it is computed, nearest first.
static SmallVector<Value> getSources(Value value) {
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (unsigned next = 0;
       next < reached.size() && reached.size() <= kMaxCandidates; ++next)
    if (Operation *op = reached[next].getDefiningOp())
      for (Value read : getReadTensors(op))
        reached.insert(read);
  return reached.takeVector();
}

/// Returns the values that the root may be a linear function of, as far as
/// operations show: from others, every path to the root has an operation that
/// is not linear. Returns nullopt if there are many.
static std::optional<llvm::SmallDenseSet<Value>> getLinearSources(Value root) {
  constexpr unsigned maxSources = 4 * kMaxCandidates;
  llvm::SetVector<Value> reached;
  reached.insert(root);
  for (unsigned next = 0; next < reached.size(); ++next) {
    if (reached.size() > maxSources)
      return std::nullopt;
    Operation *op = reached[next].getDefiningOp();
    if (op && mayBeLinear(op))
      for (Value read : getReadTensors(op))
        reached.insert(read);
  }
  return llvm::SmallDenseSet<Value>(reached.begin(), reached.end());
}

/// Returns how many trailing dimensions of the type are the lanes, 1 or 2, or 0
/// if they are another number.
static unsigned getNumLaneDims(RankedTensorType type, int64_t numLanes) {
  ArrayRef<int64_t> shape = type.getShape();
  if (!shape.empty() && shape.back() == numLanes)
    return 1;
  return shape.size() > 1 && !ShapedType::isDynamicShape(shape.take_back(2)) &&
                 shape.back() > 0 && numLanes % shape.back() == 0 &&
                 shape[shape.size() - 2] == numLanes / shape.back()
             ? 2
             : 0;
}

/// Returns the tensors of as many lanes from which the root may be computed by
/// linear operations, nearest first.
SmallVector<Value> RotationSearch::getCandidates() {
  SmallVector<Value> candidates;
  std::optional<llvm::SmallDenseSet<Value>> linear = getLinearSources(root);
  for (auto [next, value] : llvm::enumerate(getSources(root))) {
    auto other = cast<RankedTensorType>(value.getType());
    if (next > 0 && other.getElementType() == type.getElementType() &&
        getNumLaneDims(other, numLanes) &&
        (!linear || linear->contains(value)) &&
        !isa_and_present<tensor::EmptyOp, linalg::FillOp>(
            value.getDefiningOp()))
      candidates.push_back(value);
  }
  return candidates;
}

/// Returns the indices of a lane in a tensor.
static void addLaneIndices(ExprContext &exprs, RankedTensorType type,
                           unsigned numLaneDims, int64_t lane,
                           SmallVectorImpl<const Expr *> &indices) {
  if (numLaneDims == 2) {
    indices.push_back(exprs.getIndex(lane / type.getShape().back()));
    lane %= type.getShape().back();
  }
  indices.push_back(exprs.getIndex(lane));
}

/// Returns the number of the lane that an element has, or nullopt if it is not
/// constant.
static std::optional<int64_t> getLane(RankedTensorType type, int64_t numLanes,
                                      ArrayRef<const Expr *> indices) {
  unsigned numLaneDims = getNumLaneDims(type, numLanes);
  int64_t lane = 0;
  for (auto [index, size] :
       llvm::zip_equal(indices.take_back(numLaneDims),
                       type.getShape().take_back(numLaneDims))) {
    std::optional<int64_t> number = index->getIndexConstant();
    if (!number)
      return std::nullopt;
    lane = lane * size + *number;
  }
  return lane;
}

/// Adds a term to the lane of the result. All terms must read the same row.
bool RotationSearch::setLane(Value x, LinearTerm term, int64_t lane,
                             RotatedLane &result) {
  auto source = cast<RankedTensorType>(x.getType());
  ArrayRef<const Expr *> outer =
      term.indices.drop_back(getNumLaneDims(source, numLanes));
  if (row.empty())
    row.assign(outer.begin(), outer.end());
  if (outer != ArrayRef<const Expr *>(row))
    return miss("lanes of other rows are added");
  std::optional<int64_t> number = getLane(source, numLanes, term.indices);
  if (!number)
    return miss("lanes are gathered");
  int64_t from = *number, half = numLanes / 2;
  if (order == LaneOrder::EvenFirst)
    from = from % 2 * half + from / 2;
  else if (order == LaneOrder::Alternating)
    from = from < half ? 2 * from : 2 * (from - half) + 1;
  if (from == lane) {
    result.self = term;
    return true;
  }
  result.other = term;
  result.partner = from;
  return true;
}

const Expr *RotationSearch::getResult(ExprContext &exprs, Elements &elements,
                                      int64_t lane) {
  SmallVector<const Expr *> indices;
  for (unsigned dim = 0; dim < outerShape.size(); ++dim)
    indices.push_back(exprs.getLoop(dim));
  addLaneIndices(exprs, type, type.getRank() - outerShape.size(), lane,
                 indices);
  return elements.get(root, indices);
}

bool RotationSearch::expandLane(ExprContext &exprs, Elements &elements,
                                LinearForm &form, int64_t lane,
                                RotatedLane &result) {
  const Expr *expr = getResult(exprs, elements, lane);
  std::string why;
  FailureOr<SmallVector<LinearTerm, 2>> terms = form.get(expr, why);
  if (failed(terms))
    return miss("lane " + Twine(lane) + " has another form: " + why);
  result = RotatedLane();
  for (const LinearTerm &term : *terms)
    if (!setLane(form.getTensor(), term, lane, result))
      return false;
  bool hasSelf = result.self.indices.data();
  isReordered |= terms->size() == 2 && !hasSelf;
  if (!hasSelf)
    return miss("lane " + Twine(lane) +
                " has no term with this lane of the rotated tensor");
  if (terms->size() == 1 && (result.self.isNegative || result.self.factor))
    return miss("lane " + Twine(lane) + " is scaled, but has no partner");
  return true;
}

bool RotationSearch::expandLanes(ExprContext &exprs, Elements &elements,
                                 LinearForm &form,
                                 MutableArrayRef<RotatedLane> lanes) {
  row.clear();
  for (auto [lane, result] : llvm::enumerate(lanes))
    if (!expandLane(exprs, elements, form, lane, result))
      return false;
  return llvm::any_of(
      lanes, [](const RotatedLane &lane) { return lane.partner >= 0; });
}

/// Returns x with its lanes in the order of the result's.
Value RotationSearch::reorderLanes(OpBuilder &builder, Value x) {
  if (order == LaneOrder::Same)
    return x;
  auto source = cast<RankedTensorType>(x.getType());
  Location loc = root.getLoc();
  int64_t rank = source.getRank(), half = numLanes / 2;
  SmallVector<int64_t> shape(source.getShape());
  shape.back() = order == LaneOrder::EvenFirst ? half : 2;
  shape.push_back(order == LaneOrder::EvenFirst ? 2 : half);
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0; dim < rank; ++dim)
    groups.push_back({dim});
  groups.back().push_back(rank);
  Value pairs = tensor::ExpandShapeOp::create(builder, loc, source.clone(shape),
                                              x, groups);
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, rank + 1));
  std::swap(permutation[rank - 1], permutation[rank]);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, pairs);
  applyPermutationToVector(sizes, permutation);
  Value init =
      tensor::EmptyOp::create(builder, loc, sizes, source.getElementType());
  Value moved =
      linalg::TransposeOp::create(builder, loc, pairs, init, permutation)
          ->getResult(0);
  return tensor::CollapseShapeOp::create(builder, loc, source, moved, groups);
}

/// Returns x with the dimensions of the result's rows and one of lanes, or null
/// if that takes more than a reshape or a transposition.
Value RotationSearch::alignRows(ExprContext &exprs, OpBuilder &builder,
                                Value x) {
  SmallVector<int64_t> shape(outerShape);
  shape.push_back(numLanes);
  Location loc = root.getLoc();
  // Each dimension of x joins neighbouring dimensions of the result.
  unsigned next = 0;
  bool isReshape = true;
  auto skipUnits = [&] {
    while (next < outerShape.size() && outerShape[next] == 1)
      ++next;
  };
  auto source = cast<RankedTensorType>(x.getType());
  for (auto [dim, index] : llvm::enumerate(row)) {
    if (index->kind != Expr::Kind::Index)
      return {};
    if (index->getIndexConstant()) {
      if (source.getDimSize(dim) != 1)
        return {};
      continue;
    }
    AffineExpr joined = getAffineConstantExpr(0, exprs.getContext());
    bool isDone = false;
    for (skipUnits(); !isDone && next < outerShape.size(); skipUnits()) {
      if (joined != getAffineConstantExpr(0, exprs.getContext()) &&
          ShapedType::isDynamic(outerShape[next]))
        break;
      joined =
          joined *
              (ShapedType::isDynamic(outerShape[next]) ? 1 : outerShape[next]) +
          exprs.getLoop(next)->index;
      ++next;
      isDone = exprs.simplify(joined) == index->index;
    }
    isReshape &= isDone;
  }
  skipUnits();
  if (isReshape && next == outerShape.size())
    return reshape(builder, loc, x, shape);
  // A permutation of the dimensions.
  if (row.size() != outerShape.size() || getNumLaneDims(source, numLanes) != 1)
    return {};
  SmallVector<int64_t> permutation(shape.size(), -1);
  permutation.back() = row.size();
  for (auto [dim, index] : llvm::enumerate(row)) {
    auto loop = dyn_cast<AffineDimExpr>(index->index);
    if (!loop || permutation[loop.getPosition()] != -1)
      return {};
    permutation[loop.getPosition()] = dim;
  }
  if (applyPermutation(source.getShape(), permutation) !=
      ArrayRef<int64_t>(shape))
    return {};
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, x);
  applyPermutationToVector(sizes, permutation);
  Value init =
      tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
  return linalg::TransposeOp::create(builder, loc, x, init, permutation)
      ->getResult(0);
}

/// Partitions the rotated lanes into windows.
bool RotationSearch::findWindows(ArrayRef<RotatedLane> lanes) {
  windows.clear();
  int64_t numLanes = lanes.size();
  for (int64_t lane = 0; lane < numLanes;) {
    int64_t partner = lanes[lane].partner;
    if (partner < 0) {
      ++lane;
      continue;
    }
    int64_t distance = partner - lane;
    if (distance < 1)
      return miss("lane " + Twine(lane) + " is paired with lane " +
                  Twine(partner) + ", which has another partner");
    // Interleaved pairs of one window, or pairs of its halves.
    Window window{lane, 2 * distance, distance > 1};
    auto isPair = [&](int64_t first, int64_t second) {
      return second < numLanes && lanes[first].partner == second &&
             lanes[second].partner == first;
    };
    if (!window.isHalf)
      while (
          window.offset + window.size + 1 < numLanes &&
          isPair(window.offset + window.size, window.offset + window.size + 1))
        window.size += 2;
    for (int64_t pair = 0; pair < window.size / 2; ++pair)
      if (window.getSecond(pair) >= numLanes ||
          !isPair(window.getFirst(pair), window.getSecond(pair)))
        return miss("pairs are neither neighbours nor halves of a window");
    windows.push_back(window);
    lane += window.size;
  }
  // Windows within rows of the last dimension are found where rows are rotated:
  // there they are one rotation, and here a row that is not rotated, such as a
  // class token, would make many of it.
  int64_t lastSize = type.getShape().back();
  if (lastSize != numLanes && lastSize > 2 && windows.size() > 1 &&
      llvm::all_of(windows, [&](const Window &window) {
        return window.offset / lastSize ==
               (window.offset + window.size - 1) / lastSize;
      }))
    return false;
  return !windows.empty();
}

/// Returns the expression of a factor.
static const Expr *getFactor(ExprContext &exprs, const LinearTerm &term,
                             Type type) {
  return term.factor ? term.factor
                     : exprs.getConstant(FloatAttr::get(type, 1.0));
}

/// Negates the factor in the first lanes of the pairs. The last loop counts the
/// lanes of the window.
static const Expr *negateFirst(ExprContext &exprs, const Expr *factor,
                               const Window &window) {
  MLIRContext *context = exprs.getContext();
  AffineExpr lane = getAffineDimExpr(exprs.getSizes().size() - 1, context);
  // The number of the lane within its pair.
  AffineExpr number = window.isHalf ? lane.floorDiv(window.size / 2) : lane % 2;
  auto isFirst =
      arith::CmpIPredicateAttr::get(context, arith::CmpIPredicate::eq);
  const Expr *condition = exprs.getOperation(
      OperationName(arith::CmpIOp::getOperationName(), context),
      DictionaryAttr::get(context, NamedAttribute("predicate", isFirst)),
      IntegerType::get(context, 1),
      {exprs.getIndex(number), exprs.getIndex(0)});
  return exprs.getOperation(
      OperationName(arith::SelectOp::getOperationName(), context), Attribute(),
      factor->type, {condition, exprs.getArith<arith::NegFOp>(factor), factor});
}

std::optional<RotationSearch::Tables>
RotationSearch::getTables(ExprContext &exprs, ArrayRef<RotatedLane> lanes,
                          ArrayRef<RotatedLane> expanded,
                          const Window &window) {
  int64_t numPairs = window.size / 2;
  bool isInverse = lanes[window.getSecond(0)].other.isNegative;
  // Signs that a table has are not those of the terms.
  bool isNegative = lanes[window.getFirst(0)].other.isNegative;
  bool isFull = false, hasOneSign = true;
  for (int64_t pair = 0; pair < numPairs; ++pair) {
    int64_t first = window.getFirst(pair), second = window.getSecond(pair);
    const RotatedLane &a = expanded[first], &b = expanded[second];
    if (a.self.isNegative || b.self.isNegative) {
      miss("the factor of lane " + Twine(first) + " itself is negative");
      return std::nullopt;
    }
    if (lanes[second].other.isNegative != isInverse) {
      miss("the pairs are rotated in different directions");
      return std::nullopt;
    }
    hasOneSign &= lanes[first].other.isNegative == isNegative;
    bool hasSameSign = a.other.isNegative == b.other.isNegative;
    if (hasSameSign != areOpposite(a.other.factor, b.other.factor)) {
      miss("the sines of lanes " + Twine(first) + " and " + Twine(second) +
           " have the same sign");
      return std::nullopt;
    }
    isFull |=
        a.self.factor != b.self.factor || a.other.factor != b.other.factor;
  }
  SmallVector<const Expr *> cos, sin;
  Type element = type.getElementType();
  if (!isFull) {
    for (int64_t pair = 0; pair < numPairs; ++pair) {
      const RotatedLane &lane = lanes[window.getSecond(pair)];
      cos.push_back(getFactor(exprs, lane.self, element));
      sin.push_back(getFactor(exprs, lane.other, element));
    }
  } else {
    if (!hasOneSign) {
      miss("the factors of the lanes of a pair differ");
      return std::nullopt;
    }
    for (int64_t lane = window.offset; lane < window.offset + window.size;
         ++lane) {
      cos.push_back(getFactor(exprs, lanes[lane].self, element));
      sin.push_back(getFactor(exprs, lanes[lane].other, element));
    }
  }
  AffineExpr lane =
      getAffineDimExpr(exprs.getSizes().size() - 1, exprs.getContext());
  Tables tables{getCommonExpr(exprs, cos, lane),
                getCommonExpr(exprs, sin, lane), isInverse, isFull};
  if (isFull && tables.sin && isNegative == isInverse)
    tables.sin = negateFirst(exprs, tables.sin, window);
  if (!tables.cos || !tables.sin) {
    miss(isFull ? "the factors of the lanes of a pair differ"
                : "the factors of the lanes are not regular");
    return std::nullopt;
  }
  return tables;
}

bool RotationSearch::tryTensor(Value x, RewriterBase &rewriter) {
  auto isDependent = [&](Value value) { return dependence.depends(value, x); };
  if (!isDependent(root) || !mayAddLanes(root.getDefiningOp(), x, isDependent))
    return false;
  SmallVector<int64_t> loops(outerShape);
  loops.push_back(numLanes);
  ExprContext exprs(rewriter.getContext(), loops);
  // Constants other than splats are tables, except integers, which are lanes.
  Elements near(exprs, [&](Value value, ElementKind kind) {
    bool isInteger = getElementTypeOrSelf(value).isIntOrIndex();
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    if (value == x || (constant && !isInteger &&
                       !isa<SplatElementsAttr>(constant.getValue())))
      return true;
    return kind == ElementKind::Compute && !isDependent(value) &&
           !(isInteger && isComputedConstant(value));
  });
  std::string before = std::exchange(reason, {});
  if (rotates(x, exprs, near, rewriter))
    return true;
  if (!before.empty() || !resembles(x, exprs, near))
    reason = before;
  return false;
}

/// Whether the root resembles a rotation of x. The reason then is why it is
/// none.
bool RotationSearch::resembles(Value x, ExprContext &exprs, Elements &near) {
  auto source = cast<RankedTensorType>(x.getType());
  auto getLaneOf = [&](ArrayRef<const Expr *> indices) {
    return getLane(source, numLanes, indices);
  };
  auto isDependent = [&](Value value) { return dependence.depends(value, x); };
  RotationMiss miss(x, getNumLaneDims(source, numLanes), getLaneOf,
                    isDependent);
  // Most roots are no sums, which few lanes show.
  if (llvm::none_of(ArrayRef<int64_t>{0, numLanes / 2, numLanes - 1},
                    [&](int64_t lane) {
                      return miss.isSumOfProducts(getResult(exprs, near, lane));
                    }))
    return false;
  SmallVector<const Expr *> lanes;
  for (int64_t lane = 0; lane < numLanes; ++lane)
    lanes.push_back(getResult(exprs, near, lane));
  if (!miss.resembles(lanes))
    return false;
  if (Value added = miss.getAdded())
    reason = ("the lanes are added to those of '" +
              added.getDefiningOp()->getName().getStringRef() +
              "', which is not known to move lanes")
                 .str();
  return true;
}

bool RotationSearch::rotates(Value x, ExprContext &exprs, Elements &near,
                             RewriterBase &rewriter) {
  Elements far(exprs, [&](Value value, ElementKind) { return value == x; });
  LinearForm form(exprs, x);

  SmallVector<RotatedLane> lanes(numLanes), expanded(numLanes);
  order = LaneOrder::Same;
  isReordered = false;
  if (!expandLanes(exprs, near, form, lanes)) {
    // GPT-J's pairs are often moved to halves before they are rotated.
    if (!isReordered || numLanes % 2 != 0 || type.getShape().back() != numLanes)
      return false;
    order = LaneOrder::EvenFirst;
    if (!expandLanes(exprs, near, form, lanes)) {
      order = LaneOrder::Alternating;
      if (!expandLanes(exprs, near, form, lanes))
        return false;
    }
  }
  if (!findWindows(lanes) || !expandLanes(exprs, far, form, expanded))
    return false;
  if (near.isExhausted() || far.isExhausted())
    return miss("the expressions are too large");

  SmallVector<Tables> tables;
  for (const Window &window : windows) {
    std::optional<Tables> found = getTables(exprs, lanes, expanded, window);
    if (!found)
      return false;
    Type element = found->cos->type;
    if (element != found->sin->type ||
        (element.isF64() && !type.getElementType().isF64()))
      return miss("the types of the factors are not supported");
    tables.push_back(*found);
  }

  Location loc = root.getLoc();
  rewriter.setInsertionPoint(root.getDefiningOp());
  Value rows = alignRows(exprs, rewriter, x);
  if (!rows)
    return miss("the rows are read in another order");
  rows = reorderLanes(rewriter, rows);
  Value rotated = rows;
  for (auto [window, table] : llvm::zip_equal(windows, tables)) {
    llvm::SmallBitVector loops;
    collectLoops(exprs, table.cos, loops);
    collectLoops(exprs, table.sin, loops);
    SmallVector<int64_t> dims(loops.set_bits_begin(), loops.set_bits_end());
    int64_t width = table.isFull ? window.size : window.size / 2;
    Value cos = createTable(rewriter, loc, exprs, table.cos, dims, rows, width);
    Value sin = createTable(rewriter, loc, exprs, table.sin, dims, rows, width);
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, rows);
    Value init =
        tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
    auto op =
        RotateOp::create(rewriter, loc, init.getType(), rotated, cos, sin, init,
                         window.isHalf ? Pairing::Half : Pairing::Interleaved,
                         dims, window.offset, table.isInverse, table.isFull);
    reportChoice(op, kPassName,
                 llvm::formatv("found a rotation of {0} lanes", window.size));
    rotated = op.getResult(0);
  }
  rewriter.replaceAllUsesWith(root,
                              reshape(rewriter, loc, rotated, type.getShape()));
  return true;
}

bool RotationSearch::run(RewriterBase &rewriter) {
  for (Value candidate : getCandidates())
    if (tryTensor(candidate, rewriter))
      return true;
  return false;
}

/// Whether the operation may be the last of a rotation: it combines lanes.
static bool mayBeRotation(Operation *op) {
  if (op->getNumResults() != 1 || op->use_empty())
    return false;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || type.getRank() < 2 ||
      !isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(
          type.getElementType()))
    return false;
  if (isa<tensor::ConcatOp, tensor::InsertSliceOp, tensor::CollapseShapeOp,
          tensor::ExpandShapeOp, arith::AddFOp, arith::SubFOp, arith::TruncFOp>(
          op))
    return true;
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return structured && structured.getNumDpsInits() == 1;
}

/// Replaces the result of the operation if it is a rotation. Returns why not if
/// it resembles one, and nothing otherwise.
static std::string searchLanes(Operation *op, Dependence &dependence,
                               RewriterBase &rewriter) {
  if (!mayAddProducts(op))
    return {};
  Value root = op->getResult(0);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(root.getType()).getShape();
  // Pairs as a dimension of their own are not rotated one by one.
  SmallVector<unsigned> numLaneDims{1, 2};
  if (shape.back() == 2)
    std::swap(numLaneDims[0], numLaneDims[1]);
  std::string reason;
  for (unsigned count : numLaneDims) {
    ArrayRef<int64_t> lanes = shape.take_back(count);
    if (shape.size() <= count || llvm::any_of(lanes, [](int64_t size) {
          return ShapedType::isDynamic(size) || size > kMaxLanes;
        }))
      continue;
    int64_t numLanes = ShapedType::getNumElements(lanes);
    if (numLanes < 2 || numLanes > kMaxLanes)
      continue;
    RotationSearch search(root, numLanes, count, dependence);
    if (search.run(rewriter))
      return {};
    if (reason.empty())
      reason = search.getReason();
  }
  return reason;
}

/// Whether the operation's result is moved from one of the others, or computed
/// from it element by element.
static bool isMovedFrom(Operation *op,
                        const llvm::SmallPtrSetImpl<Operation *> &others) {
  llvm::SmallSetVector<Operation *, 16> reached;
  reached.insert(op);
  for (unsigned next = 0; next < reached.size(); ++next) {
    Operation *from = reached[next];
    if (others.contains(from))
      return true;
    auto structured = dyn_cast<linalg::LinalgOp>(from);
    if (reached.size() > kMaxCandidates ||
        !(isMovement(from) || OpTrait::hasElementwiseMappableTraits(from) ||
          (structured &&
           structured.getNumParallelLoops() == structured.getNumLoops())))
      continue;
    for (Value read : getReadTensors(from))
      if (Operation *producer = read.getDefiningOp())
        reached.insert(producer);
  }
  return false;
}

void mlir::posenc::raise::raiseRotations(FunctionOpInterface function,
                                         RewriterBase &rewriter) {
  SmallVector<Operation *> ops, misses;
  function.walk([&](Operation *op) { ops.push_back(op); });
  // Operations on which no result of the function depends. Those of a rotation
  // that has been replaced are not erased yet.
  llvm::DenseSet<Operation *> dead;
  auto isDead = [&](Operation *op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return user->getBlock() == op->getBlock() && dead.contains(user);
    });
  };
  Dependence dependence;
  // Later operations first: a rotation that is rounded at its end is found with
  // the rounding.
  for (Operation *op : llvm::reverse(ops)) {
    if (mayBeRotation(op) && !isDead(op)) {
      dependence.forgetBehind(op);
      if (!searchLanes(op, dependence, rewriter).empty())
        misses.push_back(op);
    }
    if (!op->hasTrait<OpTrait::IsTerminator>() && isMemoryEffectFree(op) &&
        isDead(op))
      dead.insert(op);
  }
  // Operations behind a rotation resembled one before it was found, and those
  // behind a near miss resemble one, too.
  llvm::SmallPtrSet<Operation *, 4> reported;
  dependence = Dependence();
  for (Operation *op : llvm::reverse(misses)) {
    if (isDead(op) || isMovedFrom(op, reported))
      continue;
    std::string reason = searchLanes(op, dependence, rewriter);
    if (reason.empty()) {
      dependence = Dependence();
      continue;
    }
    reported.insert(op);
    reportMissed(op, kPassName,
                 "'" + op->getName().getStringRef() +
                     "' looks like a rotation, but " + reason);
  }
}
