//===- TileElements.cpp - elements of the tensors of a tile ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileReader.h"

#include "posenc/IR/CreateIndex.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

Value TileReader::splat(Value scalar, int64_t lanes) {
  return vector::BroadcastOp::create(
      b, VectorType::get({lanes}, scalar.getType()), scalar);
}

SmallVector<Value> TileReader::getLanes(Value vector) {
  SmallVector<Value> lanes;
  for (int64_t lane = 0,
               e = cast<VectorType>(vector.getType()).getNumElements();
       lane < e; ++lane)
    lanes.push_back(vector::ExtractOp::create(b, vector, lane));
  return lanes;
}

/// Returns the indices in the source of a slice, whose strides are 1.
SmallVector<Value> TileReader::toSource(tensor::ExtractSliceOp op,
                                        ArrayRef<Value> at) {
  llvm::SmallBitVector dropped = op.getDroppedDims();
  SmallVector<Value> indices;
  for (auto [dim, offset] : llvm::enumerate(op.getMixedOffsets())) {
    Value first = get(offset);
    if (!dropped[dim]) {
      first = b.add(first, at.front());
      at = at.drop_front();
    }
    indices.push_back(first);
  }
  return indices;
}

/// Whether nothing but a constant is stored in the tensor; returns the
/// constant.
static TypedAttr findPadding(Value tensor) {
  TypedAttr constant;
  while (true) {
    if (auto insert = tensor.getDefiningOp<tensor::InsertSliceOp>()) {
      constant = findPadding(insert.getSource());
      if (!constant)
        return {};
      tensor = insert.getDest();
    } else if (auto fill = tensor.getDefiningOp<linalg::FillOp>()) {
      TypedAttr value;
      return matchPattern(fill.value(), m_Constant(&value)) ? value
                                                            : TypedAttr();
    } else {
      return tensor.getDefiningOp<tensor::EmptyOp>() ? constant : TypedAttr();
    }
  }
}

/// Sets `inner` to the indices in the inserted tensor. Returns an i1: whether
/// it has the element; null if it always does.
Value TileReader::isInRange(tensor::InsertSliceOp op, ArrayRef<Value> at,
                            SmallVector<Value> &inner) {
  auto type = cast<ShapedType>(op.getDest().getType());
  llvm::SmallBitVector dropped = op.getDroppedDims();
  Value isInside;
  auto sizes = op.getMixedSizes();
  for (auto [dim, offset] : llvm::enumerate(op.getMixedOffsets())) {
    Value index = at[dim];
    if (!isConstantIntValue(offset, 0))
      index = b.sub(index, get(offset));
    if (!isConstantIntValue(sizes[dim], type.getDimSize(dim)))
      isInside = b.both(isInside, b.compare(arith::CmpIPredicate::ult, index,
                                            get(sizes[dim])));
    if (!dropped[dim])
      inner.push_back(index);
  }
  return isInside;
}

Value TileReader::readPadded(tensor::InsertSliceOp op, ArrayRef<Value> at,
                             int64_t lanes) {
  SmallVector<Value> inner;
  Value isInside = isInRange(op, at, inner);
  if (!isInside)
    return read(op.getSource(), inner, lanes);
  Type element = getElementTypeOrSelf(op.getType());
  if (keepsSums && !element.isF64())
    element = b.getF32Type();
  return b
      .emitIf(
          isInside, Type(VectorType::get({lanes}, element)),
          [&]() -> SmallVector<Value> {
            return {b.convert(read(op.getSource(), inner, lanes), element)};
          },
          [&]() -> SmallVector<Value> {
            Value padding =
                arith::ConstantOp::create(b, findPadding(op.getDest()));
            return {splat(b.convert(padding, element), lanes)};
          })
      .front();
}

