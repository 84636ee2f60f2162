//===- VectorizeTiles.cpp - linalg tiles on memrefs to vectors ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Converts a linalg tile on one-dimensional views of buffers to loads,
// arithmetic and stores of hardware vectors. Two views of the even and the odd
// elements of a range are loaded and stored as one vector.
//
//===----------------------------------------------------------------------===//

#include "CPU/Memory/Streaming.h"
#include "CPU/VectorLoops.h"
#include "ZipVectors.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCVECTORIZETILESPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// `count` elements of a memref from `indices` on, with a stride of `stride`.
/// The address of the first is a multiple of `alignment` bytes; 0 stands for
/// the element type's alignment.
namespace {
struct Lanes {
  Value memref;
  SmallVector<OpFoldResult> indices;
  int64_t count, stride, alignment;

  /// Returns the lanes of a one-dimensional view, or nullopt. The alignment
  /// comes from `memref.assume_alignment`.
  static std::optional<Lanes> get(Value view);

  int64_t getBits() const {
    return cast<MemRefType>(memref.getType()).getElementTypeBitWidth();
  }
  /// Returns the lanes [first, first + size).
  Lanes slice(OpBuilder &builder, Location loc, int64_t first,
              int64_t size) const;
  /// Whether these elements directly follow those of `other`.
  bool areBehind(const Lanes &other) const;
  /// The alignment of the first vector of that type.
  llvm::MaybeAlign getAlignment(VectorType type) const {
    int64_t bytes = type.getNumElements() * getBits() / 8;
    return alignment == 0 ? llvm::MaybeAlign()
                          : llvm::MaybeAlign(std::min<int64_t>(
                                alignment, llvm::bit_floor<uint64_t>(bytes)));
  }
  SmallVector<Value> getIndices(OpBuilder &builder, Location loc) const {
    return getValueOrCreateConstantIndexOp(builder, loc, indices);
  }
};
} // namespace

std::optional<Lanes> Lanes::get(Value view) {
  int64_t alignment = 0;
  if (auto assumption = view.getDefiningOp<memref::AssumeAlignmentOp>()) {
    alignment = assumption.getAlignment();
    view = assumption.getMemref();
  }
  auto subview = view.getDefiningOp<memref::SubViewOp>();
  if (!subview || subview.getType().getRank() != 1)
    return std::nullopt;
  SmallVector<OpFoldResult> sizes = subview.getMixedSizes();
  SmallVector<OpFoldResult> strides = subview.getMixedStrides();
  std::optional<int64_t> count = getConstantIntValue(sizes.pop_back_val());
  std::optional<int64_t> stride = getConstantIntValue(strides.pop_back_val());
  bool isRow = subview.getSourceType().isLastDimUnitStride() &&
               llvm::all_of(sizes, isOneInteger) &&
               llvm::all_of(strides, isOneInteger);
  if (!isRow || !count || *count < 1 || !stride || *stride < 1 || *stride > 2)
    return std::nullopt;
  return Lanes{subview.getSource(), subview.getMixedOffsets(), *count, *stride,
               alignment};
}

Lanes Lanes::slice(OpBuilder &builder, Location loc, int64_t first,
                   int64_t size) const {
  Lanes result = *this;
  result.count = size;
  if (first == 0)
    return result;
  if (int64_t bytes = first * stride * getBits() / 8; alignment > 0)
    result.alignment = std::min(alignment, bytes & -bytes);
  OpFoldResult &last = result.indices.back();
  if (std::optional<int64_t> constant = getConstantIntValue(last)) {
    last = builder.getIndexAttr(*constant + first * stride);
    return result;
  }
  Value step = arith::ConstantIndexOp::create(builder, loc, first * stride);
  last =
      arith::AddIOp::create(builder, loc, cast<Value>(last), step).getResult();
  return result;
}

/// Splits `index` into a value, which may be null, and a constant summand.
static std::pair<Value, int64_t> splitConstant(OpFoldResult index) {
  int64_t total = 0;
  for (;;) {
    if (std::optional<int64_t> constant = getConstantIntValue(index))
      return {Value(), total + *constant};
    auto sum = cast<Value>(index).getDefiningOp<arith::AddIOp>();
    std::optional<int64_t> term =
        sum ? getConstantIntValue(sum.getRhs()) : std::nullopt;
    if (!term)
      return {cast<Value>(index), total};
    total += *term;
    index = sum.getLhs();
  }
}

bool Lanes::areBehind(const Lanes &other) const {
  if (memref != other.memref || count != other.count ||
      stride != other.stride ||
      ArrayRef(indices).drop_back() != ArrayRef(other.indices).drop_back())
    return false;
  auto [base, offset] = splitConstant(indices.back());
  auto [otherBase, otherOffset] = splitConstant(other.indices.back());
  return base == otherBase && offset == otherOffset + 1;
}

