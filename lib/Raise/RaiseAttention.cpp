//===- RaiseAttention.cpp - softmax attention to posenc.attention ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention begins at its last contraction, of weights and values. A weight is
// expanded with the loops' indices as symbols; if it is a softmax along the
// keys, and one element of another contraction occurs in its logits, the
// operands of that contraction are the queries and the keys.
//
//===----------------------------------------------------------------------===//

#include "AttentionShape.h"
#include "Materialize.h"
#include "Raise.h"
#include "ScoreParts.h"
#include "SoftmaxForm.h"
#include "posenc/IR/Attention.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

#include <array>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::raise;

namespace {

/// Where rows are looked for: in the tensor that they were moved from, in a
/// slice of it, or in the operand of the contraction, where keys that were
/// repeated for the heads of a group are so.
enum class RowSource { Whole, Part, Operand };

/// A contraction `sum_k a[..., k] * b[..., k]` that starts at 0.
struct Contraction {
  linalg::LinalgOp op;
  linalg::ContractionDimensions dims;
};

/// Looks for attention whose last contraction is `op`, with the weights as the
/// input of the number `weights`.
class AttentionSearch {
public:
  AttentionSearch(const Contraction &last, unsigned weights)
      : op(last.op), weightsNumber(weights),
        exprs(op.getContext(), op.getStaticLoopRanges()),
        all(exprs, [](Value, ElementKind) { return false; }),
        key(last.dims.k.front()) {}

  /// Replaces the contraction if it is attention.
  bool run(RewriterBase &rewriter);

private:
  bool findQueryLoop();
  bool findLogits();
  bool findOperands();
  bool findOperands(RowSource source);
  std::optional<RowOperand> findSourceRows(linalg::LinalgOp of,
                                          unsigned operand,
                                          ArrayRef<const Expr *> loops,
                                          unsigned token, unsigned last,
                                          RowSource source);
  bool isMask(const Expr *element);
  Value createMask(OpBuilder &builder, const Expr *element);
  Value createResult(OpBuilder &builder, Value attention);
  std::optional<unsigned> getLoopOf(unsigned coordinate);
  void setScores(OpBuilder &builder, AttentionOp attention,
                 const ScoreParts &parts);
  SmallVector<Value> getLoops(OpBuilder &builder, Location loc,
                              ValueRange arguments);
  SmallVector<const Expr *> getIndices(linalg::LinalgOp of, unsigned operand,
                                       ArrayRef<const Expr *> loops);
  Value takeRows(OpBuilder &builder, const RowOperand &rows,
                 HeadLayout layout, int64_t numHeads, HeadLayout target,
                 Type element);
  bool miss(const Twine &why) {
    if (reason.empty())
      reason = why.str();
    return false;
  }
  ArrayRef<int64_t> getSizes() const { return exprs.getSizes(); }

  linalg::LinalgOp op;
  unsigned weightsNumber;
  ExprContext exprs;
  Elements all;
  /// Loops: those of the contraction, then the channels of queries and keys.
  unsigned key, query = 0, valueChannel = 0, channel = 0;
  const Expr *logits = nullptr, *product = nullptr;
  RowOperand queries, keys, values;
  AttentionShape shape;
  SmallVector<LoopCoordinates> joined;
  /// The query position minus the query's index: a constant, or a value.
  OpFoldResult offset;
  std::string reason;
};

} // namespace

/// Returns the contraction if the operation is one.
static std::optional<Contraction> getContraction(Operation *operation) {
  auto op = dyn_cast<linalg::LinalgOp>(operation);
  if (!op || !op.hasPureTensorSemantics() ||
      !linalg::isaContractionOpInterface(op))
    return std::nullopt;
  FailureOr<linalg::ContractionDimensions> dims =
      linalg::inferContractionDims(op);
  if (failed(dims) || dims->k.size() != 1)
    return std::nullopt;
  // The sum starts at 0.
  ExprContext exprs(op.getContext(), {});
  Elements elements(exprs, [](Value, ElementKind) { return false; });
  Value init = op.getDpsInits()[0];
  SmallVector<const Expr *> origin(
      cast<RankedTensorType>(init.getType()).getRank(), exprs.getIndex(0));
  if (elements.get(init, origin)->getFloatConstant() != 0.0)
    return std::nullopt;
  return Contraction{op, *dims};
}

