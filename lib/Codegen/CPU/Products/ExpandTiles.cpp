//===- ExpandTiles.cpp - AMX tiles as buffers and loops -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code at the vector stage runs on every CPU, and tests of tiles do, because
// this pass gives them the bits of AMX. It is not fast.
//
//===----------------------------------------------------------------------===//

#include "CPU/VectorBuilder.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/IndexArithmetic.h"
#include "posenc/Numerics/BF16.h"
#include "posenc/Numerics/BF16Weights.h"
#include "posenc/Numerics/ByteDots.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEXPANDTILESPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// Keeps the tiles of a function in buffers of 32-bit words, typed f32.
class TileExpander {
public:
  explicit TileExpander(func::FuncOp function) : function(function) {}

  /// Expands an operation whose operands are in buffers; returns false if it is
  /// left alone.
  bool expand(Operation *op);

private:
  bool expandLoad(ImplicitLocOpBuilder &builder, amx::TileLoadOp op);
  bool expandStore(ImplicitLocOpBuilder &builder, amx::TileStoreOp op);
  bool expandProduct(ImplicitLocOpBuilder &builder, amx::TileMulFOp op);
  bool expandProduct(ImplicitLocOpBuilder &builder, amx::TileMulIOp op);
  /// Returns a buffer for `tile` that no tile in use has.
  Value allocate(ImplicitLocOpBuilder &builder, Value tile);
  /// Frees the buffers of the tiles that `op` is the last to use.
  void release(Operation *op);

  func::FuncOp function;
  llvm::MapVector<Value, Value> used;
  SmallVector<Value> unused;
};
} // namespace

/// Returns the type of a row as f32 words.
static VectorType getRowType(amx::TileType tile) {
  int64_t bits = tile.getElementType().getIntOrFloatBitWidth();
  return VectorType::get({tile.getShape()[1] * bits / 32},
                         Float32Type::get(tile.getContext()));
}

static void forEachRow(ImplicitLocOpBuilder &builder, amx::TileType tile,
                       function_ref<void(Value)> body) {
  createLoop(builder, createIndex(builder, 0),
             createIndex(builder, tile.getShape()[0]), 1, body);
}

Value TileExpander::allocate(ImplicitLocOpBuilder &builder, Value tile) {
  auto type = cast<amx::TileType>(tile.getType());
  auto memory =
      MemRefType::get({type.getShape()[0], getRowType(type).getDimSize(0)},
                      builder.getF32Type());
  auto *known = llvm::find_if(
      unused, [&](Value buffer) { return buffer.getType() == memory; });
  Value buffer;
  if (known != unused.end()) {
    buffer = *known;
    unused.erase(known);
  } else {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.getBody().front());
    buffer = memref::AllocaOp::create(builder, memory);
  }
  used[tile] = buffer;
  return buffer;
}

void TileExpander::release(Operation *op) {
  for (Value tile : op->getOperands()) {
    auto *known = used.find(tile);
    if (known == used.end() || tile.getParentBlock() != op->getBlock() ||
        llvm::any_of(tile.getUsers(), [&](Operation *user) {
          return user->getBlock() != op->getBlock() ||
                 op->isBeforeInBlock(user);
        }))
      continue;
    unused.push_back(known->second);
    used.erase(known);
  }
}

/// Returns the indices of a row of a tile in memory.
static SmallVector<Value> getRowIndices(ImplicitLocOpBuilder &builder,
                                        ValueRange indices, Value row) {
  SmallVector<Value> at(indices);
  Value &first = at[at.size() - 2];
  first = addIndex(builder, first, row);
  return at;
}

/// Returns the type of a row in a memref, or null if vectors cannot read it.
static VectorType getMemoryType(amx::TileType tile, Value memory) {
  auto type = cast<MemRefType>(memory.getType());
  Type element = type.getElementType();
  int64_t bits = getRowType(tile).getDimSize(0) * 32;
  if (!element.isIntOrFloat() || element.getIntOrFloatBitWidth() % 8 != 0 ||
      bits % element.getIntOrFloatBitWidth() != 0)
    return {};
  return VectorType::get({bits / element.getIntOrFloatBitWidth()}, element);
}

