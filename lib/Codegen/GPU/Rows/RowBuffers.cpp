//===- RowBuffers.cpp - shared memory of a loop over rows -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowBuffers.h"

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace mlir::posenc;

/// The maximum number of bytes of a block. All GPUs from sm_75 on have it.
static constexpr int64_t kMaxSharedBytes = int64_t{64} << 10;

/// Alignment of a buffer: that of the widest access.
static constexpr int64_t kAlignment = 16;

Value mlir::posenc::getViewedMemory(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

bool mlir::posenc::isTransposedView(Operation *op) {
  auto transpose = dyn_cast<linalg::TransposeOp>(op);
  auto buffer = transpose ? transpose.getInit().getDefiningOp<memref::AllocOp>()
                          : memref::AllocOp();
  if (!buffer ||
      getViewedMemory(transpose.getInput()).getDefiningOp<memref::AllocOp>())
    return false;
  return llvm::all_of(buffer->getUses(), [&](OpOperand &use) {
    auto user = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
    return user && (user == op || !user.isDpsInit(&use));
  });
}

/// Returns a constant upper bound of an index. Upstream's analysis does not
/// know minima and maxima.
static std::optional<int64_t> getBound(Value size) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return constant;
  Operation *op = size.getDefiningOp();
  if (isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp>(op)) {
    std::optional<int64_t> a = getBound(op->getOperand(0)),
                           b = getBound(op->getOperand(1));
    if (isa<arith::MinSIOp>(op) && (!a || !b))
      return a ? a : b;
    if (!a || !b)
      return std::nullopt;
    return isa<arith::MinSIOp>(op) ? std::min(*a, *b) : std::max(*a, *b);
  }
  FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, size, /*stopCondition=*/nullptr,
      /*closedUB=*/true);
  if (failed(bound))
    return std::nullopt;
  return std::max<int64_t>(*bound, 0);
}

std::optional<int64_t> mlir::posenc::getSizeBound(Value memref, int64_t dim) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dim))
    return type.getDimSize(dim);
  if (auto alloc = memref.getDefiningOp<memref::AllocOp>())
    return getBound(alloc.getDynamicSizes()[type.getDynamicDimIndex(dim)]);
  if (auto view = memref.getDefiningOp<memref::SubViewOp>()) {
    llvm::SmallBitVector dropped = view.getDroppedDims();
    for (auto [number, size] : llvm::enumerate(view.getMixedSizes())) {
      if (dropped[number])
        continue;
      if (dim-- == 0)
        return getBound(cast<Value>(size));
    }
  }
  if (auto cast = memref.getDefiningOp<memref::CastOp>())
    return getSizeBound(cast.getSource(), dim);
  return std::nullopt;
}

/// Returns a bound of the bytes of a memref's elements.
static std::optional<int64_t> getBytesBound(Value memref) {
  if (llvm::any_of(memref.getUsers(), isTransposedView))
    return 0;
  auto type = cast<MemRefType>(memref.getType());
  std::optional<int64_t> bytes =
      type.getElementType().isIndex()
          ? 8
          : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t dim = 0; bytes && dim < type.getRank(); ++dim) {
    std::optional<int64_t> size = getSizeBound(memref, dim);
    bytes = size ? llvm::checkedMul(*bytes, *size) : std::nullopt;
  }
  return bytes;
}

/// Returns a bound of the bytes of the cos and sin that a rope computes.
static std::optional<int64_t> getTableBound(RopeOp op) {
  Value init = op.getInits().front();
  int64_t element = getElementTypeOrSelf(init.getType()).isF64() ? 8 : 4;
  std::optional<int64_t> bytes = op.getFrequencies().getDim() * element;
  for (int64_t dim : op.getDims()) {
    std::optional<int64_t> size = getSizeBound(init, dim);
    bytes = bytes && size ? llvm::checkedMul(*bytes, *size) : std::nullopt;
  }
  return bytes;
}