SmallVector<const Expr *>
AttentionSearch::getIndices(linalg::LinalgOp of, unsigned operand,
                            ArrayRef<const Expr *> loops) {
  SmallVector<const Expr *> indices;
  AffineMap map = of.getMatchingIndexingMap(&of->getOpOperand(operand));
  for (AffineExpr result : map.getResults())
    indices.push_back(loops[cast<AffineDimExpr>(result).getPosition()]);
  return indices;
}

/// Finds the loops of queries and of the values' channels. Weights may have
/// other loops that values lack, for the heads of a group.
bool AttentionSearch::findQueryLoop() {
  AffineMap weights = op.getMatchingIndexingMap(
                &op->getOpOperand(weightsNumber)),
            values = op.getMatchingIndexingMap(
                &op->getOpOperand(1 - weightsNumber));
  std::optional<unsigned> queryLoop, channel;
  for (AffineExpr result : weights.getResults())
    if (!values.isFunctionOfDim(cast<AffineDimExpr>(result).getPosition()))
      queryLoop = cast<AffineDimExpr>(result).getPosition();
  for (AffineExpr result : values.getResults())
    if (!weights.isFunctionOfDim(cast<AffineDimExpr>(result).getPosition()))
      channel = channel ? op.getNumLoops()
                        : cast<AffineDimExpr>(result).getPosition();
  if (!queryLoop || !channel || *channel == op.getNumLoops())
    return false;
  query = *queryLoop;
  valueChannel = *channel;
  return true;
}

/// Appends the contractions that occur in the expression and depend on the loop.
static void collectProducts(const Expr *expr, unsigned loop,
                            llvm::DenseSet<const Expr *> &seen,
                            SmallVectorImpl<const Expr *> &products) {
  if (!seen.insert(expr).second)
    return;
  if (expr->kind == Expr::Kind::Element && dependsOnLoop(expr, loop))
    if (Operation *producer = expr->tensor.getDefiningOp();
        producer && getContraction(producer))
      products.push_back(expr);
  for (const Expr *operand : expr->operands)
    collectProducts(operand, loop, seen, products);
}

bool AttentionSearch::findLogits() {
  SmallVector<const Expr *> loops;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    loops.push_back(exprs.getLoop(loop));
  const Expr *weight = all.get(op->getOperand(weightsNumber),
                               getIndices(op, weightsNumber, loops));
  std::string why;
  logits = getSoftmaxLogits(exprs, all, weight, key, why);
  if (!logits)
    return why.empty() ? false : miss(why);
  llvm::DenseSet<const Expr *> seen;
  SmallVector<const Expr *> products;
  collectProducts(logits, key, seen, products);
  if (products.size() != 1)
    return miss(products.empty()
                    ? "the logits are not products of queries and keys"
                    : "the logits are a sum of several products");
  product = products[0];
  Contraction inner = *getContraction(product->tensor.getDefiningOp());
  channel = exprs.addLoop(inner.op.getStaticLoopRanges()[inner.dims.k[0]]);
  return true;
}

/// Whether the operation does no more than to scale, to convert or to move
/// elements of one tensor.
static bool isScaling(Value value) {
  Operation *producer = value.getDefiningOp();
  auto isCast = [](Operation *op) {
    return isa<arith::ExtFOp, arith::TruncFOp>(op);
  };
  auto isConstantFactor = [](Operation *op) {
    return isa<arith::MulFOp, arith::DivFOp>(op) &&
           llvm::any_of(op->getOperands(), [](Value operand) {
             return matchPattern(operand, m_Constant());
           });
  };
  if (isCast(producer) || isConstantFactor(producer))
    return true;
  auto structured = dyn_cast<linalg::LinalgOp>(producer);
  return structured &&
         structured.getNumParallelLoops() == structured.getNumLoops() &&
         llvm::all_of(structured.getBlock()->without_terminator(),
                      [&](Operation &nested) {
                        return isCast(&nested) || isConstantFactor(&nested) ||
                               isa<arith::ConstantOp>(nested);
                      });
}

