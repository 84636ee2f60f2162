//===- RowKernel.cpp - operations on the rows of an iteration -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowKernel.h"

#include "GPU/Threads/ElementKernel.h"
#include "GPU/Threads/TileReader.h"
#include "RowReductions.h"

#include "posenc/IR/CreateIndex.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::posenc;

RowKernel::RowKernel(OpBuilder &host, GpuKernel &kernel, Operation *root,
                     const RowTeam &team, const RowBuffers &buffers,
                     bool isWide)
    : host(host), kernel(kernel), root(root), team(team), buffers(buffers),
      isWide(isWide), b(kernel.getFunction()), loc(root->getLoc()) {}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value RowKernel::index(int64_t value) { return createIndex(b, loc, value); }

Value RowKernel::toIndexType(Value value) {
  if (value.getType().isIndex())
    return value;
  return b.createOrFold<arith::IndexCastOp>(b.getIndexType(), value);
}

Value RowKernel::get(Value scalar) {
  if (Value known = scalars.lookupOrNull(scalar))
    return known;
  auto constant = scalar.getDefiningOp<arith::ConstantOp>();
  assert(constant && "a scalar that was neither captured nor emitted");
  return arith::ConstantOp::create(b, constant.getValue());
}

Value RowKernel::getIndex(Value scalar) { return toIndexType(get(scalar)); }

Value RowKernel::getIndex(OpFoldResult value) {
  if (auto scalar = dyn_cast<Value>(value))
    return getIndex(scalar);
  return index(*getConstantIntValue(value));
}

void RowKernel::withScope(function_ref<void()> body) {
  IRMapping outer = scalars;
  body();
  scalars = outer;
}

/// Passes a value from outside of the root.
void RowKernel::capture(Value value) {
  if (tensors.contains(value) || scalars.contains(value) ||
      value.getDefiningOp<arith::ConstantOp>())
    return;
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type) {
    scalars.map(value, passScalar(host, kernel, value, scalars));
    return;
  }
  GpuKernel::Tensor passed =
      kernel.addTensor(host, withStorageType(host, value));
  RowTensor tensor;
  tensor.memref = passed.memref;
  tensor.first = index(0);
  tensor.strides = passed.strides;
  tensor.element = type.getElementType();
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    tensor.sizes.push_back(kernel.addIndex(
        host, host.createOrFold<memref::DimOp>(value.getLoc(), value, dim)));
  if (isWide && !getConstantValues(value))
    tensor.alignment = getWideAlignment(type);
  tensors[value] = tensor;
}

void RowKernel::captureOperands() {
  auto captureAll = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (!root->isAncestor(operand.getParentBlock()->getParentOp()))
        capture(operand);
  };
  captureAll(root);
  root->walk([&](Operation *op) {
    if (op != root)
      captureAll(op);
  });
}

const RowTensor &RowKernel::getTensor(Value memref) {
  auto found = tensors.find(memref);
  assert(found != tensors.end() && "a tensor that was not captured");
  return found->second;
}