/// Replaces a tensor with padding, and indices in it, by what is inserted and
/// by indices that exist there. Returns an i1: whether the indices did exist;
/// null if they always do.
Value TileReader::clampToSource(Value &tensor, SmallVector<Value> &at) {
  Value exists;
  while (auto op = tensor.getDefiningOp<tensor::InsertSliceOp>()) {
    SmallVector<Value> inner;
    exists = b.both(exists, isInRange(op, at, inner));
    llvm::SmallBitVector dropped = op.getDroppedDims();
    auto *index = inner.begin();
    for (auto [dim, size] : llvm::enumerate(op.getMixedSizes())) {
      if (dropped[dim])
        continue;
      if (!isConstantIntValue(op.getMixedOffsets()[dim], 0))
        *index = b.createOrFold<arith::MaxSIOp>(*index,
                                                createIndex(b, b.getLoc(), 0));
      if (!isConstantIntValue(size, op.getDestType().getDimSize(dim)))
        *index = b.createOrFold<arith::MinSIOp>(*index, b.add(get(size), -1));
      ++index;
    }
    tensor = op.getSource();
    at = inner;
  }
  return exists;
}

TileReader::Elements TileReader::readClamped(Value tensor, ArrayRef<Value> at,
                                             int64_t lanes) {
  SmallVector<Value> indices(at);
  Value exists = clampToSource(tensor, indices);
  return {{read(tensor, indices, lanes)}, exists};
}

tensor::ExtractOp mlir::posenc::findGather(linalg::GenericOp op) {
  auto extract = op.getBody()
                     ->getTerminator()
                     ->getOperand(0)
                     .getDefiningOp<tensor::ExtractOp>();
  if (!extract || !op.getDpsInputs().empty() || extract.getIndices().empty())
    return nullptr;
  auto lane = extract.getIndices().back().getDefiningOp<linalg::IndexOp>();
  bool isLane =
      lane && static_cast<int64_t>(lane.getDim()) == op.getNumLoops() - 1;
  return isLane ? extract : nullptr;
}

/// Whether the operation only rounds the elements of its input.
static bool isRounding(linalg::GenericOp op) {
  auto round = op.getBody()
                   ->getTerminator()
                   ->getOperand(0)
                   .getDefiningOp<arith::TruncFOp>();
  return round && op.getDpsInputs().size() == 1 &&
         round.getIn() == op.getBody()->getArgument(0) &&
         llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); });
}

/// Clones the operations of the body before `end` for one lane.
void TileReader::evaluate(linalg::GenericOp op, ArrayRef<Value> at,
                          int64_t lane, Operation *end) {
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (&inner == end)
      return;
    auto index = dyn_cast<linalg::IndexOp>(inner);
    if (!index) {
      cloneScalar(inner);
      continue;
    }
    Value loop = at[index.getDim()];
    bool isLast = index.getDim() + 1 == op.getNumLoops();
    scalars.map(index.getResult(), isLast ? b.add(loop, lane) : loop);
  }
}

SmallVector<Value> TileReader::getGathered(linalg::GenericOp op,
                                           ArrayRef<Value> at) {
  tensor::ExtractOp gather = findGather(op);
  SmallVector<Value> indices;
  withScope([&] {
    evaluate(op, at, 0, gather);
    indices = llvm::map_to_vector(gather.getIndices(),
                                  [&](Value v) { return get(v); });
  });
  return indices;
}

/// Returns the offset of the element that the operation copies.
Value TileReader::getOffsetOf(linalg::GenericOp op, tensor::ExtractOp gather,
                              ArrayRef<Value> at) {
  return getOffsetOf(gather.getTensor(), getGathered(op, at));
}

Value TileReader::readGeneric(linalg::GenericOp op, ArrayRef<Value> at,
                              int64_t lanes) {
  if (keepsSums && isRounding(op))
    return read(op.getDpsInputs().front(), at, lanes);
  if (tensor::ExtractOp gather = findGather(op))
    return load(gather.getTensor(), getOffsetOf(op, gather, at), lanes);
  int64_t last = op.getNumLoops() - 1;
  Block &body = *op.getBody();
  Value vector;
  withScope([&] {
    SmallVector<SmallVector<Value>> inputs;
    for (OpOperand &operand : op->getOpOperands()) {
      if (op.getMatchingBlockArgument(&operand).use_empty()) {
        inputs.emplace_back();
        continue;
      }
      AffineMap map = op.getMatchingIndexingMap(&operand);
      SmallVector<Value> indices;
      bool hasLast = false;
      for (AffineExpr result : map.getResults()) {
        int64_t dim = cast<AffineDimExpr>(result).getPosition();
        hasLast |= dim == last;
        indices.push_back(at[dim]);
      }
      inputs.push_back(
          getLanes(read(operand.get(), indices, hasLast ? lanes : 1)));
    }
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      for (auto [argument, values] : llvm::zip(body.getArguments(), inputs))
        if (!values.empty())
          scalars.map(argument, values[values.size() == 1 ? 0 : lane]);
      evaluate(op, at, lane, nullptr);
      elements.push_back(get(body.getTerminator()->getOperand(0)));
    }
    vector = vector::FromElementsOp::create(
        b, VectorType::get({lanes}, elements.front().getType()), elements);
  });
  return vector;
}

