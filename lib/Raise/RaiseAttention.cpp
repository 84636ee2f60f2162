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

#include "AttentionSearch.h"
#include "Raise.h"
#include "SoftmaxForm.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::raise;

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
  AffineMap weights =
                op.getMatchingIndexingMap(&op->getOpOperand(weightsNumber)),
            values =
                op.getMatchingIndexingMap(&op->getOpOperand(1 - weightsNumber));
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

/// Appends the contractions that occur in the expression and depend on the
/// loop.
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

/// Whether the weights, or what they are moved from, have another reader than
/// the contraction: they are computed in any case then.
static bool hasOtherReaders(Value weights) {
  while (true) {
    if (llvm::count_if(weights.getUsers(), [](Operation *user) {
          return !isa<tensor::DimOp>(user);
        }) > 1)
      return true;
    Operation *op = weights.getDefiningOp();
    if (!op || !isMovement(op) || op->getNumOperands() == 0)
      return false;
    weights = op->getOperand(0);
    if (!isa<RankedTensorType>(weights.getType()))
      return false;
  }
}

bool AttentionSearch::findLogits() {
  SmallVector<const Expr *> loops;
  SmallVector<std::pair<Value, unsigned>> dims;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    loops.push_back(exprs.getLoop(loop));
    dims.clear();
    op.mapIterationSpaceDimToAllOperandDims(loop, dims);
    for (auto [tensor, dim] : dims)
      exprs.addLoopOrigin(loop, getSizeOrigin(tensor, dim));
  }
  const Expr *weight = all.get(op->getOperand(weightsNumber),
                               getIndices(op, weightsNumber, loops));
  std::string why;
  std::optional<Softmax> softmax = getSoftmax(exprs, all, weight, key, why);
  if (!softmax)
    return why.empty() ? false : miss(why);
  if (hasOtherReaders(op->getOperand(weightsNumber)))
    return miss("its probabilities have another use");
  logits = softmax->logits;
  sink = softmax->sink;
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

/// Returns the tensor and those that it is moved or scaled from, the first of
/// them last.
static SmallVector<Value> getMoveSources(Value tensor) {
  SmallVector<Value> sources;
  while (isa<RankedTensorType>(tensor.getType())) {
    sources.push_back(tensor);
    Operation *producer = tensor.getDefiningOp();
    if (!producer || producer->getNumOperands() == 0 ||
        (!isMovement(producer) && !isScaling(tensor)))
      break;
    tensor = producer->getOperand(0);
  }
  return sources;
}

/// Returns the rows that a contraction reads: those of `source`, or if that is
/// null of the tensor that they come from in the end. Heads are often split
/// from the channels of a projection, which are no rows themselves, so the
/// search goes past such a reshape only where the result of it is none either.
std::optional<RowOperand>
AttentionSearch::findSourceRows(linalg::LinalgOp of, unsigned operand,
                                ArrayRef<const Expr *> loops, unsigned token,
                                unsigned last, Value source) {
  llvm::SmallPtrSet<Value, 4> passed;
  while (true) {
    Elements elements(exprs, [&](Value value, ElementKind kind) {
      if (value == source)
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

bool AttentionSearch::findOperands() {
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
    return llvm::any_of(
        getIndices(inner.op, operand, loops),
        [&](const Expr *index) { return dependsOnLoop(index, key); });
  };
  unsigned keyNumber = hasKey(0) ? 0 : 1;
  if (hasKey(1 - keyNumber))
    return miss("both factors of the logits depend on the key");
  // The rows of each operand, in each tensor where they may be found.
  auto findAll = [&](linalg::LinalgOp of, unsigned number,
                     ArrayRef<const Expr *> at, unsigned token, unsigned last) {
    SmallVector<RowOperand> all;
    SmallVector<Value> sources = getMoveSources(of->getOperand(number));
    sources.push_back(nullptr);
    for (Value source : llvm::reverse(sources)) {
      std::optional<RowOperand> rows =
          findSourceRows(of, number, at, token, last, source);
      if (rows && llvm::none_of(all, [&](const RowOperand &other) {
            return other.tensor == rows->tensor;
          }))
        all.push_back(*rows);
    }
    return all;
  };
  SmallVector<const Expr *> outerLoops;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    outerLoops.push_back(exprs.getLoop(loop));
  SmallVector<RowOperand> q =
      findAll(inner.op, 1 - keyNumber, loops, query, channel);
  SmallVector<RowOperand> k = findAll(inner.op, keyNumber, loops, key, channel);
  SmallVector<RowOperand> v =
      findAll(op, 1 - weightsNumber, outerLoops, key, valueChannel);
  if (q.empty() || k.empty() || v.empty())
    return miss(Twine("the ") +
                (q.empty()   ? "queries"
                 : k.empty() ? "keys"
                             : "values") +
                " are not rows of a tensor");
  for (const RowOperand &ofQueries : q)
    for (const RowOperand &ofKeys : k)
      for (const RowOperand &ofValues : v)
        if (takeOperands(ofQueries, ofKeys, ofValues))
          return true;
  return false;
}

bool AttentionSearch::takeOperands(const RowOperand &q, const RowOperand &k,
                                   const RowOperand &v) {
  if (v.scale != 1)
    return miss("the values are scaled");
  std::string why;
  std::optional<AttentionShape> found = getShape(exprs, q, k, v, why);
  if (!found)
    return miss(why);
  SmallVector<unsigned> others;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (loop != key && loop != query && loop != valueChannel)
      others.push_back(loop);
  FailureOr<SmallVector<LoopCoordinates>> coordinates =
      joinCoordinates(exprs, *found, others);
  if (failed(coordinates))
    return miss("the result has other dimensions than the queries");
  queries = q;
  keys = k;
  values = v;
  shape = *found;
  joined = *coordinates;
  return true;
}

bool AttentionSearch::run(RewriterBase &rewriter) {
  if (!findQueryLoop() || !findLogits() || !findOperands() || !findSink() ||
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
  double scale = parts.scale * queries.scale * keys.scale;
  if ((parts.mask && !mask) || !std::isfinite(scale)) {
    reportMissed(
        op, kPassName,
        "looks like attention, but its mask or scale has another form");
    return false;
  }
  auto attention = AttentionOp::create(rewriter, loc, q, k, v, init);
  attention.setQueryLayout(shape.queryLayout);
  attention.setKeyLayout(shape.keyLayout);
  attention.setScale(APFloat(scale));
  if (mask)
    attention.getMaskMutable().assign(mask);
  if (sink) {
    rewriter.setInsertionPoint(attention);
    attention.getSinksMutable().assign(
        createSinks(rewriter, attention.getSumType()));
  }
  setScores(rewriter, attention, parts);
  Value scaled = attention.getResult(0);
  rewriter.setInsertionPointAfter(attention);
  Value result = createResult(rewriter, scaled);
  // The operation is unused then, and erased later.
  if (!result) {
    reportMissed(op, kPassName,
                 "looks like attention, but its result has another form");
    return false;
  }
  reportChoice(
      attention, kPassName,
      llvm::formatv("found attention of {0} query heads and {1} key "
                    "heads{2}{3}{4}{5}",
                    shape.numHeads, shape.numKeyHeads,
                    sink ? ", with sinks" : "",
                    parts.mask ? ", with a mask" : "",
                    parts.conditions.empty() ? "" : ", with conditions",
                    parts.score == parts.product ? "" : ", with a score"));
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
