//===- RowReductions.cpp - reductions of rows -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowReductions.h"
#include "GPU/Threads/ElementKernel.h"
#include "GPU/Threads/TileReader.h"
#include "RowKernel.h"

#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::posenc;

/// Whether `x op y` is `y op x`, and `(x op y) op z` is `x op (y op z)` up to
/// rounding.
static bool isAssociative(Operation *op) {
  return isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp,
             arith::MaxNumFOp, arith::MinNumFOp, arith::AddIOp, arith::MulIOp,
             arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp,
             arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op);
}

Operation *mlir::posenc::findCombiner(linalg::LinalgOp op, unsigned result) {
  Block &body = *op.getBlock();
  Value carried = op.getRegionOutputArgs()[result];
  Operation *combiner =
      body.getTerminator()->getOperand(result).getDefiningOp();
  if (!combiner || combiner->getBlock() != &body || !carried.hasOneUse() ||
      *carried.user_begin() != combiner || combiner->getNumResults() != 1 ||
      !combiner->getResult(0).hasOneUse())
    return nullptr;
  if (auto fma = dyn_cast<math::FmaOp>(combiner))
    return fma.getC() == carried ? combiner : nullptr;
  return isAssociative(combiner) ? combiner : nullptr;
}

/// Kernels compute indices as i64.
static Value withoutIndex(OpBuilder &b, Location loc, Value value) {
  if (!value.getType().isIndex())
    return value;
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
}

/// Returns the value that changes no other in the reduction.
static TypedAttr getNeutral(OpBuilder &b, Operation *combiner) {
  Type type = combiner->getResult(0).getType();
  // The sum of -0 and x is x, also for x = -0.
  if (isa<math::FmaOp, arith::AddFOp>(combiner))
    return b.getFloatAttr(type, -0.0);
  // The number is returned where the other operand is NaN.
  if (isa<arith::MaxNumFOp, arith::MinNumFOp>(combiner))
    return b.getFloatAttr(
        type, APFloat::getNaN(cast<FloatType>(type).getFloatSemantics()));
  return cast<TypedAttr>(*arith::getNeutralElement(combiner));
}

/// Emits the combination of two partial results.
Value RowKernel::combine(Operation *combiner, Value carried, Value other) {
  if (isa<math::FmaOp>(combiner))
    return arith::AddFOp::create(b, carried, other);
  IRMapping mapping;
  mapping.map(combiner->getOperand(0), carried);
  mapping.map(combiner->getOperand(1), other);
  cloneScalar(b, combiner, mapping);
  return mapping.lookup(combiner->getResult(0));
}

/// Returns the value of the lane whose number differs by `mask`.
Value RowKernel::shuffle(Value value, int64_t mask) {
  Type type = value.getType();
  unsigned width = type.getIntOrFloatBitWidth();
  if (type.isF32() || type.isF64() || type.isInteger(32))
    return b.shuffleXor(value, mask);
  Type bits = b.getIntegerType(width);
  auto cast = [&](Value from, Type to) -> Value {
    if (from.getType() == to)
      return from;
    return arith::BitcastOp::create(b, to, from);
  };
  Value word = cast(value, bits);
  if (width == 64)
    return cast(cast(b.shuffleXor(cast(word, b.getF64Type()), mask), bits),
                type);
  word = arith::ExtUIOp::create(b, b.getI32Type(), word);
  word = arith::TruncIOp::create(b, bits, b.shuffleXor(word, mask));
  return cast(word, type);
}