/// Whether each operand of the operation is a view of lanes, and the op is
/// elementwise.
static bool isBufferTile(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumLoops() != 1 ||
      op.getNumParallelLoops() != 1 || !computesVectors(op) ||
      op.hasIndexSemantics())
    return false;
  auto isLanes = [&](OpOperand &operand) {
    std::optional<Lanes> lanes = Lanes::get(operand.get());
    return lanes && op.getMatchingIndexingMap(&operand).isIdentity() &&
           (op.isDpsInput(&operand) ||
            lanes->count * lanes->stride * lanes->getBits() <= 8 * kLineBytes);
  };
  return llvm::all_of(op->getOpOperands(), isLanes) &&
         llvm::none_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
           return op.payloadUsesValueFromOperand(&init);
         });
}

/// Returns the operand that is the other half of an even/odd pair of views,
/// according to `isOther`.
static std::optional<unsigned>
findOther(ArrayRef<Lanes> operands, function_ref<bool(const Lanes &)> isOther) {
  const auto *found = llvm::find_if(operands, isOther);
  if (found == operands.end())
    return std::nullopt;
  return found - operands.begin();
}

namespace {
/// Converts one tile to vectors.
class TileVectorizer {
public:
  TileVectorizer(RewriterBase &rewriter, linalg::LinalgOp op,
                 const VectorTarget &target)
      : rewriter(rewriter), op(op), loc(op.getLoc()), target(target) {}

  void run();

private:
  void findPrefetches();
  SmallVector<Value> load(ArrayRef<Lanes> inputs);
  Value loadRow(const Lanes &from, int64_t size);
  SmallVector<Value> compute(ValueRange inputs, int64_t count);
  void store(ArrayRef<Lanes> outputs, unsigned number, ValueRange values);
  void storeRow(const Lanes &to, Value value);

  RewriterBase &rewriter;
  linalg::LinalgOp op;
  Location loc;
  const VectorTarget &target;
  SmallVector<memref::PrefetchOp> prefetches;
};
} // namespace

/// Collects the memref.prefetch operations directly before the tile.
void TileVectorizer::findPrefetches() {
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode()) {
    if (auto prefetch = dyn_cast<memref::PrefetchOp>(before))
      prefetches.push_back(prefetch);
    else if (!isPure(before))
      return;
  }
}

Value TileVectorizer::loadRow(const Lanes &from, int64_t size) {
  // Each prefetch stays next to its load, as the processor drops bursts of
  // prefetches.
  for (memref::PrefetchOp prefetch : prefetches)
    if (prefetch.getMemref() == from.memref &&
        isEqualConstantIntOrValue(prefetch.getIndices().back(),
                                  from.indices.back()))
      rewriter.moveOpBefore(prefetch, rewriter.getInsertionBlock(),
                            rewriter.getInsertionPoint());
  auto type = VectorType::get({size}, getElementTypeOrSelf(from.memref));
  return vector::LoadOp::create(rewriter, loc, type, from.memref,
                                from.getIndices(rewriter, loc),
                                /*nontemporal=*/false, from.getAlignment(type));
}

/// Loads the vectors of all inputs.
SmallVector<Value> TileVectorizer::load(ArrayRef<Lanes> inputs) {
  SmallVector<Value> result(inputs.size());
  for (auto [number, input] : llvm::enumerate(inputs)) {
    if (result[number])
      continue;
    if (input.stride == 1) {
      result[number] = loadRow(input, input.count);
      continue;
    }
    std::optional<unsigned> odd =
        findOther(inputs, [input = input](const Lanes &other) {
          return other.areBehind(input);
        });
    if (odd) {
      Value row = loadRow(input, 2 * input.count);
      auto halves = vector::DeinterleaveOp::create(rewriter, loc, row);
      result[number] = halves.getRes1();
      result[*odd] = halves.getRes2();
    }
  }
  // Loads strided views without an even/odd partner element by element: the
  // elements between may be outside of the allocation.
  for (auto [number, input] : llvm::enumerate(inputs)) {
    if (result[number])
      continue;
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < input.count; ++lane)
      elements.push_back(memref::LoadOp::create(
          rewriter, loc, input.memref,
          input.slice(rewriter, loc, lane, 1).getIndices(rewriter, loc)));
    result[number] = vector::FromElementsOp::create(
        rewriter, loc,
        VectorType::get({input.count}, elements.front().getType()), elements);
  }
  return result;
}

