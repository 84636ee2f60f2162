//===- NestAttention.cpp - loops of attention for GPUs --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPU/Launch/DeviceFacts.h"
#include "GPU/Launch/GpuKernel.h"
#include "GPU/Threads/ElementKernel.h"
#include "GpuAttention.h"
#include "KeyBounds.h"
#include "MergeSplits.h"
#include "TileCopies.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/Conversion/PosencToLinalg.h"
#include "posenc/IR/CreateIndex.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/Transforms/AttentionNest.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCNESTATTENTIONPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

//===----------------------------------------------------------------------===//
// Support
//===----------------------------------------------------------------------===//

/// Returns the first operation of the regions without a form on GPUs, or null.
static Operation *findUnsupported(AttentionOp op) {
  for (Region *region : {&op.getScore(), &op.getWhere()})
    for (Operation &inner : region->getOps())
      if (!isa<AlibiOp, T5BucketOp, YieldOp, memref::LoadOp>(inner) &&
          !hasGpuForm(&inner, /*hasFunctions=*/true))
        return &inner;
  return nullptr;
}

std::optional<std::string>
mlir::posenc::getGpuUnsupportedReason(AttentionOp op) {
  if (op.normsAllQueryHeads() || op.normsAllKeyHeads())
    return "a norm over all heads of a token has no GPU kernel";
  auto isStatic = [](Value operand, unsigned dim) {
    return !cast<ShapedType>(operand.getType()).isDynamicDim(dim);
  };
  if (!isStatic(op.getQuery(), op.getQueryHeadDim()) ||
      !isStatic(op.getKey(), op.getKeyHeadDim()))
    return "the number of heads is dynamic";
  GpuAttentionSizes sizes = getAttentionSizes(op);
  for (int64_t dim : {sizes.keyDim, sizes.valueDim})
    if (dim % 8 != 0)
      return ("a head of " + Twine(dim) + " is not a multiple of 8").str();
  if (!chooseAttentionTiles(sizes))
    return ("heads of " + Twine(sizes.keyDim) + " and " +
            Twine(sizes.valueDim) + " do not fit in shared memory")
        .str();
  for (Value operand : op->getOperands()) {
    Type element = getElementTypeOrSelf(operand.getType());
    if (!element.isIndex() && !element.isInteger(1) &&
        element.getIntOrFloatBitWidth() != 8 && !isElementOnGpu(element)) {
      std::string text;
      llvm::raw_string_ostream(text) << "there are elements of " << element;
      return text;
    }
  }
  if (Operation *inner = findUnsupported(op))
    return ("its region contains " + inner->getName().getStringRef()).str();
  return std::nullopt;
}

Value mlir::posenc::getMaxKeys(OpBuilder &builder, AttentionOp op) {
  Location loc = op.getLoc();
  Value keys = builder.createOrFold<memref::DimOp>(loc, op.getKey(),
                                                   op.getKeyTokenDim());
  if (Value table = op.getBlockTable())
    keys = builder.createOrFold<arith::MulIOp>(
        loc, keys, builder.createOrFold<memref::DimOp>(loc, table, 1));
  return keys;
}

//===----------------------------------------------------------------------===//
// Rotations
//===----------------------------------------------------------------------===//

namespace {
/// The tiles of a kernel for sm_90a: rows of queries, and keys.
struct BulkTiles {
  int64_t rows, keys;
};

/// Prepares one attention on memrefs.
class AttentionNesting {
public:
  AttentionNesting(IRRewriter &rewriter, AttentionOp op,
                   bool hasSmallSharedMemory)
      : b(rewriter), loc(op.getLoc()), op(op),
        hasSmallSharedMemory(hasSmallSharedMemory) {}

