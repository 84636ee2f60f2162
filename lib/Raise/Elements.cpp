//===- Elements.cpp - how elements of tensors are computed ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elements.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace mlir::posenc::raise;

/// Loops of unrolled reductions have at most so many steps.
static constexpr int64_t kMaxUnrolled = 4;
/// Operations in the body of reductions that are unrolled.
static constexpr size_t kMaxUnrolledBody = 16;
/// Constants are computed by at most so many operations.
static constexpr unsigned kMaxConstantParts = 16;
/// Bound of the recursion.
static constexpr unsigned kMaxDepth = 400;

bool mlir::posenc::raise::isMovement(Operation *op) {
  if (isa<tensor::CastOp, tensor::ExtractSliceOp, tensor::InsertSliceOp,
          tensor::ConcatOp, tensor::PadOp, tensor::ExpandShapeOp,
          tensor::CollapseShapeOp, arith::ConstantOp>(op))
    return true;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || linalgOp.getNumParallelLoops() != linalgOp.getNumLoops())
    return false;
  return llvm::all_of(
      linalgOp.getBlock()->without_terminator(), [](Operation &nested) {
        return isa<linalg::IndexOp, tensor::ExtractOp, arith::ConstantOp>(
                   nested) ||
               (nested.getNumResults() == 1 &&
                nested.getResult(0).getType().isIndex());
      });
}

SmallVector<Value> mlir::posenc::raise::getReadTensors(Operation *op) {
  llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return llvm::filter_to_vector(values, [](Value value) {
    return isa<RankedTensorType>(value.getType());
  });
}

bool mlir::posenc::raise::isComputedConstant(Value tensor) {
  llvm::SmallSetVector<Value, kMaxConstantParts> reached;
  reached.insert(tensor);
  for (unsigned next = 0; next < reached.size(); ++next) {
    Operation *producer = reached[next].getDefiningOp();
    if (!producer || reached.size() > kMaxConstantParts)
      return false;
    reached.insert_range(getReadTensors(producer));
  }
  return true;
}

const Expr *Elements::get(Value tensor, Indices indices) {
  const Expr *leaf = exprs.getElement(tensor, indices);
  if (auto it = known.find(leaf); it != known.end())
    return it->second;
  auto result = dyn_cast<OpResult>(tensor);
  const Expr *expanded = nullptr;
  if (result && ++numSteps <= kMaxSteps && depth < kMaxDepth &&
      !isLeaf(tensor, isMovement(result.getOwner()) ? ElementKind::Move
                                                    : ElementKind::Compute)) {
    ++depth;
    expanded = expand(result, indices);
    --depth;
  }
  return known[leaf] = expanded ? expanded : leaf;
}

const Expr *Elements::expand(OpResult result, Indices indices) {
  Operation *op = result.getOwner();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto elements = dyn_cast<ElementsAttr>(constant.getValue());
    return elements ? expandConstant(elements, indices) : nullptr;
  }
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return isa<RankedTensorType>(cast.getSource().getType())
               ? get(cast.getSource(), indices)
               : nullptr;
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return expandSlice(slice, indices);
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return expandInsert(insert, indices);
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return expandConcat(concat, indices);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return expandPad(pad, indices);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return expandReshape(collapse.getSrc(), collapse.getSrcType(),
                         collapse.getReassociationIndices(),
                         /*isCollapse=*/true, indices);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return expandReshape(expand.getSrc(), expand.getResultType(),
                         expand.getReassociationIndices(),
                         /*isCollapse=*/false, indices);
  if (auto splat = dyn_cast<tensor::SplatOp>(op)) {
    Scalars scalars;
    return getScalar(splat.getInput(), scalars, {});
  }
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return expandLinalg(structured, result.getResultNumber(), indices);
  if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1)
    return expandElementwise(op, indices);
  return nullptr;
}

const Expr *Elements::expandConstant(ElementsAttr elements, Indices indices) {
  auto type = elements.getShapedType();
  Type element = type.getElementType();
  if (!element.isIntOrIndexOrFloat())
    return nullptr;
  auto values = elements.tryGetValues<Attribute>();
  if (!values)
    return nullptr;
  if (elements.isSplat())
    return exprs.getConstant(
        cast<TypedAttr>(elements.getSplatValue<Attribute>()));
  int64_t position = 0;
  for (auto [index, size] : llvm::zip_equal(indices, type.getShape())) {
    std::optional<int64_t> number = index->getIndexConstant();
    if (!number || *number < 0 || *number >= size)
      return nullptr;
    position = position * size + *number;
  }
  return exprs.getConstant(cast<TypedAttr>(*(values->begin() + position)));
}

