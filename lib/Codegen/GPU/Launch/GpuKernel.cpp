//===- GpuKernel.cpp - construction of a kernel and its launch ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuKernel.h"

#include "posenc/IR/CreateIndex.h"
#include "posenc/Numerics/ConstantTables.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;

/// Bytes of the widest memory access of a thread.
static constexpr int64_t kAccessBytes = 16;

static int64_t getBytes(Type type) { return type.getIntOrFloatBitWidth() / 8; }

/// Returns the gpu.module of kernels, which is created at the end of `module`
/// if there is none.
static gpu::GPUModuleOp getKernelModule(ModuleOp module) {
  auto existing = module.getOps<gpu::GPUModuleOp>();
  if (!existing.empty())
    return *existing.begin();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                  builder.getUnitAttr());
  return gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
}

GpuKernel::GpuKernel(Operation *op, StringRef suffix, int64_t threads)
    : body(op->getContext()), threads(threads) {
  gpu::GPUModuleOp kernels = getKernelModule(op->getParentOfType<ModuleOp>());
  auto host = op->getParentOfType<FunctionOpInterface>();
  body.setInsertionPointToEnd(kernels.getBody());
  function = gpu::GPUFuncOp::create(body, op->getLoc(),
                                    (host.getName() + suffix).str(),
                                    body.getFunctionType({}, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                    body.getUnitAttr());
  function.setKnownBlockSizeAttr(
      body.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
  // Makes the name unique: the operations of a function have a kernel each.
  SymbolTable(kernels).insert(function);
  body.setInsertionPointToStart(&function.getBody().front());
}

void GpuKernel::setType() {
  auto types = llvm::map_to_vector(
      operands, [](Value operand) { return operand.getType(); });
  function.setFunctionType(body.getFunctionType(types, {}));
}

Value GpuKernel::addArgument(Value operand) {
  operands.push_back(operand);
  setType();
  return function.getBody().front().insertArgument(
      operands.size() - 1, operand.getType(), function.getLoc());
}

SmallVector<Value> GpuKernel::addTensors(OpBuilder &host, ValueRange memrefs) {
  return llvm::map_to_vector(
      memrefs, [&](Value memref) { return addTensor(host, memref).memref; });
}

Value GpuKernel::addIndex(OpBuilder &host, Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return createIndex(body, function.getLoc(), *constant);
  return addArgument(value);
}

Value GpuKernel::addScalar(Value value) {
  TypedAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return arith::ConstantOp::create(body, function.getLoc(), constant);
  return addArgument(value);
}

DenseElementsAttr mlir::posenc::getConstantValues(Value memref) {
  auto constant = memref.getDefiningOp<memref::GetGlobalOp>();
  auto global = constant
                    ? SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
                          constant, constant.getNameAttr())
                    : nullptr;
  return global && global.getConstant()
             ? dyn_cast_or_null<DenseElementsAttr>(global.getInitialValueAttr())
             : nullptr;
}

GpuKernel::Tensor GpuKernel::addTensor(OpBuilder &host, Value memref) {
  Location loc = function.getLoc();
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> strides;
  int64_t offset = ShapedType::kDynamic;
  if (failed(type.getStridesAndOffset(strides, offset)))
    strides.assign(type.getRank(), ShapedType::kDynamic);
  Tensor tensor;
  if (DenseElementsAttr values = getConstantValues(memref)) {
    auto flatType =
        MemRefType::get({values.getNumElements()}, type.getElementType());
    tensor.memref = memref::GetGlobalOp::create(
        body, loc, flatType, createConstants(body, function, "given", values));
    for (int64_t stride : strides)
      tensor.strides.push_back(createIndex(body, loc, stride));
    return tensor;
  }
  auto metadata = memref::ExtractStridedMetadataOp::create(host, loc, memref);
  // The static size is a placeholder: accesses are bounded by the dimensions.
  MemRefLayoutAttrInterface layout;
  if (offset != 0)
    layout = StridedLayoutAttr::get(host.getContext(), offset, {1});
  auto flatType =
      MemRefType::get({ShapedType::kDynamic}, type.getElementType(), layout);
  Value flat = memref::ReinterpretCastOp::create(
      host, loc, flatType, metadata.getBaseBuffer(),
      metadata.getConstifiedMixedOffset(),
      ArrayRef<OpFoldResult>(createIndex(host, loc, 1)),
      ArrayRef<OpFoldResult>(host.getIndexAttr(1)));
  tensor.memref = addArgument(flat);
  for (auto [number, stride] : llvm::enumerate(strides))
    tensor.strides.push_back(ShapedType::isDynamic(stride)
                                 ? addIndex(host, metadata.getStrides()[number])
                                 : createIndex(body, loc, stride));
  return tensor;
}

Value GpuKernel::addShared(ArrayRef<int64_t> shape, Type element) {
  auto space = gpu::AddressSpaceAttr::get(
      body.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  Value shared = function.addWorkgroupAttribution(
      MemRefType::get(shape, element, MemRefLayoutAttrInterface(), space),
      function.getLoc());
  // Without the attribute, only the alignment of an element is guaranteed.
  function.setWorkgroupAttributionAttr(
      function.getNumWorkgroupAttributions() - 1,
      LLVM::LLVMDialect::getAlignAttrName(),
      body.getI64IntegerAttr(kSharedAlignment));
  return shared;
}

void GpuKernel::launch(OpBuilder &host, Value blocks, int64_t sharedBytes) {
  Location loc = function.getLoc();
  Value dynamicBytes;
  if (sharedBytes > 0)
    dynamicBytes = arith::ConstantIntOp::create(host, loc, sharedBytes, 32);
  gpu::ReturnOp::create(body, loc);
  Value one = createIndex(host, loc, 1);
  gpu::LaunchFuncOp::create(
      host, loc, function, gpu::KernelDim3{blocks, one, one},
      gpu::KernelDim3{createIndex(host, loc, threads), one, one}, dynamicBytes,
      operands);
}

int64_t mlir::posenc::getAccessLanes(Type element, ArrayRef<int64_t> sizes) {
  int64_t lanes = kAccessBytes / getBytes(element);
  for (int64_t size : sizes)
    while (size % lanes != 0)
      lanes /= 2;
  return lanes;
}

Value mlir::posenc::areAligned(OpBuilder &builder, Location loc,
                               ValueRange memrefs, int64_t lanes) {
  Value bits;
  auto add = [&](Value value) {
    bits = bits ? arith::OrIOp::create(builder, loc, bits, value) : value;
  };
  for (Value memref : memrefs) {
    auto type = cast<MemRefType>(memref.getType());
    add(memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref));
    auto metadata =
        memref::ExtractStridedMetadataOp::create(builder, loc, memref);
    Value bytes = createIndex(builder, loc, getBytes(type.getElementType()));
    add(arith::MulIOp::create(builder, loc, metadata.getOffset(), bytes));
    for (Value stride : metadata.getStrides().drop_back())
      add(arith::MulIOp::create(builder, loc, stride, bytes));
  }
  Type element = getElementTypeOrSelf(memrefs.front().getType());
  Value mask = createIndex(builder, loc, lanes * getBytes(element) - 1);
  Value rest = arith::AndIOp::create(builder, loc, bits, mask);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rest,
                               createIndex(builder, loc, 0));
}

