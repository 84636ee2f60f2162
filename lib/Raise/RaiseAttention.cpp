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
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/SetVector.h"

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

/// Finds the loops that may be those of queries, and the one of the values'
/// channels. Values lack those of queries and of the heads of a group.
bool AttentionSearch::findQueryLoops() {
  AffineMap weights =
                op.getMatchingIndexingMap(&op->getOpOperand(weightsNumber)),
            values =
                op.getMatchingIndexingMap(&op->getOpOperand(1 - weightsNumber));
  std::optional<unsigned> channel;
  // The heads of a group are often before the tokens.
  for (AffineExpr result : llvm::reverse(weights.getResults()))
    if (!values.isFunctionOfDim(cast<AffineDimExpr>(result).getPosition()))
      queryLoops.push_back(cast<AffineDimExpr>(result).getPosition());
  for (AffineExpr result : values.getResults())
    if (!weights.isFunctionOfDim(cast<AffineDimExpr>(result).getPosition()))
      channel = channel ? op.getNumLoops()
                        : cast<AffineDimExpr>(result).getPosition();
  if (queryLoops.empty() || !channel || *channel == op.getNumLoops())
    return false;
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

/// Says which operation computes the tensor that an expression reads along the
/// loop. Returns nothing if there are several, or none.
static std::string getOrigin(const Expr *expr, unsigned loop) {
  llvm::SmallSetVector<Operation *, 2> producers;
  SmallVector<const Expr *> stack{expr};
  while (!stack.empty()) {
    const Expr *next = stack.pop_back_val();
    if (next->kind != Expr::Kind::Element)
      llvm::append_range(stack, next->operands);
    else if (dependsOnLoop(next, loop))
      producers.insert(next->tensor.getDefiningOp());
  }
  if (producers.size() != 1 || !producers.front())
    return {};
  auto call = dyn_cast<CallOpInterface>(producers.front());
  if (!call)
    return ("results of '" + producers.front()->getName().getStringRef() + "'")
        .str();
  auto callee = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
  if (!callee)
    return "results of a call";
  auto function =
      dyn_cast_if_present<FunctionOpInterface>(call.resolveCallable());
  return ("results of a call of '@" + callee.getRootReference().getValue() +
          "', which " +
          (function && function.isExternal() ? "has no body"
                                             : "is not inlined"))
      .str();
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
  if (products.size() > 1)
    return miss("the logits are a sum of several products");
  if (products.empty()) {
    std::string origin = getOrigin(logits, key);
    return miss(origin.empty()
                    ? "the logits are not products of queries and keys"
                    : "the logits are " + origin +
                          ", not products of queries and keys");
  }
  product = products[0];
  Contraction inner = *getContraction(product->tensor.getDefiningOp());
  channel = exprs.addLoop(inner.op.getStaticLoopRanges()[inner.dims.k[0]]);
  return true;
}

/// Returns the tensor whose elements the value has, scaled by a constant or
/// converted to another type, or null if it is computed in another way.
static Value getScaled(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  ExprContext exprs(value.getContext(), type.getShape());
  Elements elements(exprs, [&](Value other, ElementKind) {
    return other != value && !isComputedConstant(other);
  });
  SmallVector<const Expr *> indices;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    indices.push_back(exprs.getLoop(dim));
  double scale = 1;
  const Expr *scaled = stripScale(elements.get(value, indices), scale);
  return scaled->kind == Expr::Kind::Element && scaled->tensor != value
             ? scaled->tensor
             : Value();
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
    if (!producer || producer->getNumOperands() == 0)
      break;
    tensor = isMovement(producer) ? producer->getOperand(0) : getScaled(tensor);
    if (!tensor)
      break;
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
             (kind == ElementKind::Compute && !isComputedConstant(value) &&
              !getScaled(value));
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
  SmallVector<SmallVector<RowOperand>> q;
  for (unsigned loop : queryLoops)
    q.push_back(findAll(inner.op, 1 - keyNumber, loops, loop, channel));
  SmallVector<RowOperand> k = findAll(inner.op, keyNumber, loops, key, channel);
  SmallVector<RowOperand> v =
      findAll(op, 1 - weightsNumber, outerLoops, key, valueChannel);
  bool hasQueries =
      llvm::any_of(q, [](ArrayRef<RowOperand> all) { return !all.empty(); });
  if (!hasQueries || k.empty() || v.empty())
    return miss(Twine("the ") +
                (!hasQueries ? "queries"
                 : k.empty() ? "keys"
                             : "values") +
                " are not rows of a tensor");
  for (auto [loop, all] : llvm::zip_equal(queryLoops, q)) {
    query = loop;
    for (const RowOperand &ofQueries : all)
      for (const RowOperand &ofKeys : k)
        for (const RowOperand &ofValues : v)
          for (bool hasGroups : {false, true})
            if (takeOperands(ofQueries, ofKeys, ofValues, hasGroups))
              return true;
  }
  return false;
}

bool AttentionSearch::takeOperands(const RowOperand &q, const RowOperand &k,
                                   const RowOperand &v, bool hasGroups) {
  if (v.scale != 1)
    return miss("the values are scaled");
  std::string why;
  std::optional<AttentionShape> found =
      getShape(exprs, q, k, v, hasGroups, why);
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
  return findSink();
}

void AttentionSearch::reportMiss(const Twine &why) {
  reportMissed(op, kPassName,
               "'" + op->getName().getStringRef() +
                   "' looks like attention, but " + why);
}

bool AttentionSearch::run(RewriterBase &rewriter) {
  if (!findQueryLoops() || !findLogits() || !findOperands() ||
      all.isExhausted()) {
    if (!reason.empty())
      reportMiss(reason);
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
    reportMiss("sizes of its operands are unknown");
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
    reportMiss("its mask or scale has another form");
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
    reportMiss("its result has another form");
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
  auto getContractions = [&] {
    SmallVector<Contraction> contractions;
    function.walk([&](Operation *op) {
      if (std::optional<Contraction> contraction = getContraction(op))
        contractions.push_back(*contraction);
    });
    return contractions;
  };
  for (const Contraction &contraction : getContractions())
    splitRows(contraction, rewriter);
  SmallVector<Contraction> contractions = getContractions();
  for (const Contraction &contraction : llvm::reverse(contractions))
    for (unsigned weights : {0, 1})
      if (!contraction.op->use_empty() &&
          AttentionSearch(contraction, weights).run(rewriter))
        break;
}
