//===- Streaming.cpp - prefetches and streaming stores of rows ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Streaming.h"

#include "CPU/VectorLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::posenc;

RowPolicy RowPolicy::get(const Tuning &tuning, Access access, bool isNarrow) {
  auto make = [](uint64_t streams, uint64_t distance, uint64_t ahead) {
    return RowPolicy{streams, distance, distance > 0 ? ahead : 0};
  };
  switch (access) {
  case Access::Cached:
    return {};
  case Access::InOrder:
    return make(tuning.streamsInOrder, tuning.prefetchInOrder,
                tuning.streamAhead);
  case Access::Streamed:
    if (isNarrow)
      return make(tuning.narrowStreams, tuning.prefetchDistance,
                  tuning.narrowAhead);
    break;
  case Access::Prefetched:
    break;
  }
  return make(tuning.streams, tuning.prefetchDistance, tuning.streamAhead);
}

Value mlir::posenc::getRoot(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>()) {
    if (!isa<MemRefType>(view.getViewSource().getType()))
      break;
    memref = view.getViewSource();
  }
  return memref;
}

bool mlir::posenc::mayBeUncached(Value memref) {
  Value root = getRoot(memref);
  if (root.getDefiningOp<memref::GetGlobalOp>())
    return true;
  auto argument = dyn_cast<BlockArgument>(root);
  return argument &&
         isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
}

void mlir::posenc::prefetchRow(OpBuilder &builder, Location loc, Value memref,
                               ValueRange indices, const VectorTarget &target) {
  if (target.prefetchDistance == 0 || !mayBeUncached(memref))
    return;
  // The distance is a whole number of rows, so that a window of a row
  // prefetches the window of a later row. Prefetches beyond the end are
  // harmless, as they never fault.
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
                             /*isWrite=*/false, target.getLocalityHint(),
                             /*isDataCache=*/true);
}

void mlir::posenc::streamTo(vector::StoreOp store, const VectorTarget &target) {
  auto type = cast<VectorType>(store.getValueToStore().getType());
  store.setNontemporal(true);
  store.setAlignment(std::min<int64_t>(type.getNumElements() *
                                           getElementBytes(store.getBase()),
                                       target.vectorBytes));
}

void mlir::posenc::storeRow(OpBuilder &builder, Location loc, Value value,
                            Value memref, ValueRange indices,
                            const VectorTarget &target, Access access) {
  auto store = vector::StoreOp::create(builder, loc, value, memref, indices);
  if (access == Access::Streamed)
    streamTo(store, target);
}

static Value getAddress(OpBuilder &builder, Location loc, Value memref) {
  return memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref);
}

/// Emits an i1: whether two memrefs have different base addresses.
static Value areDifferentBuffers(OpBuilder &builder, Location loc, Value a,
                                 Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                               getAddress(builder, loc, a),
                               getAddress(builder, loc, b));
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

/// Emits an i1: whether every row of a memref starts at a multiple of
/// `alignment` bytes.
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

/// Emits an i1: whether a memref is contiguous from dimension `from` on.
static Value isContiguous(OpBuilder &builder, Location loc, Value memref,
                          int64_t from) {
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, memref);
  Value result = arith::ConstantIntOp::create(builder, loc, 1, 1);
  Value expected;
  for (int64_t dim = metadata.getStrides().size() - 2; dim >= from; --dim) {
    Value size = getDimSize(builder, loc, memref, dim + 1);
    expected = expected
                   ? builder.createOrFold<arith::MulIOp>(loc, expected, size)
                   : size;
    Value isDense =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                              metadata.getStrides()[dim], expected);
    result = arith::AndIOp::create(builder, loc, result, isDense);
  }
  return result;
}

/// Emits an i1: whether all outputs are the same memory as their inputs, with
/// contiguous rows from dimension `from` on.
static Value areInOrder(OpBuilder &builder, Location loc, ValueRange inputs,
                        ValueRange outputs, int64_t from) {
  Value result = arith::ConstantIntOp::create(builder, loc, 1, 1);
  auto require = [&](Value condition) {
    result = arith::AndIOp::create(builder, loc, result, condition);
  };
  for (auto [input, output] : llvm::zip_equal(inputs, outputs)) {
    require(isContiguous(builder, loc, output, from));
    if (input != output)
      require(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                    getAddress(builder, loc, getRoot(input)),
                                    getAddress(builder, loc, getRoot(output))));
  }
  return result;
}

