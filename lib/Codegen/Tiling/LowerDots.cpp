//===- LowerDots.cpp - vector.contract of bf16 pairs to VDPBF16PS ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCLOWERDOTSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// Lowers a contraction of rows x 2 and columns x 2 bf16. Each instruction
/// updates 16 columns of one row of accumulators.
struct LowerDot final : OpRewritePattern<vector::ContractionOp> {
  using Base::Base;
  static constexpr int64_t kLanes = 16;

  LogicalResult matchAndRewrite(vector::ContractionOp op,
                                PatternRewriter &rewriter) const override {
    auto sums = dyn_cast<VectorType>(op.getAccType());
    if (!sums || sums.getRank() != 2 || !sums.getElementType().isF32() ||
        !op.getLhsType().getElementType().isBF16() ||
        !op.getRhsType().getElementType().isBF16() ||
        op.getKind() != vector::CombiningKind::ADD)
      return rewriter.notifyMatchFailure(
          op, "expected bf16 operands and a 2-D f32 accumulator");
    int64_t rows = sums.getDimSize(0), columns = sums.getDimSize(1);
    AffineExpr m, n, p;
    bindDims(op.getContext(), m, n, p);
    SmallVector<SmallVector<AffineExpr, 4>> maps{{m, p}, {n, p}, {m, n}};
    bool hasPairs = op.getIndexingMapsArray() ==
                        AffineMap::inferFromExprList(maps, op.getContext()) &&
                    op.getLhsType().getShape() == ArrayRef<int64_t>{rows, 2} &&
                    op.getRhsType().getShape() == ArrayRef<int64_t>{columns, 2};
    if (!hasPairs || columns % kLanes != 0)
      return rewriter.notifyMatchFailure(
          op, "expected rows x 2 and columns x 2, columns a multiple of 16");

    Location loc = op.getLoc();
    Type i32 = rewriter.getI32Type(), bf16 = rewriter.getBF16Type();
    auto getWords = [&](Value pairs, int64_t count) -> Value {
      Value words = vector::BitCastOp::create(
          rewriter, loc, VectorType::get({count, 1}, i32), pairs);
      return vector::ShapeCastOp::create(rewriter, loc,
                                         VectorType::get({count}, i32), words);
    };
    auto getPairs = [&](Value words) -> Value {
      return vector::BitCastOp::create(
          rewriter, loc, VectorType::get({2 * kLanes}, bf16), words);
    };
    Value left = getWords(op.getLhs(), rows);
    Value right = getWords(op.getRhs(), columns);
    Value result = op.getAcc();
    auto word = VectorType::get({kLanes}, i32);
    auto type = VectorType::get({kLanes}, sums.getElementType());
    for (int64_t first = 0; first < columns; first += kLanes) {
      Value columnPairs = getPairs(vector::ExtractStridedSliceOp::create(
          rewriter, loc, right, first, kLanes, 1));
      for (int64_t row = 0; row < rows; ++row) {
        Value rowPairs = vector::ExtractOp::create(rewriter, loc, left, row);
        rowPairs = getPairs(
            vector::BroadcastOp::create(rewriter, loc, word, rowPairs));
        Value acc = vector::ExtractOp::create(rewriter, loc, op.getAcc(), row);
        acc = vector::ExtractStridedSliceOp::create(rewriter, loc, acc, first,
                                                    kLanes, 1);
        acc = x86vector::DotBF16Op::create(rewriter, loc, type, acc, rowPairs,
                                           columnPairs);
        result = vector::InsertStridedSliceOp::create(
            rewriter, loc, acc, result, ArrayRef<int64_t>{row, first},
            ArrayRef<int64_t>{1});
      }
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct LowerDots final
    : mlir::posenc::impl::PosencLowerDotsPassBase<LowerDots> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerDot>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
