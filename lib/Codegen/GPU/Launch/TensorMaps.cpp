//===- TensorMaps.cpp - descriptors of tensors for bulk copies ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMaps.h"

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCLOWERTENSORMAPSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// On a kernel while `convert-gpu-to-nvvm` runs: the positions of its tensor
/// maps among the arguments that this conversion makes.
static constexpr llvm::StringLiteral kMarker = "nvgpu.tensor_maps";

/// Returns the tensor before it lost its rank; null if that is unknown.
static Value getTensor(nvgpu::TmaCreateDescriptorOp op) {
  auto cast = op.getTensor().getDefiningOp<memref::CastOp>();
  return cast && isa<MemRefType>(cast.getSource().getType()) ? cast.getSource()
                                                             : Value();
}

/// Returns the CUtensorMapDataType of an element; nullopt if it has none.
/// Elements of 8 bits are bytes.
static std::optional<int64_t> getDataType(Type element) {
  if (element.isF16())
    return 6;
  if (element.isF32())
    return 7;
  if (element.isF64())
    return 8;
  if (element.isBF16())
    return 9;
  if (!element.isIntOrFloat())
    return std::nullopt;
  switch (element.getIntOrFloatBitWidth()) {
  case 8:
    return 0;
  case 16:
    return 1;
  case 32:
    return 2;
  case 64:
    return 4;
  default:
    return std::nullopt;
  }
}

/// Returns the constants that a size may be, which `arith.select` selects;
/// empty if it may have other values.
static SmallVector<int64_t> getConstants(Value size) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return {*constant};
  auto select = size.getDefiningOp<arith::SelectOp>();
  if (!select)
    return {};
  SmallVector<int64_t> constants = getConstants(select.getTrueValue());
  SmallVector<int64_t> others = getConstants(select.getFalseValue());
  if (constants.empty() || others.empty())
    return {};
  llvm::append_range(constants, others);
  return constants;
}

LogicalResult mlir::posenc::checkTensorMap(nvgpu::TmaCreateDescriptorOp op) {
  Value tensor = getTensor(op);
  if (!tensor)
    return op.emitOpError("expected a ranked memref that memref.cast makes "
                          "unranked");
  auto type = cast<MemRefType>(tensor.getType());
  constexpr int64_t kMaxRank = 5;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (type.getRank() < 1 || type.getRank() > kMaxRank ||
      failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return op.emitOpError("expected a tensor of 1 to 5 dimensions, the last of "
                          "which is contiguous, found ")
           << type;
  if (!getDataType(type.getElementType()))
    return op.emitOpError("expected elements of 8, 16, 32 or 64 bits, found ")
           << type.getElementType();
  auto box = op.getBoxDimensions();
  constexpr int64_t kMaxBox = 256;
  SmallVector<SmallVector<int64_t>> choices;
  for (Value size : box)
    choices.push_back(getConstants(size));
  if (static_cast<int64_t>(box.size()) != type.getRank() ||
      !llvm::all_of(choices, [](ArrayRef<int64_t> constants) {
        return !constants.empty() &&
               llvm::all_of(constants, [](int64_t constant) {
                 return constant >= 1 && constant <= kMaxBox;
               });
      }))
    return op.emitOpError("expected a box of one constant from 1 to 256 for "
                          "each of the ")
           << type.getRank() << " dimensions";
  auto map = op.getTensorMap().getType();
  if (map.getInterleave() != nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE ||
      map.getOob() != nvgpu::TensorMapOOBKind::OOB_ZERO)
    return op.emitOpError("expected a map without interleaving that reads "
                          "zeros out of bounds");
  // The verifier has compared the rows of the tile with the swizzle pattern.
  // It knows the smallest box, of which a selected one is a multiple.
  SmallVector<int64_t> sizes;
  for (ArrayRef<int64_t> constants : choices) {
    int64_t size = *llvm::min_element(constants);
    sizes.push_back(size);
    if (llvm::any_of(constants, [&](int64_t other) { return other % size; }))
      return op.emitOpError("expected sizes of a box that are multiples of the "
                            "smallest one");
  }
  auto dropOnes = [](ArrayRef<int64_t> shape) {
    return llvm::to_vector(
        llvm::make_filter_range(shape, [](int64_t size) { return size != 1; }));
  };
  if (dropOnes(sizes) != dropOnes(map.getTensor().getShape()))
    return op.emitOpError("expected a box with the shape of the tile ")
           << map.getTensor();
  constexpr int64_t kRowUnit = 16;
  if (sizes.back() * type.getElementTypeBitWidth() / 8 % kRowUnit != 0)
    return op.emitOpError("expected rows of the box that are a multiple of 16 "
                          "bytes");
  return success();
}

SmallVector<Value>
mlir::posenc::emitTensorMapWords(OpBuilder &builder,
                                 nvgpu::TmaCreateDescriptorOp op) {
  Location loc = op.getLoc();
  Type i64 = builder.getI64Type();
  Value tensor = getTensor(op);
  auto type = cast<MemRefType>(tensor.getType());
  auto map = op.getTensorMap().getType();
  auto widen = [&](Value index) -> Value {
    return arith::IndexCastOp::create(builder, loc, i64, index);
  };
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, i64, value);
  };
  Value bytes = constant(type.getElementTypeBitWidth() / 8);
  auto scale = [&](Value elements) -> Value {
    return arith::MulIOp::create(builder, loc, widen(elements), bytes);
  };
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, tensor);
  Value base = widen(
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, tensor));
  Value address =
      arith::AddIOp::create(builder, loc, base, scale(metadata.getOffset()));
  SmallVector<Value> words{constant(*getDataType(type.getElementType())),
                           constant(static_cast<int64_t>(map.getSwizzle())),
                           constant(static_cast<int64_t>(map.getL2promo())),
                           bytes,
                           address,
                           constant(type.getRank())};
  // The driver's first dimension is the contiguous one.
  for (Value size : llvm::reverse(metadata.getSizes()))
    words.push_back(widen(size));
  for (Value stride : llvm::reverse(metadata.getStrides().drop_back()))
    words.push_back(scale(stride));
  for (Value size : llvm::reverse(op.getBoxDimensions()))
    words.push_back(widen(size));
  return words;
}