std::optional<RowBuffers> RowBuffers::plan(Operation *root) {
  RowBuffers plan;
  auto forall = dyn_cast<scf::ForallOp>(root);
  if (!forall)
    return plan;
  // The interval of operations in which each buffer is in use.
  struct Buffer {
    Operation *op;
    int64_t bytes, first, last;
  };
  SmallVector<Buffer> buffers;
  DenseMap<Value, size_t> numberOf;
  int64_t time = 0;
  for (Operation &op : forall.getBody()->without_terminator()) {
    ++time;
    std::optional<int64_t> bytes = 0;
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      bytes = getBytesBound(alloc);
    else if (auto rope = dyn_cast<RopeOp>(op))
      bytes = getTableBound(rope);
    if (!bytes || *bytes > kMaxSharedBytes)
      return std::nullopt;
    if (*bytes > 0) {
      if (isa<memref::AllocOp>(op))
        numberOf[op.getResult(0)] = buffers.size();
      buffers.push_back({&op, *bytes, time, time});
    }
    for (Value operand : op.getOperands())
      if (isa<MemRefType>(operand.getType()))
        if (auto it = numberOf.find(getViewedMemory(operand));
            it != numberOf.end())
          buffers[it->second].last = time;
  }
  SmallVector<const Buffer *> placed;
  for (const Buffer &buffer : buffers) {
    ByteRange range{kPartialBytes, kPartialBytes + buffer.bytes};
    for (bool hasMoved = true; hasMoved;) {
      hasMoved = false;
      for (const Buffer *other : placed) {
        ByteRange taken = plan.ranges.lookup(other->op);
        if (other->last < buffer.first || other->first > buffer.last ||
            !range.overlaps(taken))
          continue;
        range.begin = llvm::alignTo(taken.end, kAlignment);
        range.end = range.begin + buffer.bytes;
        hasMoved = true;
      }
    }
    plan.ranges[buffer.op] = range;
    plan.bytes =
        std::max<int64_t>(plan.bytes, llvm::alignTo(range.end, kAlignment));
    placed.push_back(&buffer);
  }
  if (plan.bytes > kMaxSharedBytes)
    return std::nullopt;
  return plan;
}

void RowAccesses::add(Operation *op, const RowBuffers &buffers) {
  auto add = [&](Value memref, bool isWrite) {
    if (!isa<MemRefType>(memref.getType()))
      return;
    auto alloc = getViewedMemory(memref).getDefiningOp<memref::AllocOp>();
    ByteRange range = alloc ? buffers.get(alloc) : ByteRange();
    if (range.end > 0)
      (isWrite ? writtenShared : readShared).push_back(range);
    else
      (isWrite ? writesGlobal : readsGlobal) = true;
  };
  if (auto copy = dyn_cast<memref::CopyOp>(op)) {
    add(copy.getSource(), /*isWrite=*/false);
    add(copy.getTarget(), /*isWrite=*/true);
    return;
  }
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    add(operand.get(), /*isWrite=*/false);
    if (destination && destination.isDpsInit(&operand))
      add(operand.get(), /*isWrite=*/true);
  }
  op->walk(
      [&](memref::LoadOp load) { add(load.getMemRef(), /*isWrite=*/false); });
  ByteRange own = buffers.get(op);
  if (own.end > 0 && !isa<memref::AllocOp>(op))
    writtenShared.push_back(own);
}

bool RowAccesses::dependOn(const RowAccesses &before) const {
  auto overlap = [](ArrayRef<ByteRange> a, ArrayRef<ByteRange> b) {
    return llvm::any_of(a, [&](const ByteRange &x) {
      return llvm::any_of(b, [&](const ByteRange &y) { return x.overlaps(y); });
    });
  };
  return overlap(readShared, before.writtenShared) ||
         overlap(writtenShared, before.readShared) ||
         overlap(writtenShared, before.writtenShared) ||
         (readsGlobal && before.writesGlobal) ||
         (writesGlobal && (before.readsGlobal || before.writesGlobal));
}
