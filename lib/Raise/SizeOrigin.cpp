//===- SizeOrigin.cpp - where dynamic sizes come from ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elements.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

using namespace mlir;
using namespace mlir::posenc::raise;

/// Returns the dimension of a ranked tensor whose size it is. The verifier
/// accepts other numbers than those of dimensions.
static std::optional<int64_t> getDimNumber(tensor::DimOp size) {
  auto type = dyn_cast<RankedTensorType>(size.getSource().getType());
  std::optional<int64_t> dim = size.getConstantIndex();
  return type && dim && *dim >= 0 && *dim < type.getRank() ? dim : std::nullopt;
}

SizeOrigin mlir::posenc::raise::getSizeOrigin(OpFoldResult size) {
  auto value = dyn_cast<Value>(size);
  if (!value)
    return {Value(), cast<IntegerAttr>(cast<Attribute>(size)).getInt()};
  // The elements of a shape are integers. Narrow ones wrap.
  auto isWide = [](Type type) {
    return type.isIndex() || type.getIntOrFloatBitWidth() >= 32;
  };
  for (auto cast = value.getDefiningOp<arith::IndexCastOp>();
       cast && isWide(cast.getType()) && isWide(cast.getIn().getType());
       cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  if (auto dim = value.getDefiningOp<tensor::DimOp>())
    if (std::optional<int64_t> index = getDimNumber(dim))
      return getSizeOrigin(dim.getSource(), *index);
  return {value, -1};
}

/// Returns the dimension of an earlier argument that an assertion says is
/// equal, or the dimension itself.
static SizeOrigin getEqualArgument(BlockArgument argument, int64_t dim) {
  for (Operation *user : argument.getUsers()) {
    auto size = dyn_cast<tensor::DimOp>(user);
    if (!size || size.getConstantIndex() != dim)
      continue;
    for (Operation *compared : size->getUsers()) {
      auto cmp = dyn_cast<arith::CmpIOp>(compared);
      if (!cmp || cmp.getPredicate() != arith::CmpIPredicate::eq ||
          llvm::none_of(cmp->getUsers(), llvm::IsaPred<cf::AssertOp>))
        continue;
      auto other =
          (cmp.getLhs() == size.getResult() ? cmp.getRhs() : cmp.getLhs())
              .getDefiningOp<tensor::DimOp>();
      auto earlier =
          other ? dyn_cast<BlockArgument>(other.getSource()) : BlockArgument();
      if (earlier && getDimNumber(other) &&
          earlier.getOwner() == argument.getOwner() &&
          earlier.getArgNumber() < argument.getArgNumber())
        return getSizeOrigin(earlier, *getDimNumber(other));
    }
  }
  return {argument, dim};
}

SizeOrigin mlir::posenc::raise::getSizeOrigin(Value tensor, int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return {Value(), type.getDimSize(dim)};
  auto result = dyn_cast<OpResult>(tensor);
  if (!result)
    return getEqualArgument(cast<BlockArgument>(tensor), dim);
  Operation *op = result.getOwner();
  if (auto cast = dyn_cast<tensor::CastOp>(op);
      cast && isa<RankedTensorType>(cast.getSource().getType()))
    return getSizeOrigin(cast.getSource(), dim);
  if (auto empty = dyn_cast<tensor::EmptyOp>(op))
    return getSizeOrigin(empty.getMixedSizes()[dim]);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    if (slice.getDroppedDims().none())
      return getSizeOrigin(slice.getMixedSizes()[dim]);
    return {tensor, dim};
  }
  if (auto reshape = dyn_cast<tensor::ReshapeOp>(op)) {
    auto sizes = reshape.getShape().getDefiningOp<tensor::FromElementsOp>();
    return sizes ? getSizeOrigin(OpFoldResult(sizes.getElements()[dim]))
                 : SizeOrigin{tensor, dim};
  }
  if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
    return getSizeOrigin(destination.getTiedOpOperand(result)->get(), dim);
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return getSizeOrigin(insert.getDest(), dim);
  if (auto concat = dyn_cast<tensor::ConcatOp>(op);
      concat && dim != int64_t(concat.getDim()))
    return getSizeOrigin(concat.getInputs().front(), dim);
  if (auto pad = dyn_cast<tensor::PadOp>(op);
      pad && isZeroInteger(pad.getMixedLowPad()[dim]) &&
      isZeroInteger(pad.getMixedHighPad()[dim]))
    return getSizeOrigin(pad.getSource(), dim);
  // The only dimension of its group that is not 1.
  auto follow = [&](Value source, ArrayRef<ReassociationIndices> groups,
                    RankedTensorType wide, bool isCollapse) -> SizeOrigin {
    for (auto [narrow, group] : llvm::enumerate(groups)) {
      if (isCollapse ? int64_t(narrow) != dim : !llvm::is_contained(group, dim))
        continue;
      SmallVector<int64_t> large = llvm::filter_to_vector(
          group, [&](int64_t other) { return wide.getDimSize(other) != 1; });
      if (large.size() == 1)
        return getSizeOrigin(source, isCollapse ? large[0] : narrow);
    }
    return {tensor, dim};
  };
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return follow(collapse.getSrc(), collapse.getReassociationIndices(),
                  collapse.getSrcType(), /*isCollapse=*/true);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    SizeOrigin origin =
        follow(expand.getSrc(), expand.getReassociationIndices(),
               expand.getResultType(), /*isCollapse=*/false);
    return origin == SizeOrigin{tensor, dim}
               ? getSizeOrigin(expand.getMixedOutputShape()[dim])
               : origin;
  }
  if (OpTrait::hasElementwiseMappableTraits(op))
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        return getSizeOrigin(operand, dim);
  return {tensor, dim};
}

