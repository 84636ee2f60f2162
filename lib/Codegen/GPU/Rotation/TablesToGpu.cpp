//===- TablesToGpu.cpp - sincos and sinusoidal to GPU kernels -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread computes 16 bytes of each row, for the rows of a run of positions.
// It keeps the base position of its pairs in registers as long as consecutive
// positions have the same.
//
//===----------------------------------------------------------------------===//

#include "KernelPositions.h"
#include "PositionGrid.h"
#include "SharedTable.h"

#include "LoopSizes.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/IR/CreateIndex.h"
#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCSINUSOIDALTOGPUPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

using CosSin = AngleAddition::CosSin;
using Position = AngleAddition::Position;

/// Threads of a block. They share no data, so the number is not critical.
static constexpr int64_t kTableThreads = 128;

/// The minimum number of blocks per multiprocessor. Without it, ptxas spills
/// registers to fit one more block.
static constexpr int32_t kMinBlocks = 3;

namespace {
/// The destination tensors of cosines and sines.
struct Destinations {
  Value cos, sin;
  int64_t cosLane = 0, sinLane = 0;
  /// Whether sin and cos of a pair are neighbours, sin first.
  bool zipped = false;
  /// The pairs of each axis, if a row is one row per axis, one after the other.
  /// `cosLane` and `sinLane` then do not matter.
  ArrayRef<int64_t> sections;
  bool sinFirst = false;
  /// The position whose row is zero.
  std::optional<int64_t> paddingPosition;
  /// The lane of the zero at the end of each row.
  std::optional<int64_t> zeroLane;
};

/// Emits a kernel that writes a table.
class TableKernel {
public:
  TableKernel(OpBuilder &host, GpuKernel &kernel, PositionalOpInterface op,
              const Angles &angles, Value positions,
              const Destinations &destinations, int64_t pairs,
              int64_t accessLanes);
  void emit();
  Value getNumBlocks(OpBuilder &host) const;

private:
  struct Base {
    SmallVector<Value> axes;
    CosSin element;
  };
  SmallVector<Value> getInitialBase();
  CosSin rotate(const Position &position, const Base &base);
  Base updateBase(const Position &position, const Base &old);
  CosSin recompute(const Position &position, const CosSin &element);
  Value round(Value elements);
  Value getLane(bool ofSin);
  void write(const Position &position, CosSin element, ValueRange loops);

  OpBuilder &b;
  Location loc;
  Destinations destinations;
  Type element;
  int64_t numPairs, pairs, accessLanes;
  GpuKernel::Tensor cos, sin;
  SmallVector<Value> turns;
  AngleAddition steps;
  /// Positions of a tile: a run, so that few tiles compute the same base
  /// position.
  int64_t tileLength;
  PositionGrid grid;
  KernelPositions positions;
  Value numTiles;
  /// The index of a thread's first pair.
  Value first;
};
} // namespace

TableKernel::TableKernel(OpBuilder &host, GpuKernel &kernel,
                         PositionalOpInterface op, const Angles &angles,
                         Value positions, const Destinations &destinations,
                         int64_t pairs, int64_t accessLanes)
    : b(kernel.getBody()), loc(op.getLoc()), destinations(destinations),
      element(getElementTypeOrSelf(destinations.cos.getType())),
      numPairs(angles.frequencies.getNumPairs()), pairs(pairs),
      accessLanes(accessLanes), cos(kernel.addTensor(host, destinations.cos)),
      sin(destinations.sin == destinations.cos
              ? cos
              : kernel.addTensor(host, destinations.sin)),
      turns(kernel.addTensors(host, angles.turns)),
      steps(b, kernel.getFunction(),
            {angles.frequencies, angles.axes, turns, angles.inverse,
             angles.hasFloatPositions},
            element, TableUse::Table, llvm::to_vector(llvm::seq(numPairs))),
      tileLength(steps.hasRuns() ? steps.getRun() : AngleAddition::kRun),
      grid(host, kernel, op, tileLength),
      positions(host, kernel, positions, angles.axes),
      numTiles(kernel.addIndex(host, grid.getNumTiles())) {}