  void nest(bool hasWarpgroups);

private:
  Value getSize(Value memref, int64_t dim) {
    return b.createOrFold<memref::DimOp>(loc, memref, dim);
  }
  Value allocate(ArrayRef<int64_t> shape, Type element, ValueRange sizes) {
    return memref::AllocOp::create(b, loc, MemRefType::get(shape, element),
                                   sizes);
  }
  Value allocateLike(Value memref);
  void rotateKeys();
  RotationTables createTables(RotationAttr rotation, Value positions);
  RotationTables createTablesOfIndices(RotationAttr rotation);
  Value toTensor(Value memref, bool isWritable);
  scf::ForallOp emitLoops(AttentionNestOptions options,
                          const AttentionResults &results);
  scf::ForallOp emitLoops(const AttentionNestOptions &options) {
    return emitLoops(options, getResults());
  }
  AttentionResults getResults() {
    OperandRange inits = op.getInits();
    return {inits.front(), inits.size() > 1 ? inits.back() : Value()};
  }
  void emitFewQueries(AttentionNestOptions options,
                      const AttentionResults &results);
  void emitSplits(AttentionNestOptions options, const GpuAttentionTiles &tiles,
                  int64_t maxQueries);
  AttentionResults allocateSplits(Value numSplits, int64_t maxRaggedQueries,
                                  bool hasGroups, int64_t rowsPerTile);
  Value canUseBulkCopies();

  IRRewriter &b;
  Location loc;
  AttentionOp op;
  bool hasSmallSharedMemory;
  /// An i1: whether kernels of sm_90a can be launched; null if there are none.
  Value hasBulkCopies;
  /// Tables of the bounds of elements of `where`, or empty.
  SmallVector<Value> keyBounds;
  /// The tiles of few queries for sm_90a, if it has a kernel of its own.
  std::optional<BulkTiles> fewTiles;
};
} // namespace

Value AttentionNesting::allocateLike(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(getSize(memref, dim));
  return allocate(type.getShape(), type.getElementType(), sizes);
}

/// Rotates all keys beforehand, once for all queries and query heads, unless
/// only some of them are read, or they would be rounded to a narrower type.
void AttentionNesting::rotateKeys() {
  if (!op.getKeyRotationAttr() || op.getBlockTable() || op.getLengths() ||
      op.getKeyNorm() || op.hasMixedTypes())
    return;
  RotationAttr rotation = op.getKeyRotationAttr();
  SmallVector<int64_t> dims{static_cast<int64_t>(op.getKeyTokenDim())};
  Value positions = op.getKeyPositions();
  if (!positions) {
    // In ragged keys, positions start at 0 in each sequence.
    if (op.hasRaggedKeys())
      return;
    positions = createIndex(b, loc, 0);
  } else if (!op.hasRaggedKeys()) {
    dims.insert(dims.begin(), 0);
  }
  Value rotated = allocateLike(op.getKey());
  RopeOp::create(b, loc, TypeRange(), op.getKey(), positions, op.getTurns(),
                 rotated,
                 PairingAttr::get(b.getContext(), rotation.getPairing()),
                 rotation.getFrequencies(), rotation.getAxes(),
                 /*scale=*/nullptr, b.getDenseI64ArrayAttr(dims),
                 b.getI64IntegerAttr(rotation.getOffset()),
                 /*inverse=*/nullptr);
  op.getKeyMutable().assign(rotated);
  op.getKeyPositionsMutable().clear();
  op.removeKeyRotationAttr();
}

/// Computes tables of the positions.
RotationTables AttentionNesting::createTables(RotationAttr rotation,
                                              Value positions) {
  if (!positions)
    return createTablesOfIndices(rotation);
  auto type = cast<MemRefType>(positions.getType());
  SmallVector<int64_t> shape;
  SmallVector<Value> sizes;
  for (int64_t dim = rotation.getAxes() ? 1 : 0; dim < type.getRank(); ++dim) {
    shape.push_back(type.getDimSize(dim));
    if (type.isDynamicDim(dim))
      sizes.push_back(getSize(positions, dim));
  }
  shape.push_back(rotation.getFrequencies().getDim() / 2);
  Value cos = allocate(shape, op.getSumType(), sizes);
  Value sin = allocate(shape, op.getSumType(), sizes);
  SincosOp::create(b, loc, TypeRange(), positions, op.getTurns(),
                   ValueRange{cos, sin}, rotation.getFrequencies(),
                   rotation.getAxes());
  return {cos, sin, {}};
}

