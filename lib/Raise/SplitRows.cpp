//===- SplitRows.cpp - rows of products of grouped heads ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The query heads of a group and the queries are often joined to the rows of a
// batched product with the keys or values of the group, as PyTorch does for
// einsum("bqkgd,btkd->bkgqt"). The search for attention needs a loop of the
// queries alone.
//
//===----------------------------------------------------------------------===//

#include "AttentionSearch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::posenc::raise;

/// Splits the group of dimensions before its second one that is not 1. Fails if
/// there are not two of these.
static FailureOr<SmallVector<ReassociationIndices>>
splitGroup(ArrayRef<ReassociationIndices> groups, unsigned number,
           ArrayRef<int64_t> wide) {
  SmallVector<int64_t> large = llvm::filter_to_vector(
      groups[number], [&](int64_t dim) { return wide[dim] != 1; });
  if (large.size() != 2)
    return failure();
  SmallVector<ReassociationIndices> split(groups.take_front(number + 1));
  auto second = llvm::find(split.back(), large[1]);
  ReassociationIndices rest(second, split.back().end());
  split.back().erase(second, split.back().end());
  split.push_back(rest);
  llvm::append_range(split, groups.drop_front(number + 1));
  return split;
}

/// Returns the number of the map's result that is the loop.
static std::optional<unsigned> getDimOf(AffineMap map, unsigned loop) {
  return map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
}

void mlir::posenc::raise::splitRows(const Contraction &contraction,
                                    RewriterBase &rewriter) {
  linalg::LinalgOp op = contraction.op;
  Value result = op->getResult(0);
  if (contraction.dims.batch.empty() || contraction.dims.m.size() != 1 ||
      !result.hasOneUse())
    return;
  unsigned loop = contraction.dims.m[0];
  AffineMap rowsMap = op.getMatchingIndexingMap(op.getDpsInputOperand(0)),
            outputMap = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  std::optional<unsigned> rowsDim = getDimOf(rowsMap, loop),
                          outputDim = getDimOf(outputMap, loop);
  auto collapse = op.getDpsInputs()[0].getDefiningOp<tensor::CollapseShapeOp>();
  auto expand = dyn_cast<tensor::ExpandShapeOp>(*result.user_begin());
  if (!collapse || !expand || !rowsDim || !outputDim)
    return;
  auto joined = splitGroup(collapse.getReassociationIndices(), *rowsDim,
                           collapse.getSrcType().getShape());
  auto split = splitGroup(expand.getReassociationIndices(), *outputDim,
                          expand.getResultType().getShape());
  if (failed(joined) || failed(split))
    return;
  // Both parts have the same sizes.
  for (unsigned part : {0, 1}) {
    auto getSize = [&](Value tensor, const ReassociationIndices &group) {
      auto type = cast<RankedTensorType>(tensor.getType());
      return getSizeOrigin(tensor, *llvm::find_if(group, [&](int64_t dim) {
                             return type.getDimSize(dim) != 1;
                           }));
    };
    if (getSize(collapse.getSrc(), (*joined)[*rowsDim + part]) !=
        getSize(expand.getResult(), (*split)[*outputDim + part]))
      return;
  }

  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  Value rows = tensor::CollapseShapeOp::create(rewriter, loc, collapse.getSrc(),
                                               *joined);
  // The loop of the second part follows that of the first one.
  auto splitLoop = [&](AffineMap map) {
    SmallVector<AffineExpr> results;
    for (AffineExpr dim : map.getResults()) {
      unsigned position = cast<AffineDimExpr>(dim).getPosition();
      results.push_back(
          rewriter.getAffineDimExpr(position + (position > loop)));
      if (position == loop)
        results.push_back(rewriter.getAffineDimExpr(loop + 1));
    }
    return AffineMap::get(map.getNumDims() + 1, 0, results,
                          rewriter.getContext());
  };
  SmallVector<AffineMap> maps =
      llvm::map_to_vector(op.getIndexingMapsArray(), splitLoop);
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  iterators.insert(iterators.begin() + loop, iterators[loop]);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, op.getDpsInits()[0]);
  sizes[*outputDim] = tensor::getMixedSize(rewriter, loc, rows, *rowsDim);
  sizes.insert(sizes.begin() + *outputDim + 1,
               tensor::getMixedSize(rewriter, loc, rows, *rowsDim + 1));
  Type element = getElementTypeOrSelf(result);
  Value zero =
      arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(element));
  Value init = tensor::EmptyOp::create(rewriter, loc, sizes, element);
  init = linalg::FillOp::create(rewriter, loc, zero, init).getResult(0);
  auto product = linalg::GenericOp::create(
      rewriter, loc, init.getType(), ValueRange{rows, op.getDpsInputs()[1]},
      init, maps, iterators);
  rewriter.cloneRegionBefore(op->getRegion(0), product.getRegion(),
                             product.getRegion().begin());
  rewriter.setInsertionPoint(expand);
  Value expanded = product.getResult(0);
  if (expanded.getType() != expand.getType())
    expanded = tensor::ExpandShapeOp::create(
        rewriter, expand.getLoc(), expand.getResultType(), expanded, *split,
        expand.getMixedOutputShape());
  rewriter.replaceOp(expand, expanded);
  // Another reader of the weights would prevent attention.
  rewriter.eraseOp(op);
  if (collapse->use_empty())
    rewriter.eraseOp(collapse);
}