Value RowKernel::getOffset(const RowTensor &tensor, ArrayRef<Value> indices) {
  return b.add(tensor.first,
               posenc::getOffset(b, loc, indices, tensor.strides));
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

void RowKernel::synchronize() {
  if (team.threads == kWarpThreads)
    NVVM::SyncWarpOp::create(b, b.i32(-1));
  else
    b.barrier();
}

void RowKernel::waitBefore(Operation &op) {
  RowAccesses own;
  own.add(&op, buffers);
  if (own.dependOn(pending)) {
    synchronize();
    pending = RowAccesses();
  }
  pending.add(&op, buffers);
}

void RowKernel::forUnits(Value count, function_ref<void(Value)> body) {
  if (spansGrid)
    return b.emitIf(b.compare(arith::CmpIPredicate::ult, thread, count),
                    [&] { withScope([&] { body(thread); }); });
  std::optional<int64_t> known = getConstantIntValue(count);
  if (known && *known <= team.threads) {
    if (*known == team.threads)
      return withScope([&] { body(thread); });
    b.emitIf(b.compare(arith::CmpIPredicate::ult, thread, count),
             [&] { withScope([&] { body(thread); }); });
    return;
  }
  b.emitLoop(thread, count, index(team.threads), {},
             [&](Value number, ValueRange) -> SmallVector<Value> {
               withScope([&] { body(number); });
               return {};
             });
}

SmallVector<Value> RowKernel::decompose(Value number, ArrayRef<Value> sizes) {
  SmallVector<Value> indices(sizes.size());
  for (size_t loop = sizes.size(); loop-- > 1;) {
    if (isConstantIntValue(sizes[loop], 1)) {
      indices[loop] = index(0);
      continue;
    }
    if (!spansGrid) {
      std::tie(number, indices[loop]) = divide32(b, loc, number, sizes[loop]);
      continue;
    }
    // A grid may have more units than 32 bits count.
    indices[loop] = b.createOrFold<arith::RemUIOp>(number, sizes[loop]);
    number = b.createOrFold<arith::DivUIOp>(number, sizes[loop]);
  }
  if (!indices.empty())
    indices.front() = number;
  return indices;
}

//===----------------------------------------------------------------------===//
// Operations of an iteration
//===----------------------------------------------------------------------===//

void RowKernel::emitScalar(Operation &op) {
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    const RowTensor &tensor = getTensor(load.getMemRef());
    auto indices = llvm::map_to_vector(
        load.getIndices(), [&](Value value) { return getIndex(value); });
    scalars.map(load.getResult(),
                this->load(tensor, getOffset(tensor, indices), 1).front());
    return;
  }
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    scalars.map(dim.getResult(),
                getTensor(dim.getSource()).sizes[*dim.getConstantIndex()]);
    return;
  }
  for (Value operand : op.getOperands())
    if (!scalars.contains(operand))
      scalars.map(operand, get(operand));
  cloneScalar(b, &op, scalars);
}

/// Records a view of a tensor.
void RowKernel::emitView(Operation &op) {
  Value result = op.getResult(0);
  if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
    MemRefType type = alloc.getType();
    RowTensor tensor;
    tensor.base = b.add(sharedBase, buffers.get(alloc).begin);
    tensor.first = index(0);
    tensor.element = type.getElementType();
    auto dynamic = alloc.getDynamicSizes();
    for (int64_t size : type.getShape()) {
      bool isDynamic = ShapedType::isDynamic(size);
      tensor.sizes.push_back(isDynamic ? getIndex(dynamic.front())
                                       : index(size));
      dynamic = dynamic.drop_front(isDynamic);
    }
    tensor.strides.resize(type.getRank());
    Value stride = index(1);
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      tensor.strides[dim] = stride;
      stride = b.mul(stride, tensor.sizes[dim]);
    }
    tensor.alignment = getWideAlignment(type);
    tensors[result] = tensor;
    return;
  }
  RowTensor tensor = getTensor(op.getOperand(0));
  if (auto view = dyn_cast<memref::SubViewOp>(op)) {
    llvm::SmallBitVector dropped = view.getDroppedDims();
    auto offsets = view.getMixedOffsets(), steps = view.getMixedStrides();
    auto sizes = view.getMixedSizes();
    SmallVector<Value> newSizes, newStrides;
    for (size_t dim = 0; dim < offsets.size(); ++dim) {
      Value stride = tensor.strides[dim];
      tensor.first = b.add(tensor.first, b.mul(getIndex(offsets[dim]), stride));
      // An offset along rows may be unaligned.
      if (dim + 1 == offsets.size()) {
        std::optional<int64_t> offset = getConstantIntValue(offsets[dim]);
        tensor.alignment =
            offset && !dropped[dim] ? getDivisor(*offset, tensor.alignment) : 1;
      }
      if (dropped[dim])
        continue;
      newSizes.push_back(getIndex(sizes[dim]));
      newStrides.push_back(b.mul(stride, getIndex(steps[dim])));
    }
    tensor.sizes = newSizes;
    tensor.strides = newStrides;
  } else if (auto collapse = dyn_cast<memref::CollapseShapeOp>(op)) {
    SmallVector<Value> newSizes, newStrides;
    for (ArrayRef<int64_t> group : collapse.getReassociationIndices()) {
      // Dimensions of size 1 have any stride.
      Value size = index(1), stride = tensor.strides[group.back()];
      bool isLast = true;
      for (int64_t dim : llvm::reverse(group)) {
        bool isOne = isConstantIntValue(tensor.sizes[dim], 1);
        if (!isOne && isLast) {
          stride = tensor.strides[dim];
          isLast = false;
        }
        size = b.mul(tensor.sizes[dim], size);
      }
      newSizes.push_back(size);
      newStrides.push_back(stride);
    }
    tensor.sizes = newSizes;
    tensor.strides = newStrides;
    if (!isConstantIntValue(
            tensor.strides.empty() ? Value() : tensor.strides.back(), 1))
      tensor.alignment = 1;
  } else if (auto expand = dyn_cast<memref::ExpandShapeOp>(op)) {
    SmallVector<Value> newSizes, newStrides(expand.getResultType().getRank());
    for (OpFoldResult size : expand.getMixedOutputShape())
      newSizes.push_back(getIndex(size));
    for (auto [source, group] :
         llvm::enumerate(expand.getReassociationIndices())) {
      Value stride = tensor.strides[source];
      for (int64_t dim : llvm::reverse(group)) {
        newStrides[dim] = stride;
        stride = b.mul(stride, newSizes[dim]);
      }
    }
    if (!newSizes.empty())
      tensor.alignment = getDivisor(
          getConstantIntValue(newSizes.back()).value_or(1), tensor.alignment);
    tensor.sizes = newSizes;
    tensor.strides = newStrides;
  }
  tensors[result] = tensor;
}

