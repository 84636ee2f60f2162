//===- OpBase.td - base classes of operations --------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_OPBASE_TD
#define POSENC_IR_OPBASE_TD

include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"
include "posenc/IR/KernelAttrs.td"
include "posenc/IR/AxesAttr.td"

/// A tensor, or a memref once bufferized.
class Posenc_Shaped<list<Type> types>
    : AnyTypeOf<[RankedTensorOf<types>, MemRefOf<types>]>;
def Posenc_Floats : Posenc_Shaped<[F64, F32, F16, BF16]>;
/// One of the two lists of frequencies that `posenc.turns` computes.
def Posenc_Turns : Posenc_Shaped<[I64]>;
def Posenc_Positions : AnyTypeOf<[
  Posenc_Shaped<[I64, I32, Index, F32, F64]>, I64, I32, Index]>;

/// A destination-style operation with position loops. The shape, tiling and
/// effect interfaces are implemented once for all such operations, in terms of
/// `PositionalOpInterface`.
class Posenc_Op<string mnemonic, list<Trait> traits = []>
    : Op<PosencDialect, mnemonic, [
        DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<Posenc_PositionalOpInterface,
                                  ["getScalarPositionOperand"]>,
        DeclareOpInterfaceMethods<TilingInterface, [
          "getLoopIteratorTypes", "getIterationDomain",
          "getTiledImplementation", "getResultTilePosition",
          "generateResultTileValue", "getIterationDomainTileFromResultTile"]>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                  ["reifyResultShapes"]>,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>
      ] # traits> {
  let hasVerifier = 1;
  code baseDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getInitsMutable();
    }
  }];
  let extraClassDeclaration = baseDeclaration;
  let extraClassDefinition = [{
    ::llvm::SmallVector<::mlir::utils::IteratorType>
    $cppClass::getLoopIteratorTypes() {
      return ::mlir::posenc::detail::getLoopIteratorTypes(*this);
    }
    ::llvm::SmallVector<::mlir::Range>
    $cppClass::getIterationDomain(::mlir::OpBuilder &builder) {
      return ::mlir::posenc::detail::getIterationDomain(*this, builder);
    }
    ::mlir::FailureOr<::mlir::TilingResult> $cppClass::getTiledImplementation(
        ::mlir::OpBuilder &builder,
        ::llvm::ArrayRef<::mlir::OpFoldResult> offsets,
        ::llvm::ArrayRef<::mlir::OpFoldResult> sizes) {
      return ::mlir::posenc::detail::getTiledImplementation(*this, builder,
                                                            offsets, sizes);
    }
    ::llvm::LogicalResult $cppClass::getResultTilePosition(
        ::mlir::OpBuilder &builder, unsigned resultNumber,
        ::llvm::ArrayRef<::mlir::OpFoldResult> offsets,
        ::llvm::ArrayRef<::mlir::OpFoldResult> sizes,
        ::llvm::SmallVector<::mlir::OpFoldResult> &resultOffsets,
        ::llvm::SmallVector<::mlir::OpFoldResult> &resultSizes) {
      return ::mlir::posenc::detail::getResultTilePosition(
          *this, builder, resultNumber, offsets, sizes, resultOffsets,
          resultSizes);
    }
    ::mlir::FailureOr<::mlir::TilingResult> $cppClass::generateResultTileValue(
        ::mlir::OpBuilder &builder, unsigned resultNumber,
        ::llvm::ArrayRef<::mlir::OpFoldResult> offsets,
        ::llvm::ArrayRef<::mlir::OpFoldResult> sizes) {
      return ::mlir::posenc::detail::generateResultTileValue(
          *this, builder, resultNumber, offsets, sizes);
    }
    ::llvm::LogicalResult $cppClass::getIterationDomainTileFromResultTile(
        ::mlir::OpBuilder &builder, unsigned resultNumber,
        ::llvm::ArrayRef<::mlir::OpFoldResult> offsets,
        ::llvm::ArrayRef<::mlir::OpFoldResult> sizes,
        ::llvm::SmallVectorImpl<::mlir::OpFoldResult> &domainOffsets,
        ::llvm::SmallVectorImpl<::mlir::OpFoldResult> &domainSizes) {
      return ::mlir::posenc::detail::getIterationDomainTileFromResultTile(
          *this, resultNumber, offsets, sizes, domainOffsets, domainSizes);
    }
    ::llvm::LogicalResult $cppClass::reifyResultShapes(
        ::mlir::OpBuilder &builder,
        ::mlir::ReifiedRankedShapedTypeDims &shapes) {
      return ::mlir::posenc::detail::reifyResultShapes(*this, builder, shapes);
    }
    void $cppClass::getEffects(
        ::llvm::SmallVectorImpl<::mlir::MemoryEffects::EffectInstance>
            &effects) {
      ::mlir::posenc::detail::getEffects(*this, effects);
    }
    ::mlir::Speculation::Speculatability $cppClass::getSpeculatability() {
      return ::mlir::posenc::detail::getSpeculatability(*this);
    }
  }];
}

#endif // POSENC_IR_OPBASE_TD
