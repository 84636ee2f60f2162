//===- QueryTemperature.cpp - factors of queries by their position --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ministral 3, Mistral 4, Llama 4 and Qwen 1 multiply queries, after their
// rotation, by a factor that grows with the position. A factor of all channels
// commutes with the rotation, so queries are multiplied before the attention,
// which rotates them.
//
//===----------------------------------------------------------------------===//

#include "ModelModule.h"

#include "posenc/IR/CreateGeneric.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::frontend::QueryTemperature;

/// Extends an index of 32 bits to i64.
static Value extend(OpBuilder &builder, Location loc, Value index) {
  if (index.getType().isInteger(64))
    return index;
  return arith::ExtSIOp::create(builder, loc, builder.getI64Type(), index);
}

/// Emits the factor at a position, in f32 or f64. Positions below 0 count as 0.
static Value createFactor(OpBuilder &builder, Location loc, Value position,
                          const QueryTemperature &temperature, Type type) {
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  };
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getFloatAttr(type, value));
  };
  position = arith::MaxSIOp::create(builder, loc,
                                    extend(builder, loc, position), integer(0));
  if (temperature.offset != 0)
    position = arith::AddIOp::create(builder, loc, position,
                                     integer(temperature.offset));
  if (temperature.isLogN) {
    Value log = math::LogOp::create(
        builder, loc, arith::SIToFPOp::create(builder, loc, type, position));
    double unit = 1 / std::log(double(temperature.length));
    Value factor = arith::MulFOp::create(builder, loc, log, number(unit));
    return arith::MaximumFOp::create(builder, loc, factor, number(1));
  }
  Value times = arith::DivUIOp::create(builder, loc, position,
                                       integer(temperature.length));
  Value grown = arith::AddFOp::create(
      builder, loc, arith::SIToFPOp::create(builder, loc, type, times),
      number(1));
  Value log = math::LogOp::create(builder, loc, grown);
  Value product =
      arith::MulFOp::create(builder, loc, log, number(temperature.beta));
  return arith::AddFOp::create(builder, loc, product, number(1));
}

/// Emits the position of each query of a call without positions: the last ones
/// before `lengths[b]`.
static Value createPositions(OpBuilder &builder, Location loc, Value query,
                             Value lengths) {
  auto type = cast<RankedTensorType>(query.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, query);
  sizes.resize(2);
  Value init =
      tensor::EmptyOp::create(builder, loc, sizes, builder.getI64Type());
  MLIRContext *context = builder.getContext();
  AffineMap all = builder.getMultiDimIdentityMap(2);
  return createParallelGeneric(
      builder, loc, lengths, init,
      {AffineMap::get(2, 0, builder.getAffineDimExpr(0), context), all},
      [&](OpBuilder &b, Location l, ValueRange args) -> Value {
        Value token = arith::IndexCastOp::create(
            b, l, b.getI64Type(), linalg::IndexOp::create(b, l, 1));
        Value first = arith::SubIOp::create(
            b, l, extend(b, l, args[0]),
            arith::ConstantIntOp::create(b, l, type.getDimSize(1), 64));
        return arith::AddIOp::create(b, l, first, token);
      });
}

Value ModelModule::scaleQueries(func::FuncOp function, Value query) {
  const QueryTemperature &temperature = *config.attention->temperature;
  Value positions = getArgument(function, "positions");
  if (!positions)
    positions =
        createPositions(builder, loc, query, getArgument(function, "lengths"));
  auto type = cast<RankedTensorType>(query.getType());
  Type element = type.getElementType();
  Type compute = element.isF64() ? element : Type(builder.getF32Type());

  // One factor per token; the logarithm is not computed for each channel.
  int64_t tokens = cast<RankedTensorType>(positions.getType()).getRank();
  Value factors = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, positions), compute);
  factors = createParallelGeneric(
      builder, loc, positions, factors, {},
      [&](OpBuilder &b, Location l, ValueRange args) -> Value {
        return createFactor(b, l, args[0], temperature, compute);
      });

  int64_t rank = type.getRank();
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  Value init =
      createDestination(type, createSizes(query, type.getNumDynamicDims()));
  return createParallelGeneric(
      builder, loc, {query, factors}, init,
      {all, all.getMajorSubMap(tokens), all},
      [&](OpBuilder &b, Location l, ValueRange args) -> Value {
        Value x = args[0];
        if (x.getType() != compute)
          x = arith::ExtFOp::create(b, l, compute, x);
        x = arith::MulFOp::create(b, l, x, args[1]);
        if (element != compute)
          x = arith::TruncFOp::create(b, l, element, x);
        return x;
      });
}

std::string ModelModule::describeTemperature(const Layer &layer) {
  if (!config.attention || !config.attention->temperature ||
      !config.attention->temperature->isIn(layer))
    return "";
  const QueryTemperature &temperature = *config.attention->temperature;
  if (temperature.isLogN)
    return llvm::formatv(" Queries at position p are multiplied by max(1, ln(p "
                         "+ {0}) / ln({1})).",
                         temperature.offset, temperature.length)
        .str();
  std::string position =
      temperature.offset == 0
          ? "p"
          : llvm::formatv("(p + {0})", temperature.offset).str();
  return llvm::formatv(" Queries at position p are multiplied by 1 + {0} ln(1 "
                       "+ floor({1} / {2})).",
                       spell(temperature.beta), position, temperature.length)
      .str();
}