void RowKernel::viewTransposed(linalg::TransposeOp op) {
  const RowTensor from = getTensor(op.getInput());
  RowTensor tensor = from;
  ArrayRef<int64_t> order = op.getPermutation();
  for (auto [to, dim] : llvm::enumerate(order)) {
    tensor.sizes[to] = from.sizes[dim];
    tensor.strides[to] = from.strides[dim];
  }
  if (order.back() + 1 != int64_t(order.size()))
    tensor.alignment = 1;
  tensors[op.getInit()] = tensor;
}

void RowKernel::emitOperation(Operation &op) {
  if (isa<memref::AllocOp, memref::SubViewOp, memref::CollapseShapeOp,
          memref::ExpandShapeOp, memref::CastOp>(op))
    return emitView(op);
  if (isa<memref::DimOp>(op))
    return emitScalar(op);
  if (op.getNumResults() > 0 && !isa<memref::LoadOp>(op))
    return emitScalar(op);
  if (isTransposedView(&op))
    return viewTransposed(cast<linalg::TransposeOp>(op));
  waitBefore(op);
  if (isa<memref::LoadOp>(op))
    return emitScalar(op);
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    return emitCopy(copy.getSource(), copy.getTarget());
  if (auto positional = dyn_cast<PositionalOpInterface>(op))
    return emitRotation(positional);
  auto loops = cast<linalg::LinalgOp>(op);
  if (loops.getNumReductionLoops() > 0)
    return emitReduction(loops, {});
  emitElements(loops);
}

void RowKernel::emitOperations(Block &block) {
  for (Operation &op : block.without_terminator())
    emitOperation(op);
}

bool mlir::posenc::reducesRowsInBlocks(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0 || !hasTeamReduction(op))
    return false;
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  AffineExpr last = getAffineDimExpr(reduced.back(), op->getContext());
  return op.getNumParallelLoops() == 0 ||
         llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
           AffineMap map = op.getMatchingIndexingMap(input);
           return map.getNumResults() > 0 && map.getResults().back() == last;
         });
}

