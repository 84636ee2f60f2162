//===- SimplifySizes.cpp - the pass posenc-simplify-sizes -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All facts come from the analysis of the function as it is. Nothing that an
// assertion depends on is changed, unless the assertion is erased, so that the
// entry points of the result make the same checks.
//
//===----------------------------------------------------------------------===//

#include "FlagAssertions.h"

#include "posenc/ABI/Passes.h"
#include "posenc/ABI/SizeAnalysis.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCSIMPLIFYSIZESPASS
#include "posenc/ABI/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {
class SizeSimplifier {
public:
  explicit SizeSimplifier(func::FuncOp function)
      : function(function), analysis(function), builder(function.getContext()) {
  }

  void run();

private:
  /// Erases assertions, and collects the operations that others depend on.
  void eraseAssertions();
  void protect(Value condition);
  void replaceScalars();
  void replaceSelects();
  void replaceReshape(tensor::ReshapeOp op);
  void assertEqualSizes();
  /// Returns an existing value of type index that is the size, or null.
  Value getValue(const SizeExpr &size);
  Value getInputSize(unsigned input, int64_t dim);
  /// Returns the size of a loop, or nullopt.
  std::optional<SizeExpr> getLoopSize(linalg::LinalgOp op, uint64_t dim);
  void replace(Value value, Value with);

  func::FuncOp function;
  SizeAnalysis analysis;
  OpBuilder builder;
  llvm::SmallPtrSet<Operation *, 16> isProtected;
  std::map<SizeExpr, Value> values;
};
} // namespace

static bool isWideInteger(Type type) {
  return type.isIndex() || type.isInteger(64);
}

void SizeSimplifier::protect(Value condition) {
  Operation *op = condition.getDefiningOp();
  if (!op || !isProtected.insert(op).second)
    return;
  for (Value operand : op->getOperands())
    protect(operand);
}

void SizeSimplifier::eraseAssertions() {
  function.walk([&](cf::AssertOp assertion) {
    if (analysis.isRedundant(assertion)) {
      assertion.erase();
      return;
    }
    isProtected.insert(assertion);
    protect(assertion.getArg());
  });
}

Value SizeSimplifier::getInputSize(unsigned input, int64_t dim) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.front());
  auto size = builder.createOrFold<tensor::DimOp>(
      function.getLoc(), function.getArgument(input), dim);
  return size;
}

Value SizeSimplifier::getValue(const SizeExpr &size) {
  auto known = values.find(size);
  if (known != values.end())
    return known->second;
  std::optional<unsigned> number = size.getSymbol();
  if (!number ||
      analysis.getSymbols().get(*number).kind != SizeSymbol::Kind::Size)
    return nullptr;
  SizeSymbol symbol = analysis.getSymbols().get(*number);
  return values[size] = getInputSize(symbol.input, symbol.dim);
}

void SizeSimplifier::replace(Value value, Value with) {
  value.replaceUsesWithIf(with, [&](OpOperand &use) {
    return !isProtected.contains(use.getOwner());
  });
}

void SizeSimplifier::replaceScalars() {
  SmallVector<Operation *> ops;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->getNumResults() == 1 && op->getResult(0).getType().isIntOrIndex() &&
        !op->hasTrait<OpTrait::ConstantLike>())
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    Value result = op->getResult(0);
    builder.setInsertionPointAfter(op);
    if (isa<arith::CmpIOp>(op)) {
      if (std::optional<bool> truth = analysis.getTruth(result))
        replace(result,
                arith::ConstantIntOp::create(builder, op->getLoc(), *truth, 1));
      continue;
    }
    if (!isWideInteger(result.getType()))
      continue;
    SizeExpr size = analysis.resolve(analysis.getInteger(result));
    if (std::optional<int64_t> constant = size.getConstant()) {
      replace(result, arith::ConstantOp::create(
                          builder, op->getLoc(),
                          builder.getIntegerAttr(result.getType(), *constant)));
      continue;
    }
    if (!analysis.getSymbols().isKnown(size))
      continue;
    Value value = getValue(size);
    if (!value) {
      // Only values outside of regions are seen by all later operations.
      if (op->getBlock() != &function.front())
        continue;
      values[size] =
          result.getType().isIndex()
              ? result
              : arith::IndexCastOp::create(builder, op->getLoc(),
                                           builder.getIndexType(), result);
      continue;
    }
    if (value == result ||
        (isa<arith::IndexCastOp>(op) && op->getOperand(0) == value))
      continue;
    if (result.getType() != value.getType())
      value = arith::IndexCastOp::create(builder, op->getLoc(),
                                         result.getType(), value);
    replace(result, value);
  }
}

std::optional<SizeExpr> SizeSimplifier::getLoopSize(linalg::LinalgOp op,
                                                    uint64_t dim) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    for (auto [number, expr] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr);
          loop && loop.getPosition() == dim)
        return analysis.resolve(analysis.getShape(operand.get())[number]);
  }
  return std::nullopt;
}

/// Replaces `size == 1 ? 0 : i`, for the index `i` of a loop of that size.
void SizeSimplifier::replaceSelects() {
  function.walk([&](arith::SelectOp op) {
    auto compare = op.getCondition().getDefiningOp<arith::CmpIOp>();
    auto index = op.getFalseValue().getDefiningOp<linalg::IndexOp>();
    if (!compare || !index ||
        compare.getPredicate() != arith::CmpIPredicate::eq ||
        getConstantIntValue(op.getTrueValue()) != 0 ||
        getConstantIntValue(compare.getRhs()) != 1)
      return;
    auto parent = dyn_cast<linalg::LinalgOp>(index->getParentOp());
    std::optional<SizeExpr> size =
        parent ? getLoopSize(parent, index.getDim()) : std::nullopt;
    if (size && size->isValid() &&
        *size == analysis.resolve(analysis.getInteger(compare.getLhs())))
      replace(op.getResult(), index.getResult());
  });
}

