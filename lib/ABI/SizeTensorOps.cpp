//===- SizeTensorOps.cpp - sizes of operations on tensors -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/SizeAnalysis.h"
#include "posenc/IR/CheckReshapes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::posenc;

/// Returns the sizes of a slice, and requires that it is within a tensor of
/// these sizes.
template <typename OpTy>
static SmallVector<SizeExpr> requireSlice(OpTy op, ArrayRef<SizeExpr> tensor,
                                          SizeAnalysis &analysis) {
  SmallVector<SizeExpr> offsets = analysis.getIntegers(op.getMixedOffsets());
  SmallVector<SizeExpr> sizes = analysis.getIntegers(op.getMixedSizes());
  SmallVector<SizeExpr> strides = analysis.getIntegers(op.getMixedStrides());
  for (auto [offset, size, stride, whole] :
       llvm::zip_equal(offsets, sizes, strides, tensor)) {
    analysis.requireAtMost(0, offset, op);
    analysis.requireAtMost(0, size, op);
    analysis.requireAtMost(0, stride, op);
    // The last element must be in bounds; an empty slice reads nothing.
    analysis.requireAtMost(offset + (size - 1) * stride + 1, whole, op);
  }
  return sizes;
}

template <typename Range>
static SmallVector<SizeExpr> dropDims(ArrayRef<SizeExpr> sizes,
                                      const Range &dropped) {
  SmallVector<SizeExpr> result;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (!dropped.test(dim))
      result.push_back(size);
  return result;
}

static LogicalResult visit(tensor::ExtractSliceOp op, SizeAnalysis &analysis) {
  SmallVector<SizeExpr> sizes =
      requireSlice(op, analysis.getShape(op.getSource()), analysis);
  analysis.setShape(op.getResult(), dropDims(sizes, op.getDroppedDims()), op);
  // A bound on all elements of a list also holds for its slices.
  if (op.getSourceType().getRank() == 1)
    analysis.shareInput(op.getSource(), op.getResult());
  return success();
}

/// Requires that the source has the sizes of the slice, except for dropped
/// dimensions of size 1.
template <typename OpTy>
static void requireSource(OpTy op, SizeAnalysis &analysis) {
  SmallVector<SizeExpr> sizes =
      requireSlice(op, analysis.getShape(op.getDest()), analysis);
  for (auto [size, source] :
       llvm::zip_equal(dropDims(sizes, op.getDroppedDims()),
                       analysis.getShape(op.getSource())))
    analysis.requireEqual(source, size, op);
}

static LogicalResult visit(tensor::InsertSliceOp op, SizeAnalysis &analysis) {
  requireSource(op, analysis);
  analysis.setShape(op.getResult(), analysis.getShape(op.getDest()), op);
  return success();
}

static LogicalResult visit(tensor::ParallelInsertSliceOp op,
                           SizeAnalysis &analysis) {
  requireSource(op, analysis);
  return success();
}

static LogicalResult visit(tensor::EmptyOp op, SizeAnalysis &analysis) {
  analysis.setShape(op.getResult(), analysis.getIntegers(op.getMixedSizes()),
                    op);
  return success();
}

static LogicalResult visit(tensor::CastOp op, SizeAnalysis &analysis) {
  if (!isa<RankedTensorType>(op.getSource().getType()) ||
      !isa<RankedTensorType>(op.getType()))
    return op.emitError("entry points cannot check unranked tensors");
  analysis.setShape(op.getResult(), analysis.getShape(op.getSource()), op);
  analysis.shareInput(op.getSource(), op.getResult());
  analysis.shareElement(op.getSource(), op.getResult());
  return success();
}

static LogicalResult visit(tensor::DimOp op, SizeAnalysis &analysis) {
  std::optional<int64_t> dim = analysis.getInteger(op.getIndex()).getConstant();
  if (!isa<RankedTensorType>(op.getSource().getType()) || !dim)
    return op.emitError("expected a constant dimension of a ranked tensor");
  SmallVector<SizeExpr> shape = analysis.getShape(op.getSource());
  if (*dim < 0 || *dim >= static_cast<int64_t>(shape.size()))
    return op.emitError() << "there is no dimension " << *dim << " of "
                          << op.getSource().getType();
  analysis.setInteger(op.getResult(), shape[*dim]);
  return success();
}

static SizeExpr getProduct(ArrayRef<SizeExpr> sizes, ArrayRef<int64_t> dims) {
  SizeExpr product(1);
  for (int64_t dim : dims)
    product = product * sizes[dim];
  return product;
}

