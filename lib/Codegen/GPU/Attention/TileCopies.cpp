//===- TileCopies.cpp - bulk copies of tiles of attention -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileCopies.h"

#include "GpuAttention.h"

#include "posenc/IR/CreateIndex.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::posenc;

/// The innermost swizzled rows that have another order each.
static constexpr int64_t kSwizzledRows = 8;

namespace {
/// Where the rows of a tile are: a slice of a tensor from memory, or pages of
/// it.
struct TileSource {
  tensor::ExtractSliceOp slice;
  linalg::GenericOp gather;
  Value tensor;
  /// The dimension of the rows, or of the tokens of a page, in the tensor.
  int64_t rowDim = 0;
};
} // namespace

/// Whether a remainder is that of a division in its block, as that of a key's
/// index and the size of pages is.
static bool hasQuotient(arith::RemUIOp remainder) {
  return llvm::any_of(remainder.getLhs().getUsers(), [&](Operation *user) {
    auto quotient = dyn_cast<arith::DivUIOp>(user);
    return quotient && quotient->getBlock() == remainder->getBlock() &&
           quotient.getLhs() == remainder.getLhs() &&
           quotient.getRhs() == remainder.getRhs();
  });
}

/// Returns the dimension of the index that is a token in its page.
static std::optional<int64_t> findTokenDim(tensor::ExtractOp gather) {
  auto type = cast<ShapedType>(gather.getTensor().getType());
  for (auto [dim, index] : llvm::enumerate(gather.getIndices())) {
    auto remainder = index.getDefiningOp<arith::RemUIOp>();
    if (!remainder)
      continue;
    if (type.isDynamicDim(dim)
            ? hasQuotient(remainder)
            : isConstantIntValue(remainder.getRhs(), type.getDimSize(dim)))
      return dim;
  }
  return std::nullopt;
}

/// Finds where a tile comes from, with padding after the last row; nullopt if
/// it is computed.
static std::optional<TileSource> findSource(Value tile) {
  if (auto copy = tile.getDefiningOp<linalg::CopyOp>())
    tile = copy.getInputs().front();
  if (auto padded = tile.getDefiningOp<tensor::InsertSliceOp>())
    tile = padded.getSource();
  TileSource source;
  if ((source.gather = tile.getDefiningOp<linalg::GenericOp>())) {
    tensor::ExtractOp element = findGather(source.gather);
    std::optional<int64_t> dim = element ? findTokenDim(element) : std::nullopt;
    if (!dim)
      return std::nullopt;
    source.tensor = element.getTensor();
    source.rowDim = *dim;
  } else if ((source.slice = tile.getDefiningOp<tensor::ExtractSliceOp>())) {
    if (!isConstantIntValue(source.slice.getMixedOffsets().back(), 0))
      return std::nullopt;
    source.tensor = source.slice.getSource();
    llvm::SmallBitVector dropped = source.slice.getDroppedDims();
    source.rowDim = dropped.flip().find_first();
  } else {
    return std::nullopt;
  }
  if (!source.tensor.getDefiningOp<bufferization::ToTensorOp>() ||
      cast<ShapedType>(source.tensor.getType()).getRank() > 5)
    return std::nullopt;
  return source;
}

std::optional<int64_t> mlir::posenc::getPageBoxRows(int64_t keys,
                                                    int64_t pageSize) {
  if (ShapedType::isDynamic(pageSize))
    return kSwizzledRows;
  if (pageSize <= 0)
    return std::nullopt;
  int64_t rows = std::gcd(keys, pageSize);
  return rows % kSwizzledRows == 0 ? std::optional(rows) : std::nullopt;
}

Value mlir::posenc::havePagesBoxes(OpBuilder &host, Location loc,
                                   Value pageSize) {
  Value rest = host.createOrFold<arith::RemUIOp>(
      loc, pageSize, createIndex(host, loc, kSwizzledRows));
  Value isMultiple = host.createOrFold<arith::CmpIOp>(
      loc, arith::CmpIPredicate::eq, rest, createIndex(host, loc, 0));
  Value isNarrow = host.createOrFold<arith::CmpIOp>(
      loc, arith::CmpIPredicate::ule, pageSize,
      createIndex(host, loc, std::numeric_limits<int32_t>::max()));
  return host.createOrFold<arith::AndIOp>(loc, isMultiple, isNarrow);
}