/// Emits an operation whose units are divided among all threads.
Value RowKernel::emitOverGrid(linalg::LinalgOp op) {
  spansGrid = true;
  Value total = createIndex(host, loc, 1);
  SmallVector<Range> ranges = op.createLoopRanges(host, loc);
  for (auto [range, kind] : llvm::zip_equal(ranges, op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::parallel)
      total = host.createOrFold<arith::MulIOp>(
          loc, total, getValueOrCreateConstantIndexOp(host, loc, range.size));
  int64_t unit = 1;
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (op.getNumReductionLoops() == 0 && out.getNumResults() > 0)
    unit = getUnit(op, out.getDimPosition(out.getNumResults() - 1));
  Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  thread = b.add(b.mul(block, team.threads),
                 gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  if (op.getNumReductionLoops() > 0)
    reduceInOrder(op);
  else
    emitElements(op);
  return host.createOrFold<arith::CeilDivUIOp>(
      loc, total, createIndex(host, loc, team.threads * unit));
}

/// Emits the iterations of a loop, or the rows of a reduction, one for each
/// team.
Value RowKernel::emitIterations() {
  SmallVector<Value> counts, firsts, steps;
  auto forall = dyn_cast<scf::ForallOp>(root);
  auto reduction = dyn_cast<linalg::LinalgOp>(root);
  Value total = createIndex(host, loc, 1);
  auto addLoop = [&](Value count) {
    counts.push_back(kernel.addIndex(host, count));
    total = host.createOrFold<arith::MulIOp>(loc, total, count);
  };
  if (forall) {
    auto toHost = [&](OpFoldResult value) {
      return getValueOrCreateConstantIndexOp(host, loc, value);
    };
    for (auto [first, end, step] :
         llvm::zip_equal(forall.getMixedLowerBound(),
                         forall.getMixedUpperBound(), forall.getMixedStep())) {
      Value range =
          host.createOrFold<arith::SubIOp>(loc, toHost(end), toHost(first));
      addLoop(host.createOrFold<arith::CeilDivSIOp>(loc, range, toHost(step)));
      firsts.push_back(getIndex(first));
      steps.push_back(getIndex(step));
    }
  } else {
    SmallVector<Range> ranges = reduction.createLoopRanges(host, loc);
    for (auto [range, kind] :
         llvm::zip_equal(ranges, reduction.getIteratorTypesArray()))
      if (kind == utils::IteratorType::parallel)
        addLoop(getValueOrCreateConstantIndexOp(host, loc, range.size));
  }
  Value end = kernel.addIndex(host, total);

  Value number = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  sharedBase = b.i32(0);
  OpBuilder::InsertionGuard guard(b);
  if (team.perBlock > 1) {
    Value own;
    std::tie(own, thread) = divide32(b, loc, thread, index(team.threads));
    number = b.add(b.mul(number, team.perBlock), own);
    sharedBase = b.mul(b.toI32(own), buffers.getBytes());
    auto branch =
        scf::IfOp::create(b, b.compare(arith::CmpIPredicate::ult, number, end),
                          /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  SmallVector<Value> iteration = decompose(number, counts);
  if (forall) {
    for (auto [variable, at, first, step] :
         llvm::zip_equal(forall.getInductionVars(), iteration, firsts, steps))
      scalars.map(variable, b.add(first, b.mul(at, step)));
    emitOperations(*forall.getBody());
  } else {
    SmallVector<Value> fixed(reduction.getNumLoops());
    auto *next = iteration.begin();
    for (auto [loop, kind] : llvm::enumerate(reduction.getIteratorTypesArray()))
      if (kind == utils::IteratorType::parallel)
        fixed[loop] = *next++;
    emitReduction(reduction, fixed);
  }
  return host.createOrFold<arith::CeilDivUIOp>(
      loc, total, createIndex(host, loc, team.perBlock));
}

Value RowKernel::emit() {
  captureOperands();
  auto op = dyn_cast<linalg::LinalgOp>(root);
  Value blocks =
      op && !reducesRowsInBlocks(op) ? emitOverGrid(op) : emitIterations();
  kernel.getBody().setInsertionPointToEnd(&kernel.getFunction().front());
  return blocks;
}