/// Computes tables of all positions that a query or key may have: from that of
/// the first of more queries than keys to that of the last key.
RotationTables AttentionNesting::createTablesOfIndices(RotationAttr rotation) {
  Value origin = getSize(op.getQuery(), op.getQueryTokenDim());
  if (Value trailing = op.getTrailingQueries())
    origin = b.createOrFold<arith::AddIOp>(loc, origin, trailing);
  Value keys = getMaxKeys(b, op);
  Value size = b.createOrFold<arith::AddIOp>(loc, origin, keys);
  int64_t pairs = rotation.getFrequencies().getDim() / 2;
  Value cos = allocate({ShapedType::kDynamic, pairs}, op.getSumType(), size);
  Value sin = allocate({ShapedType::kDynamic, pairs}, op.getSumType(), size);
  Value first =
      b.createOrFold<arith::SubIOp>(loc, createIndex(b, loc, 0), origin);
  SincosOp::create(b, loc, TypeRange(), first, op.getTurns(),
                   ValueRange{cos, sin}, rotation.getFrequencies(),
                   rotation.getAxes());
  return {cos, sin, origin};
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value AttentionNesting::toTensor(Value memref, bool isWritable) {
  if (!isa_and_nonnull<MemRefType>(memref.getType()))
    return memref;
  return bufferization::ToTensorOp::create(
      b, loc, memref::getTensorTypeFromMemRefType(memref.getType()), memref,
      /*restrict=*/true, isWritable);
}

/// Emits loops that compute `results` at the insertion point.
scf::ForallOp AttentionNesting::emitLoops(AttentionNestOptions options,
                                          const AttentionResults &results) {
  auto toTensors = [&](RotationTables tables) -> RotationTables {
    if (!tables)
      return {};
    return {toTensor(tables.cos, false), toTensor(tables.sin, false),
            tables.origin};
  };
  // Tiles of splits begin with the split, those of the tables at multiples.
  if (!keyBounds.empty() && options.keysPerSplit % options.keysPerTile == 0) {
    emitKeyBounds(b, op, keyBounds, options.keysPerTile);
    for (Value table : keyBounds)
      options.keyBounds.push_back(table ? toTensor(table, /*isWritable=*/false)
                                        : Value());
  }
  options.queryTables = toTensors(options.queryTables);
  options.keyTables = toTensors(options.keyTables);
  options.packsQueries = false;
  options.boundsElements = true;
  options.alignedKeyTiles = true;
  options.listsRaggedTiles = true;
  SmallVector<Value> operands, inits{results.output};
  SmallVector<Type> types;
  if (results.logSums)
    inits.push_back(results.logSums);
  for (Value operand : op->getOperands().drop_back(op.getInits().size()))
    operands.push_back(toTensor(operand, /*isWritable=*/false));
  for (Value init : inits) {
    operands.push_back(toTensor(init, /*isWritable=*/true));
    types.push_back(memref::getTensorTypeFromMemRefType(init.getType()));
  }
  OperationState state(loc, AttentionOp::getOperationName(), operands, types);
  AttentionOp::Properties properties = op.getProperties();
  properties.operandSegmentSizes.back() = inits.size();
  state.useProperties(properties);
  for (Region &region : op->getRegions()) {
    IRMapping mapping;
    region.cloneInto(state.addRegion(), mapping);
  }
  auto onTensors = cast<AttentionOp>(b.create(state));
  ValueRange outputs = createAttentionNest(b, onTensors, options);
  for (auto [output, init] : llvm::zip_equal(outputs, inits))
    bufferization::MaterializeInDestinationOp::create(
        b, loc, TypeRange(), output, init, /*restrict=*/true,
        /*writable=*/true);
  onTensors.erase();
  return cast<scf::ForallOp>(outputs.front().getDefiningOp());
}

/// Emits the loops for few queries that compute `results`; where bulk copies
/// can read the operands, those with the tiles of their kernel.
void AttentionNesting::emitFewQueries(AttentionNestOptions options,
                                      const AttentionResults &results) {
  if (!fewTiles || !hasBulkCopies) {
    emitLoops(options, results);
    return;
  }
  OpBuilder::InsertionGuard guard(b);
  auto branch =
      scf::IfOp::create(b, loc, hasBulkCopies, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.elseBlock());
  emitLoops(options, results);
  b.setInsertionPointToStart(branch.thenBlock());
  options.rowsPerQueryTile = fewTiles->rows;
  options.keysPerTile = fewTiles->keys;
  emitLoops(options, results)
      ->setAttr(PosencDialect::kChipAttrName,
                ChipAttr::get(b.getContext(), kWarpgroupsChip));
}

/// Allocates the results of KV splits, or of groups of splits and a limited
/// number of their rows; see MergeSplits.h. `rowsPerTile` is the maximum number
/// of rows of a tile of queries.
AttentionResults AttentionNesting::allocateSplits(Value numSplits,
                                                  int64_t maxRaggedQueries,
                                                  bool hasGroups,
                                                  int64_t rowsPerTile) {
  // Log-sum-exps have the layout of the output without its last dimension.
  auto outputType = cast<MemRefType>(getResults().output.getType());
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  SmallVector<Value> sizes{numSplits};
  Value rows = createIndex(b, loc, 1);
  for (auto [dim, size] : llvm::enumerate(outputType.getShape())) {
    bool isRagged = op.hasRaggedQueries() && dim == op.getQueryTokenDim();
    shape.push_back(isRagged ? ShapedType::kDynamic : size);
    bool isRow = dim + 1 != outputType.getShape().size();
    Value all = createIndex(b, loc, size);
    if (ShapedType::isDynamic(shape.back())) {
      all = getSize(getResults().output, dim);
      if (isRagged) {
        Value maxRows = b.createOrFold<arith::MulIOp>(
            loc, getSize(op.getCuSeqlens()[0], 0),
            createIndex(b, loc, maxRaggedQueries));
        all = b.createOrFold<arith::MinUIOp>(loc, all, maxRows);
      }
      sizes.push_back(all);
    }
    if (isRow)
      rows = b.createOrFold<arith::MulIOp>(loc, rows, all);
  }
  AttentionResults splits;
  Type sum = op.getSumType();
  if (!hasGroups) {
    splits.output = allocate(shape, sum, sizes);
  } else {
    splits.numRows = b.createOrFold<arith::MinUIOp>(
        loc, b.createOrFold<arith::MulIOp>(loc, numSplits, rows),
        createIndex(b, loc, getMaxSplitRows(rowsPerTile)));
    splits.numGroups = b.createOrFold<arith::CeilDivUIOp>(
        loc, numSplits, createIndex(b, loc, kSplitsPerGroup));
    // The rows of splits follow the states of groups. The sum of both never
    // falls if a size grows, so that memory for a large call serves small ones.
    Value allRows = b.createOrFold<arith::AddIOp>(
        loc, b.createOrFold<arith::MulIOp>(loc, splits.numGroups, rows),
        splits.numRows);
    int64_t rowBytes = shape.back() * sum.getIntOrFloatBitWidth() / 8;
    Value bytes = b.createOrFold<arith::MulIOp>(loc, allRows,
                                                createIndex(b, loc, rowBytes));
    Value memory = allocate({ShapedType::kDynamic}, b.getI8Type(), bytes);
    SmallVector<Value> groupSizes(sizes);
    groupSizes[0] = splits.numGroups;
    splits.output =
        memref::ViewOp::create(b, loc, MemRefType::get(shape, sum), memory,
                               createIndex(b, loc, 0), groupSizes);
    sizes[0] =
        b.createOrFold<arith::MulIOp>(loc, numSplits, createIndex(b, loc, 2));
  }
  splits.logSums = allocate(ArrayRef(shape).drop_back(), sum, sizes);
  return splits;
}

/// Emits the loops for few queries: the results of KV splits, which
/// another kernel merges, unless all keys are one split. The number of keys is
/// that of the longest sequence which the operands can have. A tile has at most
/// `maxQueries` queries of a head.
void AttentionNesting::emitSplits(AttentionNestOptions options,
                                  const GpuAttentionTiles &tiles,
                                  int64_t maxQueries) {
  options.rowsPerQueryTile = tiles.getRows();
  options.keysPerTile = tiles.keys;
  options.keysPerSplit = getKeysPerSplit(getAttentionSizes(op));
  Value keys = getMaxKeys(b, op);
  Value count = b.createOrFold<arith::CeilDivUIOp>(
      loc, keys, createIndex(b, loc, options.keysPerSplit));
  Value isSingle = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ule,
                                                 count, createIndex(b, loc, 1));
  if (matchPattern(isSingle, m_One())) {
    emitFewQueries(options, getResults());
    return;
  }
  AttentionResults results = getResults();
  Value allocated = b.createOrFold<arith::SelectOp>(
      loc, isSingle, createIndex(b, loc, 0), count);
  auto getDim = [](Value memref, int64_t dim) {
    return cast<ShapedType>(memref.getType()).getDimSize(dim);
  };
  int64_t group = getDim(op.getQuery(), op.getQueryHeadDim()) /
                  std::max<int64_t>(getDim(op.getKey(), op.getKeyHeadDim()), 1);
  int64_t rowsPerTile = tiles.getRows();
  if (fewTiles)
    rowsPerTile = std::max(rowsPerTile, fewTiles->rows);
  AttentionResults splits = allocateSplits(
      allocated, options.maxQueries,
      /*hasGroups=*/options.keysPerSplit == kKeysPerSplit,
      std::min(rowsPerTile, std::max<int64_t>(group * maxQueries, 1)));
  auto branch = scf::IfOp::create(b, loc, isSingle, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  emitFewQueries(options, results);
  b.setInsertionPointToStart(branch.elseBlock());
  options.numSplits = count;
  emitFewQueries(options, splits);
  mergeSplits(b, op, splits, results, options.maxQueries);
}

/// Emits an i1: whether kernels with bulk copies can be launched: the GPU is
/// one of sm_90a, rows are aligned to 16 bytes, and pages consist of boxes.
Value AttentionNesting::canUseBulkCopies() {
  constexpr int64_t kArch = 90;
  Value arch = arith::ConstantIntOp::create(b, loc, kArch, 64);
  Value can = callSupport(b, op, kRunsOnFunction, b.getI1Type(), arch);
  for (Value operand :
       {op.getQuery(), op.getKey(), op.getValue(), op.getInits().front()})
    can = arith::AndIOp::create(b, loc, can,
                                areAligned(b, loc, operand, /*lanes=*/8));
  // The driver refuses other strides, such as negative ones.
  constexpr int64_t kMaxStride = (int64_t{1} << 40) / 2;
  for (Value operand : {op.getKey(), op.getValue()}) {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, operand);
    for (Value stride : metadata.getStrides().drop_back()) {
      Value fits =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, stride,
                                createIndex(b, loc, kMaxStride));
      can = arith::AndIOp::create(b, loc, can, fits);
    }
  }
  auto keys = cast<ShapedType>(op.getKey().getType());
  if (op.getBlockTable() && keys.isDynamicDim(op.getKeyTokenDim()))
    can = arith::AndIOp::create(
        b, loc, can,
        havePagesBoxes(b, loc, getSize(op.getKey(), op.getKeyTokenDim())));
  return can;
}

