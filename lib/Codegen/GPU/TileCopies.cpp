//===- TileCopies.cpp - bulk copies of tiles of attention -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileCopies.h"

#include "posenc/IR/CreateIndex.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

/// Returns the slice of an operand that a tile is, with padding after the last
/// row; null if it is computed.
static tensor::ExtractSliceOp findSlice(Value tile) {
  if (auto copy = tile.getDefiningOp<linalg::CopyOp>())
    tile = copy.getInputs().front();
  if (auto padded = tile.getDefiningOp<tensor::InsertSliceOp>())
    tile = padded.getSource();
  auto slice = tile.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || !slice.getSource().getDefiningOp<bufferization::ToTensorOp>() ||
      slice.getSourceType().getRank() > 5 ||
      !isConstantIntValue(slice.getMixedOffsets().back(), 0))
    return nullptr;
  return slice;
}

/// Returns the dimension of the rows of a slice.
static int64_t getRowDim(tensor::ExtractSliceOp slice) {
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  return dropped.flip().find_first();
}

bool mlir::posenc::canCopyTiles(const AttentionNestParts &nest) {
  OnlineAttentionOp op = nest.tile;
  Type element = getElementTypeOrSelf(op.getQuery().getType());
  for (Value tile : {op.getKey(), op.getValue()})
    if (getElementTypeOrSelf(tile.getType()) != element || !findSlice(tile))
      return false;
  return true;
}

Value mlir::posenc::addTensorMap(OpBuilder &host, GpuKernel &kernel,
                                 ThreadBuilder &b, Value tile, int64_t rows) {
  tensor::ExtractSliceOp slice = findSlice(tile);
  Value memref =
      slice.getSource().getDefiningOp<bufferization::ToTensorOp>().getBuffer();
  auto type = cast<MemRefType>(memref.getType());
  Location loc = b.getLoc();
  SmallVector<Value> box(type.getRank(), createIndex(host, loc, 1));
  box.back() = createIndex(host, loc, kColumnChannels);
  box[getRowDim(slice)] = createIndex(host, loc, rows);
  auto space = gpu::AddressSpaceAttr::get(
      host.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  SmallVector<int64_t> shape(type.getRank(), 1);
  shape.back() = kColumnChannels;
  shape[getRowDim(slice)] = rows;
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

SmallVector<Value> mlir::posenc::getTileCoordinates(TileReader &reader,
                                                    ThreadBuilder &b,
                                                    Value tile) {
  SmallVector<Value> coordinates;
  for (OpFoldResult first : llvm::reverse(findSlice(tile).getMixedOffsets()))
    coordinates.push_back(b.toI32(reader.get(first)));
  return coordinates;
}

Value mlir::posenc::getNumRows(OpBuilder &host, Location loc, Value tile) {
  tensor::ExtractSliceOp slice = findSlice(tile);
  Value memref =
      slice.getSource().getDefiningOp<bufferization::ToTensorOp>().getBuffer();
  return host.createOrFold<memref::DimOp>(loc, memref, getRowDim(slice));
}
