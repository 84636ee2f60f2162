//===- DotWords.cpp - packing of bf16 pairs for dot products --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// VDPBF16PS multiplies two pairs of bf16 and adds both products to an f32. The
// two elements of a pair are in one 32-bit word. Any two elements along k may
// form a pair, as long as both matrices use the same pairs. Here k is divided
// into blocks of kDotBlock elements, and element j of a block's first half is
// paired with element j of its second half. Both halves are thus read in order
// while they are copied, whichever dimension is contiguous. The block size is
// constant, so the order of a sum does not depend on cache blocking.
//
//===----------------------------------------------------------------------===//

#include "ProductTiling.h"

#include "posenc/IR/CreateGeneric.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::posenc;

static constexpr int64_t kWordsPerBlock = kDotBlock / 2;

OpFoldResult mlir::posenc::getNumDotWords(OpBuilder &builder, Location loc,
                                          OpFoldResult depth,
                                          int64_t multiple) {
  AffineExpr d0 = builder.getAffineDimExpr(0);
  AffineExpr whole = d0.floorDiv(kDotBlock) * kWordsPerBlock;
  OpFoldResult words = affine::makeComposedFoldedAffineMin(
      builder, loc,
      AffineMap::get(1, 0, {whole + d0 % kDotBlock, whole + kWordsPerBlock},
                     builder.getContext()),
      {depth});
  return affine::makeComposedFoldedAffineApply(
      builder, loc, d0.ceilDiv(multiple) * multiple, {words});
}

namespace {
/// Copies one matrix as words of bf16 pairs.
class WordPacker {
public:
  WordPacker(OpBuilder &builder, Location loc, Value matrix, unsigned depthDim,
             OpFoldResult depth, unsigned wordsDim, int64_t multiple)
      : b(builder), loc(loc), matrix(matrix), depthDim(depthDim), depth(depth),
        wordsDim(wordsDim), multiple(multiple) {}

  Value pack(Value destination);

private:
  OpFoldResult attr(int64_t value) { return b.getIndexAttr(value); }
  OpFoldResult apply(AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, operands);
  }
  Value slice(Value tensor, unsigned dim, OpFoldResult first,
              OpFoldResult size);
  Value insert(Value words, Value destination, OpFoldResult firstWord);
  Value packWords(Value destination, OpFoldResult firstDepth,
                  OpFoldResult firstWord, OpFoldResult numWords, bool isWhole);
  Value packRemainder(Value destination, OpFoldResult firstDepth,
                      OpFoldResult firstWord, OpFoldResult remainder);

  OpBuilder &b;
  Location loc;
  Value matrix;
  unsigned depthDim;
  OpFoldResult depth;
  unsigned wordsDim;
  int64_t multiple;
};
} // namespace

/// Returns the indices [first, first + size) along k of the matrix, or of the
/// words of its rows in a destination, in which `dim` is that dimension.
Value WordPacker::slice(Value tensor, unsigned dim, OpFoldResult first,
                        OpFoldResult size) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, matrix);
  SmallVector<OpFoldResult> offsets(sizes.size(), attr(0));
  std::swap(sizes[depthDim], sizes[dim]);
  offsets[dim] = first;
  sizes[dim] = size;
  return extractSlice(b, loc, tensor, offsets, sizes);
}

/// Returns `destination` with `words` from the word `firstWord` on.
Value WordPacker::insert(Value words, Value destination,
                         OpFoldResult firstWord) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, words);
  SmallVector<OpFoldResult> offsets(sizes.size(), attr(0)),
      strides(sizes.size(), attr(1));
  offsets[wordsDim] = firstWord;
  return tensor::InsertSliceOp::create(b, loc, words, destination, offsets,
                                       sizes, strides);
}

