//===- IndexBounds.cpp - numbers that kernels use as indices ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexBounds.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {

class BoundFinder {
public:
  BoundFinder(FunctionOpInterface function, SizeAnalysis &analysis,
              const DenseMap<int64_t, int64_t> &sizes)
      : function(function), analysis(analysis), sizes(sizes) {}

  SmallVector<BoundAttr> find();

private:
  /// A factor of a limit, as the attribute has it; nothing if the size is none
  /// of the signature's.
  using Factor = std::optional<int64_t>;
  Factor getFactor(Value tensor, unsigned dim);
  std::optional<int64_t> getInput(Value value);
  void add(BoundKind kind, Value indices, ArrayRef<Factor> limit,
           Factor each = std::nullopt, Value lengths = {});
  void addSizes();
  void visit(AttentionOp op);
  void visit(KvAppendOp op);

  FunctionOpInterface function;
  SizeAnalysis &analysis;
  const DenseMap<int64_t, int64_t> &sizes;
  SmallVector<BoundAttr> bounds;
};

} // namespace

BoundFinder::Factor BoundFinder::getFactor(Value tensor, unsigned dim) {
  int64_t size = cast<ShapedType>(tensor.getType()).getDimSize(dim);
  if (!ShapedType::isDynamic(size))
    return size;
  auto known = sizes.find(analysis.getClass(tensor, dim));
  return known == sizes.end() ? Factor() : -1 - known->second;
}

/// The number of the argument that a value is.
std::optional<int64_t> BoundFinder::getInput(Value value) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner()->getParentOp() != function)
    return std::nullopt;
  return argument.getArgNumber();
}

void BoundFinder::add(BoundKind kind, Value indices, ArrayRef<Factor> limit,
                      Factor each, Value lengths) {
  std::optional<int64_t> input = getInput(indices);
  std::optional<int64_t> lengthsInput = lengths ? getInput(lengths) : -1;
  bool needsEach = kind == BoundKind::Pages || kind == BoundKind::Heads ||
                   kind == BoundKind::Sizes;
  if (!input || !lengthsInput || llvm::is_contained(limit, Factor()) ||
      (needsEach && !each))
    return;
  SmallVector<int64_t> factors, part;
  for (Factor factor : limit)
    factors.push_back(*factor);
  if (each)
    part.push_back(*each);
  auto bound = BoundAttr::get(function.getContext(), kind, *input, factors,
                              part, *lengthsInput);
  if (!llvm::is_contained(bounds, bound))
    bounds.push_back(bound);
}

/// The dynamic sizes of arguments that an operation wants to be static ones.
void BoundFinder::addSizes() {
  llvm::SmallDenseSet<int64_t> done;
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    for (int64_t dim = 0, rank = type ? type.getRank() : 0; dim < rank; ++dim) {
      if (!type.isDynamicDim(dim))
        continue;
      int64_t sizeClass = analysis.getClass(argument, dim);
      std::optional<int64_t> size = analysis.getStaticSize(sizeClass);
      if (size && done.insert(sizeClass).second)
        add(BoundKind::Sizes, argument, Factor(*size),
            getFactor(argument, dim));
    }
  }
}

void BoundFinder::visit(AttentionOp op) {
  Value key = op.getKey(), table = op.getBlockTable();
  unsigned queryHeads = op.getQueryHeadDim(), keyHeads = op.getKeyHeadDim();
  auto isDynamic = [](Value tensor, unsigned dim) {
    return cast<ShapedType>(tensor.getType()).isDynamicDim(dim);
  };
  if (isDynamic(op.getQuery(), queryHeads) || isDynamic(key, keyHeads))
    add(BoundKind::Heads, op.getQuery(), getFactor(key, keyHeads),
        getFactor(op.getQuery(), queryHeads));

  Factor slots =
      op.arePackedKeys() ? Factor() : getFactor(key, op.getKeyTokenDim());
  if (Value lengths = op.getLengths()) {
    if (table)
      add(BoundKind::Lengths, lengths, {getFactor(table, 1), slots});
    else
      add(BoundKind::Lengths, lengths, slots);
    // Of pages nobody else says how many keys these have.
    auto addLast = [&](Value tensor) {
      unsigned last = cast<ShapedType>(tensor.getType()).getRank() - 1;
      if (isDynamic(tensor, last) ||
          cast<ShapedType>(tensor.getType()).getDimSize(last) != 1)
        add(BoundKind::Lengths, lengths, getFactor(tensor, last));
    };
    if (table && op.getMask())
      addLast(op.getMask());
    if (table && op.getKeyPositions())
      addLast(op.getKeyPositions());
  }
  if (table)
    add(BoundKind::Pages, table, getFactor(key, 0), slots, op.getLengths());

  for (auto [number, starts] : llvm::enumerate(op.getCuSeqlens())) {
    Factor tokens = number == 0
                        ? getFactor(op.getQuery(), op.getQueryTokenDim())
                        : getFactor(key, op.getKeyTokenDim());
    Factor batch = op.getLengths() ? getFactor(op.getLengths(), 0) : Factor();
    add(BoundKind::Starts, starts, tokens, batch);
  }
}

void BoundFinder::visit(KvAppendOp op) {
  Value cache = op.getInits()[0];
  Factor tokens = getFactor(cache, op.getCacheTokenDim());
  if (op.getLengths())
    add(BoundKind::Lengths, op.getLengths(), tokens);
  else
    add(BoundKind::Slots, op.getSlots(), {getFactor(cache, 0), tokens});
}

SmallVector<BoundAttr> BoundFinder::find() {
  addSizes();
  for (Operation &op : function.getFunctionBody().front()) {
    if (auto attention = dyn_cast<AttentionOp>(op))
      visit(attention);
    else if (auto append = dyn_cast<KvAppendOp>(op))
      visit(append);
  }
  return std::move(bounds);
}

SmallVector<BoundAttr>
mlir::posenc::findIndexBounds(FunctionOpInterface function,
                              SizeAnalysis &analysis,
                              const DenseMap<int64_t, int64_t> &sizes) {
  return BoundFinder(function, analysis, sizes).find();
}