/// Whether the value has a dimension of the source as several.
static bool splitsDim(Value value) {
  auto expand = value.getDefiningOp<tensor::ExpandShapeOp>();
  return expand &&
         llvm::any_of(expand.getReassociationIndices(),
                      [&](const ReassociationIndices &group) {
                        return llvm::count_if(group, [&](int64_t dim) {
                                 return expand.getResultType().getDimSize(
                                            dim) != 1;
                               }) > 1;
                      });
}

/// Whether the value is a part of its source.
static bool isPart(Value value) {
  auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice)
    return false;
  for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes()))
    if (getConstantIntValue(size) != slice.getSourceType().getDimSize(dim))
      return true;
  return false;
}

bool AttentionSearch::findOperands() {
  std::string first;
  for (RowSource source :
       {RowSource::Whole, RowSource::Part, RowSource::Operand}) {
    if (findOperands(source))
      return true;
    if (first.empty())
      first = reason;
    reason.clear();
  }
  reason = first;
  return false;
}

/// Returns the rows that a contraction reads. Heads are often split from the
/// channels of a projection, which are no rows themselves, so the search goes
/// past such a reshape only where the result of it is none either.
std::optional<RowOperand>
AttentionSearch::findSourceRows(linalg::LinalgOp of, unsigned operand,
                               ArrayRef<const Expr *> loops, unsigned token,
                               unsigned last, RowSource source) {
  llvm::SmallPtrSet<Value, 4> passed;
  while (true) {
    Elements elements(exprs, [&](Value value, ElementKind kind) {
      if (source == RowSource::Operand ||
          (source == RowSource::Part && isPart(value)))
        return true;
      return (splitsDim(value) && !passed.contains(value)) ||
             (kind == ElementKind::Compute && !isScaling(value));
    });
    Value found;
    std::optional<RowOperand> rows =
        findRows(exprs, elements, of->getOperand(operand),
                 getIndices(of, operand, loops), token, last, found);
    if (rows || !found || !splitsDim(found) || !passed.insert(found).second)
      return rows;
  }
}

bool AttentionSearch::findOperands(RowSource source) {
  Contraction inner = *getContraction(product->tensor.getDefiningOp());
  SmallVector<const Expr *> loops(inner.op.getNumLoops());
  AffineMap output =
      inner.op.getMatchingIndexingMap(inner.op.getDpsInitOperand(0));
  for (auto [index, result] :
       llvm::zip_equal(product->operands, output.getResults())) {
    if (index->kind != Expr::Kind::Index)
      return miss("queries or keys are gathered");
    loops[cast<AffineDimExpr>(result).getPosition()] = index;
  }
  loops[inner.dims.k[0]] = exprs.getLoop(channel);
  auto hasKey = [&](unsigned operand) {
    return llvm::any_of(getIndices(inner.op, operand, loops),
                        [&](const Expr *index) {
                          return dependsOnLoop(index, key);
                        });
  };
  unsigned keyNumber = hasKey(0) ? 0 : 1;
  if (hasKey(1 - keyNumber))
    return miss("both factors of the logits depend on the key");
  auto rows = [&](linalg::LinalgOp of, unsigned number,
                  ArrayRef<const Expr *> at, unsigned token, unsigned last) {
    return findSourceRows(of, number, at, token, last, source);
  };
  SmallVector<const Expr *> outerLoops;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    outerLoops.push_back(exprs.getLoop(loop));
  std::optional<RowOperand> q =
      rows(inner.op, 1 - keyNumber, loops, query, channel);
  std::optional<RowOperand> k =
      rows(inner.op, keyNumber, loops, key, channel);
  std::optional<RowOperand> v =
      rows(op, 1 - weightsNumber, outerLoops, key, valueChannel);
  if (!q || !k || !v)
    return miss(Twine("the ") +
                (!q ? "queries" : !k ? "keys" : "values") +
                " are not rows of a tensor");
  std::optional<AttentionShape> found =
      getShape(exprs, *q, *k, *v, reason);
  if (!found)
    return false;
  SmallVector<unsigned> others;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (loop != key && loop != query && loop != valueChannel)
      others.push_back(loop);
  FailureOr<SmallVector<LoopCoordinates>> coordinates =
      joinCoordinates(exprs, *found, others);
  if (failed(coordinates))
    return miss("the result has other dimensions than the queries");
  queries = *q;
  keys = *k;
  values = *v;
  shape = *found;
  joined = *coordinates;
  return true;
}

