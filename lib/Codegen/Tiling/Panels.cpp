//===- Panels.cpp - panel packing of the right-hand matrix ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Panels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;

RankedTensorType mlir::posenc::getPanelsType(RankedTensorType matrix,
                                             unsigned columnsDim,
                                             int64_t panelColumns) {
  int64_t panels =
      llvm::divideCeil(matrix.getDimSize(columnsDim), panelColumns);
  return RankedTensorType::get(
      {panels, matrix.getDimSize(1 - columnsDim), panelColumns},
      matrix.getElementType());
}

/// Returns the outer dimension order of the packed matrix: panels, then k.
static SmallVector<int64_t> getOuterOrder(unsigned columnsDim) {
  return {columnsDim, 1 - columnsDim};
}

bool mlir::posenc::arePanels(linalg::UnPackOp op, unsigned columnsDim) {
  ArrayRef<int64_t> order = op.getOuterDimsPerm();
  SmallVector<int64_t> wanted = getOuterOrder(columnsDim);
  bool isInOrder = order.empty() ? wanted[0] == 0 : order == ArrayRef(wanted);
  return op.hasPureTensorSemantics() && op.getDestRank() == 2 &&
         op.getInnerDimsPos() == ArrayRef<int64_t>{columnsDim} &&
         !ShapedType::isDynamic(op.getStaticTiles().front()) && isInOrder;
}

Value mlir::posenc::unpackPanels(OpBuilder &builder, Location loc, Value panels,
                                 RankedTensorType matrix, unsigned columnsDim) {
  Value empty = tensor::EmptyOp::create(builder, loc, matrix.getShape(),
                                        matrix.getElementType());
  return linalg::UnPackOp::create(
             builder, loc, panels, empty, ArrayRef<int64_t>{columnsDim},
             ArrayRef<OpFoldResult>{builder.getIndexAttr(kPanelColumns)},
             getOuterOrder(columnsDim))
      ->getResult(0);
}

Value mlir::posenc::packPanels(OpBuilder &builder, Location loc, Value matrix,
                               unsigned columnsDim) {
  auto type = cast<RankedTensorType>(matrix.getType());
  RankedTensorType packed = getPanelsType(type, columnsDim);
  Value empty = tensor::EmptyOp::create(builder, loc, packed.getShape(),
                                        packed.getElementType());
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  return linalg::PackOp::create(
             builder, loc, matrix, empty, ArrayRef<int64_t>{columnsDim},
             ArrayRef<OpFoldResult>{builder.getIndexAttr(kPanelColumns)}, zero,
             getOuterOrder(columnsDim))
      ->getResult(0);
}

DenseElementsAttr mlir::posenc::packPanels(DenseElementsAttr matrix,
                                           unsigned columnsDim,
                                           int64_t panelColumns) {
  auto type = cast<RankedTensorType>(matrix.getType());
  RankedTensorType packed = getPanelsType(type, columnsDim, panelColumns);
  ArrayRef<int64_t> shape = packed.getShape();
  int64_t columns = type.getDimSize(columnsDim);
  int64_t columnStride = columnsDim == 1 ? 1 : type.getDimSize(1);
  int64_t rowStride = columnsDim == 1 ? type.getDimSize(1) : 1;
  unsigned bytes = type.getElementTypeBitWidth() / 8;
  ArrayRef<char> from = matrix.getRawData();
  std::vector<char> to(packed.getNumElements() * bytes);
  char *next = to.data();
  for (int64_t panel = 0; panel < shape[0]; ++panel)
    for (int64_t row = 0; row < shape[1]; ++row)
      for (int64_t i = 0; i < panelColumns; ++i, next += bytes)
        if (int64_t column = panel * panelColumns + i; column < columns)
          std::memcpy(next,
                      &from[(row * rowStride + column * columnStride) * bytes],
                      bytes);
  return DenseElementsAttr::getFromRawBuffer(packed, to);
}
