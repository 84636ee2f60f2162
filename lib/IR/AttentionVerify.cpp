//===- AttentionVerify.cpp - shared checks of attention -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionVerify.h"
#include "PositionalVerify.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;

/// Whether the real is absent or finite.
static bool isFinite(FloatAttr value) {
  return !value || std::isfinite(value.getValueAsDouble());
}

FloatType mlir::posenc::getSumTypeFor(Type tensor) {
  if (getElementTypeOrSelf(tensor).isF64())
    return Float64Type::get(tensor.getContext());
  return Float32Type::get(tensor.getContext());
}

bool mlir::posenc::isQuantizedType(Type tensor) {
  return getElementTypeOrSelf(tensor).getIntOrFloatBitWidth() == 8;
}

LogicalResult mlir::posenc::verifyCacheTypes(Operation *op, Type keys,
                                             Type values, Type sums,
                                             StringRef constraint) {
  Type element = getElementTypeOrSelf(keys);
  if (getElementTypeOrSelf(values) != element)
    return op->emitOpError()
           << "expected keys and values of one element type, got " << keys
           << " and " << values << " (" << constraint << ")";
  if (element.getIntOrFloatBitWidth() > sums.getIntOrFloatBitWidth())
    return op->emitOpError()
           << "expected keys and values that are not wider than the sums' "
           << sums << ", got " << keys << " (" << constraint << ")";
  return success();
}

SmallVector<int64_t> mlir::posenc::getScaleSymbols(int64_t batch, int64_t heads,
                                                   int64_t tokens,
                                                   bool isPacked) {
  if (isPacked)
    return {heads, tokens};
  return {batch, heads, tokens};
}

void mlir::posenc::dropUnitSymbols(ShapedType type,
                                   SmallVectorImpl<int64_t> &symbols) {
  for (auto [dim, symbol] : llvm::enumerate(symbols))
    if (type.getDimSize(dim) == 1)
      symbol = -1;
}

SmallVector<Type> mlir::posenc::getScoreArguments(Type query) {
  SmallVector<Type> types = getWhereArguments(query.getContext());
  types.insert(types.begin(), getSumTypeFor(query));
  return types;
}

SmallVector<Type> mlir::posenc::getWhereArguments(MLIRContext *context) {
  return SmallVector<Type>(4, IndexType::get(context));
}

SmallVector<int64_t> mlir::posenc::getHeadSymbols(int64_t batch, int64_t tokens,
                                                  int64_t heads, int64_t dim,
                                                  HeadLayout layout,
                                                  bool isPacked) {
  SmallVector<int64_t> symbols;
  if (!isPacked)
    symbols.push_back(batch);
  if (layout == HeadLayout::TokenMajor)
    symbols.append({tokens, heads, dim});
  else
    symbols.append({heads, tokens, dim});
  return symbols;
}

unsigned mlir::posenc::getHeadDimension(HeadLayout layout, bool isPacked) {
  return (layout == HeadLayout::HeadMajor ? 1 : 2) - (isPacked ? 1 : 0);
}

unsigned mlir::posenc::getTokenDimension(HeadLayout layout, bool isPacked) {
  return (layout == HeadLayout::TokenMajor ? 1 : 2) - (isPacked ? 1 : 0);
}

/// Returns why an operation is not supported in the region; empty if it is.
static StringRef getUnsupportedReason(Operation &op) {
  if (op.getNumRegions() != 0)
    return "has a region";
  if (!isMemoryEffectFree(&op) && !isa<memref::LoadOp>(op))
    return "has effects";
  bool reads = isa<memref::LoadOp, tensor::ExtractOp>(op);
  auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
  if (!llvm::all_of(llvm::drop_begin(op.getOperandTypes(), reads), isScalar) ||
      !llvm::all_of(op.getResultTypes(), isScalar))
    return "does not work on scalars";
  // The size of the code for wider integers, such as a division, is unbounded.
  auto isTooWide = [](Type type) {
    auto integer = dyn_cast<IntegerType>(type);
    return integer && integer.getWidth() > 128;
  };
  if (llvm::any_of(op.getResultTypes(), isTooWide))
    return "has more than 128 bits";
  return "";
}

LogicalResult mlir::posenc::verifyScalarRegion(Operation *op, Region &region,
                                               StringRef name,
                                               ArrayRef<Type> arguments,
                                               Type result, StringRef form,
                                               StringRef body) {
  if (region.empty())
    return success();
  if (region.getArgumentTypes() != TypeRange(arguments))
    return op->emitOpError()
           << "expected region '" << name << "' to have the arguments ("
           << arguments << "), got (" << region.getArgumentTypes() << ") ("
           << form << ")";
  Block &block = region.front();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield || yield.getValue().getType() != result)
    return op->emitOpError() << "expected region '" << name << "' to yield "
                             << result << " (" << form << ")";
  for (Operation &nested : block.without_terminator()) {
    StringRef reason = getUnsupportedReason(nested);
    if (!reason.empty())
      return nested.emitError()
             << "'" << nested.getName() << "' in region '" << name << "' "
             << reason << " (" << body << ")";
  }
  return success();
}