bool TileExpander::expandLoad(ImplicitLocOpBuilder &builder,
                              amx::TileLoadOp op) {
  amx::TileType tile = op.getTileType();
  VectorType type = getMemoryType(tile, op.getBase());
  if (op.getStride() || !type)
    return false;
  Value buffer = allocate(builder, op.getRes());
  Value zero = createIndex(builder, 0);
  forEachRow(builder, tile, [&](Value row) {
    Value words =
        vector::LoadOp::create(builder, type, op.getBase(),
                               getRowIndices(builder, op.getIndices(), row));
    words = builder.createOrFold<vector::BitCastOp>(getRowType(tile), words);
    vector::StoreOp::create(builder, words, buffer, ValueRange{row, zero});
  });
  return true;
}

bool TileExpander::expandStore(ImplicitLocOpBuilder &builder,
                               amx::TileStoreOp op) {
  amx::TileType tile = op.getTileType();
  VectorType type = getMemoryType(tile, op.getBase());
  if (op.getStride() || !type)
    return false;
  Value buffer = used.lookup(op.getVal());
  Value zero = createIndex(builder, 0);
  forEachRow(builder, tile, [&](Value row) {
    Value words = vector::LoadOp::create(builder, getRowType(tile), buffer,
                                         ValueRange{row, zero});
    words = builder.createOrFold<vector::BitCastOp>(type, words);
    vector::StoreOp::create(builder, words, op.getBase(),
                            getRowIndices(builder, op.getIndices(), row));
  });
  return true;
}

/// For each row, sums the products of the even elements and those of the odd
/// ones apart, then adds both sums to the accumulator.
bool TileExpander::expandProduct(ImplicitLocOpBuilder &builder,
                                 amx::TileMulFOp op) {
  if (!op.getLhsTileType().getElementType().isBF16())
    return false;
  Value left = used.lookup(op.getLhs()), right = used.lookup(op.getRhs());
  Value before = used.lookup(op.getAcc());
  Value buffer = allocate(builder, op.getRes());
  VectorType type = getRowType(op.getTileType());
  Location loc = builder.getLoc();
  Value zero = createIndex(builder, 0);
  Value none = arith::ConstantOp::create(builder, builder.getZeroAttr(type));
  auto split = [&](Value words) {
    int64_t length = cast<VectorType>(words.getType()).getDimSize(0);
    auto narrow = VectorType::get({2 * length}, builder.getBF16Type());
    BF16Halves halves = splitBF16(
        builder, loc, vector::BitCastOp::create(builder, narrow, words));
    ElementwiseBuilder b(builder, loc, words);
    return BF16Halves{flushSubnormals(b, halves.even),
                      flushSubnormals(b, halves.odd)};
  };
  forEachRow(builder, op.getTileType(), [&](Value row) {
    int64_t depth = op.getRhsTileType().getShape()[0];
    ValueRange sums = createLoop(
        builder, zero, createIndex(builder, depth), 1, {none, none},
        [&](Value k, ValueRange carried) -> SmallVector<Value> {
          Value word =
              memref::LoadOp::create(builder, left, ValueRange{row, k});
          BF16Halves x =
              split(vector::BroadcastOp::create(builder, type, word));
          BF16Halves y = split(vector::LoadOp::create(builder, type, right,
                                                      ValueRange{k, zero}));
          ElementwiseBuilder b(builder, loc, none);
          return {flushSubnormals(b, b.fma(x.even, y.even, carried[0])),
                  flushSubnormals(b, b.fma(x.odd, y.odd, carried[1]))};
        });
    ElementwiseBuilder b(builder, loc, none);
    Value sum = flushSubnormals(b, b.add(sums[0], sums[1]));
    Value old =
        vector::LoadOp::create(builder, type, before, ValueRange{row, zero});
    sum = flushSubnormals(b, b.add(flushSubnormals(b, old), sum));
    vector::StoreOp::create(builder, sum, buffer, ValueRange{row, zero});
  });
  return true;
}