static llvm::MaybeAlign getAlignment(Type element, int64_t lanes) {
  return llvm::MaybeAlign(lanes * getBytes(element));
}

void mlir::posenc::storeLanes(OpBuilder &builder, Location loc, Value vector,
                              Value memref, Value first, int64_t accessLanes) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  Type element = getElementTypeOrSelf(vector.getType());
  int64_t length = std::min(lanes, accessLanes);
  for (int64_t offset = 0; offset < lanes; offset += length) {
    Value part = vector;
    if (length != lanes)
      part = vector::ExtractStridedSliceOp::create(builder, loc, vector, offset,
                                                   length, 1);
    Value at = builder.createOrFold<arith::AddIOp>(
        loc, first, createIndex(builder, loc, offset));
    vector::StoreOp::create(builder, loc, part, memref, ValueRange(at),
                            /*nontemporal=*/false,
                            getAlignment(element, length));
  }
}

std::pair<Value, Value> mlir::posenc::divide32(OpBuilder &builder, Location loc,
                                               Value lhs, Value rhs) {
  Type i32 = builder.getI32Type();
  auto narrow = [&](Value value) {
    return builder.createOrFold<arith::IndexCastUIOp>(loc, i32, value);
  };
  auto widen = [&](Value value) {
    return builder.createOrFold<arith::IndexCastUIOp>(
        loc, builder.getIndexType(), value);
  };
  Value a = narrow(lhs), b = narrow(rhs);
  return {widen(arith::DivUIOp::create(builder, loc, a, b)),
          widen(arith::RemUIOp::create(builder, loc, a, b))};
}

Value mlir::posenc::getOffset(OpBuilder &builder, Location loc,
                              ValueRange indices, ValueRange strides) {
  Value offset = createIndex(builder, loc, 0);
  for (auto [index, stride] : llvm::zip_equal(indices, strides))
    offset = builder.createOrFold<arith::AddIOp>(
        loc, offset, builder.createOrFold<arith::MulIOp>(loc, index, stride));
  return offset;
}