LogicalResult mlir::posenc::verifyRank(Operation *op, StringRef name, Type type,
                                       int64_t rank, StringRef constraint) {
  if (cast<ShapedType>(type).getRank() == rank)
    return success();
  return op->emitOpError() << "expected " << name << " of rank " << rank
                           << ", got " << type << " (" << constraint << ")";
}

LogicalResult mlir::posenc::verifyHeads(Operation *op, StringRef name,
                                        Type type, int64_t rank,
                                        StringRef constraint) {
  if (failed(verifyRank(op, name, type, rank, constraint)))
    return failure();
  int64_t dim = cast<ShapedType>(type).getShape().back();
  if (dim >= 1 && dim <= 65536)
    return success();
  return op->emitOpError() << "expected " << name
                           << " with a static last dimension between 1 and "
                              "65536, got "
                           << type << " (" << constraint << ")";
}

LogicalResult mlir::posenc::verifyHeadRotation(
    Operation *op, StringRef name, Type heads, RotationAttr rotation,
    Value positions, int64_t numLoops, StringRef window, StringRef form) {
  if (!rotation) {
    if (positions)
      return op->emitOpError() << "positions of the " << name
                               << " without a rotation (" << form << ")";
    return success();
  }
  int64_t size = cast<ShapedType>(heads).getShape().back();
  int64_t dim = rotation.getFrequencies().getDim();
  if (dim > size || rotation.getOffset() > size - dim)
    return op->emitOpError()
           << "rotary window of " << dim << " lanes at offset "
           << rotation.getOffset() << " is not within the last dimension of "
           << size << " of the " << name << " (" << window << ")";
  AxesAttr axes = rotation.getAxes();
  if (!positions) {
    if (axes)
      return op->emitOpError()
             << "rotation of the " << name
             << " has axes, but there are no positions (" << form << ")";
    return success();
  }
  auto type = cast<ShapedType>(positions.getType());
  if (type.getRank() != numLoops + (axes ? 1 : 0) ||
      (axes && type.getDimSize(0) != axes.getNumAxes()))
    return op->emitOpError()
           << "expected positions of the " << name << " of rank "
           << numLoops + (axes ? 1 : 0)
           << (axes ? " with a first dimension of " +
                          std::to_string(axes.getNumAxes()) + " axes"
                    : std::string())
           << ", got " << type << " (" << form << ")";
  return success();
}

LogicalResult mlir::posenc::verifyHeadTurns(Operation *op, OperandRange turns,
                                            ArrayRef<RotationAttr> rotations,
                                            ArrayRef<Value> positions,
                                            StringRef constraint) {
  bool hasRotation = false;
  for (RotationAttr rotation : rotations) {
    if (!rotation)
      continue;
    hasRotation = true;
    if (failed(verifyTurns(op, turns, rotation.getFrequencies(), positions,
                           constraint)))
      return failure();
  }
  if (!turns.empty() && !hasRotation)
    return op->emitOpError()
           << "turns without a rotation (" << constraint << ")";
  return success();
}

LogicalResult mlir::posenc::verifyNorm(Operation *op, StringRef name,
                                       Value norm, StringRef constraint) {
  if (!norm)
    return success();
  return verifyRank(op, name, norm.getType(), 1, constraint);
}

LogicalResult mlir::posenc::verifyNormEps(Operation *op, bool hasNorm,
                                          FloatAttr eps, StringRef constraint) {
  if (hasNorm != static_cast<bool>(eps))
    return op->emitOpError()
           << (hasNorm ? "norm without norm_eps" : "norm_eps without a norm")
           << " (" << constraint << ")";
  if (!isFinite(eps) || (eps && eps.getValueAsDouble() < 0))
    return op->emitOpError() << "expected norm_eps to be finite and not "
                                "negative, got "
                             << eps << " (" << constraint << ")";
  return success();
}

LogicalResult mlir::posenc::verifyNormOffset(Operation *op, bool hasNorm,
                                             FloatAttr offset,
                                             StringRef constraint) {
  if (offset && !hasNorm)
    return op->emitOpError()
           << "norm_offset without a norm (" << constraint << ")";
  if (!isFinite(offset))
    return op->emitOpError() << "expected norm_offset to be finite, got "
                             << offset << " (" << constraint << ")";
  return success();
}

LogicalResult mlir::posenc::verifyScaleAndWindow(Operation *op, FloatAttr scale,
                                                 IntegerAttr left,
                                                 IntegerAttr right,
                                                 StringRef constraint) {
  if (!isFinite(scale))
    return op->emitOpError() << "expected a finite scale, got " << scale << " ("
                             << constraint << ")";
  for (IntegerAttr window : {left, right})
    if (window && window.getInt() < 0)
      return op->emitOpError() << "expected a window that is not negative, got "
                               << window.getInt() << " (" << constraint << ")";
  return success();
}

void mlir::posenc::nameScalarArguments(Region &region,
                                       OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  StringRef names = region.getNumArguments() == 5 ? "sbhij" : "bhij";
  if (region.getNumArguments() != names.size())
    return;
  for (auto [index, argument] : llvm::enumerate(region.getArguments()))
    setName(argument, names.substr(index, 1));
}
