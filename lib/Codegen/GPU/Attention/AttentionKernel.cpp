//===- AttentionKernel.cpp - attention kernels for GPUs -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"

#include "GPU/Launch/DeviceFacts.h"
#include "GPU/Threads/LoadGroup.h"
#include "GpuAttention.h"

#include "posenc/IR/CreateIndex.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::posenc;

static int64_t getLastDim(Value tensor) {
  return cast<ShapedType>(tensor.getType()).getShape().back();
}

double AttentionKernel::getLowest(FloatType type) {
  return type.isF64() ? -std::numeric_limits<double>::max()
                      : -std::numeric_limits<float>::max();
}

AttentionKernel::AttentionKernel(OpBuilder &host,
                                 const AttentionNestParts &nest,
                                 const GpuAttentionTiles &tiles,
                                 int64_t numThreads, bool isWide,
                                 StringRef suffix)
    : host(host), nest(nest), op(nest.tile), tiles(tiles), isWide(isWide),
      kernel(nest.loops, suffix, numThreads), b(kernel.getFunction()),
      reader(host, kernel, b, isWide) {
  kernel.getFunction()->setAttr(
      PosencDialect::kChipAttrName,
      ChipAttr::get(host.getContext(), kAttentionChip));
  element = getElementTypeOrSelf(op.getQuery().getType());
  sum = op.getSumType();
  sizes = getAttentionSizes(op);
  auto shape = cast<ShapedType>(op.getQuery().getType()).getShape();
  queriesPerHead = shape[1];
  numRows = shape[0] * shape[1];
  keyPitch = GpuAttentionTiles::getPitch(sizes.keyDim, sizes.elementBytes);
  valuePitch = GpuAttentionTiles::getPitch(
      tiles.valueParts * tiles.getValueChannels(sizes), sizes.elementBytes);
  // A factor of at most 1 cannot make queries infinite.
  double factor = op.getScoreScale() / getScoreUnit();
  scalesQueries = hasTensorCores() && std::abs(factor) <= 1.0;
}

bool AttentionKernel::onlyAddsAlibi() {
  if (op.getScore().empty())
    return false;
  Block &block = op.getScore().front();
  auto last =
      block.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!last || last->getBlock() != &block)
    return false;
  auto isBias = [&](Value score, Value bias) {
    return score == block.getArgument(0) && bias.getDefiningOp<AlibiOp>();
  };
  return isBias(last.getLhs(), last.getRhs()) ||
         isBias(last.getRhs(), last.getLhs());
}

bool AttentionKernel::hasOwnScores() {
  return (!op.getScore().empty() && !onlyAddsAlibi()) ||
         (op.getMask() &&
          !getElementTypeOrSelf(op.getMask().getType()).isInteger(1));
}

double AttentionKernel::getScoreUnit() {
  return hasOwnScores() ? 1.0 : llvm::numbers::ln2;
}

//===----------------------------------------------------------------------===//
// Operands and indices
//===----------------------------------------------------------------------===//

/// Passes all values that the loops use to the kernel.
void AttentionKernel::captureOperands() {
  scf::ForallOp loops = nest.loops;
  for (Value init : loops.getOutputs())
    reader.capture(init);
  reader.captureOperands(loops);
  Location loc = loops.getLoc();
  numTiles = createIndex(host, loc, 1);
  for (OpFoldResult mixed : loops.getMixedUpperBound()) {
    Value size = getValueOrCreateConstantIndexOp(host, loc, mixed);
    gridSizes.push_back(kernel.addIndex(host, size));
    numTiles = host.createOrFold<arith::MulIOp>(loc, numTiles, size);
  }
}

/// Computes the indices of a tile of queries, which are those of a sequence, of
/// a head and of a tile in it, and the scalars of the loops. The last tiles of
/// a head, which see the most keys if attention is causal, come first, and the
/// first splits of all sequences, which have the most keys.
void AttentionKernel::takeQueries(Value number) {
  Value rest = number;
  SmallVector<Value> indices(gridSizes.size());
  SmallVector<size_t> order{kQueryTile, 1, 0};
  if (gridSizes.size() > kSplit)
    order.push_back(kSplit);
  for (size_t dim : ArrayRef(order).drop_back())
    std::tie(rest, indices[dim]) =
        divide32(b, b.getLoc(), rest, gridSizes[dim]);
  indices[order.back()] = rest;
  indices[kQueryTile] =
      b.sub(b.add(gridSizes[kQueryTile], -1), indices[kQueryTile]);
  scf::ForallOp loops = nest.loops;
  reader.getScalars().map(loops.getInductionVars(), indices);
  reader.cloneScalars(*loops.getBody());
}

