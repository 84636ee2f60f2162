//===- IntegerRows.cpp - products of integers of 8 bits -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The signed integers of a row are multiplied with unsigned codes by the dot
// products of ByteDots.h. Codes of fewer than 8 bits become bytes by a shift
// and a mask of whole words, so each shift has the parts of the block whose
// codes are in the lowest bits of a byte then.
//
//===----------------------------------------------------------------------===//

#include "BlockCodes.h"
#include "Scalars.h"
#include "posenc/Numerics/ByteDots.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

/// Bits of a byte, and bytes of a word.
static constexpr unsigned kByteBits = 8, kBytes = 4;

/// Blocks whose numbers are all smaller count as zeros: the reciprocal of their
/// scale might be infinite.
static constexpr double kSmallest = 0x1p-100;

static constexpr double kLargestInteger = 127;

std::vector<Tensor> onnx::packWords(NodeImporter &node, Tensor &rows,
                                    const BlockCodes &matrix) {
  int64_t shifts = kByteBits / matrix.bits,
          words = matrix.blockSize / (kBytes * shifts);
  SmallVector<Size> shape(rows.shape), quarter(rows.shape);
  quarter.back() = matrix.blockSize / kBytes;
  std::vector<Tensor> quarters;
  for (int64_t byte = 0; byte < kBytes; ++byte)
    quarters.push_back(
        slice(node, rows, {0, 0, byte * shifts * words}, quarter));
  SmallVector<Tensor *> operands;
  for (Tensor &part : quarters)
    operands.push_back(&part);
  Tensor all = mapElementsTo(
      node, operands, quarter, node.getI32Type(),
      [](Scalars &s, ValueRange args) -> Value {
        Value word;
        for (auto [byte, arg] : llvm::enumerate(args)) {
          Value bits = arith::ExtUIOp::create(s, s.getI32Type(), arg);
          if (byte)
            bits = arith::ShLIOp::create(s, bits, s.get(byte * kByteBits));
          word = word ? arith::OrIOp::create(s, word, bits) : bits;
        }
        return word;
      });
  return interleaveParts(node, all, shifts);
}

IntegerRows onnx::quantizeRows(NodeImporter &node, Tensor &rows,
                               const BlockCodes &matrix) {
  Type f32 = node.getF32Type(), i32 = node.getI32Type();
  auto getAbs = [](Scalars &s, ValueRange args) -> Value {
    return math::AbsFOp::create(s, args[0]);
  };
  IntegerRows result;
  Tensor largest = reduce(node, rows, {2}, Combiner::Max, f32, getAbs);
  Tensor *operand = &largest;
  result.scales = mapElementsTo(
      node, operand, largest.shape, f32, [](Scalars &s, ValueRange args) {
        // NaN is not small. The difference makes NaN of infinity, whose integer
        // is none.
        Value scale = s.add(s.div(args[0], s.get(kLargestInteger)),
                            s.sub(args[0], args[0]));
        return s.select(s.less(args[0], s.get(kSmallest)), s.get(0), scale);
      });
  FailureOr<Tensor> column =
      reshape(node, largest, {largest.shape[0], largest.shape[1], Size(1)});
  Tensor *operands[] = {&rows, &*column};
  Tensor integers = mapElementsTo(
      node, operands, rows.shape, node.getI8Type(),
      [](Scalars &i8, ValueRange args) -> Value {
        Scalars s(i8, i8.getF32Type());
        Value factor = s.select(s.less(args[1], s.get(kSmallest)), s.get(0),
                                s.div(s.get(kLargestInteger), args[1]));
        Value x = math::RoundEvenOp::create(s, s.mul(args[0], factor));
        // These turn NaN into a number, whose scale is NaN.
        x = arith::MaxNumFOp::create(s, x, s.get(-kLargestInteger));
        x = arith::MinNumFOp::create(s, x, s.get(kLargestInteger));
        return arith::FPToSIOp::create(s, s.getI8Type(), x);
      });
  result.sums = reduce(node, integers, {2}, Combiner::Add, i32);
  result.words = packWords(node, integers, matrix);
  return result;
}

Tensor onnx::sumIntegers(NodeImporter &node, MutableArrayRef<Tensor> words,
                         Tensor &codes, unsigned bits) {
  uint32_t mask = ((1u << bits) - 1) * 0x01010101u;
  return sumOverBlocks(
      node, words, codes, /*zeroPoints=*/nullptr, node.getI32Type(),
      [&](Scalars &s, ValueRange args) {
        Value sum = args.back(), all = args.drop_back().back();
        for (auto [shift, word] : llvm::enumerate(args.drop_back(2))) {
          Value code = all;
          if (shift)
            code = arith::ShRUIOp::create(s, code, s.get(shift * bits));
          if (bits < kByteBits)
            code =
                arith::AndIOp::create(s, code,
                                      arith::ConstantIntOp::create(
                                          s, static_cast<int32_t>(mask), 32));
          sum = emitByteDot(s, s.getLoc(), {word, code, sum});
        }
        return sum;
      });
}