/// Emits a sum over the last dimension, in its order.
Value TileReader::readSum(linalg::GenericOp op, ArrayRef<Value> at) {
  constexpr int64_t kLanes = 8;
  OpOperand *input = op.getDpsInputOperand(0);
  Value init = op.getDpsInits().front();
  Value start = getLanes(read(init, at, 1)).front();
  int64_t size = cast<ShapedType>(input->get().getType()).getShape().back();
  int64_t lanes = getDivisor(size, kLanes);
  Block &body = *op.getBody();
  SmallVector<Value> sums = b.emitLoop(
      b.i32(0), b.i32(size), b.i32(lanes), start,
      [&](Value first, ValueRange carried) -> SmallVector<Value> {
        SmallVector<Value> indices(at);
        indices.push_back(b.toIndex(first));
        Value sum = carried.front();
        withScope([&] {
          for (Value x : getLanes(read(input->get(), indices, lanes))) {
            scalars.map(body.getArgument(0), x);
            scalars.map(body.getArgument(1), sum);
            for (Operation &inner : body.without_terminator())
              cloneScalar(inner);
            sum = get(body.getTerminator()->getOperand(0));
          }
        });
        return {sum};
      });
  return splat(sums.front(), 1);
}

/// Emits `x` times cosines plus its partners `y` times signed sines, in the
/// type of the input unless sums are kept.
Value TileReader::combine(RotateOp op, ArrayRef<Value> x, ArrayRef<Value> y,
                          ArrayRef<Value> cos, ArrayRef<Value> signedSin) {
  SmallVector<Value> results;
  for (size_t i = 0; i < x.size(); ++i)
    results.push_back(b.fma(y[i], signedSin[i], b.mulf(x[i], cos[i])));
  Value rotated = vector::FromElementsOp::create(
      b,
      VectorType::get({static_cast<int64_t>(x.size())},
                      results.front().getType()),
      results);
  Type element = getElementTypeOrSelf(op.getInputs().front().getType());
  return keepsSums ? rotated : b.convert(rotated, element);
}

namespace {
/// Reads the operands of a rotation, in the type of its arithmetic.
struct RotationReader {
  TileReader &reader;
  ThreadBuilder &b;
  RotateOp op;
  ArrayRef<Value> at;

  SmallVector<Value> convert(Value vector) {
    bool isDouble = getElementTypeOrSelf(op.getInputs().front()).isF64();
    Value all =
        b.convert(vector, isDouble ? Type(b.getF64Type()) : b.getF32Type());
    int64_t lanes = cast<VectorType>(all.getType()).getNumElements();
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < lanes; ++lane)
      elements.push_back(vector::ExtractOp::create(b, all, lane));
    return elements;
  }
  SmallVector<Value> readTable(Value table, Value pair, int64_t count) {
    SmallVector<Value> indices;
    for (int64_t dim : op.getDims())
      indices.push_back(at[dim]);
    indices.push_back(pair);
    return convert(reader.read(table, indices, count));
  }
  SmallVector<Value> readInput(Value channel, int64_t count) {
    SmallVector<Value> indices(at);
    indices.back() = channel;
    return convert(reader.read(op.getInputs().front(), indices, count));
  }
  /// Returns the index of the first lane in the window.
  Value getLane() {
    return b.sub(at.back(), createIndex(b, b.getLoc(), op.getOffset()));
  }
  SmallVector<Value> negate(ArrayRef<Value> all) {
    return llvm::map_to_vector(
        all, [&](Value x) -> Value { return arith::NegFOp::create(b, x); });
  }
};
} // namespace