/// Returns the number of arguments that `convert-gpu-to-nvvm` makes of one.
static int32_t countArguments(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  return memref ? 3 + 2 * memref.getRank() : 1;
}

/// Makes the descriptors among the arguments of a kernel pointers.
static void convertArguments(gpu::GPUFuncOp kernel) {
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  auto pointer = LLVM::LLVMPointerType::get(kernel.getContext());
  FunctionType type = kernel.getFunctionType();
  auto inputs = llvm::to_vector(type.getInputs());
  SmallVector<int32_t> positions;
  int32_t position = 0;
  for (auto [number, input] : llvm::enumerate(inputs)) {
    int32_t here = position;
    position += countArguments(input);
    if (!isa<nvgpu::TensorMapDescriptorType>(input))
      continue;
    positions.push_back(here);
    BlockArgument argument = kernel.getArgument(number);
    argument.setType(pointer);
    auto descriptor = UnrealizedConversionCastOp::create(
        builder, kernel.getLoc(), input, argument);
    argument.replaceAllUsesExcept(descriptor.getResult(0), descriptor);
    for (Operation *user : llvm::make_early_inc_range(descriptor->getUsers())) {
      auto cast = dyn_cast<UnrealizedConversionCastOp>(user);
      if (!cast || cast.getResultTypes() != TypeRange(pointer))
        continue;
      cast.getResult(0).replaceAllUsesWith(argument);
      cast.erase();
    }
    if (descriptor->use_empty())
      descriptor.erase();
    input = pointer;
  }
  if (positions.empty())
    return;
  kernel.setFunctionType(builder.getFunctionType(inputs, type.getResults()));
  kernel->setAttr(kMarker, builder.getDenseI32ArrayAttr(positions));
}

/// Makes the descriptors among the operands of a launch pointers.
static void convertOperands(gpu::LaunchFuncOp launch) {
  OpBuilder builder(launch);
  auto pointer = LLVM::LLVMPointerType::get(launch.getContext());
  for (OpOperand &operand : launch.getKernelOperandsMutable())
    if (isa<nvgpu::TensorMapDescriptorType>(operand.get().getType()))
      operand.set(UnrealizedConversionCastOp::create(builder, launch.getLoc(),
                                                     pointer, operand.get())
                      .getResult(0));
}

/// Makes the marked arguments of a kernel in the LLVM dialect values in its
/// parameters, of which it never makes a copy.
static void finishArguments(LLVM::LLVMFuncOp kernel) {
  auto positions = kernel->getAttrOfType<DenseI32ArrayAttr>(kMarker);
  if (!positions)
    return;
  kernel->removeAttr(kMarker);
  Builder builder(kernel.getContext());
  auto words =
      LLVM::LLVMArrayType::get(builder.getI64Type(), kTensorMapBytes / 8);
  for (int32_t number : positions.asArrayRef()) {
    kernel.setArgAttr(number, LLVM::LLVMDialect::getByValAttrName(),
                      TypeAttr::get(words));
    kernel.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(kTensorMapAlignment));
    kernel.setArgAttr(number, NVVM::NVVMDialect::getGridConstantAttrName(),
                      builder.getUnitAttr());
  }
}

namespace {
struct LowerTensorMaps final
    : mlir::posenc::impl::PosencLowerTensorMapsPassBase<LowerTensorMaps> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (auto kernel = dyn_cast<gpu::GPUFuncOp>(op))
        convertArguments(kernel);
      else if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
        convertOperands(launch);
      else if (auto kernel = dyn_cast<LLVM::LLVMFuncOp>(op))
        finishArguments(kernel);
    });
  }
};
} // namespace
