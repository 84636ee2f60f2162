//===- Panels.cpp - panel packing of the right-hand matrix ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Panels.h"
#include "ProductTiling.h"

#include "posenc/IR/Weights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
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

bool mlir::posenc::canPackPanels(ElementsAttr matrices) {
  return !matrices.isSplat() && matrices.getShapedType().getRank() >= 2 &&
         getStoredBytes(matrices);
}

namespace {
/// The matrices of a constant, which are its last two dimensions.
struct Matrices {
  Matrices(ElementsAttr elements, unsigned columnsDim)
      : isTransposed(columnsDim == 0) {
    auto type = cast<RankedTensorType>(elements.getType());
    matrix = RankedTensorType::get(type.getShape().take_back(2),
                                   type.getElementType());
    bytes = *getStoredBytes(elements);
    elementBytes = type.getElementTypeBitWidth() / 8;
    count = llvm::product_of(type.getShape().drop_back(2));
    rows = matrix.getDimSize(isTransposed);
    columns = matrix.getDimSize(!isTransposed);
    rowStride = isTransposed ? 1 : columns;
    columnStride = isTransposed ? rows : 1;
  }

  /// Returns the elements of a matrix.
  const char *getData(int64_t number) const {
    return bytes.data() + number * rows * columns * elementBytes;
  }
  /// Returns the type of the panels of all matrices, one behind the other.
  RankedTensorType getType(RankedTensorType panels) const {
    SmallVector<int64_t> shape(panels.getShape());
    shape.front() *= count;
    return panels.clone(shape);
  }

  bool isTransposed;
  RankedTensorType matrix;
  ArrayRef<char> bytes;
  int64_t elementBytes, count, rows, columns, rowStride, columnStride;
};
} // namespace

/// Returns a key for elements that may be weights of a library; empty for
/// others. That of several matrices says how many they are.
static std::string getKey(ElementsAttr elements, const Matrices &matrices) {
  ArrayRef<char> bytes = matrices.bytes;
  std::string batch =
      matrices.count == 1 ? "" : ".batch" + std::to_string(matrices.count);
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(elements))
    return resource.getRawHandle().getKey().str() + batch;
  if (bytes.size() < size_t{kMinWeightBytes})
    return "";
  auto hash = llvm::BLAKE3::hash<16>(
      ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  return "constant." + llvm::toHex(hash, /*LowerCase=*/true) + batch;
}

/// Returns the elements that `fill` writes to zeros. With a key of the matrix,
/// they are weights, which may be known already.
static ElementsAttr
createPacked(StringRef key, RankedTensorType packed, PanelPacking packing,
             unsigned columnsDim,
             function_ref<void(MutableArrayRef<char>)> fill) {
  if (key.empty()) {
    std::vector<char> to(*getNumBytes(packed));
    fill(to);
    return DenseElementsAttr::getFromRawBuffer(packed, to);
  }
  return getOrCreateWeights(packed, getPackedKey(key, packing, columnsDim),
                            fill);
}

/// Writes the panels of a matrix of elements of type T, which are zeros before.
template <typename T>
static void writePanels(const Matrices &matrices, const char *from, char *to,
                        ArrayRef<int64_t> panels) {
  int64_t panelColumns = panels[2];
  for (int64_t panel = 0; panel < panels[0]; ++panel) {
    int64_t first = panel * panelColumns;
    int64_t count = std::min(panelColumns, matrices.columns - first);
    for (int64_t row = 0; row < panels[1]; ++row) {
      const char *source =
          from + (row * matrices.rowStride + first * matrices.columnStride) *
                     sizeof(T);
      if (matrices.columnStride == 1)
        std::memcpy(to, source, count * sizeof(T));
      else
        for (int64_t i = 0; i < count; ++i)
          std::memcpy(to + i * sizeof(T),
                      source + i * matrices.columnStride * sizeof(T),
                      sizeof(T));
      to += panelColumns * sizeof(T);
    }
  }
}