const Expr *Elements::expandElementwise(Operation *op, Indices indices) {
  SmallVector<const Expr *> operands;
  Scalars scalars;
  for (Value operand : op->getOperands())
    operands.push_back(isa<RankedTensorType>(operand.getType())
                           ? get(operand, indices)
                           : getScalar(operand, scalars, {}));
  if (llvm::is_contained(operands, nullptr))
    return nullptr;
  return exprs.getOperation(op, operands);
}

//===----------------------------------------------------------------------===//
// Slices and reshapes
//===----------------------------------------------------------------------===//

const Expr *Elements::getValue(OpFoldResult value) {
  if (auto attribute = dyn_cast<Attribute>(value))
    return exprs.getIndex(cast<IntegerAttr>(attribute).getInt());
  Scalars scalars;
  return getScalar(cast<Value>(value), scalars, {});
}

const Expr *Elements::getIndexValue(OpFoldResult value) {
  const Expr *expr = getValue(value);
  return expr && expr->kind == Expr::Kind::Index ? expr : nullptr;
}

/// Whether the size is that of a dimension of the tensor.
static bool isWholeDim(OpFoldResult size, Value tensor, int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return *constant == type.getDimSize(dim);
  return getSizeOrigin(size) == getSizeOrigin(tensor, dim);
}

const Expr *Elements::expandSlice(tensor::ExtractSliceOp op, Indices indices) {
  llvm::SmallBitVector dropped = op.getDroppedDims();
  SmallVector<const Expr *> inSource;
  unsigned next = 0;
  for (auto [dim, offset, stride] :
       llvm::enumerate(op.getMixedOffsets(), op.getMixedStrides())) {
    const Expr *first = getIndexValue(offset), *step = getIndexValue(stride);
    if (!first || !step || !step->getIndexConstant())
      return nullptr;
    AffineExpr index = first->index;
    if (!dropped.test(dim)) {
      const Expr *inSlice = indices[next++];
      if (inSlice->kind != Expr::Kind::Index)
        return nullptr;
      // A part of unknown size would look like the whole dimension.
      OpFoldResult size = op.getMixedSizes()[dim];
      if (!getConstantIntValue(size) &&
          !isWholeDim(size, op.getSource(), dim)) {
        std::optional<unsigned> loop = exprs.getLoopNumber(inSlice);
        if (!loop || !exprs.hasSize(*loop, getSizeOrigin(size)))
          return nullptr;
        exprs.setPartial(*loop);
      }
      index = index + inSlice->index * *step->getIndexConstant();
    }
    inSource.push_back(exprs.getIndex(index));
  }
  return get(op.getSource(), inSource);
}

const Expr *Elements::expandInsert(tensor::InsertSliceOp op, Indices indices) {
  llvm::SmallBitVector dropped = op.getDroppedDims();
  SmallVector<const Expr *> inSlice;
  for (auto [dim, offset, size, stride] : llvm::enumerate(
           op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides())) {
    const Expr *index = indices[dim];
    std::optional<int64_t> first = getConstantIntValue(offset),
                           step = getConstantIntValue(stride),
                           count = getConstantIntValue(size);
    if (!first || !step || *step <= 0 || index->kind != Expr::Kind::Index)
      return nullptr;
    AffineExpr from = exprs.simplify(index->index - *first);
    IndexRange range = exprs.getRange(from);
    bool isWhole =
        *first == 0 && *step == 1 && isWholeDim(size, op.getDest(), dim);
    if (!isWhole) {
      std::optional<int64_t> end =
          count ? llvm::checkedMul(*count, *step) : std::nullopt;
      if (!end)
        return nullptr;
      if ((range.max && *range.max < 0) || (range.min && *range.min >= *end))
        return get(op.getDest(), indices);
      if (!range.min || *range.min < 0 || !range.max || *range.max >= *end)
        return nullptr;
      AffineExpr rest = exprs.simplify(from % *step);
      auto number = dyn_cast<AffineConstantExpr>(rest);
      if (!number)
        return nullptr;
      if (number.getValue() != 0)
        return get(op.getDest(), indices);
    }
    if (!dropped.test(dim))
      inSlice.push_back(exprs.getIndex(from.floorDiv(*step)));
  }
  return get(op.getSource(), inSlice);
}

