//===- RowElements.cpp - elements of the rows of an iteration -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPU/Threads/TileReader.h"
#include "RowKernel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

/// Returns the type in which memory has an element: one that LLVM has.
static Type getStorageType(Type element) {
  MLIRContext *context = element.getContext();
  if (element.isIndex())
    return IntegerType::get(context, 64);
  unsigned width = element.getIntOrFloatBitWidth();
  return width <= 8 ? IntegerType::get(context, 8) : element;
}

int64_t mlir::posenc::getWideAlignment(MemRefType type) {
  if (type.getRank() == 0 || type.getShape().back() <= 0 ||
      type.getElementType().isIndex() || !type.isLastDimUnitStride())
    return 1;
  constexpr int64_t kBits = 128;
  return getDivisor(
      type.getShape().back(),
      kBits / getStorageType(type.getElementType()).getIntOrFloatBitWidth());
}

static Value fromStorage(OpBuilder &b, Location loc, Value value,
                         Type element) {
  if (value.getType() == element)
    return value;
  if (element.isIndex())
    return arith::IndexCastOp::create(b, loc, element, value);
  if (element.isInteger(1))
    return arith::TruncIOp::create(b, loc, element, value);
  return arith::BitcastOp::create(b, loc, element, value);
}

static Value toStorage(OpBuilder &b, Location loc, Value value, Type element) {
  Type storage = getStorageType(element);
  // Kernels compute indices as i64.
  if (value.getType() == storage)
    return value;
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(b, loc, storage, value);
  if (element.isInteger(1))
    return arith::ExtUIOp::create(b, loc, storage, value);
  return arith::BitcastOp::create(b, loc, storage, value);
}

Value mlir::posenc::withStorageType(OpBuilder &host, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  Type storage = getStorageType(type.getElementType());
  if (storage == type.getElementType() || getConstantValues(memref))
    return memref;
  Type cast = MemRefType::Builder(type).setElementType(storage);
  return UnrealizedConversionCastOp::create(host, memref.getLoc(), cast, memref)
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

SmallVector<Value> RowKernel::load(const RowTensor &tensor, Value at,
                                   int64_t lanes) {
  Type storage = getStorageType(tensor.element);
  int64_t bytes = storage.getIntOrFloatBitWidth() / 8;
  int64_t length = std::min({lanes, tensor.alignment, 16 / bytes});
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; lane += length) {
    Value first = b.add(at, lane), loaded;
    Type type =
        length == 1 ? storage : Type(VectorType::get({length}, storage));
    if (!tensor.memref) {
      Value address = b.add(tensor.base, b.mul(b.toI32(first), bytes));
      loaded = b.load({address}, type, length * bytes);
    } else if (length == 1) {
      loaded = memref::LoadOp::create(b, tensor.memref, first);
    } else {
      loaded = vector::LoadOp::create(b, type, tensor.memref, ValueRange(first),
                                      /*nontemporal=*/false,
                                      llvm::MaybeAlign(length * bytes));
    }
    for (int64_t i = 0; i < length; ++i) {
      Value element =
          length == 1 ? loaded : Value(vector::ExtractOp::create(b, loaded, i));
      elements.push_back(fromStorage(b, loc, element, tensor.element));
    }
  }
  return elements;
}

void RowKernel::store(const RowTensor &tensor, Value at,
                      ArrayRef<Value> elements) {
  Type storage = getStorageType(tensor.element);
  int64_t bytes = storage.getIntOrFloatBitWidth() / 8;
  int64_t lanes = elements.size();
  int64_t length = std::min({lanes, tensor.alignment, 16 / bytes});
  auto stored = llvm::map_to_vector(elements, [&](Value element) {
    return toStorage(b, loc, element, tensor.element);
  });
  for (int64_t lane = 0; lane < lanes; lane += length) {
    Value first = b.add(at, lane);
    Value value = stored[lane];
    if (length > 1)
      value = vector::FromElementsOp::create(
          b, VectorType::get({length}, storage),
          ArrayRef<Value>(stored).slice(lane, length));
    if (!tensor.memref) {
      Value address = b.add(tensor.base, b.mul(b.toI32(first), bytes));
      b.store(value, {address}, length * bytes);
    } else if (length == 1) {
      memref::StoreOp::create(b, value, tensor.memref, first);
    } else {
      vector::StoreOp::create(b, value, tensor.memref, ValueRange(first),
                              /*nontemporal=*/false,
                              llvm::MaybeAlign(length * bytes));
    }
  }
}