static LogicalResult visit(tensor::ExpandShapeOp op, SizeAnalysis &analysis) {
  if (failed(checkReshapes(op)))
    return failure();
  SmallVector<SizeExpr> source = analysis.getShape(op.getSrc());
  SmallVector<SizeExpr> sizes = analysis.getIntegers(op.getMixedOutputShape());
  analysis.setShape(op.getResult(), sizes, op);
  for (auto [size, group] :
       llvm::zip_equal(source, op.getReassociationIndices()))
    analysis.requireEqual(size, getProduct(sizes, group), op);
  // A tensor of rank 0 has one element.
  if (source.empty())
    for (const SizeExpr &size : sizes)
      analysis.requireEqual(size, 1, op);
  analysis.shareElement(op.getSrc(), op.getResult());
  return success();
}

static LogicalResult visit(tensor::CollapseShapeOp op, SizeAnalysis &analysis) {
  if (failed(checkReshapes(op)))
    return failure();
  SmallVector<SizeExpr> source = analysis.getShape(op.getSrc()), sizes;
  for (const ReassociationIndices &group : op.getReassociationIndices())
    sizes.push_back(getProduct(source, group));
  if (sizes.empty())
    for (const SizeExpr &size : source)
      analysis.requireEqual(size, 1, op);
  analysis.setShape(op.getResult(), sizes, op);
  analysis.shareElement(op.getSrc(), op.getResult());
  return success();
}

static LogicalResult visit(tensor::ReshapeOp op, SizeAnalysis &analysis) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  auto elements = op.getShape().getDefiningOp<tensor::FromElementsOp>();
  if (!type || !isa<RankedTensorType>(op.getSource().getType()))
    return op.emitError("entry points cannot check unranked tensors");
  SmallVector<SizeExpr> sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    sizes.push_back(elements ? analysis.getInteger(elements.getElements()[dim])
                    : ShapedType::isDynamic(size)
                        ? analysis.getSymbols().createUnknown()
                        : SizeExpr(size));
  analysis.setShape(op.getResult(), sizes, op);
  // Static sizes replace those that are computed for them.
  auto getNumElements = [&](Value tensor) {
    SmallVector<SizeExpr> shape = analysis.getShape(tensor);
    return analysis.resolve(getProduct(
        shape, llvm::to_vector(llvm::seq<int64_t>(0, shape.size()))));
  };
  SizeExpr from = getNumElements(op.getSource()),
           to = getNumElements(op.getResult());
  // Factors of both are left out, so that the others are equal even if these
  // are 0.
  if (from.isValid() && to.isValid())
    for (unsigned number : from.getSymbols()) {
      SizeExpr symbol = SizeExpr::symbol(number);
      std::optional<SizeExpr> a, b;
      while ((a = from.divideExactly(symbol)) && (b = to.divideExactly(symbol)))
        from = *a, to = *b;
    }
  analysis.requireEqual(from, to, op);
  return success();
}

static LogicalResult visit(tensor::ConcatOp op, SizeAnalysis &analysis) {
  int64_t along = op.getDim();
  SmallVector<SizeExpr> sizes;
  for (Value input : op.getInputs()) {
    SmallVector<SizeExpr> shape = analysis.getShape(input);
    if (sizes.empty()) {
      sizes = shape;
      continue;
    }
    for (auto [dim, size] : llvm::enumerate(shape))
      if (static_cast<int64_t>(dim) == along)
        sizes[dim] = sizes[dim] + size;
      else
        analysis.requireEqual(sizes[dim], size, op);
  }
  analysis.setShape(op.getResult(), sizes, op);
  return success();
}

/// Returns the sizes of a type, whose dynamic sizes are operands.
static SmallVector<SizeExpr> getDynamicSizes(Type type, OperandRange dynamic,
                                             SizeAnalysis &analysis) {
  SmallVector<SizeExpr> sizes;
  for (int64_t size : cast<ShapedType>(type).getShape()) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(size);
      continue;
    }
    sizes.push_back(analysis.getInteger(dynamic.front()));
    dynamic = dynamic.drop_front();
  }
  return sizes;
}

/// Visits a region that computes the element at each index.
static LogicalResult visitElements(Operation *op, ArrayRef<SizeExpr> sizes,
                                   Region &region, SizeAnalysis &analysis) {
  SmallVector<SizeAnalysis::Guard> guards;
  for (auto [argument, size] : llvm::zip_equal(region.getArguments(), sizes)) {
    analysis.setInteger(argument, analysis.createLoop(0, size - 1));
    guards.push_back({0, size});
  }
  return analysis.visitRegion(region, guards);
}