bool mlir::posenc::canCopyTiles(const AttentionNestParts &nest, int64_t keys) {
  OnlineAttentionOp op = nest.tile;
  Type element = getElementTypeOrSelf(op.getQuery().getType());
  for (Value tile : {op.getKey(), op.getValue()}) {
    std::optional<TileSource> source = findSource(tile);
    if (getElementTypeOrSelf(tile.getType()) != element || !source)
      return false;
    auto type = cast<ShapedType>(source->tensor.getType());
    if (source->gather &&
        !getPageBoxRows(keys, type.getDimSize(source->rowDim)))
      return false;
  }
  return true;
}

/// Whether two operations add the same dimensions of size 1, and none after
/// that of channels.
static bool addSameOnes(memref::ExpandShapeOp a, memref::ExpandShapeOp b) {
  if (a.getReassociationIndices() != b.getReassociationIndices() ||
      a.getReassociationIndices().back().size() != 1)
    return false;
  ArrayRef<int64_t> shape = a.getResultType().getShape();
  auto isKept = [&](int64_t dim) { return shape[dim] != 1; };
  return shape.drop_back() == b.getResultType().getShape().drop_back() &&
         llvm::all_of(a.getReassociationIndices(),
                      [&](ArrayRef<int64_t> group) {
                        return llvm::count_if(group, isKept) <= 1;
                      });
}

bool mlir::posenc::areFirstChannels(Value values, Value keys) {
  if (values == keys)
    return true;
  auto expandedValues = values.getDefiningOp<memref::ExpandShapeOp>();
  auto expandedKeys = keys.getDefiningOp<memref::ExpandShapeOp>();
  if (expandedValues && expandedKeys &&
      addSameOnes(expandedValues, expandedKeys))
    return areFirstChannels(expandedValues.getSrc(), expandedKeys.getSrc());
  auto view = values.getDefiningOp<memref::SubViewOp>();
  auto isZero = [](OpFoldResult offset) {
    return isConstantIntValue(offset, 0);
  };
  auto isOne = [](OpFoldResult stride) {
    return isConstantIntValue(stride, 1);
  };
  // The operation checks that there are as many values as keys.
  return view && view.getSource() == keys && view.getDroppedDims().none() &&
         llvm::all_of(view.getMixedOffsets(), isZero) &&
         llvm::all_of(view.getMixedStrides(), isOne);
}

GpuAttentionSizes mlir::posenc::getNestSizes(const AttentionNestParts &nest) {
  OnlineAttentionOp op = nest.tile;
  scf::ForallOp loops = nest.loops;
  GpuAttentionSizes sizes = getAttentionSizes(op);
  std::optional<TileSource> keys = findSource(op.getKey()),
                            values = findSource(op.getValue());
  auto getBuffer = [](const TileSource &source) {
    return Value(source.tensor)
        .getDefiningOp<bufferization::ToTensorOp>()
        .getBuffer();
  };
  sizes.sharesValues = loops.getRank() == kLoopsWithSplits && keys && values &&
                       !op.getMask() &&
                       areFirstChannels(getBuffer(*values), getBuffer(*keys));
  return sizes;
}

int64_t mlir::posenc::getBoxRows(Value tile, int64_t keys) {
  TileSource source = *findSource(tile);
  auto type = cast<ShapedType>(source.tensor.getType());
  return source.gather ? *getPageBoxRows(keys, type.getDimSize(source.rowDim))
                       : keys;
}

bool mlir::posenc::hasDynamicBoxes(Value tile) {
  TileSource source = *findSource(tile);
  return source.gather &&
         cast<ShapedType>(source.tensor.getType()).isDynamicDim(source.rowDim);
}

