//===- KernelBuffers.cpp - kernel memory as arrays of integers ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBuffers.h"
#include "posenc/IR/CreateIndex.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVAttributes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;

static constexpr int64_t kMaxGranule = 16;

Type mlir::posenc::getLaneType(Type type) {
  if (type.isBF16() || type.isF16())
    return IntegerType::get(type.getContext(), 32);
  return type;
}

int64_t mlir::posenc::getElementBytes(Type type) {
  if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() % 8)
    return 0;
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  return llvm::isPowerOf2_64(bytes) && bytes <= 8 ? bytes : 0;
}

MemRefType mlir::posenc::getGranulesType(MLIRContext *context, int64_t granule,
                                         int64_t size,
                                         spirv::StorageClass storage) {
  Type element = IntegerType::get(context, 8 * std::min<int64_t>(granule, 4));
  if (granule > 4)
    element = VectorType::get({granule / 4}, element);
  return MemRefType::get({size}, element, MemRefLayoutAttrInterface(),
                         spirv::StorageClassAttr::get(context, storage));
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

static int64_t getAccessGranule(Type accessed, std::optional<uint64_t> align) {
  auto vector = dyn_cast<VectorType>(accessed);
  int64_t bytes = getElementBytes(vector ? vector.getElementType() : accessed);
  int64_t whole = vector ? bytes * vector.getNumElements() : bytes;
  int64_t aligned = std::max<int64_t>(bytes, align.value_or(0));
  // Returns the largest power of two that divides both.
  return std::min(whole & -whole, aligned & -aligned);
}

FailureOr<int64_t> mlir::posenc::findGranule(Value memref) {
  int64_t granule = kMaxGranule;
  SmallVector<Value> todo{memref};
  while (!todo.empty()) {
    Value value = todo.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      std::optional<int64_t> accessGranule =
          llvm::TypeSwitch<Operation *, std::optional<int64_t>>(user)
              .Case<vector::LoadOp>([](auto op) {
                return getAccessGranule(op.getType(), op.getAlignment());
              })
              .Case<memref::LoadOp>([](auto op) {
                return getAccessGranule(op.getType(), op.getAlignment());
              })
              .Case<vector::StoreOp>([](auto op) {
                return getAccessGranule(op.getValueToStore().getType(),
                                        op.getAlignment());
              })
              .Case<memref::StoreOp>([](auto op) {
                return getAccessGranule(op.getValueToStore().getType(),
                                        op.getAlignment());
              })
              .Case<memref::CastOp, memref::MemorySpaceCastOp,
                    memref::AssumeAlignmentOp>([&](auto op) {
                todo.push_back(op->getResult(0));
                return kMaxGranule;
              })
              .Default([](Operation *) { return std::nullopt; });
      if (!accessGranule || !*accessGranule)
        return user->emitOpError("cannot access this memory in SPIR-V");
      granule = std::min(granule, *accessGranule);
    }
  }
  return granule;
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

static Value createI32(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 32);
}

static Value bitcast(OpBuilder &builder, Location loc, Type type, Value value) {
  return builder.createOrFold<arith::BitcastOp>(loc, type, value);
}

/// Joins two words to a scalar of 8 bytes without 64-bit integer operations.
static Value join(OpBuilder &builder, Location loc, Type type, Value low,
                  Value high) {
  auto words = VectorType::get({2}, builder.getI32Type());
  Value both = vector::FromElementsOp::create(builder, loc, words,
                                              ValueRange{low, high});
  Value cast =
      vector::BitCastOp::create(builder, loc, VectorType::get({1}, type), both);
  return vector::ExtractOp::create(builder, loc, cast, 0);
}

static std::pair<Value, Value> split(OpBuilder &builder, Location loc,
                                     Value value) {
  auto one = VectorType::get({1}, value.getType());
  Value lone =
      vector::FromElementsOp::create(builder, loc, one, ValueRange(value));
  Value words = vector::BitCastOp::create(
      builder, loc, VectorType::get({2}, builder.getI32Type()), lone);
  return {vector::ExtractOp::create(builder, loc, words, 0),
          vector::ExtractOp::create(builder, loc, words, 1)};
}