/// Whether the operands suit bulk copies of tiles of `keys` keys, which change
/// no element.
static bool supportsBulkCopies(AttentionOp op, int64_t keys) {
  auto getPageSize = [&](Value pages) {
    return cast<ShapedType>(pages.getType()).getDimSize(op.getKeyTokenDim());
  };
  int64_t pageSize = getPageSize(op.getKey());
  bool hasBoxes =
      !op.getBlockTable() || (pageSize == getPageSize(op.getValue()) &&
                              getPageBoxRows(keys, pageSize));
  return !op.hasMixedTypes() && !op.getKeyNorm() && !op.getKeyRotationAttr() &&
         hasBoxes;
}

namespace {
/// The tiles for sequences of few queries, and the maximum that these have.
struct FewQueries {
  GpuAttentionTiles tiles;
  /// The tiles for sm_90a, if bulk copies can fill them.
  std::optional<BulkTiles> bulk;
  int64_t maxQueries;
};
} // namespace

/// Returns the maximum number of queries of a sequence for which the keys of an
/// operation have splits. `posenc-heads-to-tokens` turns the heads of a token
/// into queries. Heads that the kernels of few queries do not take are wide,
/// and their tiles do not depend on the number of queries.
static int64_t getMaxQueries(AttentionOp op) {
  constexpr int64_t kMaxHeads = 128;
  GpuAttentionSizes sizes = getAttentionSizes(op);
  bool isOneToken = op.getQueryLayout() == HeadLayout::HeadMajor &&
                    !sizes.masksPositions && !sizes.changesScores &&
                    op.getWhere().empty();
  return isOneToken && !chooseDecodeTiles(sizes, GpuAttentionTiles::kRowTile)
             ? kMaxHeads
             : kMaxDecodedQueries;
}

