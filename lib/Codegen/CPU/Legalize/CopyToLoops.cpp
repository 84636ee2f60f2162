//===- CopyToLoops.cpp - memref.copy as loops -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopSizes.h"

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCCOPYTOLOOPSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Skips the copy at run time if source and target have the same address. Two
/// arguments of a kernel are either the same memory or do not overlap.
static void skipIfSame(RewriterBase &rewriter, linalg::CopyOp copy) {
  auto isArgument = [](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && isa<MemRefType>(value.getType()) &&
           isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  };
  Value source = copy.getInputs().front(), target = copy.getOutputs().front();
  if (!isArgument(source) || !isArgument(target))
    return;
  rewriter.setInsertionPoint(copy);
  Location loc = copy.getLoc();
  auto branch = scf::IfOp::create(
      rewriter, loc, haveDifferentAddresses(rewriter, loc, source, target),
      /*withElseRegion=*/false);
  rewriter.moveOpBefore(copy, branch.thenBlock()->getTerminator());
}

/// Whether the last dimension is contiguous, and its elements have the same
/// layout in vectors as in memory.
static bool hasVectors(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  Type element = type.getElementType();
  return type.getRank() > 0 && type.isLastDimUnitStride() &&
         (isa<FloatType>(element) ||
          (isa<IntegerType>(element) && element.getIntOrFloatBitWidth() >= 8 &&
           llvm::isPowerOf2_32(element.getIntOrFloatBitWidth())));
}

/// Copies rows vector by vector, and the remainder of each row element by
/// element.
static void copyByVectors(RewriterBase &rewriter, linalg::CopyOp copy,
                          int64_t vectorBytes) {
  Value source = copy.getInputs().front(), target = copy.getOutputs().front();
  auto type = cast<MemRefType>(target.getType());
  int64_t rank = type.getRank(), last = type.getShape().back();
  int64_t lanes = vectorBytes * 8 / type.getElementTypeBitWidth();
  if (!ShapedType::isDynamic(last))
    lanes = std::min<int64_t>(lanes, llvm::bit_floor(uint64_t(last)));
  if (lanes < 2)
    return;
  Location loc = copy.getLoc();
  rewriter.setInsertionPoint(copy);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  Value zero = constant(0), one = constant(1), step = constant(lanes);
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < rank; ++dim)
    sizes.push_back(
        rewriter.createOrFold<memref::DimOp>(loc, source, constant(dim)));
  auto vector = VectorType::get({lanes}, type.getElementType());
  SmallVector<Value> zeros(rank - 1, zero), ones(rank - 1, one);
  scf::buildLoopNest(
      rewriter, loc, zeros, ArrayRef(sizes).drop_back(), ones,
      [&](OpBuilder &b, Location, ValueRange row) {
        Value rest = b.createOrFold<arith::RemUIOp>(loc, sizes.back(), step);
        Value whole = b.createOrFold<arith::SubIOp>(loc, sizes.back(), rest);
        auto copyEach = [&](Value first, Value end, Value by, auto move) {
          scf::ForOp::create(
              b, loc, first, end, by, ValueRange(),
              [&](OpBuilder &inner, Location, Value lane, ValueRange) {
                SmallVector<Value> at(row);
                at.push_back(lane);
                move(inner, at);
                scf::YieldOp::create(inner, loc);
              });
        };
        copyEach(zero, whole, step, [&](OpBuilder &inner, ValueRange at) {
          Value x = vector::LoadOp::create(inner, loc, vector, source, at);
          vector::StoreOp::create(inner, loc, x, target, at);
        });
        copyEach(whole, sizes.back(), one,
                 [&](OpBuilder &inner, ValueRange at) {
                   Value x = memref::LoadOp::create(inner, loc, source, at);
                   memref::StoreOp::create(inner, loc, x, target, at);
                 });
      });
  rewriter.eraseOp(copy);
}

namespace {
struct CopyToLoops final
    : mlir::posenc::impl::PosencCopyToLoopsPassBase<CopyToLoops> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](memref::CopyOp copy) {
      if (!isa<MemRefType>(copy.getSource().getType()) ||
          !isa<MemRefType>(copy.getTarget().getType()))
        return;
      rewriter.setInsertionPoint(copy);
      rewriter.replaceOpWithNewOp<linalg::CopyOp>(copy, copy.getSource(),
                                                  copy.getTarget());
    });
    getOperation()->walk(
        [&](linalg::CopyOp copy) { skipIfSame(rewriter, copy); });
    getOperation()->walk([&](linalg::CopyOp copy) {
      Value source = copy.getInputs().front();
      Value target = copy.getOutputs().front();
      if (isa<MemRefType>(source.getType()) &&
          isa<MemRefType>(target.getType()) && hasVectors(source) &&
          hasVectors(target) &&
          getElementTypeOrSelf(source) == getElementTypeOrSelf(target))
        copyByVectors(rewriter, copy, vectorBytes);
    });
  }
};
} // namespace