/// Adds the products of the bytes of each word in turn: sums of integers are
/// the same in every order.
bool TileExpander::expandProduct(ImplicitLocOpBuilder &builder,
                                 amx::TileMulIOp op) {
  // Bytes of both operands that are signed, or unsigned, have no word of both.
  if (op.getIsZextLhs() == op.getIsZextRhs())
    return false;
  Value left = used.lookup(op.getLhs()), right = used.lookup(op.getRhs());
  Value before = used.lookup(op.getAcc());
  Value buffer = allocate(builder, op.getRes());
  VectorType floats = getRowType(op.getTileType());
  VectorType words = floats.clone(builder.getI32Type());
  Value zero = createIndex(builder, 0);
  auto load = [&](Value memory, Value row) {
    return builder.createOrFold<vector::BitCastOp>(
        words,
        vector::LoadOp::create(builder, floats, memory, ValueRange{row, zero}));
  };
  forEachRow(builder, op.getTileType(), [&](Value row) {
    int64_t depth = op.getRhsTileType().getShape()[0];
    ValueRange sums = createLoop(
        builder, zero, createIndex(builder, depth), 1, {load(before, row)},
        [&](Value k, ValueRange carried) -> SmallVector<Value> {
          Value word =
              memref::LoadOp::create(builder, left, ValueRange{row, k});
          Value x = builder.createOrFold<vector::BitCastOp>(
              words, vector::BroadcastOp::create(builder, floats, word));
          Value y = load(right, k);
          if (op.getIsZextLhs())
            std::swap(x, y);
          return {emitByteDot(builder, builder.getLoc(), {x, y, carried[0]})};
        });
    Value sum = builder.createOrFold<vector::BitCastOp>(floats, sums[0]);
    vector::StoreOp::create(builder, sum, buffer, ValueRange{row, zero});
  });
  return true;
}

bool TileExpander::expand(Operation *op) {
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  if (llvm::any_of(op->getOperands(), [&](Value operand) {
        return isa<amx::TileType>(operand.getType()) && !used.count(operand);
      }))
    return false;
  bool isExpanded = false;
  if (auto load = dyn_cast<amx::TileLoadOp>(op)) {
    isExpanded = expandLoad(builder, load);
  } else if (auto store = dyn_cast<amx::TileStoreOp>(op)) {
    isExpanded = expandStore(builder, store);
  } else if (auto product = dyn_cast<amx::TileMulFOp>(op)) {
    isExpanded = expandProduct(builder, product);
  } else if (auto product = dyn_cast<amx::TileMulIOp>(op)) {
    isExpanded = expandProduct(builder, product);
  } else if (auto zeroOp = dyn_cast<amx::TileZeroOp>(op)) {
    Value buffer = allocate(builder, zeroOp.getRes());
    VectorType type = getRowType(zeroOp.getTileType());
    Value none = arith::ConstantOp::create(builder, builder.getZeroAttr(type));
    Value zero = createIndex(builder, 0);
    forEachRow(builder, zeroOp.getTileType(), [&](Value row) {
      vector::StoreOp::create(builder, none, buffer, ValueRange{row, zero});
    });
    isExpanded = true;
  }
  if (isExpanded)
    release(op);
  return isExpanded;
}

namespace {
struct ExpandTiles final
    : mlir::posenc::impl::PosencExpandTilesPassBase<ExpandTiles> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> operations, expanded;
    getOperation().walk([&](Operation *op) {
      if (isa_and_nonnull<amx::AMXDialect>(op->getDialect()))
        operations.push_back(op);
      OpBuilder builder(op);
      if (Value result = expandVectorIntrinsic(builder, op, avx512)) {
        op->replaceAllUsesWith(ValueRange(result));
        expanded.push_back(op);
      }
      if (int8Dots)
        return;
      if (Value result = expandVnniDot(builder, op)) {
        op->replaceAllUsesWith(ValueRange(result));
        expanded.push_back(op);
      }
    });
    TileExpander expander(getOperation());
    for (Operation *op : operations)
      if (expander.expand(op))
        expanded.push_back(op);
    // Operations that are left alone keep their operands.
    for (Operation *op : llvm::reverse(expanded))
      if (op->use_empty())
        op->erase();
  }
};
} // namespace
