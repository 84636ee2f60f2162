//===- Streaming.cpp - rows that go through memory --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Streaming.h"

#include "VectorLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::posenc;

Value mlir::posenc::loadRow(OpBuilder &builder, Location loc, Value memref,
                            ValueRange indices, int64_t length,
                            const VectorTarget &target, Access access) {
  if (access != Access::Cached && target.prefetchDistance > 0) {
    // In whole rows, so that a window of them asks for what it will touch.
    // Beyond the end there is nothing to lose: a prefetch never faults.
    auto type = cast<MemRefType>(memref.getType());
    int64_t elements = target.prefetchDistance / getElementBytes(memref);
    bool hasRows = type.getRank() > 1 && !type.isDynamicDim(type.getRank() - 1);
    if (hasRows)
      elements = std::max<int64_t>(elements / type.getShape().back(), 1);
    SmallVector<Value> ahead(indices);
    Value &index = ahead[type.getRank() - (hasRows ? 2 : 1)];
    index = arith::AddIOp::create(
        builder, loc, index,
        arith::ConstantIndexOp::create(builder, loc, elements));
    memref::PrefetchOp::create(builder, loc, memref, ahead,
                               /*isWrite=*/false, /*localityHint=*/3,
                               /*isDataCache=*/true);
  }
  Type element = getElementTypeOrSelf(memref.getType());
  return vector::LoadOp::create(
      builder, loc, VectorType::get({length}, element), memref, indices);
}

void mlir::posenc::storeRow(OpBuilder &builder, Location loc, Value value,
                            Value memref, ValueRange indices,
                            const VectorTarget &target, Access access) {
  auto store = vector::StoreOp::create(builder, loc, value, memref, indices);
  if (access != Access::Streamed)
    return;
  auto type = cast<VectorType>(value.getType());
  store.setNontemporal(true);
  store.setAlignment(std::min<int64_t>(
      type.getNumElements() * getElementBytes(memref), target.vectorBytes));
}

static Value getAddress(OpBuilder &builder, Location loc, Value memref) {
  return memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref);
}

/// Whether two tensors have buffers of their own.
static Value areDifferentBuffers(OpBuilder &builder, Location loc, Value a,
                                 Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                               getAddress(builder, loc, a),
                               getAddress(builder, loc, b));
}

/// The tensor that a tile is a part of.
static Value getWhole(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>()) {
    if (!isa<MemRefType>(view.getViewSource().getType()))
      break;
    memref = view.getViewSource();
  }
  return memref;
}

static Value getBytes(OpBuilder &builder, Location loc, Value memref) {
  Value bytes =
      arith::ConstantIndexOp::create(builder, loc, getElementBytes(memref));
  for (int64_t dim = 0, e = cast<MemRefType>(memref.getType()).getRank();
       dim < e; ++dim)
    bytes = builder.createOrFold<arith::MulIOp>(
        loc, bytes, getDimSize(builder, loc, memref, dim));
  return bytes;
}

/// Whether every row of a tensor starts at a multiple of `alignment` bytes.
static Value areRowsAligned(OpBuilder &builder, Location loc, Value memref,
                            int64_t alignment) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, memref);
  Value bits = getAddress(builder, loc, memref);
  Value elementBytes = constant(getElementBytes(memref));
  for (Value stride : metadata.getStrides().drop_back())
    bits = arith::OrIOp::create(
        builder, loc, bits,
        arith::MulIOp::create(builder, loc, stride, elementBytes));
  Value rest =
      arith::AndIOp::create(builder, loc, bits, constant(alignment - 1));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rest,
                               constant(0));
}

void mlir::posenc::chooseAccess(
    OpBuilder &builder, Location loc, ValueRange inputs, ValueRange outputs,
    const VectorTarget &target, bool mayStream,
    function_ref<void(OpBuilder &, Location, Access access)> body) {
  // Tables are computed from nothing that is as large.
  uint64_t streamFrom =
      inputs.empty() ? target.streamTablesFrom : target.streamFrom;
  Value bytes;
  for (Value output : outputs) {
    Value mine = getBytes(builder, loc, getWhole(output));
    bytes =
        bytes ? builder.createOrFold<arith::AddIOp>(loc, bytes, mine) : mine;
  }
  auto reaches = [&](OpBuilder &b, Location l, int64_t limit) -> Value {
    return arith::CmpIOp::create(b, l, arith::CmpIPredicate::uge, bytes,
                                 arith::ConstantIndexOp::create(b, l, limit));
  };
  auto emit = [&](OpBuilder &b, Location l, Access access) {
    body(b, l, access);
    scf::YieldOp::create(b, l);
  };
  auto emitStreamed = [&](OpBuilder &b, Location l, Access otherwise) {
    Value fits = reaches(b, l, streamFrom);
    auto require = [&](Value condition) {
      fits = arith::AndIOp::create(b, l, fits, condition);
    };
    for (Value output : outputs)
      require(areRowsAligned(b, l, getWhole(output), target.vectorBytes));
    for (auto [input, output] : llvm::zip(inputs, outputs))
      require(areDifferentBuffers(b, l, getWhole(input), getWhole(output)));
    scf::IfOp::create(
        b, l, fits,
        [&](OpBuilder &b2, Location l2) { emit(b2, l2, Access::Streamed); },
        [&](OpBuilder &b2, Location l2) { emit(b2, l2, otherwise); });
  };
  mayStream &= streamFrom > 0 && llvm::none_of(outputs, [&](Value output) {
                 return llvm::is_contained(inputs, output);
               });
  if (inputs.empty()) {
    if (mayStream)
      return emitStreamed(builder, loc, Access::Cached);
    return body(builder, loc, Access::Cached);
  }
  if (target.prefetchDistance == 0)
    return body(builder, loc, Access::Cached);
  scf::IfOp::create(
      builder, loc, reaches(builder, loc, target.prefetchFrom),
      [&](OpBuilder &b, Location l) {
        if (mayStream)
          emitStreamed(b, l, Access::Prefetched);
        else
          body(b, l, Access::Prefetched);
        scf::YieldOp::create(b, l);
      },
      [&](OpBuilder &b, Location l) { emit(b, l, Access::Cached); });
}