ElementsAttr mlir::posenc::packPanels(ElementsAttr elements,
                                      unsigned columnsDim,
                                      int64_t panelColumns) {
  Matrices matrices(elements, columnsDim);
  RankedTensorType panels =
      getPanelsType(matrices.matrix, columnsDim, panelColumns);
  auto fill = [&](MutableArrayRef<char> to) {
    auto write = [&](auto element) {
      for (int64_t number = 0; number < matrices.count; ++number)
        writePanels<decltype(element)>(
            matrices, matrices.getData(number),
            to.data() + number * (to.size() / matrices.count),
            panels.getShape());
    };
    switch (panels.getElementTypeBitWidth()) {
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
  std::string key = getKey(elements, matrices);
  // The version for wider vectors has packed panels that this one can read.
  for (int64_t wider : {2 * panelColumns, 3 * panelColumns}) {
    if (key.empty())
      break;
    if (auto known = lookupWeights(
            matrices.getType(getPanelsType(matrices.matrix, columnsDim, wider)),
            getPackedKey(key, {matrices.rows, matrices.columns, wider},
                         columnsDim)))
      return known;
  }
  return createPacked(key, matrices.getType(panels),
                      {matrices.rows, matrices.columns, panelColumns},
                      columnsDim, fill);
}

ElementsAttr mlir::posenc::packPairs(ElementsAttr elements, unsigned columnsDim,
                                     int64_t panelColumns, int64_t words) {
  Matrices matrices(elements, columnsDim);
  constexpr int64_t half = kDotBlock / 2;
  int64_t columns = matrices.columns;
  int64_t panels = llvm::divideCeil(columns, panelColumns);
  RankedTensorType packed = matrices.getType(
      RankedTensorType::get({panels, words, panelColumns},
                            IntegerType::get(elements.getContext(), 32)));
  PanelPacking packing{matrices.rows, columns, panelColumns};
  packing.hasPairs = true;
  auto fill = [&](const char *from, char *at) {
    auto read = [&](int64_t row, int64_t column) -> uint32_t {
      uint16_t element = 0;
      if (row < matrices.rows)
        std::memcpy(&element,
                    from + 2 * (row * matrices.rowStride +
                                column * matrices.columnStride),
                    2);
      return element;
    };
    for (int64_t first = 0; first < columns; first += panelColumns) {
      int64_t end = std::min(first + panelColumns, columns);
      for (int64_t word = 0; word < words; ++word) {
        int64_t row = word / half * kDotBlock + word % half;
        for (int64_t column = first; column < end; ++column) {
          uint32_t pair = read(row, column) | read(row + half, column) << 16;
          std::memcpy(at + 4 * (column - first), &pair, 4);
        }
        at += 4 * panelColumns;
      }
    }
  };
  return createPacked(getKey(elements, matrices), packed, packing, columnsDim,
                      [&](MutableArrayRef<char> to) {
                        for (int64_t i = 0; i < matrices.count; ++i)
                          fill(matrices.getData(i),
                               to.data() + i * (to.size() / matrices.count));
                      });
}

/// Replaces a read of an element of a matrix by one of its panels.
static void readFromPanels(RewriterBase &rewriter, tensor::ExtractOp read,
                           Value panels, unsigned columnsDim) {
  rewriter.setInsertionPoint(read);
  ImplicitLocOpBuilder b(read.getLoc(), rewriter);
  auto divide = [&](Value x, int64_t by) -> std::pair<Value, Value> {
    Value divisor = arith::ConstantIndexOp::create(b, by);
    return {arith::DivUIOp::create(b, x, divisor),
            arith::RemUIOp::create(b, x, divisor)};
  };
  auto type = cast<RankedTensorType>(panels.getType());
  auto [panel, lane] =
      divide(read.getIndices()[columnsDim], type.getDimSize(2));
  Value row = read.getIndices()[1 - columnsDim];
  if (type.getElementType() == read.getType()) {
    rewriter.replaceOpWithNewOp<tensor::ExtractOp>(
        read, panels, ValueRange{panel, row, lane});
    return;
  }
  // The element is a half of a word; rows have their number in words.
  constexpr int64_t half = kDotBlock / 2;
  auto [halfOfRow, inHalf] = divide(row, half);
  auto [block, isUpper] = divide(halfOfRow, 2);
  Value word = arith::AddIOp::create(
      b,
      arith::MulIOp::create(b, block, arith::ConstantIndexOp::create(b, half)),
      inHalf);
  Value pair =
      tensor::ExtractOp::create(b, panels, ValueRange{panel, word, lane});
  Value shift = arith::IndexCastOp::create(
      b, b.getI32Type(),
      arith::MulIOp::create(b, isUpper, arith::ConstantIndexOp::create(b, 16)));
  Value bits = arith::TruncIOp::create(b, b.getI16Type(),
                                       arith::ShRUIOp::create(b, pair, shift));
  rewriter.replaceOpWithNewOp<arith::BitcastOp>(read, read.getType(), bits);
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
