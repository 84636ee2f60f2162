//===- AttentionSearch.h - attention behind a contraction -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_ATTENTIONSEARCH_H
#define POSENC_RAISE_ATTENTIONSEARCH_H

#include "AttentionShape.h"
#include "ScoreParts.h"

namespace mlir::posenc::raise {

/// A contraction `sum_k a[..., k] * b[..., k]` that starts at 0.
struct Contraction {
  linalg::LinalgOp op;
  linalg::ContractionDimensions dims;
};

/// Makes the loop of rows, which joins the query heads of a group with the
/// queries, two loops. Does nothing if the product has no such rows.
void splitRows(const Contraction &contraction, RewriterBase &rewriter);

/// Looks for attention whose last contraction is `op`, with the weights as the
/// input of the number `weights`.
class AttentionSearch {
public:
  AttentionSearch(const Contraction &last, unsigned weights)
      : op(last.op), weightsNumber(weights),
        exprs(op.getContext(), op.getStaticLoopRanges()),
        all(exprs, isReduction), key(last.dims.k.front()) {}

  /// Replaces the contraction if it is attention.
  bool run(RewriterBase &rewriter);

private:
  /// Reductions of few keys are not unrolled.
  static bool isReduction(Value value, ElementKind) {
    auto producer = value.getDefiningOp<linalg::LinalgOp>();
    return producer && producer.getNumReductionLoops() > 0;
  }
  bool findQueryLoops();
  bool findLogits();
  bool findOperands();
  /// Takes the operands if they are those of attention.
  bool takeOperands(const RowOperand &q, const RowOperand &k,
                    const RowOperand &v, bool hasGroups);
  std::optional<RowOperand> findSourceRows(linalg::LinalgOp of,
                                           unsigned operand,
                                           ArrayRef<const Expr *> loops,
                                           unsigned token, unsigned last,
                                           Value source);
  bool findSink();
  Value createSinks(OpBuilder &builder, FloatType type);
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
  Value takeRows(OpBuilder &builder, const RowOperand &rows, HeadLayout layout,
                 int64_t numHeads, HeadLayout target, Type element);
  void reportMiss(const Twine &why);
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
  SmallVector<unsigned, 2> queryLoops;
  unsigned key, query = 0, valueChannel = 0, channel = 0;
  const Expr *logits = nullptr, *product = nullptr;
  /// A logit of each head that is in the denominator only, or null; once found,
  /// a function of the loop `head`.
  const Expr *sink = nullptr;
  unsigned head = 0;
  RowOperand queries, keys, values;
  AttentionShape shape;
  SmallVector<LoopCoordinates> joined;
  /// The query position minus the query's index: a constant, or a value.
  OpFoldResult offset;
  std::string reason;
};

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_ATTENTIONSEARCH_H
