//===- AttentionKernel.cpp - attention kernels for GPUs -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"

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
/// first pieces of all sequences, which have the most keys.
void AttentionKernel::takeQueries(Value number) {
  Value rest = number;
  SmallVector<Value> indices(gridSizes.size());
  SmallVector<size_t> order{kQueryTile, 1, 0};
  if (gridSizes.size() > kPiece)
    order.push_back(kPiece);
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

bool AttentionKernel::hasPieces() {
  scf::ForallOp loops = nest.loops;
  return loops.getRank() == kLoopsWithPieces &&
         !isConstantIntValue(loops.getMixedUpperBound()[kPiece], 1);
}

/// Emits an i1 after `takeQueries`: whether there is a query, and, in pieces of
/// the keys, a key that it sees by its position. The first piece has work
/// without keys: the sums of none, or of a sink. Null if all tiles have work.
Value AttentionKernel::emitHasWork() {
  scf::ForallOp loops = nest.loops;
  Value hasWork;
  const AttentionNestParts::Output &output = nest.outputs.front();
  std::optional<Value> count = getNumQueries(output);
  if (count)
    hasWork = b.compare(arith::CmpIPredicate::sgt, *count,
                        createIndex(b, b.getLoc(), 0));
  if (!hasPieces())
    return hasWork;
  scf::ForOp keys = nest.keys;
  Value hasKeys =
      b.compare(arith::CmpIPredicate::slt, reader.get(keys.getLowerBound()),
                reader.get(keys.getUpperBound()));
  Value isFirst = b.compare(arith::CmpIPredicate::eq,
                            reader.get(loops.getInductionVars()[kPiece]),
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

/// Copies `count` rows of queries from `firstRow` on to shared memory; rows
/// without a query are zeros. `first` is the number of the thread among `step`.
void AttentionKernel::loadQueries(Value first, int64_t step, Value firstRow,
                                  int64_t count) {
  int64_t lanes = 16 / sizes.elementBytes;
  int64_t columns = llvm::alignTo(sizes.keyDim, 16) / lanes;
  b.emitLoop(
      first, b.i32(count * columns), b.i32(step), {},
      [&](Value item, ValueRange) -> SmallVector<Value> {
        Value row = b.add(firstRow, b.div(item, columns));
        Value channel = b.mul(b.rem(item, columns), lanes);
        Value exists;
        if (numRows < tiles.getRows())
          exists = b.compare(arith::CmpIPredicate::ult, row, b.i32(numRows));
        if (columns * lanes != sizes.keyDim)
          exists = b.both(exists, b.compare(arith::CmpIPredicate::ult, channel,
                                            b.i32(sizes.keyDim)));
        auto type = VectorType::get({lanes}, element);
        auto load = [&]() -> SmallVector<Value> {
          Value vector = reader.readUnrounded(
              op.getQuery(),
              {b.toIndex(b.div(row, queriesPerHead)),
               b.toIndex(b.rem(row, queriesPerHead)), b.toIndex(channel)},
              lanes);
          if (scalesQueries) {
            Type f32 = b.getF32Type();
            Value factor = vector::BroadcastOp::create(
                b, type.clone(f32),
                b.real(f32, op.getScoreScale() / getScoreUnit()));
            vector = arith::MulFOp::create(b, b.convert(vector, f32), factor);
          }
          return {b.convert(vector, element)};
        };
        auto zero = [&]() -> SmallVector<Value> {
          return {arith::ConstantOp::create(b, b.getZeroAttr(type))};
        };
        Value vector =
            exists ? b.emitIf(exists, type, load, zero)[0] : load()[0];
        b.store(vector, getQuery(row, channel), 16);
        return {};
      });
}

/// Copies a tile of keys or values to shared memory at `offset`.
void AttentionKernel::loadRows(Value tensor, Value offset, int64_t pitch,
                               int64_t channels) {
  int64_t lanes = 16 / sizes.elementBytes, dim = getLastDim(tensor);
  int64_t columns = channels / lanes;
  b.emitLoop(copier, b.i32(tiles.keys * columns), b.i32(numCopiers), {},
             [&](Value item, ValueRange) -> SmallVector<Value> {
               Value row = b.div(item, columns);
               Value channel = b.mul(b.rem(item, columns), lanes);
               SharedAddress to{
                   b.add(offset, b.add(b.mul(row, pitch),
                                       b.mul(channel, sizes.elementBytes)))};
               Value isChannel;
               if (channels != dim)
                 isChannel =
                     b.compare(arith::CmpIPredicate::ult, channel, b.i32(dim));
               SmallVector<Value> at{b.toIndex(row), b.toIndex(channel)};
               bool isSame = getElementTypeOrSelf(tensor.getType()) == element;
               std::optional<TileReader::Row> from;
               if (isWide && isSame)
                 from = reader.locate(tensor, at);
               if (from) {
                 b.copyAsync(to, reader.getAddress(from->root, from->offset),
                             b.both(from->exists, isChannel));
                 return {};
               }
               auto type = VectorType::get({lanes}, element);
               auto load = [&]() -> SmallVector<Value> {
                 Value vector = reader.read(tensor, at, lanes);
                 return {b.convert(vector, element)};
               };
               auto zero = [&]() -> SmallVector<Value> {
                 return {arith::ConstantOp::create(b, b.getZeroAttr(type))};
               };
               Value vector = isChannel
                                  ? b.emitIf(isChannel, type, load, zero)[0]
                                  : load()[0];
               b.store(vector, to, 16);
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
  auto take = [&]() -> SmallVector<Value> {
    Value vector = reader.read(loop.getInits()[part],
                               {createIndex(b, b.getLoc(), 0),
                                b.toIndex(row.head), b.toIndex(row.query)},
                               1);
    return {vector::ExtractOp::create(b, vector, 0)};
  };
  auto zero = [&]() -> SmallVector<Value> { return {b.real(sum, 0.0)}; };
  return row.exists ? b.emitIf(row.exists, Type(sum), take, zero)[0]
                    : take()[0];
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

AttentionKernel::State AttentionKernel::emitTiles(State state) {
  if (hasBounds())
    return emitSeenTiles(state);
  scf::ForOp loop = nest.keys;
  TileRange range = getTileRange();
  Value end = range.end, step = range.step;
  bool isDouble = tiles.stages == 2;
  auto takeTile = [&](Value key) {
    reader.getScalars().map(loop.getInductionVar(), key);
    reader.cloneScalars(*loop.getBody());
  };
  // Loads the tile at `key`, if there is one.
  auto loadNext = [&](Value key, Value stage) {
    Value exists = b.compare(arith::CmpIPredicate::slt, key, end);
    b.emitIf(exists, [&] {
      reader.withScope([&] {
        takeTile(key);
        loadTile(stage);
      });
    });
    b.commitCopies();
  };
  SmallVector<Value> carried = pack(state);
  size_t numParts = carried.size();
  carried.push_back(range.firstStage);
  if (isDouble)
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
/// hold if threads have the most registers.
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
  return walksPieces() ? limitBlocks(host, nest.loops, numTiles,
                                     getBlocksPerMultiprocessor())
                       : numTiles;
}

void AttentionKernel::emitGrid() {
  if (!walksPieces()) {
    ifWorking([&] {
      startBlock();
      emitBlock();
    });
    return;
  }
  startBlock();
  walkTiles(progress, [&](ValueRange carried) {
    progress = llvm::to_vector(carried);
    emitBlock();
    endTile();
    return progress;
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
  if (walksPieces())
    tilesOfGrid = kernel.addIndex(host, numTiles);
  thread = b.toI32(gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  copier = thread;
  numCopiers = tiles.getThreads();
  emitGrid();
  kernel.getBody().setInsertionPointToEnd(&kernel.getFunction().front());

  kernel.launch(host, getNumBlocks(), getSharedBytes());
}