//===----------------------------------------------------------------------===//
// Operations on elements
//===----------------------------------------------------------------------===//

SmallVector<Value> RowKernel::getLoopSizes(linalg::LinalgOp op) {
  SmallVector<Value> sizes(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    const RowTensor &tensor = getTensor(operand.get());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [dim, result] : llvm::enumerate(map.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(result)) {
        Value &size = sizes[loop.getPosition()];
        if (!size || !getConstantIntValue(size))
          size = tensor.sizes[dim];
      }
  }
  return sizes;
}

int64_t RowKernel::getUnit(linalg::LinalgOp op, unsigned loop) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if (ShapedType::isDynamic(ranges[loop]) || ranges[loop] == 0)
    return 1;
  constexpr int64_t kMaxUnit = 8;
  int64_t bytes = 16;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (map.getNumResults() == 0 || !map.isFunctionOfDim(loop))
      continue;
    bool isLast =
        map.getResults().back() == getAffineDimExpr(loop, op->getContext());
    // Neighbours of an output must be stored together.
    if (!isLast && op.isDpsInit(&operand))
      return 1;
    if (isLast &&
        cast<MemRefType>(operand.get().getType()).isLastDimUnitStride())
      bytes = std::min<int64_t>(
          bytes, getStorageType(getElementTypeOrSelf(operand.get().getType()))
                         .getIntOrFloatBitWidth() /
                     8);
    else if (op.isDpsInit(&operand))
      return 1;
  }
  return getDivisor(ranges[loop], std::min(kMaxUnit, 16 / bytes));
}

SmallVector<Value> RowKernel::getIndices(AffineMap map, ArrayRef<Value> loops) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr result) -> Value {
    if (auto constant = dyn_cast<AffineConstantExpr>(result))
      return index(constant.getValue());
    return loops[cast<AffineDimExpr>(result).getPosition()];
  });
}

/// Loads the operands that the body reads, for `lanes` neighbours along loop
/// `last`. A list of one element is that of all lanes.
void RowKernel::loadArguments(linalg::LinalgOp op, ArrayRef<Value> loops,
                              unsigned last, int64_t lanes,
                              SmallVectorImpl<SmallVector<Value>> &elements) {
  for (OpOperand &operand : op->getOpOperands()) {
    SmallVector<Value> &list = elements.emplace_back();
    if (op.getMatchingBlockArgument(&operand).use_empty())
      continue;
    if (!isa<MemRefType>(operand.get().getType())) {
      list.push_back(get(operand.get()));
      continue;
    }
    const RowTensor &tensor = getTensor(operand.get());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    SmallVector<Value> indices = getIndices(map, loops);
    Value at = getOffset(tensor, indices);
    if (!map.isFunctionOfDim(last)) {
      list = load(tensor, at, 1);
      continue;
    }
    bool isContiguous =
        map.getResults().back() == getAffineDimExpr(last, op->getContext()) &&
        isConstantIntValue(tensor.strides.back(), 1);
    if (isContiguous) {
      list = load(tensor, at, lanes);
      continue;
    }
    for (int64_t lane = 0; lane < lanes; ++lane) {
      SmallVector<Value> shifted(loops);
      shifted[last] = b.add(loops[last], lane);
      llvm::append_range(
          list, load(tensor, getOffset(tensor, getIndices(map, shifted)), 1));
    }
  }
}

/// Emits the operations of a body for one lane, except the terminator.
void RowKernel::emitBody(Block &block, ArrayRef<Value> loops, int64_t lane,
                         int64_t lastLoop) {
  for (Operation &inner : block.without_terminator()) {
    auto number = dyn_cast<linalg::IndexOp>(inner);
    if (!number) {
      emitScalar(inner);
      continue;
    }
    int64_t loop = number.getDim();
    scalars.map(number.getResult(),
                loop == lastLoop ? b.add(loops[loop], lane) : loops[loop]);
  }
}