/// Returns the initial loop-carried base: an odd number, which is no base
/// position, and undefined cos and sin.
SmallVector<Value> TableKernel::getInitialBase() {
  SmallVector<Value> values(steps.getNumAxes(),
                            arith::ConstantIntOp::create(b, loc, 1, 64));
  auto type = VectorType::get({pairs}, steps.getBaseType());
  values.append(2, arith::ConstantOp::create(b, loc, b.getZeroAttr(type)));
  return values;
}

TableKernel::Base TableKernel::updateBase(const Position &position,
                                          const Base &old) {
  Position basePosition = steps.getBasePosition(b, loc, position);
  Value differs;
  for (auto [value, before] : llvm::zip_equal(basePosition.axes, old.axes)) {
    Value change = arith::XOrIOp::create(b, loc, value, before);
    differs = differs ? arith::OrIOp::create(b, loc, differs, change) : change;
  }
  Value isOther =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, differs,
                            arith::ConstantIntOp::create(b, loc, 0, 64));
  auto branch = scf::IfOp::create(
      b, loc, isOther,
      [&](OpBuilder &nested, Location l) {
        CosSin element = emitBase(nested, l, steps, basePosition, first, pairs);
        scf::YieldOp::create(nested, l, ValueRange{element.cos, element.sin});
      },
      [&](OpBuilder &nested, Location l) {
        scf::YieldOp::create(nested, l,
                             ValueRange{old.element.cos, old.element.sin});
      });
  return {basePosition.axes, {branch.getResult(0), branch.getResult(1)}};
}

CosSin TableKernel::recompute(const Position &position, const CosSin &element) {
  if (!steps.canBeSmall())
    return element;
  // Reduces lane by lane: not every target has vector reductions.
  Value smallest;
  for (Value value : {element.cos, element.sin}) {
    Value magnitude = steps.getMagnitude(b, loc, value, first);
    for (int64_t lane = 0; lane < pairs; ++lane) {
      Value laneMagnitude = vector::ExtractOp::create(b, loc, magnitude, lane);
      smallest = smallest
                     ? arith::MinSIOp::create(b, loc, smallest, laneMagnitude)
                     : laneMagnitude;
    }
  }
  auto branch = scf::IfOp::create(
      b, loc, steps.isSmall(b, loc, smallest),
      [&](OpBuilder &nested, Location l) {
        CosSin recomputed =
            steps.recompute(nested, l, position, first, element);
        scf::YieldOp::create(nested, l,
                             ValueRange{recomputed.cos, recomputed.sin});
      },
      [&](OpBuilder &nested, Location l) {
        scf::YieldOp::create(nested, l, ValueRange{element.cos, element.sin});
      });
  return {branch.getResult(0), branch.getResult(1)};
}

/// Rounds elements to the type of the table. To bf16, ties are rounded away
/// from zero, as in the CPU kernels.
Value TableKernel::round(Value elements) {
  auto type = cast<VectorType>(elements.getType());
  if (type.getElementType() == element)
    return elements;
  if (!element.isBF16())
    return arith::TruncFOp::create(b, loc, type.clone(element), elements);
  ElementwiseBuilder e(b, loc, elements);
  Value bits = e.cast<arith::BitcastOp>(b.getI32Type(), elements);
  bits = e.shru(e.addi(bits, e.i32(0x8000)), e.i32(16));
  bits = e.cast<arith::TruncIOp>(b.getIntegerType(16), bits);
  return arith::BitcastOp::create(b, loc, type.clone(element), bits);
}

/// Returns the lane of the thread's first cosine or sine. All pairs of a thread
/// are on one axis.
Value TableKernel::getLane(bool ofSin) {
  int64_t lane = ofSin ? destinations.sinLane : destinations.cosLane;
  Value offset = createIndex(b, loc, lane);
  int64_t pair = 0;
  for (int64_t section : destinations.sections) {
    // The second half of an axis' lanes follows as many lanes of its first.
    int64_t before = pair + (ofSin == destinations.sinFirst ? 0 : section);
    if (pair == 0) {
      offset = createIndex(b, loc, before);
    } else {
      Value isReached = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                              first, createIndex(b, loc, pair));
      offset = arith::SelectOp::create(b, loc, isReached,
                                       createIndex(b, loc, before), offset);
    }
    pair += section;
  }
  return b.createOrFold<arith::AddIOp>(loc, first, offset);
}