/// Emits the rows of a box on the host: if the size of pages is dynamic, one of
/// the numbers that divide a tile.
static Value emitBoxRows(OpBuilder &host, Location loc, Value tile,
                         int64_t keys) {
  int64_t fewest = getBoxRows(tile, keys);
  Value result = createIndex(host, loc, fewest);
  if (!hasDynamicBoxes(tile))
    return result;
  Value pageSize = getNumSourceRows(host, loc, tile);
  for (int64_t rows = 2 * fewest; rows <= keys; rows += fewest) {
    if (keys % rows != 0)
      continue;
    Value some = createIndex(host, loc, rows);
    Value rest = arith::RemUIOp::create(host, loc, pageSize, some);
    Value divides = arith::CmpIOp::create(host, loc, arith::CmpIPredicate::eq,
                                          rest, createIndex(host, loc, 0));
    result = arith::SelectOp::create(host, loc, divides, some, result);
  }
  return result;
}

Value mlir::posenc::addBoxRows(OpBuilder &host, GpuKernel &kernel, Location loc,
                               Value tile, int64_t keys) {
  return kernel.addIndex(host, emitBoxRows(host, loc, tile, keys));
}

bool mlir::posenc::arePages(Value tile) {
  return findSource(tile)->gather != nullptr;
}

int64_t mlir::posenc::getNumCoordinates(Value tile) {
  return cast<ShapedType>(findSource(tile)->tensor.getType()).getRank();
}

Value mlir::posenc::addTensorMap(OpBuilder &host, GpuKernel &kernel,
                                 ThreadBuilder &b, Value tile, int64_t keys) {
  TileSource source = *findSource(tile);
  int64_t rows = getBoxRows(tile, keys);
  Value memref =
      source.tensor.getDefiningOp<bufferization::ToTensorOp>().getBuffer();
  auto type = cast<MemRefType>(memref.getType());
  Location loc = b.getLoc();
  SmallVector<Value> box(type.getRank(), createIndex(host, loc, 1));
  box.back() = createIndex(host, loc, kColumnChannels);
  box[source.rowDim] = emitBoxRows(host, loc, tile, keys);
  auto space = gpu::AddressSpaceAttr::get(
      host.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  SmallVector<int64_t> shape(type.getRank(), 1);
  shape.back() = kColumnChannels;
  shape[source.rowDim] = rows;
  auto map = nvgpu::TensorMapDescriptorType::get(
      host.getContext(),
      MemRefType::get(shape, type.getElementType(), MemRefLayoutAttrInterface(),
                      space),
      nvgpu::TensorMapSwizzleKind::SWIZZLE_128B,
      nvgpu::TensorMapL2PromoKind::L2PROMO_128B,
      nvgpu::TensorMapOOBKind::OOB_ZERO,
      nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE);
  Value unranked = memref::CastOp::create(
      host, loc,
      UnrankedMemRefType::get(type.getElementType(), type.getMemorySpace()),
      memref);
  Value descriptor =
      nvgpu::TmaCreateDescriptorOp::create(host, loc, map, unranked, box);
  Value argument = kernel.addScalar(descriptor);
  return UnrealizedConversionCastOp::create(
             b, LLVM::LLVMPointerType::get(b.getContext()), argument)
      .getResult(0);
}

SmallVector<Value> mlir::posenc::getBoxCoordinates(TileReader &reader,
                                                   ThreadBuilder &b, Value tile,
                                                   Value row) {
  TileSource source = *findSource(tile);
  SmallVector<Value> indices;
  if (source.slice) {
    for (OpFoldResult first : source.slice.getMixedOffsets())
      indices.push_back(reader.get(first));
  } else {
    // The table may have no page for keys that do not exist.
    Value first = row;
    Value zero = createIndex(b, b.getLoc(), 0);
    if (!isConstantIntValue(row, 0)) {
      Value size = reader.getSize(source.gather.getResult(0), 0);
      Value exists = b.compare(arith::CmpIPredicate::ult, row, size);
      first = b.select(exists, row, zero);
    }
    reader.setNarrowDivisions(true);
    indices = reader.getGathered(source.gather, {first, zero});
    reader.setNarrowDivisions(false);
  }
  return llvm::map_to_vector(llvm::reverse(indices),
                             [&](Value index) { return b.toI32(index); });
}

Value mlir::posenc::getNumSourceRows(OpBuilder &host, Location loc,
                                     Value tile) {
  TileSource source = *findSource(tile);
  Value memref =
      source.tensor.getDefiningOp<bufferization::ToTensorOp>().getBuffer();
  return host.createOrFold<memref::DimOp>(loc, memref, source.rowDim);
}