/// Returns the tiles of an operation all or some of whose sequences have few
/// queries; nullopt if there are none.
static std::optional<FewQueries> findFewQueries(AttentionOp op,
                                                bool hasSmallSharedMemory) {
  auto queries = cast<ShapedType>(op.getQuery().getType());
  auto keys = cast<ShapedType>(op.getKey().getType());
  int64_t group = queries.getDimSize(op.getQueryHeadDim()) /
                  std::max<int64_t>(keys.getDimSize(op.getKeyHeadDim()), 1);
  int64_t count = queries.getDimSize(op.getQueryTokenDim());
  OperandRange lists = op.getCuSeqlens();
  if (op.hasRaggedKeys() && lists.front() == lists.back())
    return std::nullopt; // A sequence has as many keys as queries.
  if (op.hasRaggedQueries())
    count = getMaxRaggedDecodedQueries(group);
  else if (ShapedType::isDynamic(count) || count > getMaxQueries(op))
    return std::nullopt;
  // Heads that are too wide for the kernel of few queries, such as those of
  // DeepSeek's MLA, have KV splits with the tiles of many queries.
  GpuAttentionSizes sizes = getAttentionSizes(op);
  std::optional<GpuAttentionTiles> tiles =
      chooseDecodeTiles(sizes, group * count);
  std::optional<BulkTiles> bulk;
  if (auto ring = chooseRingTiles(sizes, group * count)) {
    bulk = BulkTiles{ring->getRows(), ring->keys};
  } else {
    sizes.sharesValues =
        !op.getMask() && areFirstChannels(op.getValue(), op.getKey());
    // Tiles begin at multiples of their size, and so must splits: otherwise,
    // windows of other rows would change which keys share a tile. Splits of a
    // group need the kernel of few queries.
    auto groups = chooseWarpgroupTiles(sizes);
    if (groups && getKeysPerSplit(sizes) == kKeysPerWideSplit &&
        kKeysPerWideSplit % groups->keys == 0)
      bulk = BulkTiles{groups->getRows(), groups->keys};
  }
  if (bulk && !supportsBulkCopies(op, bulk->keys))
    bulk.reset();
  if (!tiles)
    tiles = chooseAttentionTiles(sizes, hasSmallSharedMemory);
  return FewQueries{*tiles, bulk, count};
}