/// Reduces the units of one row that belong to a lane, from the neutral element
/// on.
SmallVector<Value> RowKernel::reduceRow(linalg::LinalgOp op,
                                        ArrayRef<Value> loops, Value lane,
                                        int64_t lanes) {
  Block &body = *op.getBlock();
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  SmallVector<Value> sizes = getLoopSizes(op);
  unsigned last = reduced.back();
  int64_t unit = getUnit(op, last);
  SmallVector<Value> units;
  Value count = index(1);
  for (unsigned loop : reduced) {
    Value size = loop == last ? b.div(sizes[loop], unit) : sizes[loop];
    units.push_back(size);
    count = b.mul(count, size);
  }
  SmallVector<Value> initial;
  for (unsigned number = 0, e = op.getNumDpsInits(); number < e; ++number)
    initial.push_back(withoutIndex(
        b, loc,
        arith::ConstantOp::create(b, getNeutral(b, findCombiner(op, number)))));
  return b.emitLoop(
      lane, count, index(lanes), initial,
      [&](Value number, ValueRange carried) -> SmallVector<Value> {
        SmallVector<Value> state(carried);
        withScope([&] {
          SmallVector<Value> at(loops);
          for (auto [loop, value] :
               llvm::zip_equal(reduced, decompose(number, units)))
            at[loop] = value;
          at[last] = b.mul(at[last], unit);
          SmallVector<SmallVector<Value>> inputs;
          loadArguments(op, at, last, unit, inputs);
          for (int64_t i = 0; i < unit; ++i)
            withScope([&] {
              for (auto [argument, list] :
                   llvm::zip(body.getArguments(), inputs))
                if (!list.empty())
                  scalars.map(argument, list[list.size() == 1 ? 0 : i]);
              for (auto [argument, value] :
                   llvm::zip_equal(op.getRegionOutputArgs(), state))
                scalars.map(argument, value);
              emitBody(body, at, i, last);
              for (auto [value, yielded] :
                   llvm::zip_equal(state, body.getTerminator()->getOperands()))
                value = withoutIndex(b, loc, get(yielded));
            });
        });
        return state;
      });
}

/// Combines the results of the warps in their order.
SmallVector<Value> RowKernel::combineWarps(linalg::LinalgOp op,
                                           SmallVector<Value> values) {
  int64_t warps = team.threads / kWarpThreads;
  Value warp, lane;
  std::tie(warp, lane) = divide32(b, loc, thread, index(kWarpThreads));
  auto getBytes = [](Value value) {
    return int64_t{value.getType().getIntOrFloatBitWidth()} / 8;
  };
  // The partial results of each value follow each other without gaps, since
  // LLVM combines the loads.
  auto getPartials = [&](size_t number) {
    constexpr int64_t kMaxBytes = 8;
    return SharedAddress{sharedBase, buffers.getPartials().begin}.plus(
        number * warps * kMaxBytes);
  };
  // Earlier partial results have been read.
  synchronize();
  b.emitIf(b.compare(arith::CmpIPredicate::eq, lane, index(0)), [&] {
    for (auto [number, value] : llvm::enumerate(values)) {
      int64_t bytes = getBytes(value);
      SharedAddress partial = getPartials(number);
      partial.base = b.add(partial.base, b.mul(b.toI32(warp), bytes));
      b.store(value, partial, bytes);
    }
  });
  synchronize();
  for (auto [number, value] : llvm::enumerate(values)) {
    Operation *combiner = findCombiner(op, number);
    Value total;
    for (int64_t other = 0; other < warps; ++other) {
      int64_t bytes = getBytes(value);
      Value part = b.load(getPartials(number).plus(other * bytes),
                          value.getType(), bytes);
      total = total ? combine(combiner, total, part) : part;
    }
    value = total;
  }
  return values;
}