//===----------------------------------------------------------------------===//
// Masks and scores
//===----------------------------------------------------------------------===//

/// Whether the element is one of a tensor that attention can add as its mask:
/// its indices are some of batch, head, query and key, in this order.
bool AttentionSearch::isMask(const Expr *element) {
  if (element->kind != Expr::Kind::Element || !dependsOnLoop(element, key))
    return false;
  auto type = cast<RankedTensorType>(element->tensor.getType());
  Type result = getElementTypeOrSelf(op->getResult(0));
  if (!isa<FloatType>(type.getElementType()) ||
      (type.getElementType().isF64() && !result.isF64()))
    return false;
  std::array<const Expr *, 4> order{shape.batch, shape.head, exprs.getLoop(query),
                                    exprs.getLoop(key)};
  std::array<int64_t, 4> sizes{shape.batchSize, shape.numHeads,
                               getSizes()[query], getSizes()[key]};
  unsigned next = 0;
  for (auto [dim, index] : llvm::enumerate(element->operands)) {
    if (index->getIndexConstant() == 0 && type.getDimSize(dim) == 1)
      continue;
    if (index->kind != Expr::Kind::Index)
      return false;
    while (next < 4 && order[next]->index != index->index)
      ++next;
    if (next == 4 || sizes[next++] != type.getDimSize(dim))
      return false;
  }
  return true;
}

Value AttentionSearch::createMask(OpBuilder &builder, const Expr *element) {
  SmallVector<int64_t> sizes(4, 1);
  auto type = cast<RankedTensorType>(element->tensor.getType());
  std::array<const Expr *, 4> order{shape.batch, shape.head, exprs.getLoop(query),
                                    exprs.getLoop(key)};
  unsigned next = 0;
  for (auto [dim, index] : llvm::enumerate(element->operands)) {
    if (type.getDimSize(dim) == 1)
      continue;
    while (order[next]->index != index->index)
      ++next;
    sizes[next++] = type.getDimSize(dim);
  }
  return reshape(builder, op.getLoc(), element->tensor, sizes);
}

/// Returns the indices of the contraction's loops from those of a region:
/// sequence, query head, query position and key.
SmallVector<Value> AttentionSearch::getLoops(OpBuilder &builder, Location loc,
                                             ValueRange arguments) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  SmallVector<Value> loops(getSizes().size(), zero);
  loops[key] = arguments[3];
  Value offsetValue = getValueOrCreateConstantIndexOp(builder, loc, offset);
  loops[query] = isZeroInteger(offset)
                     ? arguments[2]
                     : Value(arith::SubIOp::create(builder, loc, arguments[2],
                                                   offsetValue));
  // The values of the coordinates.
  SmallVector<Value> coordinates;
  for (auto [number, coordinate] : llvm::enumerate(shape.coordinates)) {
    if (coordinate == shape.batch) {
      coordinates.push_back(arguments[0]);
    } else if (coordinate == shape.head) {
      coordinates.push_back(arguments[1]);
    } else {
      // The head is group * size + number within the group.
      Value size = arith::ConstantIndexOp::create(
          builder, loc, shape.coordinateSizes.back());
      coordinates.push_back(
          number + 1 == shape.coordinates.size()
              ? Value(arith::RemSIOp::create(builder, loc, arguments[1], size))
              : Value(arith::DivSIOp::create(builder, loc, arguments[1],
                                             size)));
    }
  }
  for (const LoopCoordinates &loop : joined) {
    Value index;
    for (unsigned number : loop.coordinates) {
      if (!index) {
        index = coordinates[number];
        continue;
      }
      Value size = arith::ConstantIndexOp::create(
          builder, loc, shape.coordinateSizes[number]);
      index = arith::MulIOp::create(builder, loc, index, size);
      index = arith::AddIOp::create(builder, loc, index, coordinates[number]);
    }
    loops[loop.loop] = index;
  }
  return loops;
}