Value KernelBuffer::getGranuleIndex(OpBuilder &builder, Location loc,
                                    Value index, int64_t perGranule) const {
  if (offset)
    index = builder.createOrFold<arith::AddIOp>(loc, index, offset);
  if (perGranule == 1)
    return index;
  return builder.createOrFold<arith::ShRUIOp>(
      loc, index,
      createIndex(builder, loc, llvm::Log2_64(uint64_t(perGranule))));
}

/// Loads one of the two 16-bit floats of a 32-bit word. Constants are stored in
/// words.
Value KernelBuffer::loadPart(OpBuilder &builder, Location loc, Value index,
                             Value granuleIndex) const {
  Value word = memref::LoadOp::create(builder, loc, memref, granuleIndex);
  if (offset)
    index = builder.createOrFold<arith::AddIOp>(loc, index, offset);
  Value odd =
      arith::AndIOp::create(builder, loc, index, createIndex(builder, loc, 1));
  Value bits = arith::MulIOp::create(
      builder, loc,
      arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(), odd),
      createI32(builder, loc, 16));
  Value part = arith::ShRUIOp::create(builder, loc, word, bits);
  return arith::AndIOp::create(builder, loc, part,
                               createI32(builder, loc, 0xffff));
}

SmallVector<Value> KernelBuffer::load(OpBuilder &builder, Location loc,
                                      Value index, int64_t count) const {
  int64_t bytes = getElementBytes(element);
  SmallVector<Value> pieces;
  // An element of 8 bytes consists of two granules of 4 bytes.
  int64_t perGranule = std::max<int64_t>(granule / bytes, 1);
  Value granuleIndex = getGranuleIndex(builder, loc, index, perGranule);
  if (count * bytes < granule)
    return {loadPart(builder, loc, index, granuleIndex)};
  if (granule < bytes)
    granuleIndex = arith::MulIOp::create(
        builder, loc, granuleIndex, createIndex(builder, loc, bytes / granule));
  for (int64_t i = 0; i < count * bytes / granule; ++i) {
    Value at = builder.createOrFold<arith::AddIOp>(
        loc, granuleIndex, createIndex(builder, loc, i));
    Value piece = memref::LoadOp::create(builder, loc, memref, at);
    auto vector = dyn_cast<VectorType>(piece.getType());
    for (int64_t k = 0; vector && k < vector.getNumElements(); ++k)
      pieces.push_back(vector::ExtractOp::create(builder, loc, piece, k));
    if (!vector)
      pieces.push_back(piece);
  }
  if (isShared)
    return pieces;

  // Pieces are words, or the elements themselves.
  SmallVector<Value> lanes;
  Type lane = getLaneType(element);
  for (int64_t i = 0; i < count; ++i) {
    if (bytes == 8) {
      lanes.push_back(
          join(builder, loc, lane, pieces[2 * i], pieces[2 * i + 1]));
      continue;
    }
    int64_t perPiece =
        std::max<int64_t>(std::min<int64_t>(granule, 4) / bytes, 1);
    Value piece = pieces[i / perPiece];
    if (perPiece > 1) {
      int64_t bits = 8 * bytes;
      piece = builder.createOrFold<arith::ShRUIOp>(
          loc, piece, createI32(builder, loc, i % perPiece * bits));
      if (i % perPiece + 1 != perPiece)
        piece = arith::AndIOp::create(
            builder, loc, piece,
            createI32(builder, loc, (int64_t{1} << bits) - 1));
    }
    unsigned width = cast<IntegerType>(piece.getType()).getWidth();
    unsigned wanted = lane.getIntOrFloatBitWidth();
    Type integer = builder.getIntegerType(wanted);
    if (width < wanted)
      piece = arith::ExtUIOp::create(builder, loc, integer, piece);
    else if (width > wanted)
      piece = arith::TruncIOp::create(builder, loc, integer, piece);
    lanes.push_back(bitcast(builder, loc, lane, piece));
  }
  return lanes;
}