const Expr *Elements::expandPad(tensor::PadOp op, Indices indices) {
  Value padding = op.getConstantPaddingValue();
  if (!padding)
    return nullptr;
  SmallVector<const Expr *> inSource;
  for (auto [dim, low, high] :
       llvm::enumerate(op.getMixedLowPad(), op.getMixedHighPad())) {
    const Expr *index = indices[dim];
    if (isZeroInteger(low) && isZeroInteger(high)) {
      inSource.push_back(index);
      continue;
    }
    std::optional<int64_t> before = getConstantIntValue(low);
    int64_t size = op.getSourceType().getDimSize(dim);
    if (!before || ShapedType::isDynamic(size) ||
        index->kind != Expr::Kind::Index)
      return nullptr;
    AffineExpr from = exprs.simplify(index->index - *before);
    IndexRange range = exprs.getRange(from);
    if ((range.max && *range.max < 0) || (range.min && *range.min >= size)) {
      Scalars scalars;
      return getScalar(padding, scalars, {});
    }
    if (!range.min || *range.min < 0 || !range.max || *range.max >= size)
      return nullptr;
    inSource.push_back(exprs.getIndex(from));
  }
  return get(op.getSource(), inSource);
}

const Expr *Elements::expandConcat(tensor::ConcatOp op, Indices indices) {
  const Expr *index = indices[op.getDim()];
  if (index->kind != Expr::Kind::Index)
    return nullptr;
  auto getPart = [&](Value input, AffineExpr at) {
    SmallVector<const Expr *> inInput(indices);
    inInput[op.getDim()] = exprs.getIndex(at);
    return get(input, inInput);
  };
  auto getSize = [&](Value input) {
    SizeOrigin origin = getSizeOrigin(input, op.getDim());
    return origin.first ? ShapedType::kDynamic : origin.second;
  };
  int64_t begin = 0;
  for (Value input : op.getInputs()) {
    int64_t size = getSize(input);
    AffineExpr inInput = exprs.simplify(index->index - begin);
    if (ShapedType::isDynamic(size)) {
      SizeOrigin origin = getSizeOrigin(input, op.getDim());
      const Expr *from = exprs.getIndex(inInput);
      std::optional<unsigned> loop = exprs.getLoopNumber(from),
                              ended = exprs.getEndedLoop(from);
      if (loop && exprs.hasSize(*loop, origin))
        return getPart(input, inInput);
      // The element behind a part.
      Value last = op.getInputs().back();
      if (ended && exprs.hasSize(*ended, origin) && getSize(last) == 1 &&
          op.getInputs().size() == 2 && input != last)
        return getPart(last, getAffineConstantExpr(0, exprs.getContext()));
      return nullptr;
    }
    IndexRange range = exprs.getRange(inInput);
    if (!range.min || *range.min < 0)
      return nullptr;
    if (!range.max) {
      if (*range.min < size)
        return nullptr;
      begin += size;
      continue;
    }
    if (*range.max < size)
      return getPart(input, index->index - begin);
    if (*range.min < size)
      break;
    begin += size;
  }
  // The index may be in several inputs. Those of equal sizes may be slices of
  // one tensor, as for keys that are repeated for the heads of a group.
  int64_t size = getSize(op.getInputs().front());
  SmallVector<const Expr *> parts;
  for (Value input : op.getInputs()) {
    if (getSize(input) != size || size == 0)
      return nullptr;
    parts.push_back(getPart(input, index->index % size));
  }
  return getCommonExpr(exprs, parts, index->index.floorDiv(size));
}