/// Divides the dimensions of two shapes into groups of equal products; returns
/// nullopt if there are none.
static std::optional<std::pair<SmallVector<ReassociationIndices>,
                               SmallVector<ReassociationIndices>>>
findGroups(ArrayRef<SizeExpr> from, ArrayRef<SizeExpr> to) {
  SmallVector<ReassociationIndices> left, right;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    SizeExpr a = from[i], b = to[j];
    left.push_back({int64_t(i++)});
    right.push_back({int64_t(j++)});
    while (a != b) {
      if (!a.isValid() || !b.isValid())
        return std::nullopt;
      // Extends the side that divides the other.
      std::optional<SizeExpr> quotient = b.divideExactly(a);
      if (quotient && i < from.size()) {
        left.back().push_back(i);
        a = a * from[i++];
      } else if (!quotient && j < to.size()) {
        right.back().push_back(j);
        b = b * to[j++];
      } else {
        return std::nullopt;
      }
    }
  }
  // The rest has the size 1.
  for (; i < from.size(); ++i) {
    if (left.empty() || from[i].getConstant() != 1)
      return std::nullopt;
    left.back().push_back(i);
  }
  for (; j < to.size(); ++j) {
    if (right.empty() || to[j].getConstant() != 1)
      return std::nullopt;
    right.back().push_back(j);
  }
  return std::pair(left, right);
}

void SizeSimplifier::replaceReshape(tensor::ReshapeOp op) {
  auto resolveAll = [&](Value tensor) {
    return llvm::map_to_vector(
        analysis.getShape(tensor),
        [&](const SizeExpr &size) { return analysis.resolve(size); });
  };
  SmallVector<SizeExpr> from = resolveAll(op.getSource()),
                        to = resolveAll(op.getResult());
  auto groups = findGroups(from, to);
  if (!groups)
    return;
  builder.setInsertionPoint(op);
  Location loc = op.getLoc();
  auto getType = [&](ArrayRef<SizeExpr> sizes) {
    return RankedTensorType::get(
        llvm::map_to_vector(sizes,
                            [](const SizeExpr &size) {
                              return size.getConstant().value_or(
                                  ShapedType::kDynamic);
                            }),
        op.getType().getElementType());
  };
  auto convert = [&](Value tensor, Type type) {
    return tensor.getType() == type
               ? tensor
               : Value(tensor::CastOp::create(builder, loc, type, tensor));
  };
  SmallVector<OpFoldResult> sizes;
  auto elements = op.getShape().getDefiningOp<tensor::FromElementsOp>();
  for (auto [dim, size] : llvm::enumerate(to)) {
    if (std::optional<int64_t> constant = size.getConstant()) {
      if (*constant < 0)
        return;
      sizes.push_back(builder.getIndexAttr(*constant));
      continue;
    }
    Value value = getValue(size);
    if (!value && elements) {
      value = elements.getElements()[dim];
      if (!value.getType().isIndex())
        value = arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                           value);
    }
    if (!value)
      return;
    sizes.push_back(value);
  }
  Value value = convert(op.getSource(), getType(from));
  auto isNarrow = [](const ReassociationIndices &group) {
    return group.size() == 1;
  };
  auto &[left, right] = *groups;
  if (!llvm::all_of(left, isNarrow))
    value = tensor::CollapseShapeOp::create(builder, loc, value, left);
  if (!llvm::all_of(right, isNarrow))
    value = tensor::ExpandShapeOp::create(builder, loc, getType(to), value,
                                          right, sizes);
  op.getResult().replaceAllUsesWith(convert(value, op.getType()));
  op.erase();
}

/// Operations that implied that sizes are equal may be gone.
void SizeSimplifier::assertEqualSizes() {
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    for (int64_t dim = 0; type && dim < type.getRank(); ++dim) {
      if (!type.isDynamicDim(dim))
        continue;
      unsigned number = *analysis.getShape(argument)[dim].getSymbol();
      unsigned leader = analysis.getSymbols().getLeader(number);
      const SizeSymbol &symbol = analysis.getSymbols().get(leader);
      if (leader == number || symbol.kind != SizeSymbol::Kind::Size)
        continue;
      Value first = getInputSize(symbol.input, symbol.dim),
            second = getInputSize(argument.getArgNumber(), dim);
      builder.setInsertionPointAfterValue(first);
      Value equal = arith::CmpIOp::create(
          builder, function.getLoc(), arith::CmpIPredicate::eq, first, second);
      cf::AssertOp::create(builder, function.getLoc(), equal,
                           "sizes of arguments differ");
    }
  }
}

void SizeSimplifier::run() {
  if (failed(analysis.runPartially()))
    return;
  eraseAssertions();
  replaceSelects();
  replaceScalars();
  function.walk([&](tensor::ReshapeOp op) { replaceReshape(op); });
  assertEqualSizes();
  flagAssertions(function, analysis.getUnprovenAssertions());
}

/// Whether a function has assertions or reshapes to computed sizes.
static bool spellsSizes(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return isa<cf::AssertOp, tensor::ReshapeOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {
struct SimplifySizes final
    : mlir::posenc::impl::PosencSimplifySizesPassBase<SimplifySizes> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.isPublic() || function.isExternal() ||
          !llvm::hasSingleElement(function.getBody()) || !spellsSizes(function))
        continue;
      SizeSimplifier(function).run();
      (void)runRegionDCE(rewriter, function->getRegions());
    }
  }
};
} // namespace
