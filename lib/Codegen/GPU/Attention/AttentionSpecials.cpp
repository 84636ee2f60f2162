//===- AttentionSpecials.cpp - infinite values and NaN in GPU attention ---===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The weight of a masked key is 0, and its value must not matter. In tiles that
// have masked keys, infinite values and NaN are replaced by 0 in the products.
// Rows that see them are found by products of the weights with matrices that
// are 1 at such values, and get the sum that the values would give. The other
// rows have the bits that they have without such values.
//
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// The bits of a 16-bit float type, in both halves of a word.
struct PackedBits {
  explicit PackedBits(Type type)
      : exponent(type.isBF16() ? 0x7F80 : 0x7C00),
        lowest(type.isBF16() ? 0x0080 : 0x0400),
        one(type.isBF16() ? 0x3F80 : 0x3C00) {}

  /// All bits of the exponent, its lowest bit, and the number 1.
  int64_t exponent, lowest, one;
};
} // namespace

static int64_t repeat(int64_t half) { return half << 16 | half; }

/// Keeps the assembler from loading words of the next matrices early, which
/// would take registers that other code of the kernel needs.
static void limitRegisters(ThreadBuilder &b) {
  NVVM::SyncWarpOp::create(b, b.i32(-1));
}

/// Emits a word with the sign bits of the halves that are infinite or NaN:
/// adding the lowest bit of an exponent of ones carries into the sign.
Value AttentionKernel::findSpecials(Value word) {
  PackedBits bits(element);
  Value exponents =
      arith::AndIOp::create(b, word, b.i32(repeat(bits.exponent)));
  Value carried = b.add(exponents, repeat(bits.lowest));
  return arith::AndIOp::create(b, carried,
                               b.i32(static_cast<int32_t>(repeat(0x8000))));
}

/// Emits an i1, equal in all lanes: whether the warp's part of the tile has
/// infinite values or NaN.
Value AttentionKernel::hasSpecialValues(const Tile &tile) {
  Value all = b.i32(0);
  for (int64_t key = 0; key < tiles.keys; key += 16) {
    limitRegisters(b);
    for (int64_t channel = 0; channel < tiles.getValueChannels(sizes);
         channel += 16)
      for (Value word : b.loadMatrices(getValues(tile, key, channel), true))
        all = arith::OrIOp::create(b, all, findSpecials(word));
  }
  return b.any(b.compare(arith::CmpIPredicate::ne, all, b.i32(0)));
}

namespace {
/// A range of a half's bits under a mask, i32.
struct BitRange {
  Value mask, first, last;
};
} // namespace

/// Emits a word whose halves are `kept`, or `half` itself if it is null, where
/// the bits of a half are in the range; other halves are 0.
static Value takeRange(ThreadBuilder &b, Value word, const BitRange &range,
                       Value kept) {
  Value result = b.i32(0);
  for (int64_t shift : {0, 16}) {
    Value half = arith::ShRUIOp::create(b, word, b.i32(shift));
    half = arith::AndIOp::create(b, half, b.i32(0xFFFF));
    Value bits = arith::AndIOp::create(b, half, range.mask);
    Value isTaken =
        b.compare(arith::CmpIPredicate::ule, b.sub(bits, range.first),
                  b.sub(range.last, range.first));
    Value taken = b.select(isTaken, kept ? kept : half, b.i32(0));
    result = arith::OrIOp::create(
        b, result, arith::ShLIOp::create(b, taken, b.i32(shift)));
  }
  return result;
}

/// Emits the accumulators of 16 channels, 8 for each tile of rows, after a tile
/// that has infinite values or NaN: the products of its finite values, and
/// then, in a loop, those of a matrix that is 1 at plus infinity, minus
/// infinity and NaN.
SmallVector<Value> AttentionKernel::addSpecialChannels(
    GetWeights getWeights, function_ref<SharedAddress(int64_t key)> getRow,
    ArrayRef<Value> before) {
  PackedBits bits(element);
  SmallVector<Value> accumulators(before);
  // Adds the products of a range of values to `sums`.
  auto multiply = [&](const BitRange &range, Value kept,
                      MutableArrayRef<Value> sums) {
    for (int64_t key = 0; key < tiles.keys; key += 16) {
      limitRegisters(b);
      SmallVector<Value> words = b.loadMatrices(getRow(key), true);
      for (Value &word : words)
        word = takeRange(b, word, range, kept);
      multiplyValues(getWeights(key), words, /*channel=*/0, sums);
    }
  };
  double infinity = std::numeric_limits<double>::infinity();
  Value size = b.i32(0x7FFF), exponent = b.i32(bits.exponent);
  auto choose = [&](Value isPlus, Value isMinus, Value plus, Value minus,
                    Value nan) {
    return b.select(isPlus, plus, b.select(isMinus, minus, nan));
  };
  multiply({size, b.i32(0), b.i32(bits.exponent - 1)}, {}, accumulators);
  return b.emitLoop(
      b.i32(0), b.i32(3), b.i32(1), accumulators,
      [&](Value kind, ValueRange carried) {
        auto isKind = [&](int64_t number) {
          return b.compare(arith::CmpIPredicate::eq, kind, b.i32(number));
        };
        Value isPlus = isKind(0), isMinus = isKind(1);
        Value all = b.i32(0xFFFF), minus = b.i32(bits.exponent | 0x8000);
        BitRange range{
            choose(isPlus, isMinus, all, all, size),
            choose(isPlus, isMinus, exponent, minus, b.add(exponent, 1)),
            choose(isPlus, isMinus, exponent, minus, size)};
        Value special = choose(
            isPlus, isMinus, b.real(sum, infinity), b.real(sum, -infinity),
            b.real(sum, std::numeric_limits<double>::quiet_NaN()));
        SmallVector<Value> visible(carried.size(), b.real(sum, 0.0)),
            next(carried);
        multiply(range, b.i32(bits.one), visible);
        // plus + minus and NaN are NaN, as in the sum of the values.
        for (auto [x, weight] : llvm::zip_equal(next, visible)) {
          Value isVisible = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                                                  weight, b.real(sum, 0.0));
          x = b.select(isVisible, b.addf(x, special), x);
        }
        return next;
      });
}

SmallVector<Value> AttentionKernel::addSpecialValues(const Tile &tile,
                                                     GetWeights getWeights,
                                                     ArrayRef<Value> before) {
  SmallVector<Value> accumulators(before);
  int64_t channels = tiles.getValueChannels(sizes), fragments = channels / 8;
  for (int64_t channel = 0; channel < channels; channel += 16) {
    SmallVector<int64_t> places;
    for (int64_t i = 0; i < tiles.rowTiles; ++i)
      for (int64_t at = 0; at < 8; ++at)
        places.push_back((i * fragments + channel / 8) * 4 + at);
    auto sums = llvm::map_to_vector(
        places, [&](int64_t at) { return accumulators[at]; });
    SmallVector<Value> results = addSpecialChannels(
        getWeights, [&](int64_t key) { return getValues(tile, key, channel); },
        sums);
    for (auto [at, result] : llvm::zip_equal(places, results))
      accumulators[at] = result;
  }
  return accumulators;
}