/// `wide` is the type with more dimensions: that of the source for a collapse.
const Expr *Elements::expandReshape(Value source, RankedTensorType wide,
                                    ArrayRef<ReassociationIndices> groups,
                                    bool isCollapse, Indices indices) {
  SmallVector<const Expr *> inSource;
  // All dimensions of a tensor that becomes a scalar have size 1.
  if (groups.empty() && isCollapse)
    inSource.assign(wide.getRank(), exprs.getIndex(0));
  for (auto [narrowDim, group] : llvm::enumerate(groups)) {
    // Dimensions of size 1 have the index 0.
    SmallVector<int64_t> dims;
    for (int64_t dim : group)
      if (wide.getDimSize(dim) != 1)
        dims.push_back(dim);
    for (int64_t dim : ArrayRef(dims).drop_front(dims.empty() ? 0 : 1))
      if (wide.isDynamicDim(dim))
        return nullptr;
    if (!isCollapse) {
      if (dims.size() == 1) {
        inSource.push_back(indices[dims[0]]);
        continue;
      }
      AffineExpr index = getAffineConstantExpr(0, exprs.getContext());
      for (int64_t dim : dims) {
        if (indices[dim]->kind != Expr::Kind::Index)
          return nullptr;
        int64_t size = wide.isDynamicDim(dim) ? 1 : wide.getDimSize(dim);
        index = index * size + indices[dim]->index;
      }
      inSource.push_back(exprs.getIndex(index));
      continue;
    }
    const Expr *index = indices[narrowDim];
    SmallVector<const Expr *> parts(group.size(), exprs.getIndex(0));
    int64_t stride = 1;
    for (int64_t dim : llvm::reverse(dims)) {
      const Expr *&part = parts[dim - group.front()];
      if (dims.size() == 1) {
        part = index;
        break;
      }
      if (index->kind != Expr::Kind::Index)
        return nullptr;
      AffineExpr quotient = index->index.floorDiv(stride);
      bool isFirst = dim == dims.front();
      part =
          exprs.getIndex(isFirst ? quotient : quotient % wide.getDimSize(dim));
      std::optional<int64_t> next =
          llvm::checkedMul(stride, isFirst ? 1 : wide.getDimSize(dim));
      if (!next)
        return nullptr;
      stride = *next;
    }
    llvm::append_range(inSource, parts);
  }
  return get(source, inSource);
}

//===----------------------------------------------------------------------===//
// Structured operations
//===----------------------------------------------------------------------===//

/// Returns the index expressions of a map at the loops' indices. Fails if one
/// is computed from a loop whose index is no affine expression itself.
static FailureOr<SmallVector<const Expr *>>
applyMap(ExprContext &exprs, AffineMap map, ArrayRef<const Expr *> loops) {
  SmallVector<const Expr *> indices;
  for (AffineExpr result : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(result)) {
      indices.push_back(loops[dim.getPosition()]);
      continue;
    }
    SmallVector<AffineExpr> values;
    for (auto [dim, loop] : llvm::enumerate(loops)) {
      bool isAffine = loop->kind == Expr::Kind::Index;
      if (!isAffine && result.isFunctionOfDim(dim))
        return failure();
      values.push_back(isAffine ? loop->index
                                : getAffineConstantExpr(0, exprs.getContext()));
    }
    indices.push_back(exprs.getIndex(result.replaceDims(values)));
  }
  return indices;
}

const Expr *Elements::expandLinalg(linalg::LinalgOp op, unsigned result,
                                   Indices indices) {
  if (!op.hasPureTensorSemantics() || op->getNumRegions() != 1)
    return nullptr;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  SmallVector<const Expr *> loops(op.getNumLoops(), nullptr);
  for (auto [index, expr] : llvm::zip_equal(indices, map.getResults())) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      loops[dim.getPosition()] = index;
      continue;
    }
    // A constant is the index of a dimension of size 1.
    if (!isa<AffineConstantExpr>(expr))
      return nullptr;
  }
  // Unrolls the reduction, unless its body computes more than the products of a
  // rotation: that of a product with quantized weights has a hundred operations
  // for each element of each layer.
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<unsigned> reductions;
  int64_t numSteps = 1;
  for (auto [dim, loop] : llvm::enumerate(loops)) {
    if (loop)
      continue;
    reductions.push_back(dim);
    if (ShapedType::isDynamic(ranges[dim]) || ranges[dim] > kMaxUnrolled ||
        op.getBlock()->getOperations().size() > kMaxUnrolledBody)
      return nullptr;
    numSteps *= ranges[dim];
    if (numSteps > kMaxUnrolled || numSteps < 1)
      return nullptr;
  }
  SmallVector<const Expr *> accumulators(op.getNumDpsInits(), nullptr);
  for (int64_t step = 0; step < numSteps; ++step) {
    int64_t rest = step;
    for (unsigned dim : llvm::reverse(reductions)) {
      loops[dim] = exprs.getIndex(rest % ranges[dim]);
      rest /= ranges[dim];
    }
    SmallVector<const Expr *> next;
    for (int64_t number = 0; number < op.getNumDpsInits(); ++number)
      next.push_back(number == result || numSteps > 1
                         ? getYielded(op, number, loops, accumulators)
                         : nullptr);
    accumulators = next;
    if (!accumulators[result])
      return nullptr;
  }
  return accumulators[result];
}