void AttentionSearch::setScores(OpBuilder &builder, AttentionOp attention,
                                const ScoreParts &parts) {
  FloatType sum = attention.getSumType();
  if (parts.score != parts.product) {
    const Expr *score = widen(exprs, parts.score, sum);
    const Expr *scaled = widen(exprs, parts.product, sum);
    buildScore(builder, attention,
               [&](OpBuilder &b, Location loc, ValueRange arguments) {
                 Materializer made(b, loc, exprs,
                                   getLoops(b, loc, arguments.drop_front()));
                 made.set(scaled, arguments.front());
                 return made.get(score);
               });
  }
  for (const Visibility &visibility : parts.conditions)
    buildWhere(builder, attention,
               [&](OpBuilder &b, Location loc, ValueRange arguments) -> Value {
                 Materializer made(b, loc, exprs, getLoops(b, loc, arguments));
                 Value condition = made.get(visibility.condition);
                 if (!visibility.isHidden)
                   return condition;
                 Value yes = arith::ConstantOp::create(b, loc,
                                                       b.getBoolAttr(true));
                 return arith::XOrIOp::create(b, loc, condition, yes);
               });
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

static Value transpose(OpBuilder &builder, Location loc, Value tensor,
                       ArrayRef<int64_t> permutation) {
  if (isIdentityPermutation(permutation))
    return tensor;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  applyPermutationToVector(sizes, permutation);
  Value init = tensor::EmptyOp::create(builder, loc, sizes,
                                       getElementTypeOrSelf(tensor));
  return linalg::TransposeOp::create(builder, loc, tensor, init, permutation)
      ->getResult(0);
}

/// Returns the tensor with rows of the layout and of the element type.
Value AttentionSearch::takeRows(OpBuilder &builder, const RowOperand &rows,
                                HeadLayout layout, int64_t numHeads,
                                HeadLayout target, Type element) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(rows.tensor.getType());
  Value tensor = rows.tensor;
  if (type.getElementType() != element) {
    auto converted = type.clone(element);
    tensor = element.getIntOrFloatBitWidth() >
                     type.getElementType().getIntOrFloatBitWidth()
                 ? Value(arith::ExtFOp::create(builder, loc, converted, tensor))
                 : Value(arith::TruncFOp::create(builder, loc, converted,
                                                 tensor));
  }
  // The number of tokens is the only other dimension that may be absent.
  int64_t numTokens = 1;
  SmallVector<int64_t> core;
  for (auto [dim, size] : llvm::enumerate(type.getShape().drop_back()))
    if (size != 1)
      core.push_back(size);
  if (core.size() > rows.outer.size())
    numTokens = core[rows.numBeforeTokens];
  SmallVector<int64_t> sizes{shape.batchSize, numHeads, numTokens,
                             type.getShape().back()};
  if (layout == HeadLayout::TokenMajor)
    std::swap(sizes[1], sizes[2]);
  tensor = reshape(builder, loc, tensor, sizes);
  if (!tensor || layout == target)
    return tensor;
  return transpose(builder, loc, tensor, {0, 2, 1, 3});
}