/// Computes the results for `count` lanes.
SmallVector<Value> TileVectorizer::compute(ValueRange inputs, int64_t count) {
  Block &body = op->getRegion(0).front();
  IRMapping mapping;
  for (auto [argument, input] : llvm::zip(body.getArguments(), inputs))
    mapping.map(argument, input);
  auto getVector = [&](Value value) -> Value {
    Value mapped = mapping.lookupOrDefault(value);
    if (isa<VectorType>(mapped.getType()))
      return mapped;
    auto type = VectorType::get({count}, mapped.getType());
    return vector::BroadcastOp::create(rewriter, loc, type, mapped);
  };
  for (Operation &inner : body.without_terminator()) {
    if (TypedAttr value; matchPattern(&inner, m_Constant(&value))) {
      auto type = VectorType::get({count}, value.getType());
      mapping.map(
          inner.getResult(0),
          arith::ConstantOp::create(
              rewriter, loc, SplatElementsAttr::get(type, Attribute(value)))
              .getResult());
      continue;
    }
    SmallVector<Value> operands = llvm::map_to_vector(
        inner.getOperands(), [&](Value operand) { return getVector(operand); });
    SmallVector<Type> types =
        llvm::map_to_vector(inner.getResultTypes(), [&](Type type) -> Type {
          return VectorType::get({count}, type);
        });
    Operation *copy = rewriter.create(loc, inner.getName().getIdentifier(),
                                      operands, types, inner.getAttrs());
    mapping.map(inner.getResults(), copy->getResults());
  }
  return llvm::map_to_vector(body.getTerminator()->getOperands(),
                             [&](Value value) { return getVector(value); });
}

void TileVectorizer::storeRow(const Lanes &to, Value value) {
  auto store = vector::StoreOp::create(
      rewriter, loc, value, to.memref, to.getIndices(rewriter, loc),
      /*nontemporal=*/false,
      to.getAlignment(cast<VectorType>(value.getType())));
  if (op->hasAttr(PosencDialect::kStreamedAttrName))
    streamTo(store, target);
}

/// Stores the vector of an output. The odd half of an even/odd pair of outputs
/// is stored with the even half.
void TileVectorizer::store(ArrayRef<Lanes> outputs, unsigned number,
                           ValueRange values) {
  const Lanes &output = outputs[number];
  Value value = values[number];
  if (output.stride == 1)
    return storeRow(output, value);
  auto isBehind = [&](const Lanes &other) { return other.areBehind(output); };
  auto isBefore = [&](const Lanes &other) { return output.areBehind(other); };
  if (std::optional<unsigned> odd = findOther(outputs, isBehind))
    return storeRow(output, vector::InterleaveOp::create(rewriter, loc, value,
                                                         values[*odd]));
  if (findOther(outputs, isBefore))
    return;
  for (int64_t lane = 0; lane < output.count; ++lane)
    memref::StoreOp::create(
        rewriter, loc, vector::ExtractOp::create(rewriter, loc, value, lane),
        output.memref,
        output.slice(rewriter, loc, lane, 1).getIndices(rewriter, loc));
}

void TileVectorizer::run() {
  rewriter.setInsertionPoint(op);
  findPrefetches();
  SmallVector<Lanes> inputs, outputs;
  for (Value input : op.getDpsInputs())
    inputs.push_back(*Lanes::get(input));
  int64_t bits = 0;
  for (Value output : op.getDpsInits()) {
    outputs.push_back(*Lanes::get(output));
    // The elements between those of a strided view are loaded, too.
    bits = std::max(bits, outputs.back().stride * outputs.back().getBits());
  }
  auto slice = [&](ArrayRef<Lanes> operands, int64_t first, int64_t size) {
    return llvm::map_to_vector(operands, [&](const Lanes &lanes) {
      return lanes.slice(rewriter, loc, first, size);
    });
  };
  int64_t length = std::max<int64_t>(target.vectorBytes * 8 / bits, 1);
  auto storeAll = [&](ArrayRef<SmallVector<Lanes>> destinations,
                      ArrayRef<SmallVector<Value>> results) {
    for (unsigned number = 0; number < outputs.size(); ++number)
      for (auto [destination, values] : llvm::zip_equal(destinations, results))
        store(destination, number, values);
  };
  SmallVector<SmallVector<Value>> results;
  SmallVector<SmallVector<Lanes>> destinations;
  for (auto [first, size] : splitIntoVectors(outputs.front().count, length)) {
    results.push_back(compute(load(slice(inputs, first, size)), size));
    destinations.push_back(slice(outputs, first, size));
    // Streaming stores must complete a cache line at once, so all vectors are
    // stored at the end. Other stores free their registers immediately.
    if (!op->hasAttr(PosencDialect::kStreamedAttrName)) {
      storeAll(destinations, results);
      results.clear();
      destinations.clear();
    }
  }
  storeAll(destinations, results);
  rewriter.eraseOp(op);
}

namespace {
struct VectorizeTiles final
    : mlir::posenc::impl::PosencVectorizeTilesPassBase<VectorizeTiles> {
  using Base::Base;
  friend struct mlir::posenc::VectorTarget;

  void runOnOperation() override {
    VectorTarget target = VectorTarget::get(*this);
    target.vectorBytes = target.getRowVectorBytes();
    SmallVector<linalg::LinalgOp> tiles;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (isBufferTile(op))
        tiles.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : tiles)
      TileVectorizer(rewriter, op, target).run();
    if (zip)
      zipVectors(rewriter, getOperation());
  }
};
} // namespace