const Expr *Elements::getYielded(linalg::LinalgOp op, unsigned result,
                                 Indices loops, Indices accumulators) {
  Scalars scalars;
  Block *body = op.getBlock();
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (!argument || argument.use_empty())
      continue;
    int64_t init = int64_t(operand.getOperandNumber()) - op.getNumDpsInputs();
    if (init >= 0 && accumulators[init]) {
      scalars[argument] = accumulators[init];
      continue;
    }
    Value value = operand.get();
    if (!isa<RankedTensorType>(value.getType())) {
      Scalars outside;
      scalars[argument] = getScalar(value, outside, {});
    } else {
      FailureOr<SmallVector<const Expr *>> indices =
          applyMap(exprs, op.getMatchingIndexingMap(&operand), loops);
      if (failed(indices))
        return nullptr;
      scalars[argument] = get(value, *indices);
    }
    if (!scalars[argument])
      return nullptr;
  }
  return getScalar(body->getTerminator()->getOperand(result), scalars, loops);
}

/// Returns a scalar of the body of a structured operation with the loops'
/// indices, or of a function.
const Expr *Elements::getScalar(Value value, Scalars &scalars, Indices loops) {
  // Unknown values are remembered, too: an operand with several users would be
  // visited once for each path from the yielded value to it.
  auto [known, isNew] = scalars.try_emplace(value, nullptr);
  if (!isNew)
    return known->second;
  Operation *op = value.getDefiningOp();
  auto remember = [&](const Expr *expr) { return scalars[value] = expr; };
  // A value outside of the loops.
  auto getOutside = [&]() -> const Expr * {
    Operation *parent = value.getParentRegion()->getParentOp();
    return value.getType().isIntOrIndex() && !isa<linalg::LinalgOp>(parent)
               ? remember(exprs.getSymbol(value))
               : nullptr;
  };
  if (!op)
    return getOutside();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto number = dyn_cast<TypedAttr>(constant.getValue());
    return number && number.getType().isIntOrIndexOrFloat()
               ? remember(exprs.getConstant(number))
               : nullptr;
  }
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return index.getDim() < loops.size() ? remember(loops[index.getDim()])
                                         : nullptr;
  if (depth >= kMaxDepth)
    return nullptr;
  ++depth;
  llvm::scope_exit leave([&] { --depth; });
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    SmallVector<AffineExpr> operands;
    for (Value operand : apply.getMapOperands()) {
      const Expr *expr = getScalar(operand, scalars, loops);
      if (!expr || expr->kind != Expr::Kind::Index)
        return nullptr;
      operands.push_back(expr->index);
    }
    ArrayRef<AffineExpr> all(operands);
    unsigned numDims = apply.getAffineMap().getNumDims();
    return remember(
        exprs.getIndex(apply.getAffineMap().getResult(0).replaceDimsAndSymbols(
            all.take_front(numDims), all.drop_front(numDims))));
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<const Expr *> indices;
    for (Value index : extract.getIndices())
      indices.push_back(getScalar(index, scalars, loops));
    return llvm::is_contained(indices, nullptr)
               ? nullptr
               : remember(get(extract.getTensor(), indices));
  }
  if (!isPure(op) || op->getNumRegions() != 0 || op->getNumResults() != 1 ||
      isa<tensor::DimOp>(op) ||
      llvm::any_of(op->getOperandTypes(),
                   [](Type type) { return isa<ShapedType>(type); }))
    return getOutside();
  SmallVector<const Expr *> operands;
  for (Value operand : op->getOperands())
    operands.push_back(getScalar(operand, scalars, loops));
  return llvm::is_contained(operands, nullptr)
             ? nullptr
             : remember(exprs.getOperation(op, operands));
}