static LogicalResult visit(tensor::PadOp op, SizeAnalysis &analysis) {
  SmallVector<SizeExpr> low = analysis.getIntegers(op.getMixedLowPad());
  SmallVector<SizeExpr> high = analysis.getIntegers(op.getMixedHighPad());
  SmallVector<SizeExpr> sizes = analysis.getShape(op.getSource());
  for (auto [size, before, after] : llvm::zip_equal(sizes, low, high)) {
    analysis.requireAtMost(0, before, op);
    analysis.requireAtMost(0, after, op);
    size = size + before + after;
  }
  analysis.setShape(op.getResult(), sizes, op);
  return visitElements(op, sizes, op.getRegion(), analysis);
}

static LogicalResult visit(tensor::GenerateOp op, SizeAnalysis &analysis) {
  SmallVector<SizeExpr> sizes =
      getDynamicSizes(op.getType(), op.getDynamicExtents(), analysis);
  analysis.setShape(op.getResult(), sizes, op);
  return visitElements(op, sizes, op.getBody(), analysis);
}

static LogicalResult visit(tensor::SplatOp op, SizeAnalysis &analysis) {
  analysis.setShape(
      op.getResult(),
      getDynamicSizes(op.getType(), op.getDynamicSizes(), analysis), op);
  return success();
}

static void requireElement(Operation *op, Value tensor, ValueRange indices,
                           SizeAnalysis &analysis) {
  for (auto [index, size] :
       llvm::zip_equal(indices, analysis.getShape(tensor))) {
    SizeExpr number = analysis.getInteger(index);
    analysis.requireAtMost(0, number, op);
    analysis.requireAtMost(number + 1, size, op);
  }
}

namespace {
/// An element that is used as an index.
struct IndexElement {
  Value element;
  /// Whether negative numbers count from the end.
  bool wraps;
};
} // namespace

/// Returns the element that is an index of a dimension of this size.
static IndexElement findElement(Value index, const SizeExpr &size,
                                SizeAnalysis &analysis) {
  auto getElement = [](Value value) {
    auto cast = value.getDefiningOp<arith::IndexCastOp>();
    return cast ? cast.getIn() : Value();
  };
  // (i < 0 ? i + size : i)
  auto select = index.getDefiningOp<arith::SelectOp>();
  auto sum = select ? select.getTrueValue().getDefiningOp<arith::AddIOp>()
                    : arith::AddIOp();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpIOp>()
                        : arith::CmpIOp();
  if (!sum || !compare)
    return {getElement(index), /*wraps=*/false};
  Value natural = select.getFalseValue();
  bool wraps = compare.getPredicate() == arith::CmpIPredicate::slt &&
               compare.getLhs() == natural &&
               isConstantIntValue(compare.getRhs(), 0) &&
               sum.getLhs() == natural &&
               analysis.resolve(analysis.getInteger(sum.getRhs())) ==
                   analysis.resolve(size);
  return {wraps ? getElement(natural) : Value(), wraps};
}

/// Returns a tensor whose elements a tensor has in another shape or integer
/// type, or the tensor.
static Value skipConversions(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
            op)) {
      tensor = op->getOperand(0);
      continue;
    }
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || generic.getNumDpsInputs() != 1 ||
        generic.getNumResults() != 1 ||
        !llvm::all_of(generic.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); }))
      break;
    auto yield = cast<linalg::YieldOp>(generic.getBody()->getTerminator());
    auto cast = yield.getOperand(0).getDefiningOp<arith::ExtSIOp>();
    if (!cast || cast.getIn() != generic.getBody()->getArgument(0))
      break;
    tensor = generic.getInputs().front();
  }
  return tensor;
}

/// Returns the input that has the element; nullopt if entry points cannot check
/// it.
static std::optional<unsigned> findInput(Value element,
                                         SizeAnalysis &analysis) {
  if (!element)
    return std::nullopt;
  Value tensor;
  auto read = element.getDefiningOp<tensor::ExtractOp>();
  // Elements of another column may be indices of another dimension.
  bool readsColumn =
      read && llvm::any_of(llvm::zip_equal(read.getIndices(),
                                           analysis.getShape(read.getTensor())),
                           [](auto dim) {
                             auto [index, size] = dim;
                             return getConstantIntValue(index) &&
                                    !size.isConstant(1);
                           });
  if (readsColumn)
    return std::nullopt;
  if (read)
    tensor = read.getTensor();
  else if (auto argument = dyn_cast<BlockArgument>(element))
    if (auto generic =
            dyn_cast<linalg::GenericOp>(argument.getOwner()->getParentOp()))
      tensor = generic->getOperand(argument.getArgNumber());
  if (!tensor)
    return std::nullopt;
  std::optional<unsigned> input = analysis.getInput(tensor);
  if (!input)
    input = analysis.getInput(skipConversions(tensor));
  if (!input)
    return std::nullopt;
  auto type = dyn_cast<RankedTensorType>(analysis.getInputType(*input));
  if (!type || type.getRank() < 1 || type.getRank() > 2 ||
      !(type.getElementType().isInteger(32) ||
        type.getElementType().isInteger(64)))
    return std::nullopt;
  return input;
}