/// Emits the total bytes of the memrefs that `outputs` are views of.
static Value getAllBytes(OpBuilder &builder, Location loc, ValueRange outputs) {
  Value bytes;
  for (Value output : outputs) {
    Value outputBytes = getBytes(builder, loc, getRoot(output));
    bytes = bytes ? builder.createOrFold<arith::AddIOp>(loc, bytes, outputBytes)
                  : outputBytes;
  }
  return bytes;
}

/// Emits an i1: whether `bytes` is at least `limit`.
static Value reachesBytes(OpBuilder &builder, Location loc, Value bytes,
                          uint64_t limit) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, bytes,
                               arith::ConstantIndexOp::create(
                                   builder, loc, static_cast<int64_t>(limit)));
}

static Value canStream(OpBuilder &builder, Location loc, ValueRange inputs,
                       ValueRange outputs, const VectorTarget &target,
                       Value bytes, uint64_t streamFrom) {
  Value result = reachesBytes(builder, loc, bytes, streamFrom);
  auto require = [&](Value condition) {
    result = arith::AndIOp::create(builder, loc, result, condition);
  };
  for (Value output : outputs)
    require(areRowsAligned(builder, loc, getRoot(output), target.vectorBytes));
  for (auto [input, output] : llvm::zip(inputs, outputs))
    if (input)
      require(
          areDifferentBuffers(builder, loc, getRoot(input), getRoot(output)));
  return result;
}

Value mlir::posenc::emitCanStream(OpBuilder &builder, Location loc,
                                  ValueRange inputs, ValueRange outputs,
                                  const VectorTarget &target) {
  return canStream(builder, loc, inputs, outputs, target,
                   getAllBytes(builder, loc, outputs), target.streamFrom);
}

void mlir::posenc::chooseAccess(
    OpBuilder &builder, Location loc, ValueRange inputs, ValueRange outputs,
    const VectorTarget &target, bool mayStream,
    std::optional<int64_t> inOrderFrom, bool inBlocks,
    function_ref<void(OpBuilder &, Location, Access access)> body) {
  // A table's inputs are smaller than the table, so its own size decides.
  uint64_t streamFrom =
      inputs.empty() ? target.streamTablesFrom : target.streamFrom;
  Value bytes = getAllBytes(builder, loc, outputs);
  using Emit = function_ref<void(OpBuilder &, Location)>;
  auto emitIf = [](OpBuilder &b, Location l, Value condition, Emit then,
                   Emit otherwise) {
    auto yielding = [](Emit emit) {
      return [emit](OpBuilder &b2, Location l2) {
        emit(b2, l2);
        scf::YieldOp::create(b2, l2);
      };
    };
    scf::IfOp::create(b, l, condition, yielding(then), yielding(otherwise));
  };

  mayStream &= streamFrom > 0 && llvm::none_of(outputs, [&](Value output) {
                 return llvm::is_contained(inputs, output);
               });
  // Uses streaming stores if outputs are large, aligned and no inputs.
  auto emitStreamed = [&](OpBuilder &b, Location l, Access otherwise) {
    if (!mayStream)
      return body(b, l, otherwise);
    Value fits = canStream(b, l, inputs, outputs, target, bytes, streamFrom);
    emitIf(
        b, l, fits,
        [&](OpBuilder &b2, Location l2) { body(b2, l2, Access::Streamed); },
        [&](OpBuilder &b2, Location l2) { body(b2, l2, otherwise); });
  };
  if (inputs.empty())
    return emitStreamed(builder, loc, Access::Cached);

  auto getPolicy = [&](Access access) {
    RowPolicy policy = RowPolicy::get(target, access, /*isNarrow=*/false);
    return inBlocks ? policy : RowPolicy{1, policy.distance, 0};
  };
  // An access whose policy is the default uses the code of Access::Cached.
  auto simplify = [&](Access access) {
    return getPolicy(access) == RowPolicy() ? Access::Cached : access;
  };
  Access apart = simplify(Access::Prefetched);
  Access inOrder = simplify(Access::InOrder);
  auto emitApart = [&](OpBuilder &b, Location l) { emitStreamed(b, l, apart); };
  auto emitLarge = [&](OpBuilder &b, Location l) {
    if (!inOrderFrom || getPolicy(inOrder) == getPolicy(apart))
      return emitApart(b, l);
    emitIf(
        b, l, areInOrder(b, l, inputs, outputs, *inOrderFrom),
        [&](OpBuilder &b2, Location l2) { body(b2, l2, inOrder); }, emitApart);
  };
  if (apart == Access::Cached && inOrder == Access::Cached)
    return emitApart(builder, loc);
  emitIf(builder, loc, reachesBytes(builder, loc, bytes, target.prefetchFrom),
         emitLarge,
         [&](OpBuilder &b, Location l) { body(b, l, Access::Cached); });
}