void RowKernel::emitElements(linalg::LinalgOp op) {
  Block &body = *op.getBlock();
  OpOperand *init = op.getDpsInitOperand(0);
  AffineMap out = op.getMatchingIndexingMap(init);
  SmallVector<Value> sizes = getLoopSizes(op);
  int64_t last = -1, lanes = 1;
  if (out.getNumResults() > 0) {
    last = out.getDimPosition(out.getNumResults() - 1);
    lanes = getUnit(op, last);
  }
  // Neighbouring threads take neighbouring elements of the first output.
  SmallVector<unsigned> order;
  for (AffineExpr result : out.getResults())
    order.push_back(cast<AffineDimExpr>(result).getPosition());
  SmallVector<Value> units;
  Value count = index(1);
  for (unsigned loop : order) {
    Value size = sizes[loop];
    if (loop == last)
      size = b.div(size, lanes);
    units.push_back(size);
    count = b.mul(count, size);
  }
  forUnits(count, [&](Value number) {
    SmallVector<Value> loops(sizes.size());
    for (auto [loop, at] : llvm::zip_equal(order, decompose(number, units)))
      loops[loop] = at;
    if (last >= 0)
      loops[last] = b.mul(loops[last], lanes);
    SmallVector<SmallVector<Value>> inputs;
    loadArguments(op, loops, last < 0 ? 0 : last, lanes, inputs);
    SmallVector<SmallVector<Value>> results(op.getNumDpsInits());
    for (int64_t lane = 0; lane < lanes; ++lane)
      withScope([&] {
        for (auto [argument, list] : llvm::zip(body.getArguments(), inputs))
          if (!list.empty())
            scalars.map(argument, list[list.size() == 1 ? 0 : lane]);
        emitBody(body, loops, lane, last);
        for (auto [list, value] :
             llvm::zip_equal(results, body.getTerminator()->getOperands()))
          list.push_back(get(value));
      });
    for (auto [operand, list] :
         llvm::zip_equal(op.getDpsInitsMutable(), results)) {
      const RowTensor &tensor = getTensor(operand.get());
      AffineMap map = op.getMatchingIndexingMap(&operand);
      store(tensor, getOffset(tensor, getIndices(map, loops)), list);
    }
  });
}

void RowKernel::emitCopy(Value source, Value target) {
  // Buffers of tensors that are written in place are copied to themselves.
  if (source == target)
    return;
  const RowTensor &from = getTensor(source), &to = getTensor(target);
  auto type = cast<MemRefType>(target.getType());
  int64_t lanes = 1;
  if (type.getRank() > 0 && !type.isDynamicDim(type.getRank() - 1) &&
      type.getShape().back() > 0)
    lanes =
        getDivisor(type.getShape().back(),
                   16 * 8 / getStorageType(to.element).getIntOrFloatBitWidth());
  SmallVector<Value> units(to.sizes);
  if (!units.empty())
    units.back() = b.div(units.back(), lanes);
  Value count = index(1);
  for (Value size : units)
    count = b.mul(count, size);
  bool isContiguous = type.getRank() > 0 &&
                      isConstantIntValue(from.strides.back(), 1) &&
                      isConstantIntValue(to.strides.back(), 1);
  forUnits(count, [&](Value number) {
    SmallVector<Value> indices = decompose(number, units);
    if (!indices.empty())
      indices.back() = b.mul(indices.back(), lanes);
    if (isContiguous || indices.empty())
      return store(to, getOffset(to, indices),
                   load(from, getOffset(from, indices), lanes));
    for (int64_t lane = 0; lane < lanes; ++lane) {
      SmallVector<Value> shifted(indices);
      shifted.back() = b.add(indices.back(), lane);
      store(to, getOffset(to, shifted),
            load(from, getOffset(from, shifted), 1));
    }
  });
}