bool AttentionKernel::hasSplits() {
  scf::ForallOp loops = nest.loops;
  return loops.getRank() == kLoopsWithSplits &&
         !isConstantIntValue(loops.getMixedUpperBound()[kSplit], 1);
}

/// Emits an i1 after `takeQueries`: whether there is a query, and, in KV
/// splits, a key that it sees by its position. The first split has work
/// without keys: the sums of none, or of a sink. Null if all tiles have work.
Value AttentionKernel::emitHasWork() {
  scf::ForallOp loops = nest.loops;
  Value hasWork;
  const AttentionNestParts::Output &output = nest.outputs.front();
  std::optional<Value> count = getNumQueries(output);
  if (count)
    hasWork = b.compare(arith::CmpIPredicate::sgt, *count,
                        createIndex(b, b.getLoc(), 0));
  if (!hasSplits())
    return hasWork;
  scf::ForOp keys = nest.keys;
  Value hasKeys =
      b.compare(arith::CmpIPredicate::slt, reader.get(keys.getLowerBound()),
                reader.get(keys.getUpperBound()));
  Value isFirst = b.compare(arith::CmpIPredicate::eq,
                            reader.get(loops.getInductionVars()[kSplit]),
                            createIndex(b, b.getLoc(), 0));
  return b.both(hasWork, arith::OrIOp::create(b, hasKeys, isFirst));
}

/// Finds the rows of a thread, given the number of its warp's rows and of its
/// part of the value's channels.
void AttentionKernel::findRows(Value warpRows, Value part) {
  lane = b.rem(thread, GpuAttentionTiles::kWarp);
  laneRow = b.div(lane, 4);
  laneColumn = b.rem(lane, 4);
  warpRow = b.mul(warpRows, tiles.getRowsPerWarp());
  valuePart = part;
  for (int64_t row = 0; row < getNumRows(); ++row)
    rows.push_back(getRow(b.add(b.add(warpRow, laneRow), 8 * row)));
}

