//===- Panels.cpp - panel packing of the right-hand matrix ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Panels.h"

#include "posenc/IR/Weights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
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

bool mlir::posenc::canPackPanels(ElementsAttr matrix) {
  return !matrix.isSplat() && matrix.getShapedType().getRank() == 2 &&
         getStoredBytes(matrix);
}

/// Returns a key for elements that may be weights of a library; empty for
/// others.
static std::string getKey(ElementsAttr matrix, ArrayRef<char> bytes) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(matrix))
    return resource.getRawHandle().getKey().str();
  if (bytes.size() < size_t{kMinWeightBytes})
    return "";
  auto hash = llvm::BLAKE3::hash<16>(
      ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  return "constant." + llvm::toHex(hash, /*LowerCase=*/true);
}

/// Writes panels of elements of type T, which are zeros before.
template <typename T>
static void writePanels(const char *from, char *to, ArrayRef<int64_t> panels,
                        int64_t columns, int64_t rowStride,
                        int64_t columnStride) {
  int64_t panelColumns = panels[2];
  for (int64_t panel = 0; panel < panels[0]; ++panel) {
    int64_t first = panel * panelColumns;
    int64_t count = std::min(panelColumns, columns - first);
    for (int64_t row = 0; row < panels[1]; ++row) {
      const char *source =
          from + (row * rowStride + first * columnStride) * sizeof(T);
      if (columnStride == 1)
        std::memcpy(to, source, count * sizeof(T));
      else
        for (int64_t i = 0; i < count; ++i)
          std::memcpy(to + i * sizeof(T), source + i * columnStride * sizeof(T),
                      sizeof(T));
      to += panelColumns * sizeof(T);
    }
  }
}

ElementsAttr mlir::posenc::packPanels(ElementsAttr matrix, unsigned columnsDim,
                                      int64_t panelColumns) {
  auto type = cast<RankedTensorType>(matrix.getType());
  RankedTensorType packed = getPanelsType(type, columnsDim, panelColumns);
  int64_t columns = type.getDimSize(columnsDim);
  int64_t columnStride = columnsDim == 1 ? 1 : type.getDimSize(1);
  int64_t rowStride = columnsDim == 1 ? type.getDimSize(1) : 1;
  ArrayRef<char> from = *getStoredBytes(matrix);
  auto fill = [&](MutableArrayRef<char> to) {
    auto write = [&](auto element) {
      writePanels<decltype(element)>(from.data(), to.data(), packed.getShape(),
                                     columns, rowStride, columnStride);
    };
    switch (type.getElementTypeBitWidth()) {
    case 8:
      return write(uint8_t());
    case 16:
      return write(uint16_t());
    case 32:
      return write(uint32_t());
    default:
      return write(uint64_t());
    }
  };
  std::string key = getKey(matrix, from);
  if (key.empty()) {
    std::vector<char> to(*getNumBytes(packed));
    fill(to);
    return DenseElementsAttr::getFromRawBuffer(packed, to);
  }
  int64_t rows = type.getDimSize(1 - columnsDim);
  auto getPanelsKey = [&](int64_t width) {
    return getPackedKey(key, {rows, columns, width}, columnsDim);
  };
  // The version for wider vectors has packed panels that this one can read.
  int64_t wider = 2 * panelColumns;
  if (auto known = lookupWeights(getPanelsType(type, columnsDim, wider),
                               getPanelsKey(wider)))
    return known;
  return getOrCreateWeights(packed, getPanelsKey(panelColumns), fill);
}

/// Replaces a read of an element of a matrix by one of its panels.
static void readFromPanels(RewriterBase &rewriter, tensor::ExtractOp read,
                           Value panels, unsigned columnsDim) {
  Location loc = read.getLoc();
  rewriter.setInsertionPoint(read);
  int64_t width = cast<RankedTensorType>(panels.getType()).getDimSize(2);
  Value columns = arith::ConstantIndexOp::create(rewriter, loc, width);
  Value column = read.getIndices()[columnsDim];
  Value panel = arith::DivUIOp::create(rewriter, loc, column, columns);
  Value lane = arith::RemUIOp::create(rewriter, loc, column, columns);
  rewriter.replaceOpWithNewOp<tensor::ExtractOp>(
      read, panels, ValueRange{panel, read.getIndices()[1 - columnsDim], lane});
}

void mlir::posenc::readTableFromPanels(RewriterBase &rewriter,
                                       Operation *function, ElementsAttr matrix,
                                       ElementsAttr panels,
                                       unsigned columnsDim) {
  SmallVector<arith::ConstantOp> tables;
  function->walk([&](arith::ConstantOp op) {
    if (op.getValue() == matrix && !op->use_empty())
      tables.push_back(op);
  });
  auto isRead = [](Operation *user) { return isa<tensor::ExtractOp>(user); };
  for (arith::ConstantOp table : tables)
    if (!llvm::all_of(table->getUsers(), isRead))
      return;
  for (arith::ConstantOp table : tables) {
    rewriter.setInsertionPoint(table);
    Value source = arith::ConstantOp::create(rewriter, table.getLoc(),
                                             cast<TypedAttr>(panels));
    for (Operation *user : llvm::make_early_inc_range(table->getUsers()))
      readFromPanels(rewriter, cast<tensor::ExtractOp>(user), source,
                     columnsDim);
    rewriter.eraseOp(table);
  }
}