void AttentionNesting::nest(bool hasWarpgroups) {
  b.setInsertionPoint(op);
  GpuAttentionSizes sizes = getAttentionSizes(op);
  rotateKeys();
  keyBounds = allocateKeyBounds(b, op);
  AttentionNestOptions options;
  RotationAttr queryRotation = op.getQueryRotationAttr(),
               keyRotation = op.getKeyRotationAttr();
  if (queryRotation)
    options.queryTables = createTables(queryRotation, op.getQueryPositions());
  if (keyRotation) {
    bool isSame =
        queryRotation &&
        keyRotation.getFrequencies() == queryRotation.getFrequencies() &&
        keyRotation.getAxes() == queryRotation.getAxes() &&
        op.getKeyPositions() == op.getQueryPositions();
    options.keyTables = isSame
                            ? options.queryTables
                            : createTables(keyRotation, op.getKeyPositions());
  }
  std::optional<FewQueries> few = findFewQueries(op, hasSmallSharedMemory);
  std::optional<WarpgroupTiles> groups;
  if (!few || op.hasRaggedQueries())
    groups = chooseWarpgroupTiles(sizes);
  if (groups && !supportsBulkCopies(op, groups->keys))
    groups.reset();
  if (few)
    fewTiles = few->bulk;
  if (hasWarpgroups && (groups || fewTiles))
    hasBulkCopies = canUseBulkCopies();
  if (few) {
    if (!op.hasRaggedQueries()) {
      emitSplits(options, few->tiles, few->maxQueries);
      op.erase();
      return;
    }
    // A sequence's kernel depends on its own number of queries alone, so that
    // its bits do not depend on the others.
    OpBuilder::InsertionGuard guard(b);
    options.maxQueries = few->maxQueries;
    emitSplits(options, few->tiles, few->maxQueries);
    options.maxQueries = 0;
    options.minQueries = few->maxQueries + 1;
  }
  if (hasBulkCopies && groups) {
    auto branch = scf::IfOp::create(b, loc, hasBulkCopies,
                                    /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    options.rowsPerQueryTile = groups->getRows();
    options.keysPerTile = groups->keys;
    emitLoops(options)->setAttr(PosencDialect::kChipAttrName,
                                ChipAttr::get(b.getContext(), kWarpgroupsChip));
    b.setInsertionPointToStart(branch.elseBlock());
  }
  GpuAttentionTiles tiles = *chooseAttentionTiles(sizes, hasSmallSharedMemory);
  options.rowsPerQueryTile = tiles.getRows();
  options.keysPerTile = tiles.keys;
  emitLoops(options);
  op.erase();
}

namespace {
struct NestAttention final
    : mlir::posenc::impl::PosencNestAttentionPassBase<NestAttention> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<AttentionOp> operations;
    getOperation().walk([&](AttentionOp op) {
      if (!op.hasPureTensorSemantics())
        operations.push_back(op);
    });
    // Buckets become arithmetic; slopes depend on the row of a thread.
    RewritePatternSet patterns(&getContext());
    populatePosencBiasToArithPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    IRRewriter rewriter(&getContext());
    GpuAttr gpu = getGpu(getOperation());
    for (AttentionOp op : operations)
      if (!getGpuUnsupportedReason(op))
        AttentionNesting(rewriter, op, gpu.getSmallSharedMemory())
            .nest(gpu.getWarpgroups());
  }
};
} // namespace