AttentionKernel::Row AttentionKernel::getRow(Value number) {
  Row row{
      number, b.div(number, queriesPerHead), b.rem(number, queriesPerHead), {}};
  if (numRows < tiles.getRows())
    row.exists = b.compare(arith::CmpIPredicate::ult, number, b.i32(numRows));
  return row;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

SharedAddress AttentionKernel::getQuery(Value row, Value channel) {
  return {b.add(b.mul(row, keyPitch), b.mul(channel, sizes.elementBytes))};
}

/// Registers that loads may take at once: before the loops over keys, and in
/// them.
static constexpr int64_t kMaxQueryRegisters = 96, kMaxTileRegisters = 16;

/// Stores 16 bytes of a row, or zeros unless `exists`, which may be null.
static void storeOrZero(ThreadBuilder &b, Value vector, Value exists,
                        SharedAddress to) {
  auto type = cast<VectorType>(vector.getType());
  if (exists) {
    // A word has several elements.
    if (type.getElementTypeBitWidth() < 32) {
      type = VectorType::get({4}, b.getI32Type());
      vector = vector::BitCastOp::create(b, type, vector);
    }
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    vector = b.select(exists, vector, zero);
  }
  b.store(vector, to, 16);
}

/// Returns `index`, or `count - 1` if that is less.
static Value clamp(ThreadBuilder &b, Value index, int64_t count) {
  return b.createOrFold<arith::MinUIOp>(index, b.i32(count - 1));
}

/// Copies `count` rows of queries from `firstRow` on to shared memory; rows
/// without a query are zeros. `first` is the number of the thread among `step`.
/// The loads of all rows of the thread are under way at once, as far as there
/// are registers: rows without a query load another one, of which the block has
/// at least one.
void AttentionKernel::loadQueries(Value first, int64_t step, Value firstRow,
                                  int64_t count) {
  using Channels = TileReader::Channels;
  int64_t lanes = 16 / sizes.elementBytes;
  // Kernels that find the tokens of a tile in memory have few registers left.
  constexpr int64_t kMaxRows = 4;
  scf::ForallOp loops = nest.loops;
  bool hasLengths = !loops.getBody()->getOps<tensor::ExtractOp>().empty();
  LoadGroup straight(b, kMaxQueryRegisters);
  auto round = [&](Value vector) {
    if (scalesQueries) {
      Type f32 = b.getF32Type();
      Value factor = vector::BroadcastOp::create(
          b, cast<VectorType>(vector.getType()).clone(f32),
          b.real(f32, op.getScoreScale() / getScoreUnit()));
      vector = arith::MulFOp::create(b, b.convert(vector, f32), factor);
    }
    return b.convert(vector, element);
  };
  // Copies some channels of all rows, `lanes` from each of `places` on.
  auto load = [&](Channels channels, int64_t columns,
                  function_ref<SmallVector<Value>(Value column)> getPlaces) {
    int64_t numItems = count * columns;
    int64_t maxItems = hasLengths ? kMaxRows : llvm::divideCeil(numItems, step);
    auto copy = [&](Value before, int64_t item) {
      Value isItem;
      Value number = b.add(b.add(first, before), item);
      if (numItems % (maxItems * step) &&
          item + step > numItems % (maxItems * step))
        isItem = b.compare(arith::CmpIPredicate::ult, number, b.i32(numItems));
      // The column is the same for all rows of a thread, if it can be.
      bool isRegular = step % columns == 0;
      Value row = isRegular
                      ? b.add(b.div(first, columns),
                              b.add(b.div(before, columns), item / columns))
                      : b.div(number, columns);
      Value column = b.rem(isRegular ? first : number, columns);
      row = b.add(firstRow, row);
      Value exists, known = row;
      if (numRows < tiles.getRows())
        exists = b.compare(arith::CmpIPredicate::ult, row, b.i32(numRows));
      if (exists || isItem)
        known = clamp(b, row, numRows);
      SmallVector<Value> places = getPlaces(column);
      Value channel = places.front();
      if (channels == Channels::kAny && columns * lanes != sizes.keyDim) {
        exists = b.both(exists, b.compare(arith::CmpIPredicate::ult, channel,
                                          b.i32(sizes.keyDim)));
        channel = b.mul(clamp(b, column, llvm::divideCeil(sizes.keyDim, lanes)),
                        lanes);
      }
      TileReader::Elements read = reader.readUnrounded(
          op.getQuery(),
          {b.toIndex(b.div(known, queriesPerHead)),
           b.toIndex(b.rem(known, queriesPerHead)), b.toIndex(channel)},
          lanes, channels);
      exists = b.both(exists, read.exists);
      auto store = [&] {
        for (auto [vector, place] : llvm::zip_equal(read.vectors, places))
          storeOrZero(b, round(vector), exists, getQuery(row, place));
      };
      if (isItem)
        b.emitIf(isItem, store);
      else
        store();
    };
    auto copyAll = [&](Value before, LoadGroup &group) {
      for (int64_t item = 0; item < maxItems * step && item < numItems;
           item += step) {
        copy(before, item);
        group.endItem();
      }
    };
    if (numItems <= maxItems * step)
      return copyAll(b.i32(0), straight);
    b.emitLoop(b.i32(0), b.i32(numItems), b.i32(maxItems * step), {},
               [&](Value before, ValueRange) -> SmallVector<Value> {
                 LoadGroup group(b, kMaxQueryRegisters);
                 copyAll(before, group);
                 return {};
               });
  };
  std::optional<TileReader::RotatedChannels> rotated =
      reader.findRotated(op.getQuery(), lanes);
  if (!rotated || sizes.keyDim % 16)
    return load(Channels::kAny, llvm::alignTo(sizes.keyDim, 16) / lanes,
                [&](Value column) -> SmallVector<Value> {
                  return {b.mul(column, lanes)};
                });
  int64_t half = rotated->size / 2;
  load(Channels::kRotated, (rotated->isHalf ? half : rotated->size) / lanes,
       [&](Value column) {
         SmallVector<Value> places{b.add(b.mul(column, lanes), rotated->first)};
         if (rotated->isHalf)
           places.push_back(b.add(places.front(), half));
         return places;
       });
  if (int64_t others = sizes.keyDim - rotated->size)
    load(Channels::kOthers, others / lanes,
         [&](Value column) -> SmallVector<Value> {
           Value channel = b.mul(column, lanes);
           Value isBefore = b.compare(arith::CmpIPredicate::ult, channel,
                                      b.i32(rotated->first));
           return {b.select(isBefore, channel, b.add(channel, rotated->size))};
         });
}

/// Copies a tile of keys or values to shared memory at `offset`. The tile has a
/// key.
void AttentionKernel::loadRows(Value tensor, Value offset, int64_t pitch,
                               int64_t channels) {
  int64_t lanes = 16 / sizes.elementBytes, dim = getLastDim(tensor);
  int64_t columns = channels / lanes, numItems = tiles.keys * columns;
  bool isSame = getElementTypeOrSelf(tensor.getType()) == element;
  auto copy = [&](Value item) {
    Value row = b.div(item, columns), column = b.rem(item, columns);
    Value channel = b.mul(column, lanes);
    SharedAddress to{b.add(
        offset, b.add(b.mul(row, pitch), b.mul(channel, sizes.elementBytes)))};
    Value isChannel;
    if (channels != dim) {
      isChannel = b.compare(arith::CmpIPredicate::ult, channel, b.i32(dim));
      channel = b.mul(clamp(b, column, llvm::divideCeil(dim, lanes)), lanes);
    }
    SmallVector<Value> at{b.toIndex(row), b.toIndex(channel)};
    std::optional<TileReader::Row> from;
    if (isWide && isSame)
      from = reader.locate(tensor, at);
    if (from) {
      b.copyAsync(to, reader.getAddress(from->root, from->offset),
                  b.both(from->exists, isChannel));
      return;
    }
    TileReader::Elements read = reader.readClamped(tensor, at, lanes);
    storeOrZero(b, b.convert(read.vectors.front(), element),
                b.both(read.exists, isChannel), to);
  };
  // The loads of several rows that are converted are under way at once. Copies
  // are without it, and the addresses of several take registers.
  const int64_t maxRows = isSame && reader.isCopied(tensor) ? 1 : 4;
  int64_t rows = 1;
  while (rows < maxRows && numItems % (2 * rows * numCopiers) == 0)
    rows *= 2;
  b.emitLoop(copier, b.i32(numItems), b.i32(rows * numCopiers), {},
             [&](Value item, ValueRange) -> SmallVector<Value> {
               LoadGroup group(b, kMaxTileRegisters);
               for (int64_t i = 0; i < rows; ++i) {
                 copy(b.add(item, i * numCopiers));
                 group.endItem();
               }
               return {};
             });
}

/// Copies the tile of keys and values whose scalars have been cloned.
void AttentionKernel::loadTile(Value stage) {
  Value keys =
      b.add(b.mul(stage, tiles.getKeyBytes(sizes)), tiles.getQueryBytes(sizes));
  Value values = b.add(b.mul(stage, tiles.getValueBytes(sizes)),
                       tiles.getQueryBytes(sizes) +
                           tiles.getNumStages() * tiles.getKeyBytes(sizes));
  loadRows(op.getKey(), keys, keyPitch, llvm::alignTo(sizes.keyDim, 16));
  loadRows(op.getValue(), values, valuePitch,
           tiles.valueParts * tiles.getValueChannels(sizes));
}

//===----------------------------------------------------------------------===//
// Tiles of keys
//===----------------------------------------------------------------------===//

/// Returns an element of the loops' initial state for a row: its maximum or
/// sum.
Value AttentionKernel::getInit(int64_t part, const Row &row) {
  scf::ForOp loop = nest.keys;
  Value head = row.head;
  if (row.exists)
    head = clamp(b, head, numRows / queriesPerHead);
  Value vector = reader.read(
      loop.getInits()[part],
      {createIndex(b, b.getLoc(), 0), b.toIndex(head), b.toIndex(row.query)},
      1);
  Value init = vector::ExtractOp::create(b, vector, 0);
  return row.exists ? b.select(row.exists, init, b.real(sum, 0.0)) : init;
}

/// Converts an initial maximum to the unit of scores. A finite sink stays
/// finite.
Value AttentionKernel::scaleInit(Value maximum) {
  if (hasOwnScores())
    return maximum;
  Value infinity = b.real(sum, -std::numeric_limits<double>::infinity());
  Value isNone =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, maximum, infinity);
  Value scaled = b.mulf(maximum, b.real(sum, llvm::numbers::log2e));
  scaled = b.max(scaled, b.real(sum, getLowest(sum)));
  scaled = arith::MinNumFOp::create(b, scaled, b.real(sum, -getLowest(sum)));
  return b.select(isNone, infinity, scaled);
}

