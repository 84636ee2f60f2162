//===- RopeLength.cpp - frequencies that depend on the length -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The frequencies of the rope types dynamic and longrope depend on the length
// of the sequences. Unless it is given, functions compute it in each call as
// one more than the largest position, as transformers does.
//
//===----------------------------------------------------------------------===//

#include "ModelModule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::posenc;

static constexpr StringLiteral kLengthName = "rope_length";

/// Whether the frequencies, which are null for layers that do not rotate,
/// depend on the length.
static bool dependOnLength(FrequenciesAttr frequencies) {
  return frequencies && frequencies.dependsOnLength();
}

void ModelModule::addRopeLength(SmallVectorImpl<NamedType> &arguments,
                                FrequenciesAttr frequencies) {
  if (options.ropeLengthInput && dependOnLength(frequencies))
    arguments.push_back({kLengthName.str(), builder.getI64Type()});
}

/// Emits the largest of `elements + offset`, but at least 0, as a tensor of i64
/// of rank 0.
static Value createMax(OpBuilder &builder, Location loc, Value elements,
                       int64_t offset) {
  auto type = cast<RankedTensorType>(elements.getType());
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 64);
  Value init = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{},
                                       builder.getI64Type());
  init = linalg::FillOp::create(builder, loc, zero, init).getResult(0);
  return linalg::ReduceOp::create(
             builder, loc, elements, init,
             llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())),
             [&](OpBuilder &b, Location l, ValueRange args) {
               Value length = args[0];
               if (!length.getType().isInteger(64))
                 length = arith::ExtSIOp::create(b, l, b.getI64Type(), length);
               if (offset != 0)
                 length = arith::AddIOp::create(
                     b, l, length,
                     arith::ConstantIntOp::create(b, l, offset, 64));
               linalg::YieldOp::create(
                   b, l,
                   arith::MaxSIOp::create(b, l, length, args[1]).getResult());
             })
      .getResult(0);
}

SmallVector<Value, 2> ModelModule::createTurns(func::FuncOp function,
                                               FrequenciesAttr frequencies,
                                               StringRef source) {
  if (!dependOnLength(frequencies))
    return {};
  Value length = getArgument(function, kLengthName);
  if (!length)
    length = createMax(builder, loc, getArgument(function, source),
                       source == "positions" ? 1 : 0);
  auto op =
      TurnsOp::create(builder, loc, length, /*values=*/Value(), frequencies);
  return {op.getHigh(), op.getLow()};
}

std::string ModelModule::describeLength(FrequenciesAttr frequencies,
                                        StringRef source) {
  if (!dependOnLength(frequencies))
    return "";
  if (options.ropeLengthInput)
    return " The frequencies are those of sequences of the length rope_length.";
  if (source == "positions")
    return " The frequencies depend on the length of the sequences, which is "
           "one more than the largest position in the call.";
  return " The frequencies depend on the length of the sequences, which is the "
         "largest of lengths in the call.";
}