/// Returns the loop that joins the coordinate, or nothing if its size is 1.
std::optional<unsigned> AttentionSearch::getLoopOf(unsigned coordinate) {
  for (const LoopCoordinates &loop : joined)
    if (llvm::is_contained(loop.coordinates, coordinate))
      return loop.loop;
  return std::nullopt;
}

/// Returns the result of attention in the shape of the contraction's.
Value AttentionSearch::createResult(OpBuilder &builder, Value attention) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  bool hasBatch = !shape.batch->getIndexConstant();
  unsigned numCoordinates = shape.coordinates.size();
  bool hasGroups = numCoordinates == 2u + hasBatch;
  auto isLoop = [&](unsigned loop) -> std::optional<unsigned> {
    return getSizes()[loop] == 1 ? std::nullopt : std::optional(loop);
  };
  bool isTokenMajor = shape.queryLayout == HeadLayout::TokenMajor;
  // A loop that joins batch and heads needs them to be neighbours.
  if (isTokenMajor && hasBatch && numCoordinates > 1 &&
      getLoopOf(0) == getLoopOf(1)) {
    attention = transpose(builder, loc, attention, {0, 2, 1, 3});
    isTokenMajor = false;
  }
  // The loop of each dimension, or nothing for a size of 1.
  SmallVector<std::optional<unsigned>> loops;
  loops.push_back(hasBatch ? getLoopOf(0) : std::nullopt);
  SmallVector<std::optional<unsigned>> heads;
  for (unsigned number = hasBatch; number < numCoordinates; ++number)
    heads.push_back(getLoopOf(number));
  if (heads.empty())
    heads.push_back(std::nullopt);
  if (isTokenMajor)
    loops.push_back(isLoop(query));
  unsigned firstHead = loops.size();
  llvm::append_range(loops, heads);
  if (!isTokenMajor)
    loops.push_back(isLoop(query));
  loops.push_back(isLoop(valueChannel));
  if (hasGroups) {
    SmallVector<ReassociationIndices> groups;
    SmallVector<int64_t> sizes;
    auto source = cast<RankedTensorType>(attention.getType());
    for (int64_t dim = 0; dim < source.getRank(); ++dim) {
      ReassociationIndices group{int64_t(sizes.size())};
      if (dim == int64_t(firstHead)) {
        group.push_back(sizes.size() + 1);
        llvm::append_range(
            sizes, ArrayRef(shape.coordinateSizes).drop_front(hasBatch));
      } else {
        sizes.push_back(source.getDimSize(dim));
      }
      groups.push_back(group);
    }
    attention = tensor::ExpandShapeOp::create(builder, loc, source.clone(sizes),
                                              attention, groups);
  }
  // Joins dimensions of one loop, and those of size 1 with their neighbours.
  SmallVector<ReassociationIndices> groups;
  SmallVector<unsigned> order;
  ReassociationIndices units;
  for (auto [dim, loop] : llvm::enumerate(loops)) {
    if (loop && (order.empty() || order.back() != *loop)) {
      order.push_back(*loop);
      groups.push_back(units);
      units.clear();
    }
    (groups.empty() ? units : groups.back()).push_back(dim);
  }
  if (groups.empty())
    return reshape(builder, loc, attention, type.getShape());
  if (groups.size() < loops.size())
    attention =
        tensor::CollapseShapeOp::create(builder, loc, attention, groups);
  AffineMap output = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<int64_t> permutation;
  for (AffineExpr result : output.getResults()) {
    std::optional<unsigned> loop =
        isLoop(cast<AffineDimExpr>(result).getPosition());
    if (!loop)
      continue;
    auto *it = llvm::find(order, *loop);
    if (it == order.end())
      return {};
    permutation.push_back(it - order.begin());
  }
  if (permutation.size() != order.size())
    return {};
  attention = transpose(builder, loc, attention, permutation);
  return reshape(builder, loc, attention, type.getShape());
}

