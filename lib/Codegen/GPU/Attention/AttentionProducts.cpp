//===- AttentionProducts.cpp - products of GPU attention ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;

/// Rows and columns of a fragment of the first operand, and bytes of 8
/// elements.
static constexpr int64_t kFragment = 16, kUnitBytes = 16;

/// The lane addresses one of 16 queries.
SmallVector<Value> AttentionKernel::loadQueryMatrices(int64_t rowTile,
                                                      int64_t channel) {
  SharedAddress first = getQuery(b.add(warpRow, b.rem(lane, kFragment)),
                                 b.mul(b.div(lane, kFragment), kUnitBytes / 2));
  return b.loadMatrices(
      first.plus(rowTile * kFragment * keyPitch + 2 * channel), false);
}

/// The lane addresses one of twice 8 keys.
SharedAddress AttentionKernel::getKeys(const Tile &tile, int64_t key,
                                       int64_t channel) {
  Value row = b.add(b.rem(lane, 8), b.mul(b.div(lane, kFragment), 8));
  SharedAddress first{b.add(b.add(tile.keys, b.mul(row, keyPitch)),
                            b.mul(b.rem(b.div(lane, 8), 2), kUnitBytes))};
  return first.plus(key * keyPitch + 2 * channel);
}

/// Emits the products of queries and keys.
SmallVector<Value> AttentionKernel::multiplyKeys(const Tile &tile) {
  if (!hasTensorCores())
    return multiplyKeysByThreads(tile);
  int64_t fragments = tiles.keys / 8;
  SmallVector<Value> scores(tiles.rowTiles * fragments * 4, b.real(sum, 0.0));
  for (int64_t channel = 0; channel < sizes.keyDim; channel += kFragment) {
    SmallVector<SmallVector<Value>> a;
    for (int64_t i = 0; i < tiles.rowTiles; ++i)
      a.push_back(loadQueryMatrices(i, channel));
    for (int64_t key = 0; key < tiles.keys; key += kFragment) {
      SmallVector<Value> both =
          b.loadMatrices(getKeys(tile, key, channel), false);
      for (int64_t n : {0, 1})
        for (int64_t i = 0; i < tiles.rowTiles; ++i) {
          MutableArrayRef<Value> part = MutableArrayRef(scores).slice(
              (i * fragments + key / 8 + n) * 4, 4);
          llvm::copy(
              b.multiply(a[i], ValueRange(both).slice(2 * n, 2), part, element),
              part.begin());
        }
    }
  }
  return scores;
}

/// Returns the weights of 16 keys from `key` on as the first operand of a
/// product: scores have its layout.
SmallVector<SmallVector<Value>>
AttentionKernel::packWeights(ArrayRef<Value> weights, int64_t key) {
  SmallVector<SmallVector<Value>> a(tiles.rowTiles);
  for (int64_t i = 0; i < tiles.rowTiles; ++i)
    for (int64_t n : {0, 1})
      for (int64_t r : {0, 2}) {
        if (isHalfTile && r != 0) {
          a[i].push_back(b.i32(0));
          continue;
        }
        int64_t at = (i * tiles.keys / 8 + key / 8 + n) * 4 + r;
        a[i].push_back(b.pack(weights[at], weights[at + 1], element));
      }
  return a;
}

SharedAddress AttentionKernel::getValues(const Tile &tile, int64_t key,
                                         int64_t channel) {
  Value row = b.add(tile.values, b.mul(b.rem(lane, kFragment), valuePitch));
  SharedAddress first{
      b.add(b.add(row, b.mul(b.div(lane, kFragment), kUnitBytes)),
            b.mul(valuePart, 2 * tiles.getValueChannels(sizes)))};
  return first.plus(key * valuePitch + 2 * channel);
}

/// Adds products of weights and of a matrix of 16 values x 16 channels, in four
/// words, to the accumulators of 16 channels.
void AttentionKernel::multiplyValues(ArrayRef<SmallVector<Value>> weights,
                                     ArrayRef<Value> words, int64_t channel,
                                     MutableArrayRef<Value> accumulators) {
  int64_t fragments = accumulators.size() / tiles.rowTiles / 4;
  for (int64_t n : {0, 1})
    for (int64_t i = 0; i < tiles.rowTiles; ++i) {
      MutableArrayRef<Value> part =
          accumulators.slice((i * fragments + channel / 8 + n) * 4, 4);
      llvm::copy(b.multiply(weights[i], ValueRange(words).slice(2 * n, 2), part,
                            element),
                 part.begin());
    }
}