void TableKernel::write(const Position &position, CosSin element,
                        ValueRange loops) {
  if (destinations.paddingPosition) {
    Value padding =
        arith::ConstantIntOp::create(b, loc, *destinations.paddingPosition, 64);
    Value isPadding = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                            position.axes.front(), padding);
    for (Value *value : {&element.cos, &element.sin}) {
      Value zero =
          arith::ConstantOp::create(b, loc, b.getZeroAttr(value->getType()));
      *value = arith::SelectOp::create(b, loc, isPadding, zero, *value);
    }
  }
  auto store = [&](const GpuKernel::Tensor &tensor, Value lanes, Value lane,
                   int64_t access) {
    SmallVector<Value> indices(loops);
    indices.push_back(lane);
    storeLanes(b, loc, lanes, tensor.memref,
               getOffset(b, loc, indices, tensor.strides), access);
  };
  if (destinations.zeroLane) {
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          first, createIndex(b, loc, 0));
    auto branch = scf::IfOp::create(b, loc, isFirst, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value zero = arith::ConstantOp::create(
        b, loc, b.getZeroAttr(VectorType::get({1}, this->element)));
    store(cos, zero, createIndex(b, loc, *destinations.zeroLane), 1);
  }
  if (destinations.zipped) {
    Value both = vector::InterleaveOp::create(b, loc, round(element.sin),
                                              round(element.cos));
    Value lane = arith::MulIOp::create(b, loc, first, createIndex(b, loc, 2));
    return store(cos, both, lane, accessLanes);
  }
  store(cos, round(element.cos), getLane(/*ofSin=*/false), accessLanes);
  store(sin, round(element.sin), getLane(/*ofSin=*/true), accessLanes);
}

Value TableKernel::getNumBlocks(OpBuilder &host) const {
  Value columns = createIndex(host, loc, numPairs / pairs);
  Value all = arith::MulIOp::create(host, loc, grid.getNumTiles(), columns);
  return arith::CeilDivUIOp::create(host, loc, all,
                                    createIndex(host, loc, kTableThreads));
}

void TableKernel::emit() {
  Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  Value block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  // The number of all threads may exceed 32 bits; the number of blocks does
  // not.
  Value threads = createIndex(b, loc, kTableThreads);
  Value columns = createIndex(b, loc, numPairs / pairs);
  auto [rounds, begin] = divide32(b, loc, block, columns);
  Value number = arith::AddIOp::create(
      b, loc, thread, arith::MulIOp::create(b, loc, begin, threads));
  auto [more, column] = divide32(b, loc, number, columns);
  Value tileNumber = b.createOrFold<arith::AddIOp>(
      loc, b.createOrFold<arith::MulIOp>(loc, rounds, threads), more);
  first = arith::MulIOp::create(b, loc, column, createIndex(b, loc, pairs));
  OpBuilder::InsertionGuard guard(b);
  Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       tileNumber, numTiles);
  auto branch = scf::IfOp::create(b, loc, exists, /*withElse=*/false);
  b.setInsertionPointToStart(branch.thenBlock());

  PositionGrid::Tile tile = grid.getTile(b, loc, tileNumber);
  // Stops at the end of the last loop, so no position is computed twice.
  Value rest = arith::SubIOp::create(b, loc, tile.end, tile.loops.back());
  Value count =
      arith::MinUIOp::create(b, loc, rest, createIndex(b, loc, tileLength));
  SmallVector<Value> initial;
  if (steps.hasRuns())
    initial = getInitialBase();
  auto loop = scf::ForOp::create(b, loc, createIndex(b, loc, 0), count,
                                 createIndex(b, loc, 1), initial);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> loops = tile.loops;
  loops.back() =
      arith::AddIOp::create(b, loc, loops.back(), loop.getInductionVar());
  if (!grid.hasLoops())
    loops.clear();
  Position position = positions.load(b, loc, steps.getPhases(), loops);
  if (!steps.hasRuns()) {
    write(position, emitElement(b, loc, steps, position, first, pairs), loops);
    return;
  }
  ValueRange before = loop.getRegionIterArgs();
  Base base =
      updateBase(position, {llvm::to_vector(before.drop_back(2)),
                            {before[before.size() - 2], before.back()}});
  CosSin element = steps.rotate(b, loc, position, base.element, first);
  write(position, recompute(position, element), loops);
  SmallVector<Value> after(base.axes);
  after.append({base.element.cos, base.element.sin});
  scf::YieldOp::create(b, loc, after);
}