bool AttentionSearch::run(RewriterBase &rewriter) {
  if (!findQueryLoop() || !findLogits() || !findOperands() ||
      all.isExhausted()) {
    if (!reason.empty())
      reportMissed(op, kPassName, "looks like attention, but " + reason);
    return false;
  }
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  // The loops of queries and keys have sizes of the operands.
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Type element = type.getElementType(),
       stored = getElementTypeOrSelf(keys.tensor);
  if (stored != getElementTypeOrSelf(values.tensor))
    stored = element;
  if (stored.getIntOrFloatBitWidth() > (element.isF64() ? 64 : 32))
    stored = element;
  Value q = takeRows(rewriter, queries, shape.queryLayout, shape.numHeads,
                     shape.queryLayout, element);
  Value k = takeRows(rewriter, keys, shape.keyLayout, shape.numKeyHeads,
                     shape.keyLayout, stored);
  Value v = takeRows(rewriter, values, shape.valueLayout, shape.numKeyHeads,
                     shape.keyLayout, stored);
  if (!q || !k || !v) {
    reportMissed(op, kPassName,
                 "looks like attention, but sizes of its operands are unknown");
    return false;
  }
  int64_t queryDim = shape.queryLayout == HeadLayout::HeadMajor ? 2 : 1;
  int64_t keyDim = shape.keyLayout == HeadLayout::HeadMajor ? 2 : 1;
  if (getSizeOrigin(q, queryDim) == getSizeOrigin(k, keyDim)) {
    offset = rewriter.getIndexAttr(0);
  } else {
    AffineExpr a = rewriter.getAffineSymbolExpr(0),
               b = rewriter.getAffineSymbolExpr(1);
    offset = affine::makeComposedFoldedAffineApply(
        rewriter, loc, a - b,
        {tensor::getMixedSize(rewriter, loc, k, keyDim),
         tensor::getMixedSize(rewriter, loc, q, queryDim)});
  }
  AttentionLoops loops{query, key, getConstantIntValue(offset)};
  ScoreParts parts =
      splitLogits(exprs, logits, product, loops,
                  [&](const Expr *element) { return isMask(element); });

  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, q);
  sizes.back() = tensor::getMixedSize(rewriter, loc, v, 3);
  Value init = tensor::EmptyOp::create(rewriter, loc, sizes, element);
  Value mask = parts.mask ? createMask(rewriter, parts.mask) : Value();
  auto attention = AttentionOp::create(rewriter, loc, q, k, v, init);
  attention.setQueryLayout(shape.queryLayout);
  attention.setKeyLayout(shape.keyLayout);
  attention.setScale(APFloat(parts.scale * queries.scale * keys.scale));
  if (mask)
    attention.getMaskMutable().assign(mask);
  setScores(rewriter, attention, parts);
  Value scaled = attention.getResult(0);
  rewriter.setInsertionPointAfter(attention);
  Value result = createResult(rewriter, scaled);
  if (!result || values.scale != 1) {
    rewriter.eraseOp(attention);
    reportMissed(op, kPassName,
                 "looks like attention, but its result has another form");
    return false;
  }
  reportChoice(attention, kPassName,
               llvm::formatv("found attention of {0} query heads and {1} key "
                             "heads{2}{3}{4}",
                             shape.numHeads, shape.numKeyHeads,
                             parts.mask ? ", with a mask" : "",
                             parts.conditions.empty() ? "" : ", with conditions",
                             parts.score == parts.product ? ""
                                                          : ", with a score"));
  rewriter.replaceAllUsesWith(op->getResult(0), result);
  return true;
}

void mlir::posenc::raise::raiseAttention(FunctionOpInterface function,
                                         RewriterBase &rewriter) {
  SmallVector<Contraction> contractions;
  function.walk([&](Operation *op) {
    if (std::optional<Contraction> contraction = getContraction(op))
      contractions.push_back(*contraction);
  });
  for (const Contraction &contraction : llvm::reverse(contractions))
    for (unsigned weights : {0, 1})
      if (!contraction.op->use_empty() &&
          AttentionSearch(contraction, weights).run(rewriter))
        break;
}