/// Emits the state before the first key.
AttentionKernel::State AttentionKernel::createState() {
  State state;
  state.accumulators.assign(getNumAccumulators(), b.real(sum, 0.0));
  // One thread of a row has the initial sum.
  Value isFirst = b.compare(arith::CmpIPredicate::eq, laneColumn, b.i32(0));
  LoadGroup group(b, kMaxTileRegisters);
  for (const Row &row : rows) {
    state.maxima.push_back(scaleInit(getInit(1, row)));
    state.sums.push_back(b.select(isFirst, getInit(2, row), b.real(sum, 0.0)));
  }
  return state;
}

/// Returns the values of a state in one list.
SmallVector<Value> AttentionKernel::pack(const State &state) const {
  SmallVector<Value> all(state.accumulators);
  llvm::append_range(all, state.maxima);
  llvm::append_range(all, state.sums);
  return all;
}

AttentionKernel::State AttentionKernel::unpack(ValueRange all) const {
  size_t numMaxima = getNumRows(), numAccumulators = all.size() - 2 * numMaxima;
  ValueRange rest = all.drop_front(numAccumulators);
  return {SmallVector<Value>(all.take_front(numAccumulators)),
          SmallVector<Value>(rest.take_front(numMaxima)),
          SmallVector<Value>(rest.drop_front(numMaxima))};
}