/// Copies `numWords` words whose first elements begin at `firstDepth`. If
/// `isWhole`, their second elements are kWordsPerBlock further; otherwise they
/// are zero.
Value WordPacker::packWords(Value destination, OpFoldResult firstDepth,
                            OpFoldResult firstWord, OpFoldResult numWords,
                            bool isWhole) {
  AffineExpr d0 = b.getAffineDimExpr(0);
  SmallVector<Value> inputs{slice(matrix, depthDim, firstDepth, numWords)};
  if (isWhole)
    inputs.push_back(slice(matrix, depthDim,
                           apply(d0 + kWordsPerBlock, {firstDepth}), numWords));
  Value words = slice(destination, wordsDim, firstWord, numWords);
  int64_t rank = cast<RankedTensorType>(words.getType()).getRank();
  AffineMap identity = b.getMultiDimIdentityMap(rank), swapped = identity;
  if (depthDim != wordsDim) {
    auto order = llvm::to_vector(llvm::seq<unsigned>(0, rank));
    std::swap(order[depthDim], order[wordsDim]);
    swapped = AffineMap::getPermutationMap(order, b.getContext());
  }
  // Panels (rank 3) divide long rows of the matrix, so those are read in order;
  // otherwise the destination is written in order.
  bool isInOrder = rank > 2;
  SmallVector<AffineMap> maps(inputs.size(), isInOrder ? identity : swapped);
  maps.push_back(isInOrder ? swapped : identity);
  words = createParallelGeneric(
      b, loc, inputs, words, maps,
      [&](OpBuilder &nested, Location l, ValueRange args) -> Value {
        auto getBits = [&](Value element) -> Value {
          if (!element.getType().isBF16())
            element = arith::TruncFOp::create(nested, l, nested.getBF16Type(),
                                              element);
          Value bits =
              arith::BitcastOp::create(nested, l, nested.getI16Type(), element);
          return arith::ExtUIOp::create(nested, l, nested.getI32Type(), bits);
        };
        Value word = getBits(args[0]);
        if (isWhole) {
          Value half = arith::ConstantIntOp::create(nested, l, 16, 32);
          Value upper =
              arith::ShLIOp::create(nested, l, getBits(args[1]), half);
          word = arith::OrIOp::create(nested, l, word, upper);
        }
        return word;
      });
  return insert(words, destination, firstWord);
}

/// Copies the last, incomplete block, of `remainder` elements, and fills the
/// words after it with 0.
Value WordPacker::packRemainder(Value destination, OpFoldResult firstDepth,
                                OpFoldResult firstWord,
                                OpFoldResult remainder) {
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  OpFoldResult numWords = affine::makeComposedFoldedAffineMin(
      b, loc,
      AffineMap::get(1, 0, {d0, b.getAffineConstantExpr(kWordsPerBlock)},
                     b.getContext()),
      {remainder});
  destination = packWords(destination, firstDepth, firstWord, numWords,
                          /*isWhole=*/false);
  destination =
      packWords(destination, firstDepth, firstWord,
                apply(d0 - d1, {remainder, numWords}), /*isWhole=*/true);
  if (multiple == 1)
    return destination;
  OpFoldResult end = apply(d0 + d1, {firstWord, numWords});
  OpFoldResult allWords = getNumDotWords(b, loc, depth, multiple);
  Value rest =
      slice(destination, wordsDim, end, apply(d0 - d1, {allWords, end}));
  Value none = arith::ConstantIntOp::create(b, loc, 0, 32);
  rest = linalg::FillOp::create(b, loc, none, rest).getResult(0);
  return insert(rest, destination, end);
}

Value WordPacker::pack(Value destination) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  Value count = getValueOrCreateConstantIndexOp(
      b, loc, apply(d0.floorDiv(kDotBlock), {depth}));
  auto loop = scf::ForOp::create(
      b, loc, constant(0), count, constant(1), destination,
      [&](OpBuilder &, Location, Value block, ValueRange state) {
        Value next = packWords(state[0], apply(d0 * kDotBlock, {block}),
                               apply(d0 * kWordsPerBlock, {block}),
                               attr(kWordsPerBlock), /*isWhole=*/true);
        scf::YieldOp::create(b, loc, next);
      });
  OpFoldResult remainder = apply(d0 % kDotBlock, {depth});
  if (getConstantIntValue(remainder) == 0)
    return loop.getResult(0);
  OpFoldResult first = apply(d0 - d1, {depth, remainder});
  OpFoldResult word = apply(d0.floorDiv(2), {first});
  Value hasRemainder = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::ne,
      getValueOrCreateConstantIndexOp(b, loc, remainder), constant(0));
  auto branch = scf::IfOp::create(b, loc, destination.getType(), hasRemainder,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(
      b, loc, packRemainder(loop.getResult(0), first, word, remainder));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, loop.getResult(0));
  return branch.getResult(0);
}

Value mlir::posenc::packDotWords(OpBuilder &builder, Location loc, Value matrix,
                                 unsigned depthDim, OpFoldResult depth,
                                 Value destination, unsigned wordsDim,
                                 int64_t multiple) {
  return WordPacker(builder, loc, matrix, depthDim, depth, wordsDim, multiple)
      .pack(destination);
}