/// Emits the rotated elements of `lanes` lanes, which are all in the window, in
/// the same half of it.
Value TileReader::rotateLanes(RotateOp op, ArrayRef<Value> at, int64_t lanes) {
  RotationReader rotation{*this, b, op, at};
  int64_t pairs = op.getRotaryDim() / 2;
  Value lane = rotation.getLane();
  SmallVector<Value> x = rotation.readInput(at.back(), lanes), y, cos, sines;
  if (op.getPairing() == Pairing::Half) {
    // The partner is in the other half of the window.
    Value isSecond = b.compare(arith::CmpIPredicate::uge, lane,
                               createIndex(b, b.getLoc(), pairs));
    Value distance = b.select(isSecond, createIndex(b, b.getLoc(), -pairs),
                              createIndex(b, b.getLoc(), pairs));
    y = rotation.readInput(b.add(at.back(), distance), lanes);
    Value pair = b.select(isSecond, b.add(lane, -pairs), lane);
    cos = rotation.readTable(op.getCos(), pair, lanes);
    SmallVector<Value> sin = rotation.readTable(op.getSin(), pair, lanes);
    for (auto [plus, minus] : llvm::zip_equal(sin, rotation.negate(sin)))
      sines.push_back(b.select(isSecond, plus, minus));
  } else {
    Value pair = b.div(lane, 2);
    SmallVector<Value> c = rotation.readTable(op.getCos(), pair, lanes / 2);
    SmallVector<Value> s = rotation.readTable(op.getSin(), pair, lanes / 2);
    for (auto [cosine, plus, minus] :
         llvm::zip_equal(c, s, rotation.negate(s))) {
      llvm::append_values(cos, cosine, cosine);
      llvm::append_values(sines, minus, plus);
    }
    for (int64_t i = 0; i < lanes; ++i)
      y.push_back(x[i % 2 ? i - 1 : i + 1]);
  }
  return combine(op, x, y, cos,
                 op.getInverse() ? rotation.negate(sines) : sines);
}

/// Emits the rotated elements of `lanes` lanes in the first half of the window,
/// and of their partners.
SmallVector<Value> TileReader::rotateHalves(RotateOp op, ArrayRef<Value> at,
                                            int64_t lanes) {
  RotationReader rotation{*this, b, op, at};
  SmallVector<Value> x = rotation.readInput(at.back(), lanes);
  SmallVector<Value> y =
      rotation.readInput(b.add(at.back(), op.getRotaryDim() / 2), lanes);
  Value pair = rotation.getLane();
  SmallVector<Value> cos = rotation.readTable(op.getCos(), pair, lanes);
  SmallVector<Value> sin = rotation.readTable(op.getSin(), pair, lanes);
  SmallVector<Value> minus = rotation.negate(sin);
  if (op.getInverse())
    std::swap(sin, minus);
  return {combine(op, x, y, cos, minus), combine(op, y, x, cos, sin)};
}

/// Returns the rotation of a tensor's rows, which padding and roundings may
/// follow; null if there is none.
static RotateOp findRotation(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
      tensor = insert.getSource();
    else if (auto generic = dyn_cast<linalg::GenericOp>(op);
             generic && isRounding(generic))
      tensor = generic.getDpsInputs().front();
    else
      return dyn_cast<RotateOp>(op);
  }
  return nullptr;
}

std::optional<TileReader::RotatedChannels>
TileReader::findRotated(Value tensor, int64_t lanes) {
  RotateOp op = findRotation(tensor);
  if (!op)
    return std::nullopt;
  int64_t first = op.getOffset(), size = op.getRotaryDim();
  int64_t dim = cast<ShapedType>(op.getType(0)).getShape().back();
  bool isHalf = op.getPairing() == Pairing::Half;
  if (first % lanes || dim % lanes || (isHalf ? size / 2 : size) % lanes)
    return std::nullopt;
  return RotatedChannels{first, size, isHalf};
}