AttentionKernel::TileRange AttentionKernel::getTileRange() {
  scf::ForOp loop = nest.keys;
  return {reader.get(loop.getLowerBound()), reader.get(loop.getUpperBound()),
          createIndex(b, b.getLoc(), tiles.keys), b.i32(0), b.i32(1)};
}

/// Starts the copies of the tile at `key`, if that precedes `end`.
void AttentionKernel::loadTileAt(Value key, Value end, Value stage) {
  scf::ForOp loop = nest.keys;
  b.emitIf(b.compare(arith::CmpIPredicate::slt, key, end), [&] {
    reader.withScope([&] {
      takeLoads();
      reader.getScalars().map(loop.getInductionVar(), key);
      reader.cloneScalars(*loop.getBody());
      loadTile(stage);
    });
  });
  b.commitCopies();
}

AttentionKernel::State AttentionKernel::emitTiles(State state) {
  if (hasBounds())
    return emitVisibleTiles(state);
  scf::ForOp loop = nest.keys;
  TileRange range = getTileRange();
  Value end = range.end, step = range.step;
  bool isDouble = tiles.stages == 2;
  auto takeTile = [&](Value key) {
    reader.getScalars().map(loop.getInductionVar(), key);
    reader.cloneScalars(*loop.getBody());
  };
  auto loadNext = [&](Value key, Value stage) {
    loadTileAt(key, range.endOfLoads ? range.endOfLoads : end, stage);
  };
  SmallVector<Value> carried = pack(state);
  size_t numParts = carried.size();
  carried.push_back(range.firstStage);
  if (isDouble && !range.isLoaded)
    loadNext(range.begin, range.firstStage);
  SmallVector<Value> results = b.emitLoop(
      range.begin, end, step, carried,
      [&](Value key, ValueRange arguments) -> SmallVector<Value> {
        Value stage = arguments[numParts], next = stage;
        auto wait = [&] {
          b.waitForCopies();
          syncTiles();
        };
        if (isDouble) {
          // The barrier also ends the reads of the tile that is overwritten.
          wait();
          next = b.sub(range.sumOfStages, stage);
          loadNext(b.add(key, step), next);
        } else {
          syncTiles();
          loadNext(key, stage);
          wait();
        }
        SmallVector<Value> all;
        reader.withScope([&] {
          takeTile(key);
          all = pack(addTile(stage, unpack(arguments.take_front(numParts))));
        });
        all.push_back(next);
        return all;
      });
  endTiles(results[numParts]);
  return unpack(ValueRange(results).take_front(numParts));
}

/// Emits the state after a tile, unless position masks exclude all its keys.
AttentionKernel::State AttentionKernel::addTile(Value stage, State state) {
  Tile tile = findTile(stage);
  Value visible = isVisible(tile);
  if (!visible)
    return addVisible(tile, state);
  SmallVector<Value> before = pack(state);
  return unpack(b.emitIf(
      visible, ValueRange(before).getTypes(),
      [&] { return pack(addVisible(tile, state)); }, [&] { return before; }));
}

//===----------------------------------------------------------------------===//
// Kernel
//===----------------------------------------------------------------------===//