/// Adds the products of weights and values to the accumulators. `isMasked`, an
/// i1, tells whether the tile has masked keys; null if none has.
void AttentionKernel::addValues(const Tile &tile, ArrayRef<Value> weights,
                                Value isMasked, State &state) {
  if (!hasTensorCores())
    return addValuesByThreads(tile, weights, isMasked != nullptr, state);
  auto add = [&] {
    SmallVector<Value> accumulators(state.accumulators);
    for (int64_t key = 0; key < tiles.keys; key += kFragment) {
      SmallVector<SmallVector<Value>> a = packWeights(weights, key);
      for (int64_t channel = 0; channel < tiles.getValueChannels(sizes);
           channel += kFragment)
        multiplyValues(a, b.loadMatrices(getValues(tile, key, channel), true),
                       channel, accumulators);
    }
    return accumulators;
  };
  if (!isMasked) {
    state.accumulators = add();
    return;
  }
  // The weight of a masked key is 0, but 0 times infinity is NaN.
  Value isUnsafe = b.emitIf(
      isMasked, Type(b.getI1Type()),
      [&]() -> SmallVector<Value> { return {hasSpecialValues(tile)}; },
      [&]() -> SmallVector<Value> {
        return {arith::ConstantIntOp::create(b, 0, 1)};
      })[0];
  state.accumulators = b.emitIf(
      isUnsafe, ValueRange(state.accumulators).getTypes(),
      [&] {
        return addSpecialValues(
            tile, [&](int64_t key) { return packWeights(weights, key); },
            state.accumulators);
      },
      add);
}

//===----------------------------------------------------------------------===//
// f32 and f64
//===----------------------------------------------------------------------===//

static SmallVector<Value> loadLanes(ThreadBuilder &b, SharedAddress address,
                                    Type element, int64_t lanes) {
  int64_t bytes = lanes * element.getIntOrFloatBitWidth() / 8;
  Value vector = b.load(address, VectorType::get({lanes}, element), bytes);
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane)
    elements.push_back(vector::ExtractOp::create(b, vector, lane));
  return elements;
}

/// Emits the products of queries and keys as those of the thread's rows and
/// columns.
SmallVector<Value> AttentionKernel::multiplyKeysByThreads(const Tile &tile) {
  int64_t lanes = kUnitBytes / sizes.elementBytes, columns = getNumColumns();
  SmallVector<Value> zeros(getNumRows() * columns, b.real(sum, 0.0));
  int64_t bytes = llvm::alignTo(sizes.keyDim, kFragment) * sizes.elementBytes;
  Value query = getQuery(b.add(warpRow, laneRow), b.i32(0)).base;
  Value key = b.add(tile.keys, b.mul(b.mul(laneColumn, 2), keyPitch));
  return b.emitLoop(
      b.i32(0), b.i32(bytes), b.i32(kUnitBytes), zeros,
      [&](Value offset, ValueRange sums) {
        SmallVector<Value> scores(sums);
        SharedAddress queries{b.add(query, offset)};
        SharedAddress keys{b.add(key, offset)};
        SmallVector<SmallVector<Value>> x;
        for (int64_t row = 0; row < getNumRows(); ++row)
          x.push_back(
              loadLanes(b, queries.plus(8 * row * keyPitch), element, lanes));
        for (int64_t column = 0; column < columns; ++column) {
          SmallVector<Value> y = loadLanes(
              b, keys.plus(getColumnKey(column) * keyPitch), element, lanes);
          for (int64_t row = 0; row < getNumRows(); ++row) {
            Value &score = scores[getIndex(row, column, columns)];
            for (int64_t i = 0; i < lanes; ++i)
              score = b.fma(x[row][i], y[i], score);
          }
        }
        return scores;
      });
}

/// Adds the products of weights and values, key by key; the thread that has the
/// weight of a key passes it to the others of its row.
void AttentionKernel::addValuesByThreads(const Tile &tile,
                                         ArrayRef<Value> weights, bool hasMasks,
                                         State &state) {
  int64_t columns = getNumColumns(), count = getNumChannels();
  Value first = b.add(b.mul(valuePart, tiles.getValueChannels(sizes)),
                      b.mul(laneColumn, 2));
  SharedAddress values{b.add(tile.values, b.mul(first, sizes.elementBytes))};
  Value quad = b.mul(laneRow, 4);
  for (int64_t key = 0; key < tiles.keys; ++key) {
    int64_t column = key / 8 * 2 + key % 2;
    Value owner = b.add(quad, key % 8 / 2);
    SmallVector<Value> factors, isZero;
    for (int64_t row = 0; row < getNumRows(); ++row) {
      factors.push_back(
          b.shuffle(weights[getIndex(row, column, columns)], owner));
      if (hasMasks)
        isZero.push_back(arith::CmpFOp::create(
            b, arith::CmpFPredicate::OEQ, factors.back(), b.real(sum, 0.0)));
    }
    for (int64_t channel = 0; channel < count; channel += 2) {
      SmallVector<Value> pair =
          loadLanes(b,
                    values.plus(key * valuePitch +
                                getColumnKey(channel) * sizes.elementBytes),
                    element, 2);
      for (int64_t row = 0; row < getNumRows(); ++row)
        for (int64_t i : {0, 1}) {
          Value &x = state.accumulators[getIndex(row, channel + i, count)];
          Value value = pair[i];
          // 0 times an infinite value of a masked key would be NaN.
          if (hasMasks)
            value = b.select(isZero[row], b.real(sum, 0.0), value);
          x = b.fma(factors[row], value, x);
        }
    }
  }
}
