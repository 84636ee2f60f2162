//===- RopeToLinalg.cpp - sincos and rotate to linalg ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SincosGeneric.h"

#include "posenc/Conversion/Passes.h"
#include "posenc/Conversion/PosencToLinalg.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCROPETOLINALGPASS
#include "posenc/Conversion/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

static LogicalResult convertSincos(SincosOp op, PatternRewriter &rewriter) {
  if (!op.hasPureTensorSemantics())
    return rewriter.notifyMatchFailure(op, "not on tensors");
  if (isEmptyTensor(op.getInits()[0])) {
    rewriter.replaceOp(op, op.getInits());
    return success();
  }
  rewriter.replaceOp(op, createSincosGeneric(
                             rewriter, op.getLoc(), op.getFrequencies(),
                             op.getAxesAttr(), op.getPositions(), op.getTurns(),
                             op.getInits()[0], op.getInits()[1]));
  return success();
}

namespace {
/// A strided range of lanes in the last dimension of a tensor.
struct Lanes {
  int64_t offset, size, stride;
};

/// Emits the rotation of one input of a posenc.rotate.
class RotatedTensor {
public:
  RotatedTensor(OpBuilder &builder, RotateOp op, Value input, Value init)
      : builder(builder), loc(op.getLoc()), op(op), input(input), result(init),
        type(cast<RankedTensorType>(init.getType())) {
    // A size may be static in only one of the two types.
    auto inputType = cast<RankedTensorType>(input.getType());
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      sizes.push_back(inputType.isDynamicDim(dim)
                          ? tensor::getMixedSize(builder, loc, init, dim)
                          : builder.getIndexAttr(inputType.getDimSize(dim)));
  }

  /// Returns the rotated tensor.
  Value rotate();

private:
  SmallVector<OpFoldResult> inLastDim(OpFoldResult others, int64_t last) {
    SmallVector<OpFoldResult> values(type.getRank(), others);
    values.back() = builder.getIndexAttr(last);
    return values;
  }
  SmallVector<OpFoldResult> sliceSizes(const Lanes &lanes) {
    SmallVector<OpFoldResult> slice = sizes;
    slice.back() = builder.getIndexAttr(lanes.size);
    return slice;
  }
  Value extract(const Lanes &lanes) {
    return tensor::ExtractSliceOp::create(
        builder, loc, input, inLastDim(builder.getIndexAttr(0), lanes.offset),
        sliceSizes(lanes), inLastDim(builder.getIndexAttr(1), lanes.stride));
  }
  Value extractFromTable(Value table, const Lanes &lanes) {
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(builder, loc, table);
    SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0)),
        strides(sizes.size(), builder.getIndexAttr(1));
    offsets.back() = builder.getIndexAttr(lanes.offset);
    sizes.back() = builder.getIndexAttr(lanes.size);
    strides.back() = builder.getIndexAttr(lanes.stride);
    return tensor::ExtractSliceOp::create(builder, loc, table, offsets, sizes,
                                          strides);
  }
  void insert(Value slice, const Lanes &lanes) {
    result = tensor::InsertSliceOp::create(
        builder, loc, slice, result,
        inLastDim(builder.getIndexAttr(0), lanes.offset), sliceSizes(lanes),
        inLastDim(builder.getIndexAttr(1), lanes.stride));
  }
  /// Copies the lanes [begin, end), which are not rotated.
  void copy(int64_t begin, int64_t end) {
    Lanes lanes{begin, end - begin, 1};
    if (lanes.size > 0)
      insert(extract(lanes), lanes);
  }

  OpBuilder &builder;
  Location loc;
  RotateOp op;
  Value input, result;
  RankedTensorType type;
  SmallVector<OpFoldResult> sizes;
};
} // namespace