/// Reduces each row in order, in a thread of its own.
void RowKernel::reduceInOrder(linalg::LinalgOp op) {
  Block &body = *op.getBlock();
  SmallVector<Value> sizes = getLoopSizes(op), units, lengths;
  SmallVector<unsigned> rows, reduced;
  Value count = index(1), length = index(1);
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    bool isRow = kind == utils::IteratorType::parallel;
    (isRow ? rows : reduced).push_back(loop);
    (isRow ? units : lengths).push_back(sizes[loop]);
    Value &product = isRow ? count : length;
    product = b.mul(product, sizes[loop]);
  }
  forUnits(count, [&](Value number) {
    SmallVector<Value> loops(sizes.size());
    for (auto [loop, at] : llvm::zip_equal(rows, decompose(number, units)))
      loops[loop] = at;
    auto getElement = [&](OpOperand &init) {
      const RowTensor &tensor = getTensor(init.get());
      return std::make_pair(
          &tensor,
          getOffset(tensor,
                    getIndices(op.getMatchingIndexingMap(&init), loops)));
    };
    SmallVector<Value> initial;
    for (OpOperand &init : op.getDpsInitsMutable()) {
      auto [tensor, at] = getElement(init);
      initial.push_back(withoutIndex(b, loc, load(*tensor, at, 1).front()));
    }
    SmallVector<Value> results = b.emitLoop(
        index(0), length, index(1), initial,
        [&](Value step, ValueRange carried) -> SmallVector<Value> {
          SmallVector<Value> next;
          withScope([&] {
            SmallVector<Value> at(loops);
            for (auto [loop, value] :
                 llvm::zip_equal(reduced, decompose(step, lengths)))
              at[loop] = value;
            SmallVector<SmallVector<Value>> inputs;
            loadArguments(op, at, reduced.back(), 1, inputs);
            for (auto [argument, list] : llvm::zip(body.getArguments(), inputs))
              if (!list.empty())
                scalars.map(argument, list.front());
            for (auto [argument, value] :
                 llvm::zip_equal(op.getRegionOutputArgs(), carried))
              scalars.map(argument, value);
            emitBody(body, at, 0, -1);
            for (Value yielded : body.getTerminator()->getOperands())
              next.push_back(withoutIndex(b, loc, get(yielded)));
          });
          return next;
        });
    for (auto [init, result] :
         llvm::zip_equal(op.getDpsInitsMutable(), results)) {
      auto [tensor, at] = getElement(init);
      store(*tensor, at, result);
    }
  });
}

void RowKernel::emitReduction(linalg::LinalgOp op, ArrayRef<Value> fixed) {
  if (!hasTeamReduction(op))
    return reduceInOrder(op);
  SmallVector<Value> sizes = getLoopSizes(op), units;
  SmallVector<unsigned> rows;
  bool isOneRow = true;
  Value count = index(1);
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (kind != utils::IteratorType::parallel ||
        (!fixed.empty() && fixed[loop]))
      continue;
    rows.push_back(loop);
    units.push_back(sizes[loop]);
    count = b.mul(count, sizes[loop]);
    isOneRow &= op.getStaticLoopRanges()[loop] == 1;
  }
  auto emitRow = [&](Value number, Value lane, int64_t lanes) {
    SmallVector<Value> loops(sizes.size());
    for (auto [loop, value] : llvm::enumerate(fixed))
      loops[loop] = value;
    for (auto [loop, at] : llvm::zip_equal(rows, decompose(number, units)))
      loops[loop] = at;
    SmallVector<Value> values = reduceRow(op, loops, lane, lanes);
    for (int64_t mask = kWarpThreads / 2; mask > 0; mask /= 2)
      for (auto [result, value] : llvm::enumerate(values))
        value = combine(findCombiner(op, result), value, shuffle(value, mask));
    if (lanes > kWarpThreads)
      values = combineWarps(op, values);
    b.emitIf(b.compare(arith::CmpIPredicate::eq, lane, index(0)), [&] {
      for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
        const RowTensor &tensor = getTensor(init.get());
        Value at = getOffset(
            tensor, getIndices(op.getMatchingIndexingMap(&init), loops));
        Value old = withoutIndex(b, loc, load(tensor, at, 1).front());
        store(tensor, at,
              combine(findCombiner(op, number), values[number], old));
      }
    });
  };
  if (isOneRow)
    return emitRow(index(0), thread, team.threads);
  Value warp, lane;
  std::tie(warp, lane) = divide32(b, loc, thread, index(kWarpThreads));
  b.emitLoop(warp, count, index(team.threads / kWarpThreads), {},
             [&](Value number, ValueRange) -> SmallVector<Value> {
               withScope([&] { emitRow(number, lane, kWarpThreads); });
               return {};
             });
}

bool mlir::posenc::hasTeamReduction(linalg::LinalgOp op) {
  for (unsigned result = 0, e = op.getNumDpsInits(); result < e; ++result) {
    Operation *combiner = findCombiner(op, result);
    // Partial results of bf16 and f16 would be rounded in between.
    if (!combiner ||
        (isa<math::FmaOp, arith::AddFOp, arith::MulFOp>(combiner) &&
         combiner->getResult(0).getType().getIntOrFloatBitWidth() < 32))
      return false;
  }
  return true;
}