/// Whether the size is that of the loop plus 1.
static bool isOneMore(const ExprContext &exprs, SizeOrigin size,
                      unsigned loop) {
  Operation *op = size.first ? size.first.getDefiningOp() : nullptr;
  if (auto concat = dyn_cast_or_null<tensor::ConcatOp>(op)) {
    auto isKeys = [&](Value input) {
      return exprs.hasSize(loop, getSizeOrigin(input, size.second));
    };
    auto isOne = [&](Value input) {
      return cast<RankedTensorType>(input.getType()).getDimSize(size.second) ==
             1;
    };
    ValueRange inputs = concat.getInputs();
    return size.second == int64_t(concat.getDim()) && inputs.size() == 2 &&
           ((isKeys(inputs[0]) && isOne(inputs[1])) ||
            (isOne(inputs[0]) && isKeys(inputs[1])));
  }
  if (size.second != -1)
    return false;
  if (auto sum = dyn_cast_or_null<arith::AddIOp>(op))
    for (auto [a, b] : {std::pair(sum.getLhs(), sum.getRhs()),
                        std::pair(sum.getRhs(), sum.getLhs())})
      if (getConstantIntValue(b) == 1 && exprs.hasSize(loop, getSizeOrigin(a)))
        return true;
  if (auto apply = dyn_cast_or_null<affine::AffineApplyOp>(op)) {
    AffineExpr before = apply.getAffineMap().getResult(0) - 1;
    return apply.getMapOperands().size() == 1 &&
           isa<AffineDimExpr, AffineSymbolExpr>(before) &&
           exprs.hasSize(loop, getSizeOrigin(apply.getMapOperands()[0]));
  }
  return false;
}

std::optional<unsigned> mlir::posenc::raise::getExcess(const ExprContext &exprs,
                                                       Value tensor,
                                                       int64_t dim,
                                                       unsigned loop) {
  int64_t size = cast<RankedTensorType>(tensor.getType()).getDimSize(dim),
          ofLoop = exprs.getSizes()[loop];
  if (ShapedType::isDynamic(size) != ShapedType::isDynamic(ofLoop))
    return std::nullopt;
  if (!ShapedType::isDynamic(size)) {
    if (size != ofLoop && size != ofLoop + 1)
      return std::nullopt;
    return size - ofLoop;
  }
  SizeOrigin origin = getSizeOrigin(tensor, dim);
  if (exprs.hasSize(loop, origin) || !exprs.isPartial(loop))
    return 0;
  if (isOneMore(exprs, origin, loop))
    return 1;
  return std::nullopt;
}