TileReader::Elements TileReader::readUnrounded(Value tensor, ArrayRef<Value> at,
                                               int64_t lanes,
                                               Channels channels) {
  keepsSums = true;
  Elements elements;
  SmallVector<Value> indices(at);
  RotateOp op = findRotation(tensor);
  elements.exists = clampToSource(tensor, indices);
  if (channels == Channels::kAny) {
    elements.vectors = {read(tensor, indices, lanes)};
  } else if (channels == Channels::kOthers) {
    // These are as wide as rotated elements.
    Value vector = read(op.getInputs().front(), indices, lanes);
    bool isDouble = getElementTypeOrSelf(vector.getType()).isF64();
    elements.vectors = {isDouble ? vector : b.convert(vector, b.getF32Type())};
  } else if (op.getPairing() == Pairing::Half) {
    elements.vectors = rotateHalves(op, indices, lanes);
  } else {
    elements.vectors = {rotateLanes(op, indices, lanes)};
  }
  keepsSums = false;
  return elements;
}

Value TileReader::readRotated(RotateOp op, ArrayRef<Value> at, int64_t lanes) {
  Value input = op.getInputs().front();
  auto type = cast<ShapedType>(input.getType());
  Type element = type.getElementType();
  if (keepsSums && !element.isF64())
    element = b.getF32Type();
  int64_t pairs = op.getRotaryDim() / 2, offset = op.getOffset();
  bool isHalf = op.getPairing() == Pairing::Half;
  // The lanes must be in one half of the window, or outside of it.
  int64_t unit = getDivisor(offset, lanes);
  unit = getDivisor(isHalf ? pairs : 2 * pairs, unit);
  SmallVector<Value> elements;
  for (int64_t first = 0; first < lanes; first += unit) {
    SmallVector<Value> indices(at);
    indices.back() = b.add(at.back(), first);
    Value part;
    auto rotate = [&]() -> Value {
      if (isHalf || unit > 1)
        return rotateLanes(op, indices, unit);
      // Reads the whole pair for one of its elements.
      Value lane = b.sub(indices.back(), createIndex(b, b.getLoc(), offset));
      Value isOdd = b.compare(arith::CmpIPredicate::ne, b.rem(lane, 2),
                              createIndex(b, b.getLoc(), 0));
      SmallVector<Value> pair(indices);
      pair.back() = b.select(isOdd, b.add(indices.back(), -1), indices.back());
      SmallVector<Value> both = getLanes(rotateLanes(op, pair, 2));
      return splat(b.select(isOdd, both[1], both[0]), 1);
    };
    if (offset == 0 && 2 * pairs == type.getShape().back()) {
      part = rotate();
    } else {
      Value lane = b.sub(indices.back(), createIndex(b, b.getLoc(), offset));
      Value isInside = b.compare(arith::CmpIPredicate::ult, lane,
                                 createIndex(b, b.getLoc(), 2 * pairs));
      part = b.emitIf(
                  isInside, Type(VectorType::get({unit}, element)),
                  [&]() -> SmallVector<Value> { return {rotate()}; },
                  [&]() -> SmallVector<Value> {
                    return {b.convert(read(input, indices, unit), element)};
                  })
                 .front();
    }
    if (unit == lanes)
      return part;
    llvm::append_range(elements, getLanes(part));
  }
  return vector::FromElementsOp::create(b, VectorType::get({lanes}, element),
                                        elements);
}

Value TileReader::readSlice(tensor::ExtractSliceOp op, ArrayRef<Value> at,
                            int64_t lanes) {
  return read(op.getSource(), toSource(op, at), lanes);
}

/// Whether a tensor or memref is an operand of the loops.
static bool isRoot(Value tensor) {
  return isa<BlockArgument>(tensor) || isa<MemRefType>(tensor.getType()) ||
         tensor.getDefiningOp<bufferization::ToTensorOp>();
}