/// Emits code for a block with work, of the tile of queries with its number.
/// Others leave at once.
void AttentionKernel::ifWorking(function_ref<void()> body) {
  takeQueries(gpu::BlockIdOp::create(b, gpu::Dimension::x));
  Value hasWork = emitHasWork();
  if (!hasWork)
    return body();
  b.emitIf(hasWork, body);
}

/// Emits a loop over those tiles of the grid with the block's number, plus
/// multiples of the number of blocks, that have work. Each lane of a warp looks
/// at one of 32 tiles. `body` is emitted after `takeQueries`; it gets and
/// returns carried values.
SmallVector<Value> AttentionKernel::walkTiles(
    ValueRange inits,
    function_ref<SmallVector<Value>(ValueRange carried)> body) {
  Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  Value blocks = gpu::GridDimOp::create(b, gpu::Dimension::x);
  Value ownLane = b.toIndex(b.rem(thread, GpuAttentionTiles::kWarp));
  Value no = arith::ConstantIntOp::create(b, 0, 1);
  auto walk32 = [&](Value first, ValueRange carried) -> SmallVector<Value> {
    Value own = b.add(first, b.mul(ownLane, blocks)), hasWork;
    reader.withScope([&] {
      hasWork = b.emitIf(
          b.compare(arith::CmpIPredicate::ult, own, tilesOfGrid),
          Type(b.getI1Type()),
          [&]() -> SmallVector<Value> {
            takeQueries(own);
            return {emitHasWork()};
          },
          [&]() -> SmallVector<Value> { return {no}; })[0];
    });
    SmallVector<Value> all{b.ballot(hasWork)};
    llvm::append_range(all, carried);
    SmallVector<Value> last = b.emitWhile(
        all,
        [&](ValueRange before) {
          return b.compare(arith::CmpIPredicate::ne, before[0], b.i32(0));
        },
        [&](ValueRange before) {
          Value lanes = before[0];
          SmallVector<Value> after{
              arith::AndIOp::create(b, lanes, b.add(lanes, -1))};
          Value next = b.toIndex(b.countTrailingZeros(lanes));
          reader.withScope([&] {
            takeQueries(b.add(first, b.mul(next, blocks)));
            llvm::append_range(after, body(before.drop_front()));
          });
          return after;
        });
    return llvm::to_vector(ArrayRef(last).drop_front());
  };
  return b.emitLoop(block, tilesOfGrid, b.mul(blocks, GpuAttentionTiles::kWarp),
                    inits, walk32);
}

/// Returns the blocks that a multiprocessor of the largest shared memory can
/// hold if threads have as many registers as there can be.
int64_t AttentionKernel::getBlocksPerMultiprocessor() const {
  constexpr int64_t kSharedBytes = 228 << 10, kReservedBytes = 1 << 10;
  constexpr int64_t kRegisters = 1 << 16, kThreadRegisters = 256;
  int64_t numThreads = kernel.getNumThreads();
  return std::max<int64_t>(
      std::min(kSharedBytes / (getSharedBytes() + kReservedBytes),
               kRegisters / (kThreadRegisters * numThreads)),
      1);
}

Value AttentionKernel::getNumBlocks() {
  return hasSplits() ? limitBlocks(host, nest.loops, numTiles,
                                   getBlocksPerMultiprocessor())
                     : numTiles;
}

void AttentionKernel::emitGrid() {
  if (!hasSplits()) {
    ifWorking([&] { emitBlock(); });
    return;
  }
  tilesOfGrid = kernel.addIndex(host, numTiles);
  walkTiles({}, [&](ValueRange) -> SmallVector<Value> {
    emitBlock();
    // The next queries replace those that other warps read.
    b.barrier();
    return {};
  });
}

void AttentionKernel::emitBlock() {
  Value warp = b.div(thread, GpuAttentionTiles::kWarp);
  findRows(b.div(warp, tiles.valueParts), b.rem(warp, tiles.valueParts));
  loadQueries(thread, tiles.getThreads(), b.i32(0), tiles.getRows());
  storeResults(emitTiles(createState()));
}

void AttentionKernel::emit() {
  captureOperands();
  thread = b.toI32(gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  copier = thread;
  numCopiers = tiles.getThreads();
  emitGrid();
  kernel.getBody().setInsertionPointToEnd(&kernel.getFunction().front());

  kernel.launch(host, getNumBlocks(), getSharedBytes());
}