static LogicalResult visit(tensor::FromElementsOp op, SizeAnalysis &analysis) {
  if (AbiAttr::isSizeElement(op.getType()))
    analysis.setElement(op.getResult(),
                        analysis.getInteger(op.getElements().front()));
  return success();
}

static LogicalResult visit(tensor::ExtractOp op, SizeAnalysis &analysis) {
  if (std::optional<SizeExpr> element = analysis.getElement(op.getTensor()))
    analysis.setInteger(op.getResult(), *element);
  SmallVector<SizeExpr> indices =
      analysis.getIntegers(getAsOpFoldResult(op.getIndices()));
  if (llvm::none_of(indices, [&](const SizeExpr &index) {
        return analysis.getSymbols().dependsOnElements(index);
      })) {
    requireElement(op, op.getTensor(), op.getIndices(), analysis);
    return success();
  }
  // Requires that the tensor is not empty; entry points cannot check the index
  // itself.
  for (auto [index, number, size] : llvm::zip_equal(
           op.getIndices(), indices, analysis.getShape(op.getTensor()))) {
    if (analysis.isCertain())
      analysis.requireAtMost(1, size, op);
    auto [element, wraps] = findElement(index, size, analysis);
    std::optional<unsigned> input = findInput(element, analysis);
    if (!input || !analysis.getSymbols().isKnown(size))
      continue;
    if (failed(analysis.requireBound(
            {wraps ? BoundKind::WrappedRows : BoundKind::Rows,
             *input,
             {size},
             /*each=*/{}},
            op)))
      return failure();
    analysis.addCheckedElement(element,
                               wraps ? SizeExpr(0) - size : SizeExpr(0), size);
  }
  analysis.addUnprovenRead(op);
  return success();
}

static LogicalResult visit(tensor::InsertOp op, SizeAnalysis &analysis) {
  requireElement(op, op.getDest(), op.getIndices(), analysis);
  analysis.setShape(op.getResult(), analysis.getShape(op.getDest()), op);
  return success();
}

static LogicalResult visit(bufferization::AllocTensorOp op,
                           SizeAnalysis &analysis) {
  if (op.getCopy()) {
    analysis.setShape(op.getResult(), analysis.getShape(op.getCopy()), op);
    return success();
  }
  analysis.setShape(
      op.getResult(),
      getDynamicSizes(op.getType(), op.getDynamicSizes(), analysis), op);
  return success();
}

static LogicalResult visit(bufferization::MaterializeInDestinationOp op,
                           SizeAnalysis &analysis) {
  analysis.requireEqual(op.getSource(), op.getDest(), op);
  if (op.getResult())
    analysis.setShape(op.getResult(), analysis.getShape(op.getDest()), op);
  return success();
}

static LogicalResult visit(bufferization::ToTensorOp op,
                           SizeAnalysis &analysis) {
  analysis.setShape(op.getResult(), analysis.getShape(op.getBuffer()), op);
  return success();
}

static LogicalResult visit(bufferization::ToBufferOp op,
                           SizeAnalysis &analysis) {
  analysis.setShape(op.getResult(), analysis.getShape(op.getTensor()), op);
  return success();
}

std::optional<LogicalResult>
mlir::posenc::visitTensorOp(Operation *op, SizeAnalysis &analysis) {
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<tensor::CastOp, tensor::CollapseShapeOp, tensor::ConcatOp,
            tensor::DimOp, tensor::EmptyOp, tensor::ExpandShapeOp,
            tensor::ExtractOp, tensor::ExtractSliceOp, tensor::FromElementsOp,
            tensor::GenerateOp, tensor::InsertOp, tensor::InsertSliceOp,
            tensor::PadOp, tensor::ParallelInsertSliceOp, tensor::ReshapeOp,
            tensor::SplatOp, bufferization::AllocTensorOp,
            bufferization::MaterializeInDestinationOp,
            bufferization::ToBufferOp, bufferization::ToTensorOp>(
          [&](auto concrete) { return visit(concrete, analysis); })
      .Default(std::nullopt);
}