/// Emits `(x, y) -> (x*c - y*t, y*c + x*t)`. With `fullTables`, the arguments
/// have c and t of the second lane behind those of the first. The products with
/// t are rounded, those with c are fused with the sums, and the results are
/// rounded to the type of x once.
static void emitRotation(OpBuilder &builder, Location loc, ValueRange args,
                         bool inverse, bool fullTables) {
  Type element = args[0].getType();
  Type computed = element.isF64() ? element : Type(builder.getF32Type());
  SmallVector<Value> wide;
  for (Value arg : args.take_front(fullTables ? 6 : 4))
    wide.push_back(
        arg.getType() == computed
            ? arg
            : Value(arith::ExtFOp::create(builder, loc, computed, arg)));
  Value x = wide[0], y = wide[1], firstC = wide[2], firstT = wide[3],
        secondC = wide[fullTables ? 4 : 2], secondT = wide[fullTables ? 5 : 3];
  if (inverse) {
    firstT = arith::NegFOp::create(builder, loc, firstT);
    secondT =
        fullTables ? arith::NegFOp::create(builder, loc, secondT) : firstT;
  }
  Value yt = arith::MulFOp::create(builder, loc, y, firstT);
  Value xt = arith::MulFOp::create(builder, loc, x, secondT);
  Value minusYt = arith::NegFOp::create(builder, loc, yt);
  SmallVector<Value> rotated{
      math::FmaOp::create(builder, loc, x, firstC, minusYt),
      math::FmaOp::create(builder, loc, y, secondC, xt)};
  if (element != computed)
    for (Value &lane : rotated)
      lane = arith::TruncFOp::create(builder, loc, element, lane);
  linalg::YieldOp::create(builder, loc, rotated);
}

Value RotatedTensor::rotate() {
  int64_t numPairs = op.getRotaryDim() / 2, offset = op.getOffset();
  bool half = op.getPairing() == Pairing::Half;
  Lanes first{offset, numPairs, half ? 1 : 2};
  Lanes second{offset + (half ? numPairs : 1), numPairs, first.stride};

  AffineMap map = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<unsigned> tableDims(op.getDims());
  tableDims.push_back(type.getRank() - 1);
  AffineMap tableMap = map.getSubMap(tableDims);
  SmallVector<Value> inputs{extract(first), extract(second)};
  SmallVector<AffineMap> maps{map, map};
  auto addTable = [&](Value table) {
    inputs.push_back(table);
    maps.push_back(tableMap);
  };
  if (op.getFullTables()) {
    for (Lanes lanes : {first, second}) {
      lanes.offset -= offset;
      addTable(extractFromTable(op.getCos(), lanes));
      addTable(extractFromTable(op.getSin(), lanes));
    }
  } else {
    addTable(op.getCos());
    addTable(op.getSin());
  }
  maps.append({map, map});
  SmallVector<Value> inits;
  for (int i = 0; i < 2; ++i)
    inits.push_back(tensor::EmptyOp::create(builder, loc, sliceSizes(first),
                                            type.getElementType()));
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  auto rotated = linalg::GenericOp::create(
      builder, loc, ValueRange(inits).getTypes(), inputs, inits, maps, loops,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        emitRotation(b, loc, args, op.getInverse(), op.getFullTables());
      });

  // Copies the other lanes first, so that the copies fold away if the
  // destination is the input.
  copy(0, offset);
  copy(offset + 2 * numPairs, type.getShape().back());
  insert(rotated.getResult(0), first);
  insert(rotated.getResult(1), second);
  return result;
}

namespace {

struct ConvertRotate : OpRewritePattern<RotateOp> {
  ConvertRotate(MLIRContext *context, bool onlyFullTables = false)
      : OpRewritePattern(context), onlyFullTables(onlyFullTables) {}

  LogicalResult matchAndRewrite(RotateOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    if (onlyFullTables && !op.getFullTables())
      return rewriter.notifyMatchFailure(op, "tables have a lane for a pair");
    SmallVector<Value> results;
    for (auto [input, init] : llvm::zip_equal(op.getInputs(), op.getInits()))
      results.push_back(
          isEmptyTensor(init)
              ? init
              : RotatedTensor(rewriter, op, input, init).rotate());
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  bool onlyFullTables;
};

struct ConvertPosencRopeToLinalgPass
    : mlir::posenc::impl::ConvertPosencRopeToLinalgPassBase<
          ConvertPosencRopeToLinalgPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    if (onlyFullTables)
      patterns.add<ConvertRotate>(&getContext(), /*onlyFullTables=*/true);
    else
      populatePosencRopeToLinalgPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

void mlir::posenc::populatePosencRopeToLinalgPatterns(
    RewritePatternSet &patterns) {
  patterns.add<ConvertRotate>(patterns.getContext()).add(convertSincos);
}