static void convertTable(OpBuilder &builder, PositionalOpInterface op,
                         const Angles &angles, Value positions,
                         const Destinations &destinations) {
  if (llvm::is_contained(
          cast<ShapedType>(destinations.cos.getType()).getShape(), 0))
    return;
  Location loc = op.getLoc();
  Type element = getElementTypeOrSelf(destinations.cos.getType());
  int64_t numPairs = angles.frequencies.getNumPairs();
  SmallVector<int64_t> sizes{destinations.zipped ? 2 * numPairs : numPairs};
  if (!destinations.zipped)
    llvm::append_range(sizes, destinations.sections);
  int64_t access = getAccessLanes(element, sizes);
  int64_t pairs =
      destinations.zipped ? std::max<int64_t>(access / 2, 1) : access;
  auto emit = [&](OpBuilder &host, bool isWide) {
    GpuKernel kernel(op, isWide ? "" : "_narrow", kTableThreads);
    kernel.getFunction()->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                                  host.getI32IntegerAttr(kMinBlocks));
    TableKernel table(host, kernel, op, angles, positions, destinations, pairs,
                      isWide ? access : 1);
    table.emit();
    kernel.launch(host, table.getNumBlocks(host));
  };
  if (access == 1)
    return emit(builder, /*isWide=*/false);
  SmallVector<Value> memrefs{destinations.cos};
  if (destinations.sin != destinations.cos)
    memrefs.push_back(destinations.sin);
  scf::IfOp::create(
      builder, loc, areAligned(builder, loc, memrefs, access),
      [&](OpBuilder &host, Location l) {
        emit(host, /*isWide=*/true);
        scf::YieldOp::create(host, l);
      },
      [&](OpBuilder &host, Location l) {
        emit(host, /*isWide=*/false);
        scf::YieldOp::create(host, l);
      });
}

static void convertSinusoidal(OpBuilder &builder, SinusoidalOp op) {
  Destinations destinations;
  destinations.cos = destinations.sin = op.getInits().front();
  destinations.zipped = op.getOrder() == TableOrder::Interleaved;
  destinations.sinFirst = op.getOrder() == TableOrder::SinCos;
  (destinations.sinFirst ? destinations.cosLane : destinations.sinLane) =
      op.getFrequencies().getNumPairs();
  if (AxesAttr axes = op.getAxesAttr())
    destinations.sections = axes.getSections();
  destinations.paddingPosition = op.getPaddingPosition();
  if (op.getZeroPad())
    destinations.zeroLane = op.getFrequencies().getDim();
  convertTable(builder, cast<PositionalOpInterface>(op.getOperation()),
               {op.getFrequencies(), op.getAxesAttr(), /*turns=*/{},
                /*inverse=*/false, areFloats(op.getPositions())},
               op.getPositions(), destinations);
}

namespace {
struct ConvertPosencSinusoidalToGpu final
    : mlir::posenc::impl::ConvertPosencSinusoidalToGpuPassBase<
          ConvertPosencSinusoidalToGpu> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> operations;
    getOperation().walk([&](Operation *op) {
      if (isa<SincosOp, SinusoidalOp>(op))
        operations.push_back(op);
    });
    for (Operation *op : operations) {
      if (failed(checkBuffers(op)))
        return signalPassFailure();
      OpBuilder builder(op);
      auto positional = cast<PositionalOpInterface>(op);
      if (auto sincos = dyn_cast<SincosOp>(op)) {
        Destinations destinations;
        destinations.cos = sincos.getInits()[0];
        destinations.sin = sincos.getInits()[1];
        Angles angles{sincos.getFrequencies(), sincos.getAxesAttr(),
                      sincos.getTurns(), /*inverse=*/false,
                      areFloats(sincos.getPositions())};
        convertTable(builder, positional, angles, sincos.getPositions(),
                     destinations);
      } else {
        convertSinusoidal(builder, cast<SinusoidalOp>(op));
      }
      op->erase();
    }
    eraseProducers(getOperation());
  }
};
} // namespace
