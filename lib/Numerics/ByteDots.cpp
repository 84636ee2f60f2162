//===- ByteDots.cpp - dot products of four bytes --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/ByteDots.h"

#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::posenc;

static constexpr StringLiteral kVnniDot = "llvm.x86.avx512.vpdpbusd.512";
static constexpr int64_t kVnniLanes = 16;
static constexpr unsigned kBytes = 4, kByteBits = 8, kWordBits = 32;

Value mlir::posenc::emitByteDot(OpBuilder &builder, Location loc,
                                const ByteDot &dot) {
  ElementwiseBuilder b(builder, loc, dot.sum);
  Value sum = dot.sum;
  for (unsigned i = 0; i < kBytes; ++i) {
    unsigned first = i * kByteBits, last = kWordBits - kByteBits;
    Value x = dot.signedBytes, y = dot.unsignedBytes;
    if (first != last)
      x = b.shl(x, b.i32(last - first));
    x = b.shrs(x, b.i32(last));
    if (first != 0)
      y = b.shru(y, b.i32(first));
    if (first != last)
      y = b.andi(y, b.i32(0xff));
    sum = b.addi(sum, b.muli(x, y));
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

static bool isConstant(Value value, uint64_t expected) {
  APInt constant;
  return matchPattern(value, m_ConstantInt(&constant)) &&
         constant.getZExtValue() == expected;
}

/// Returns the operand of a shift by that many bits, or null.
template <typename Op> static Value matchShift(Value value, unsigned bits) {
  auto op = value.getDefiningOp<Op>();
  return op && isConstant(op.getRhs(), bits) ? op.getLhs() : Value();
}

/// Returns the word whose byte `i`, signed, is `value`; null if there is none.
static Value matchSigned(Value value, unsigned i) {
  unsigned last = kWordBits - kByteBits;
  Value word = matchShift<arith::ShRSIOp>(value, last);
  return word && i + 1 < kBytes
             ? matchShift<arith::ShLIOp>(word, last - i * kByteBits)
             : word;
}

/// Whether `value` is the lowest byte of `word`. That of a word with a mask may
/// have become one mask.
static bool isLowestByte(Value value, Value word) {
  auto op = value.getDefiningOp<arith::AndIOp>();
  if (!op)
    return false;
  if (op.getLhs() == word && isConstant(op.getRhs(), 0xff))
    return true;
  auto masked = word.getDefiningOp<arith::AndIOp>();
  APInt mask;
  return masked && matchPattern(masked.getRhs(), m_ConstantInt(&mask)) &&
         op.getLhs() == masked.getLhs() &&
         isConstant(op.getRhs(), mask.getZExtValue() & 0xff);
}

/// Whether `value` is byte `i` of `word`.
static bool isUnsignedByte(Value value, Value word, unsigned i) {
  if (i == 0)
    return isLowestByte(value, word);
  if (i + 1 == kBytes)
    return matchShift<arith::ShRUIOp>(value, i * kByteBits) == word;
  auto op = value.getDefiningOp<arith::AndIOp>();
  return op && isConstant(op.getRhs(), 0xff) &&
         matchShift<arith::ShRUIOp>(op.getLhs(), i * kByteBits) == word;
}

std::optional<ByteDot> mlir::posenc::matchByteDot(Value value) {
  ByteDot dot{{}, {}, value};
  for (unsigned i = kBytes; i-- > 0;) {
    auto add = dot.sum.getDefiningOp<arith::AddIOp>();
    if (!add)
      return std::nullopt;
    auto product = add.getRhs().getDefiningOp<arith::MulIOp>();
    if (!product)
      return std::nullopt;
    Value x = matchSigned(product.getLhs(), i), y = product.getRhs();
    if (i + 1 == kBytes) {
      dot.signedBytes = x;
      dot.unsignedBytes = matchShift<arith::ShRUIOp>(y, kWordBits - kByteBits);
    }
    if (!x || x != dot.signedBytes || !dot.unsignedBytes ||
        !isUnsignedByte(y, dot.unsignedBytes, i))
      return std::nullopt;
    dot.sum = add.getLhs();
  }
  return dot;
}

//===----------------------------------------------------------------------===//
// VPDPBUSD
//===----------------------------------------------------------------------===//

/// Emits a dot product of vectors of 16 words.
static Value emitInstruction(OpBuilder &builder, Location loc,
                             const ByteDot &dot) {
  auto toBytes = [&](Value words) -> Value {
    return vector::BitCastOp::create(
        builder, loc,
        VectorType::get({kBytes * kVnniLanes}, builder.getI8Type()), words);
  };
  return LLVM::CallIntrinsicOp::create(
             builder, loc, dot.sum.getType(), builder.getStringAttr(kVnniDot),
             ValueRange{dot.sum, toBytes(dot.unsignedBytes),
                        toBytes(dot.signedBytes)})
      .getResult(0);
}

Value mlir::posenc::emitVnniDot(OpBuilder &builder, Location loc,
                                const ByteDot &dot) {
  auto type = cast<VectorType>(dot.sum.getType());
  if (type.getShape() == ArrayRef<int64_t>{kVnniLanes})
    return emitInstruction(builder, loc, dot);
  SmallVector<int64_t> part(type.getRank(), 1), strides(type.getRank(), 1);
  part.back() = kVnniLanes;
  Value result = ub::PoisonOp::create(builder, loc, type);
  for (SmallVector<int64_t> offsets :
       StaticTileOffsetRange(type.getShape(), part)) {
    auto slice = [&](Value vector) -> Value {
      Value row = vector;
      if (type.getRank() > 1)
        row = vector::ExtractOp::create(builder, loc, vector,
                                        ArrayRef(offsets).drop_back());
      return vector::ExtractStridedSliceOp::create(
          builder, loc, row, offsets.back(), kVnniLanes, 1);
    };
    Value sum = emitInstruction(
        builder, loc,
        {slice(dot.signedBytes), slice(dot.unsignedBytes), slice(dot.sum)});
    result = vector::InsertStridedSliceOp::create(
        builder, loc, sum, result, offsets, ArrayRef<int64_t>{1});
  }
  return result;
}

Value mlir::posenc::expandVnniDot(OpBuilder &builder, Operation *op) {
  auto call = dyn_cast<LLVM::CallIntrinsicOp>(op);
  if (!call || call.getIntrin() != kVnniDot)
    return {};
  Location loc = op->getLoc();
  Value sum = call.getArgs()[0];
  auto toWords = [&](Value bytes) {
    return builder.createOrFold<vector::BitCastOp>(loc, sum.getType(), bytes);
  };
  return emitByteDot(
      builder, loc,
      {toWords(call.getArgs()[2]), toWords(call.getArgs()[1]), sum});
}
