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
// Rows that see them are found by products of the weights with matrices that are 1
// at such values, and get the sum that the values would give. The other rows have
// the bits that they have without such values.
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

/// Keeps the assembler from loading words of the next matrices early, which would
/// take registers that other code of the kernel needs.
static void limitRegisters(ThreadBuilder &b) {
  NVVM::SyncWarpOp::create(b, b.i32(-1));
}

/// Emits a word with the sign bits of the halves that are infinite or NaN: adding
/// the lowest bit of an exponent of ones carries into the sign.
static Value findSpecials(ThreadBuilder &b, const PackedBits &bits,
                          Value word) {
  Value exponents =
      arith::AndIOp::create(b, word, b.i32(repeat(bits.exponent)));
  Value carried = b.add(exponents, repeat(bits.lowest));
  return arith::AndIOp::create(b, carried,
                               b.i32(static_cast<int32_t>(repeat(0x8000))));
}

/// Emits an i1, equal in all lanes: whether the warp's part of the tile has
/// infinite values or NaN.
Value AttentionKernel::hasSpecialValues(const Tile &tile) {
  PackedBits bits(element);
  Value all = b.i32(0);
  for (int64_t key = 0; key < tiles.keys; key += 16) {
    limitRegisters(b);
    for (int64_t channel = 0; channel < tiles.getValueChannels(sizes);
         channel += 16)
      for (Value word : b.loadMatrices(getValues(tile, key, channel), true))
        all = arith::OrIOp::create(b, all, findSpecials(b, bits, word));
  }
  return b.any(b.compare(arith::CmpIPredicate::ne, all, b.i32(0)));
}

/// The values that a word has in place of others.
enum class Part { Finite, Plus, Minus, NaN };

/// Emits a word with its finite halves, or with 1 where a half is plus infinity,
/// minus infinity or NaN; other halves are 0.
static Value takePart(ThreadBuilder &b, const PackedBits &bits, Value word,
                      Part part) {
  Value result = b.i32(0);
  for (int64_t shift : {0, 16}) {
    Value half = arith::ShRUIOp::create(b, word, b.i32(shift));
    half = arith::AndIOp::create(b, half, b.i32(0xFFFF));
    Value size = arith::AndIOp::create(b, half, b.i32(0x7FFF));
    Value infinity = b.i32(bits.exponent), one = b.i32(bits.one), taken;
    switch (part) {
    case Part::Finite:
      taken = b.compare(arith::CmpIPredicate::ult, size, infinity);
      one = half;
      break;
    case Part::Plus:
      taken = b.compare(arith::CmpIPredicate::eq, half, infinity);
      break;
    case Part::Minus:
      taken = b.compare(arith::CmpIPredicate::eq, half,
                        b.i32(bits.exponent | 0x8000));
      break;
    case Part::NaN:
      taken = b.compare(arith::CmpIPredicate::ugt, size, infinity);
      break;
    }
    Value kept = b.select(taken, one, b.i32(0));
    result = arith::OrIOp::create(
        b, result, arith::ShLIOp::create(b, kept, b.i32(shift)));
  }
  return result;
}

/// Emits the accumulators after a tile that has infinite values or NaN. One part
/// of the values after the other, as registers are few.
SmallVector<Value> AttentionKernel::addSpecialValues(const Tile &tile,
                                                     GetWeights getWeights,
                                                     ArrayRef<Value> before) {
  PackedBits bits(element);
  SmallVector<Value> accumulators(before);
  int64_t channels = tiles.getValueChannels(sizes), fragments = channels / 8;
  Value zero = b.real(sum, 0.0);
  // Adds the products of one part with 16 channels to `sums`, from `at` on.
  auto multiply = [&](Part part, int64_t channel, int64_t at,
                      MutableArrayRef<Value> sums) {
    for (int64_t key = 0; key < tiles.keys; key += 16) {
      limitRegisters(b);
      SmallVector<Value> words =
          b.loadMatrices(getValues(tile, key, channel), true);
      for (Value &word : words)
        word = takePart(b, bits, word, part);
      multiplyValues(getWeights(key), words, at, sums);
    }
  };
  double infinity = std::numeric_limits<double>::infinity();
  std::pair<Part, double> specials[] = {
      {Part::Plus, infinity},
      {Part::Minus, -infinity},
      {Part::NaN, std::numeric_limits<double>::quiet_NaN()}};
  for (int64_t channel = 0; channel < channels; channel += 16) {
    multiply(Part::Finite, channel, channel, accumulators);
    for (auto [part, value] : specials) {
      SmallVector<Value> seen(tiles.rowTiles * 8, zero);
      multiply(part, channel, 0, seen);
      // plus + minus and NaN are NaN, as in the sum of the values.
      for (int64_t i = 0; i < tiles.rowTiles; ++i)
        for (int64_t at = 0; at < 8; ++at) {
          Value &x = accumulators[(i * fragments + channel / 8) * 4 + at];
          Value isSeen = arith::CmpFOp::create(
              b, arith::CmpFPredicate::OGT, seen[i * 8 + at], zero);
          x = b.select(isSeen, b.addf(x, b.real(sum, value)), x);
        }
    }
  }
  return accumulators;
}
