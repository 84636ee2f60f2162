//===- Arithmetic.cpp - scalars and reductions of both imports ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

Value mlir::posenc::createGeneric(ImplicitLocOpBuilder &b, ValueRange inputs,
                                  Value init, ArrayRef<AffineMap> maps,
                                  ArrayRef<utils::IteratorType> loops,
                                  ElementBody body) {
  int64_t rank = cast<RankedTensorType>(init.getType()).getRank();
  SmallVector<AffineMap> allMaps(maps);
  SmallVector<utils::IteratorType> allLoops(loops);
  if (maps.empty())
    allMaps.assign(inputs.size() + 1, b.getMultiDimIdentityMap(rank));
  if (loops.empty())
    allLoops.assign(rank, utils::IteratorType::parallel);
  auto create = [&](OpBuilder &nested, Location loc, ValueRange args) {
    ImplicitLocOpBuilder inside(loc, nested);
    linalg::YieldOp::create(inside, body(inside, args));
  };
  return linalg::GenericOp::create(b, init.getType(), inputs, init, allMaps,
                                   allLoops, create)
      .getResult(0);
}

Value mlir::posenc::combine(ImplicitLocOpBuilder &b, Combiner combiner, Value x,
                            Value y) {
  bool isBool = x.getType().isInteger(1);
  switch (combiner) {
  case Combiner::Add:
    return createByType<arith::AddFOp, arith::AddIOp>(b, x, y);
  case Combiner::Mul:
    return createByType<arith::MulFOp, arith::MulIOp>(b, x, y);
  case Combiner::Max:
    if (!isBool)
      return createByType<arith::MaximumFOp, arith::MaxSIOp>(b, x, y);
    [[fallthrough]];
  case Combiner::Or:
    return arith::OrIOp::create(b, x, y);
  case Combiner::Min:
    if (!isBool)
      return createByType<arith::MinimumFOp, arith::MinSIOp>(b, x, y);
    [[fallthrough]];
  case Combiner::And:
    return arith::AndIOp::create(b, x, y);
  }
  llvm_unreachable("unknown combiner");
}

TypedAttr mlir::posenc::getNeutral(Combiner combiner, Type type) {
  Builder builder(type.getContext());
  if (isa<FloatType>(type)) {
    double infinity = std::numeric_limits<double>::infinity();
    return builder.getFloatAttr(type, combiner == Combiner::Max   ? -infinity
                                      : combiner == Combiner::Min ? infinity
                                      : combiner == Combiner::Mul ? 1
                                                                  : 0);
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  APInt value(bits, 0);
  if (combiner == Combiner::Max && bits > 1)
    value = APInt::getSignedMinValue(bits);
  if (combiner == Combiner::Min)
    value = bits > 1 ? APInt::getSignedMaxValue(bits) : APInt(bits, 1);
  if (combiner == Combiner::Mul)
    value = APInt(bits, 1);
  if (combiner == Combiner::And)
    value = APInt::getAllOnes(bits);
  return builder.getIntegerAttr(type, value);
}

ReductionLoops::ReductionLoops(MLIRContext *context, ArrayRef<Size> sizes,
                               ArrayRef<int64_t> dims) {
  all = AffineMap::getMultiDimIdentityMap(sizes.size(), context);
  llvm::SmallBitVector reduced(sizes.size());
  for (int64_t dim : dims)
    reduced.set(dim);
  kept = all.dropResults(reduced);
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    kinds.push_back(reduced.test(dim) ? utils::IteratorType::reduction
                                      : utils::IteratorType::parallel);
    if (!reduced.test(dim))
      shape.push_back(size);
  }
}

Value mlir::posenc::wrapIndex(ImplicitLocOpBuilder &b, Value index,
                              Value size) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value isNegative =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, zero);
  Value wrapped = arith::AddIOp::create(b, index, size);
  return arith::SelectOp::create(b, isNegative, wrapped, index);
}