void KernelBuffer::store(OpBuilder &builder, Location loc, Value index,
                         ValueRange lanes) const {
  int64_t bytes = getElementBytes(element);
  SmallVector<Value> pieces;
  int64_t pieceBytes = std::min<int64_t>(granule, 4);
  if (isShared) {
    llvm::append_range(pieces, lanes);
  } else if (bytes == 8) {
    for (Value lane : lanes) {
      auto [low, high] = split(builder, loc, lane);
      pieces.append({low, high});
    }
  } else {
    int64_t perPiece = std::max<int64_t>(pieceBytes / bytes, 1);
    Type integer = builder.getIntegerType(8 * pieceBytes);
    for (size_t i = 0; i < lanes.size(); i += perPiece) {
      Value piece;
      for (int64_t k = 0; k < perPiece; ++k) {
        Value lane = lanes[i + k];
        unsigned width = lane.getType().getIntOrFloatBitWidth();
        lane = bitcast(builder, loc, builder.getIntegerType(width), lane);
        if (width > 8 * pieceBytes)
          lane = arith::TruncIOp::create(builder, loc, integer, lane);
        else if (width < 8 * pieceBytes)
          lane = arith::ExtUIOp::create(builder, loc, integer, lane);
        if (k)
          lane = arith::ShLIOp::create(builder, loc, lane,
                                       createI32(builder, loc, k * bytes * 8));
        piece = piece ? arith::OrIOp::create(builder, loc, piece, lane) : lane;
      }
      pieces.push_back(piece);
    }
  }

  int64_t perGranule = std::max<int64_t>(granule / bytes, 1);
  Value granuleIndex = getGranuleIndex(builder, loc, index, perGranule);
  if (granule < bytes)
    granuleIndex = arith::MulIOp::create(
        builder, loc, granuleIndex, createIndex(builder, loc, bytes / granule));
  auto vector =
      dyn_cast<VectorType>(cast<MemRefType>(memref.getType()).getElementType());
  int64_t length = vector ? vector.getNumElements() : 1;
  for (size_t i = 0; i < pieces.size(); i += length) {
    Value value = pieces[i];
    if (vector)
      value = vector::FromElementsOp::create(
          builder, loc, vector, ValueRange(pieces).slice(i, length));
    Value at = builder.createOrFold<arith::AddIOp>(
        loc, granuleIndex, createIndex(builder, loc, i / length));
    memref::StoreOp::create(builder, loc, value, memref, at);
  }
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

FailureOr<KernelConstants> KernelConstants::collect(gpu::GPUModuleOp kernels) {
  KernelConstants constants;
  for (auto global : kernels.getOps<memref::GlobalOp>()) {
    auto data =
        dyn_cast_or_null<DenseElementsAttr>(global.getInitialValueAttr());
    Type type = global.getType().getElementType();
    int64_t bytes = getElementBytes(type);
    if (!data || !bytes || global.getType().getRank() != 1)
      return global.emitOpError("expected constant initial values");
    // Aligns each constant to 16 bytes, as vector accesses require.
    constants.words.resize(llvm::alignTo(constants.words.size(), 4));
    constants.offsets[global.getSymName()] = constants.words.size();
    int64_t begin = 4 * constants.words.size();
    int64_t size = data.getNumElements() * bytes;
    constants.words.resize(llvm::divideCeil(begin + size, 4));
    char *out = reinterpret_cast<char *>(constants.words.data()) + begin;
    ArrayRef<char> raw = data.getRawData();
    for (int64_t i = 0; i < size; ++i)
      out[i] = raw[i % raw.size()];
  }
  return constants;
}

std::optional<int64_t> KernelConstants::find(StringRef symbol) const {
  auto found = offsets.find(symbol);
  if (found == offsets.end())
    return std::nullopt;
  return found->second;
}
