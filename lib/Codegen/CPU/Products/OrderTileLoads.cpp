//===- OrderTileLoads.cpp - loads of a register tile next to their uses ---===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With AVX2, a register tile of 6 x 16 floats has its sums in 12 vectors. A row
// of B takes 2 more, and one is left for an element of A, of 16 registers in
// all. LLVM's scheduler may load all six elements of A first, depending on how
// their addresses are computed. Then sums are spilled in the innermost loop,
// which takes 1.3 to 1.7 times as long. The same happens to tiles of 12 x 32
// with the 32 registers of AVX-512, which takes 1.6 times as long.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Numerics/ByteDots.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCORDERTILELOADSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Emits a fence for the compiler only, of which no instruction is left: loads
/// that follow stay behind it.
static void createFence(OpBuilder &b, Location loc) {
  LLVM::FenceOp::create(b, loc, LLVM::AtomicOrdering::acquire, "singlethread");
}

namespace {
/// The elements of A of one step along k: a read of a column or a row, of which
/// each element is broadcast for the fused multiply-adds of a row of sums,
/// which follow each other.
struct TileRead {
  vector::TransferReadOp op;
  struct Use {
    vector::ExtractOp element;
    math::FmaOp first, last;
  };
  /// The uses of the elements, in the order of the program.
  SmallVector<Use> uses;

  static std::optional<TileRead> get(vector::TransferReadOp op);
  void placeLoads();
};
} // namespace

std::optional<TileRead> TileRead::get(vector::TransferReadOp op) {
  VectorType type = op.getVectorType();
  auto memref = dyn_cast<MemRefType>(op.getBase().getType());
  if (!memref || type.getRank() != 2 || type.isScalable() ||
      (type.getDimSize(0) != 1 && type.getDimSize(1) != 1) || op.getMask() ||
      op.hasOutOfBoundsDim() || !op.getPermutationMap().isMinorIdentity())
    return std::nullopt;
  TileRead read{op, {}};
  for (Operation *user : op->getUsers()) {
    auto element = dyn_cast<vector::ExtractOp>(user);
    if (!element || element.hasDynamicPosition() ||
        element.getNumIndices() != 2 || !element->hasOneUse())
      return std::nullopt;
    auto broadcast =
        dyn_cast<vector::BroadcastOp>(*element->getUsers().begin());
    if (!broadcast || broadcast.use_empty())
      return std::nullopt;
    Use use{element, {}, {}};
    for (Operation *added : broadcast->getUsers()) {
      auto fma = dyn_cast<math::FmaOp>(added);
      if (!fma || fma->getBlock() != op->getBlock())
        return std::nullopt;
      if (!use.first || fma->isBeforeInBlock(use.first))
        use.first = fma;
      if (!use.last || use.last->isBeforeInBlock(fma))
        use.last = fma;
    }
    read.uses.push_back(use);
  }
  llvm::sort(read.uses, [](const Use &a, const Use &b) {
    return a.first->isBeforeInBlock(b.first);
  });
  return read;
}

void TileRead::placeLoads() {
  OpBuilder b(op);
  Location loc = op.getLoc();
  size_t rank = op.getIndices().size();
  for (auto [element, first, last] : uses) {
    b.setInsertionPoint(first);
    SmallVector<Value> indices(op.getIndices());
    for (auto [dim, by] : llvm::enumerate(element.getStaticPosition()))
      indices[rank - 2 + dim] = b.createOrFold<arith::AddIOp>(
          loc, indices[rank - 2 + dim],
          arith::ConstantIndexOp::create(b, loc, by));
    auto broadcast = cast<vector::BroadcastOp>(*element->getUsers().begin());
    element->replaceAllUsesWith(
        memref::LoadOp::create(b, loc, op.getBase(), indices));
    element->erase();
    broadcast->moveBefore(first);
    b.setInsertionPointAfter(last);
    createFence(b, loc);
  }
  op->erase();
}

/// Whether a vector has the same element of memory in all lanes, which is read
/// in `block`.
static bool isLoadedElement(Value vector, Block *block) {
  auto broadcast = vector.getDefiningOp<vector::BroadcastOp>();
  auto load = broadcast ? broadcast.getSource().getDefiningOp<memref::LoadOp>()
                        : memref::LoadOp();
  return load && load->getBlock() == block;
}

/// Whether `next` is `sum` plus the product of an element that is read in
/// `block` and another vector.
static bool addsLoadedElement(Value next, Value sum, Block *block) {
  if (auto fma = next.getDefiningOp<math::FmaOp>())
    return fma.getC() == sum && isLoadedElement(fma.getA(), block);
  std::optional<ByteDot> dot = matchByteDot(next);
  return dot && dot->sum == sum && isLoadedElement(dot->signedBytes, block);
}

/// Keeps the loads of elements, each of which is multiplied for one sum of the
/// loop, in the order of the sums.
static void separateSums(scf::ForOp loop) {
  Block *body = loop.getBody();
  for (auto [sum, next] :
       llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues()))
    if (!isa<VectorType>(sum.getType()) || !addsLoadedElement(next, sum, body))
      return;
  for (Value next : loop.getYieldedValues()) {
    OpBuilder b(loop.getContext());
    b.setInsertionPointAfterValue(next);
    createFence(b, next.getLoc());
  }
}

namespace {
struct OrderTileLoads final
    : mlir::posenc::impl::PosencOrderTileLoadsPassBase<OrderTileLoads> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<TileRead> reads;
    getOperation()->walk([&](vector::TransferReadOp op) {
      auto sums = dyn_cast<scf::ForOp>(op->getParentOp());
      if (!sums || sums.getInitArgs().empty())
        return;
      std::optional<TileRead> read = TileRead::get(op);
      if (read && read->uses.size() >= kMinRows)
        reads.push_back(*read);
    });
    for (TileRead &read : reads)
      read.placeLoads();
    getOperation()->walk([&](scf::ForOp loop) {
      if (loop.getNumRegionIterArgs() >= kMinRows)
        separateSums(loop);
    });
  }

  /// Tiles with fewer rows have registers to spare.
  static constexpr size_t kMinRows = 4;
};
} // namespace