Value TileReader::read(Value tensor, ArrayRef<Value> at, int64_t lanes) {
  if (isRoot(tensor))
    return load(tensor, getOffsetOf(tensor, at), lanes);
  Operation *op = tensor.getDefiningOp();
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return readSlice(slice, at, lanes);
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return readPadded(insert, at, lanes);
  if (auto rotate = dyn_cast<RotateOp>(op))
    return readRotated(rotate, at, lanes);
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return splat(get(fill.value()), lanes);
  if (auto copy = dyn_cast<linalg::CopyOp>(op))
    return read(copy.getInputs().front(), at, lanes);
  if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
    SmallVector<Value> indices(at);
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      indices[from] = at[to];
    return read(transpose.getInput(), indices, lanes);
  }
  if (auto broadcast = dyn_cast<linalg::BroadcastOp>(op)) {
    SmallVector<Value> indices;
    for (auto [dim, index] : llvm::enumerate(at))
      if (!llvm::is_contained(broadcast.getDimensions(),
                              static_cast<int64_t>(dim)))
        indices.push_back(index);
    return splat(getLanes(read(broadcast.getInput(), indices, 1)).front(),
                 lanes);
  }
  auto generic = cast<linalg::GenericOp>(op);
  return generic.getNumReductionLoops() ? readSum(generic, at)
                                        : readGeneric(generic, at, lanes);
}

bool TileReader::isCopied(Value tensor) const {
  while (!isRoot(tensor)) {
    Operation *op = tensor.getDefiningOp();
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      return findGather(generic) != nullptr;
    if (!isa<tensor::ExtractSliceOp, linalg::CopyOp, tensor::InsertSliceOp>(op))
      return false;
    tensor = op->getOperand(0);
  }
  return true;
}

std::optional<TileReader::Row> TileReader::locate(Value tensor,
                                                  ArrayRef<Value> at) {
  if (isRoot(tensor))
    return Row{tensor, getOffsetOf(tensor, at), {}};
  Operation *op = tensor.getDefiningOp();
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return locate(slice.getSource(), toSource(slice, at));
  if (auto copy = dyn_cast<linalg::CopyOp>(op))
    return locate(copy.getInputs().front(), at);
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    SmallVector<Value> inner;
    Value exists = isInRange(insert, at, inner);
    Value source = insert.getSource();
    // Where rows are gathered from, is known of existing rows only.
    if (exists && source.getDefiningOp<linalg::GenericOp>())
      inner.front() = b.createOrFold<arith::MinSIOp>(
          inner.front(), b.add(getSize(source, 0), -1));
    std::optional<Row> row = locate(source, inner);
    if (row)
      row->exists = b.both(row->exists, exists);
    return row;
  }
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    if (tensor::ExtractOp gather = findGather(generic))
      return Row{gather.getTensor(), getOffsetOf(generic, gather, at), {}};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Support
//===----------------------------------------------------------------------===//

static bool isReadableGeneric(linalg::GenericOp op) {
  if (op.getNumDpsInits() != 1)
    return false;
  bool isSum =
      op.getNumReductionLoops() == 1 &&
      op.getIteratorTypesArray().back() == utils::IteratorType::reduction &&
      op.getNumDpsInputs() == 1;
  if (op.getNumReductionLoops() && !isSum)
    return false;
  return llvm::all_of(op.getIndexingMapsArray(), [&](AffineMap map) {
    return map.isProjectedPermutation();
  });
}

bool mlir::posenc::isReadable(Value tensor,
                              function_ref<bool(Operation *)> isInside) {
  if (isRoot(tensor))
    return true;
  Operation *op = tensor.getDefiningOp();
  if (!op || !isInside(op))
    return false;
  auto check = [&](Value value) { return isReadable(value, isInside); };
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return slice.hasUnitStride() && check(slice.getSource());
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return insert.hasUnitStride() && check(insert.getSource()) &&
           findPadding(insert.getDest());
  if (auto rotate = dyn_cast<RotateOp>(op))
    return rotate.getInputs().size() == 1 &&
           check(rotate.getInputs().front()) && check(rotate.getCos()) &&
           check(rotate.getSin());
  if (isa<linalg::FillOp>(op))
    return true;
  if (isa<linalg::CopyOp, linalg::TransposeOp, linalg::BroadcastOp>(op))
    return check(op->getOperand(0));
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || !isReadableGeneric(generic))
    return false;
  bool readsAll =
      llvm::all_of(generic->getOpOperands(), [&](OpOperand &operand) {
        return generic.getMatchingBlockArgument(&operand).use_empty() ||
               check(operand.get());
      });
  generic.getBody()->walk([&](tensor::ExtractOp extract) {
    readsAll &= check(extract.getTensor());
  });
  return readsAll;
}
