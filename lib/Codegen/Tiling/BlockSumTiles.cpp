//===- BlockSumTiles.cpp - register tiles of sums of scaled sums ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For few rows, codes are unpacked in the registers of each tile. For more, a
// part of a panel is unpacked to a buffer, which all tiles of rows read:
//
//   for parts of the blocks
//     unpack the codes of the part                       (L1 or L2 cache)
//     for register tiles of rows: read their sums
//       for blocks of the part, elements: as for few rows
//
// A body may have several steps, one for each code of a word. In the loop over
// unpacked codes, they are iterations: LLVM's scheduler would load operands of
// several steps first, and have no registers for the sums.
//
//===----------------------------------------------------------------------===//

#include "BlockSums.h"

#include "posenc/Numerics/ByteDots.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::posenc;

/// The largest buffer of unpacked codes, of a whole block.
static constexpr int64_t kMaxBufferBytes = int64_t(128) << 10;

namespace {
/// Iterations of a reduction loop. The first one is at the begin of a buffer of
/// unpacked codes.
struct Range {
  Value begin, size;
};

/// Emits register tiles of both sums, over the tiles of their columns.
class RegisterTiles {
public:
  RegisterTiles(RewriterBase &rewriter, const BlockSums &sums,
                const BlockSumTiles &tiles)
      : b(sums.outer->getLoc(), rewriter), rewriter(rewriter), sums(sums),
        tiles(tiles), loops(InnerSum::get(sums)),
        body(BlockSumBody::get(sums.inner, loops)) {
    b.setInsertionPoint(sums.outer);
    linalg::GenericOp outer = sums.outer;
    columns = width = outer.getStaticLoopRanges()[sums.columns];
  }

  /// Replaces both sums.
  void emit();

private:
  /// The values of loops; others are 0.
  using Indices = llvm::SmallDenseMap<unsigned, Value>;
  /// Values of a body: vectors of columns, or scalars, which are the same for
  /// all columns.
  using Values = llvm::DenseMap<Value, Value>;
  using TileBody =
      function_ref<Value(Value row, int64_t rows, Value column, Value result)>;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, b.getLoc(), value);
  }
  Value add(Value x, Value y) { return b.createOrFold<arith::AddIOp>(x, y); }
  Value subtract(Value x, Value y) {
    return b.createOrFold<arith::SubIOp>(x, y);
  }
  /// Returns the number of iterations of a loop.
  Value getSize(linalg::GenericOp op, unsigned loop);
  /// Emits a loop from `begin` to `end`, which carries values.
  SmallVector<Value>
  forEach(Value begin, Value end, Value step, ValueRange start,
          function_ref<SmallVector<Value>(Value, ValueRange)> emit);

  VectorType getVectorType(Type element) const {
    return VectorType::get({width}, element);
  }
  /// Returns the vector of a scalar.
  Value toVector(Value value);
  /// Returns the vector of the columns of an operand, or one number.
  Value read(linalg::GenericOp op, OpOperand &operand, const Indices &at);
  /// Returns the initial sum of an operation at a row.
  Value readStart(linalg::GenericOp op, const Indices &at);
  /// Returns a value of the body of an operation, given some of its values.
  Value compute(linalg::GenericOp op, Value value, const Indices &at,
                Values &known);
  /// Returns what the body of an operation yields.
  Value computeSum(linalg::GenericOp op, const Indices &at, Value sum,
                   Values known = Values());

  /// Returns an element of the rows, for all steps of a block.
  Value readRolled(Value row, Value block, Value element);
  /// Finds how many codes are unpacked at once. Returns whether they can be.
  bool findChunks();
  /// Returns a buffer of the unpacked codes of blocks and elements.
  Value unpack(const Range &blocks, const Range &elements);

  /// Returns the sums of the elements of a block, added to `parts`.
  SmallVector<Value> addElements(Value row, Value column, Value block,
                                 const Range &blocks, const Range &elements,
                                 SmallVector<Value> parts, Value buffer);
  /// Returns the sums of rows with scaled sums of a block.
  SmallVector<Value> addBlock(Value row, Value column, Value block,
                              ValueRange parts, ValueRange states);
  SmallVector<Value> addBlocks(Value row, Value column, const Range &blocks,
                               SmallVector<Value> states, Value buffer);
  Value readResult(Value result, Value row, Value column, Type element);
  Value writeRows(Value row, Value column, ValueRange vectors, Value result);

  /// Emits tiles of rows, each with the columns of `tileColumns`.
  Value forEachTile(ArrayRef<int64_t> sizes, int64_t tileColumns, Value result,
                    TileBody emitTile);
  Value emitDirect(Value result);
  Value emitUnpacked(Value result);

  ImplicitLocOpBuilder b;
  RewriterBase &rewriter;
  BlockSums sums;
  const BlockSumTiles &tiles;
  /// Columns of the panel, and of the vectors that are emitted.
  int64_t columns, width;
  InnerSum loops;
  BlockSumBody body;
  /// The number of blocks whose codes are unpacked at once, and that of the
  /// elements of a block: of all blocks, or of a part of the only one.
  int64_t chunkBlocks, chunkElements;
};
} // namespace

Value RegisterTiles::getSize(linalg::GenericOp op, unsigned loop) {
  for (OpOperand &operand : op->getOpOperands()) {
    // The partial sums will not be there.
    if (operand.get() == sums.inner.getResult(0))
      continue;
    if (std::optional<unsigned> dim =
            op.getMatchingIndexingMap(&operand).getResultPosition(
                b.getAffineDimExpr(loop)))
      return getValueOrCreateConstantIndexOp(
          b, b.getLoc(),
          tensor::getMixedSize(b, b.getLoc(), operand.get(), *dim));
  }
  llvm_unreachable("every loop indexes an operand");
}

SmallVector<Value> RegisterTiles::forEach(
    Value begin, Value end, Value step, ValueRange start,
    function_ref<SmallVector<Value>(Value, ValueRange)> emit) {
  auto loop = scf::ForOp::create(b, begin, end, step, start);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(b,
                       emit(loop.getInductionVar(), loop.getRegionIterArgs()));
  return llvm::to_vector_of<Value>(loop.getResults());
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

Value RegisterTiles::toVector(Value value) {
  if (isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(b, getVectorType(value.getType()), value);
}

Value RegisterTiles::read(linalg::GenericOp op, OpOperand &operand,
                          const Indices &at) {
  Value tensor = operand.get();
  if (!isa<RankedTensorType>(tensor.getType()))
    return tensor;
  unsigned last = op == sums.inner ? loops.columns : sums.columns;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<Value> indices;
  for (AffineExpr expr : map.getResults()) {
    Value index = at.lookup(cast<AffineDimExpr>(expr).getPosition());
    indices.push_back(index ? index : constant(0));
  }
  if (!map.isFunctionOfDim(last))
    return tensor::ExtractOp::create(b, tensor, indices);
  return vector::TransferReadOp::create(
      b, getVectorType(getElementTypeOrSelf(tensor)), tensor, indices,
      /*padding=*/std::nullopt, ArrayRef<bool>{true});
}

Value RegisterTiles::readStart(linalg::GenericOp op, const Indices &at) {
  OpOperand &init = *op.getDpsInitOperand(0);
  if (auto fill = init.get().getDefiningOp<linalg::FillOp>())
    return toVector(fill.getInputs().front());
  return toVector(read(op, init, at));
}

Value RegisterTiles::compute(linalg::GenericOp op, Value value,
                             const Indices &at, Values &known) {
  if (Value found = known.lookup(value))
    return found;
  Value result;
  Operation *from = value.getDefiningOp();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    result = argument.getOwner() == op.getBlock()
                 ? read(op, op->getOpOperand(argument.getArgNumber()), at)
                 : value;
  } else if (from->getBlock() != op.getBlock()) {
    result = value;
  } else if (std::optional<ByteDot> dot = matchByteDot(value)) {
    // Its bytes are not values of their own.
    auto get = [&](Value word) {
      return toVector(compute(op, word, at, known));
    };
    ByteDot vectors{get(dot->signedBytes), get(dot->unsignedBytes),
                    get(dot->sum)};
    result = emitByteDot(b, b.getLoc(), vectors);
  } else {
    IRMapping mapping;
    SmallVector<Value> operands;
    for (Value operand : from->getOperands())
      operands.push_back(compute(op, operand, at, known));
    bool isVector = llvm::any_of(operands, [](Value operand) {
      return isa<VectorType>(operand.getType());
    });
    for (auto [operand, copy] : llvm::zip(from->getOperands(), operands))
      mapping.map(operand, isVector ? toVector(copy) : copy);
    Operation *copy = b.clone(*from, mapping);
    for (auto [old, copied] :
         llvm::zip(from->getResults(), copy->getResults())) {
      if (isVector)
        copied.setType(getVectorType(old.getType()));
      known[old] = copied;
    }
    return known[value];
  }
  return known[value] = result;
}

Value RegisterTiles::computeSum(linalg::GenericOp op, const Indices &at,
                                Value sum, Values known) {
  Block &block = *op.getBlock();
  known[block.getArguments().back()] = sum;
  return toVector(compute(op, block.getTerminator()->getOperand(0), at, known));
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value RegisterTiles::readRolled(Value row, Value block, Value element) {
  Value first = getValueOrCreateConstantIndexOp(b, b.getLoc(), body.firstRow);
  return tensor::ExtractOp::create(b, body.rows,
                                   ValueRange{add(first, row), block, element});
}

SmallVector<Value> RegisterTiles::addElements(Value row, Value column,
                                              Value block, const Range &blocks,
                                              const Range &elements,
                                              SmallVector<Value> parts,
                                              Value buffer) {
  // A body with one step at a time leaves LLVM no choice of an order in which
  // it runs out of registers.
  int64_t parallel = body.unpacked.size();
  bool isRolled = buffer && body.isUniform;
  Value size = elements.size;
  if (isRolled)
    size = b.createOrFold<arith::MulIOp>(size, constant(parallel));
  return forEach(
      constant(0), size, constant(1), parts, [&](Value k, ValueRange states) {
        BlockArgument sum = sums.inner.getBlock()->getArguments().back();
        SmallVector<Values> known(states.size());
        SmallVector<Indices> at;
        SmallVector<Value> next;
        for (auto [i, state] : llvm::enumerate(states)) {
          known[i][sum] = state;
          at.push_back({{loops.rows, add(row, constant(i))},
                        {loops.blocks, block},
                        {loops.columns, column}});
          if (!isRolled)
            at.back()[sums.elements] = add(elements.begin, k);
        }
        auto readBuffer = [&](unsigned number) -> Value {
          Value index =
              isRolled
                  ? k
                  : add(b.createOrFold<arith::MulIOp>(k, constant(parallel)),
                        constant(number));
          return vector::TransferReadOp::create(
              b, getVectorType(body.unpacked[number].getType()), buffer,
              ValueRange{subtract(block, blocks.begin), index, column},
              /*padding=*/std::nullopt, ArrayRef<bool>{true});
        };
        // The rows add the same element before all add the next one, so that
        // few of them are in registers.
        for (const BlockSumBody::Step &step :
             ArrayRef(body.steps)
                 .take_front(isRolled ? 1 : body.steps.size())) {
          SmallVector<Value> read;
          for (unsigned number : step.unpacked)
            if (buffer)
              read.push_back(readBuffer(number));
          next.clear();
          for (size_t i = 0; i < states.size(); ++i) {
            for (size_t j = 0; j < read.size(); ++j)
              known[i][body.unpacked[step.unpacked[j]]] = read[j];
            if (isRolled)
              known[i][step.row] =
                  readRolled(add(row, constant(i)), block,
                             add(b.createOrFold<arith::MulIOp>(
                                     elements.begin, constant(parallel)),
                                 k));
            next.push_back(
                toVector(compute(sums.inner, step.sum, at[i], known[i])));
          }
        }
        return next;
      });
}

SmallVector<Value> RegisterTiles::addBlock(Value row, Value column, Value block,
                                           ValueRange parts,
                                           ValueRange states) {
  SmallVector<Value> next;
  Value argument =
      sums.outer.getBlock()->getArgument(loops.partial->getOperandNumber());
  for (auto [i, part] : llvm::enumerate(parts)) {
    Values known{{argument, part}};
    next.push_back(computeSum(sums.outer,
                              {{sums.rows, add(row, constant(i))},
                               {sums.blocks, block},
                               {sums.columns, column}},
                              states[i], known));
  }
  return next;
}

SmallVector<Value> RegisterTiles::addBlocks(Value row, Value column,
                                            const Range &blocks,
                                            SmallVector<Value> states,
                                            Value buffer) {
  return forEach(
      blocks.begin, add(blocks.begin, blocks.size), constant(1), states,
      [&](Value block, ValueRange states) {
        SmallVector<Value> parts;
        for (size_t i = 0; i < states.size(); ++i)
          parts.push_back(
              readStart(sums.inner, {{loops.rows, add(row, constant(i))},
                                     {loops.blocks, block},
                                     {loops.columns, column}}));
        Range elements{constant(0), getSize(sums.inner, sums.elements)};
        parts =
            addElements(row, column, block, blocks, elements, parts, buffer);
        return addBlock(row, column, block, parts, states);
      });
}

Value RegisterTiles::readResult(Value result, Value row, Value column,
                                Type element) {
  linalg::GenericOp outer = sums.outer;
  AffineMap map = outer.getMatchingIndexingMap(outer.getDpsInitOperand(0));
  SmallVector<Value> indices(map.getNumResults(), constant(0));
  indices.front() = row;
  indices.back() = column;
  Value vector = vector::TransferReadOp::create(
      b, getVectorType(getElementTypeOrSelf(result)), result, indices,
      /*padding=*/std::nullopt, ArrayRef<bool>{true});
  return b.createOrFold<vector::BitCastOp>(getVectorType(element), vector);
}

Value RegisterTiles::writeRows(Value row, Value column, ValueRange vectors,
                               Value result) {
  auto type = cast<RankedTensorType>(result.getType());
  for (auto [i, vector] : llvm::enumerate(vectors)) {
    SmallVector<Value> indices(type.getRank(), constant(0));
    indices.front() = add(row, constant(i));
    indices.back() = column;
    Value cast = b.createOrFold<vector::BitCastOp>(
        getVectorType(type.getElementType()), vector);
    result = vector::TransferWriteOp::create(b, cast, result, indices,
                                             ArrayRef<bool>{true})
                 .getResult();
  }
  return result;
}

Value RegisterTiles::forEachTile(ArrayRef<int64_t> sizes, int64_t tileColumns,
                                 Value result, TileBody emitTile) {
  llvm::SaveAndRestore restore(width, tileColumns);
  Value count = getSize(sums.outer, sums.rows), first = constant(0);
  std::optional<int64_t> known = getConstantIntValue(count);
  for (size_t number = 0; number < sizes.size(); ++number) {
    int64_t size = sizes[number];
    if (known && *known < size)
      continue;
    Value rest = subtract(count, first);
    Value over = b.createOrFold<arith::RemUIOp>(rest, constant(size));
    // Two tiles of the next size are faster than this one and a small one.
    int64_t next = size == sizes.back() ? 0 : sizes[number + 1];
    if (2 * next > size) {
      Value isTwo = arith::AndIOp::create(
          b,
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, over,
                                constant(2 * next - size)),
          arith::CmpIOp::create(b, arith::CmpIPredicate::uge, rest,
                                constant(size)));
      over = arith::SelectOp::create(b, isTwo, constant(2 * next), over);
    }
    Value whole = subtract(count, over);
    result = forEach(first, whole, constant(size), result,
                     [&](Value row, ValueRange results) {
                       return forEach(constant(0), constant(columns),
                                      constant(tileColumns), results,
                                      [&](Value column, ValueRange results) {
                                        return SmallVector<Value>{emitTile(
                                            row, size, column, results[0])};
                                      });
                     })
                 .front();
    first = whole;
    if (known) {
      bool isTwo = 2 * next > size && *known % size == 2 * next - size;
      *known = isTwo ? 2 * next : *known % size;
    }
  }
  return result;
}

Value RegisterTiles::emitDirect(Value result) {
  return forEachTile(
      tiles.rows, columns, result,
      [&](Value row, int64_t rows, Value column, Value result) {
        SmallVector<Value> start;
        for (int64_t i = 0; i < rows; ++i)
          start.push_back(
              readStart(sums.outer, {{sums.rows, add(row, constant(i))},
                                     {sums.columns, column}}));
        Range blocks{constant(0), getSize(sums.inner, loops.blocks)};
        return writeRows(row, column,
                         addBlocks(row, column, blocks, start, Value()),
                         result);
      });
}

//===----------------------------------------------------------------------===//
// Unpacked codes
//===----------------------------------------------------------------------===//

bool RegisterTiles::findChunks() {
  SmallVector<int64_t> ranges = sums.inner.getStaticLoopRanges();
  int64_t blocks = ranges[loops.blocks], elements = ranges[sums.elements];
  if (ShapedType::isDynamic(blocks) || ShapedType::isDynamic(elements))
    return false;
  for (Value value : body.unpacked)
    if (value.getType() != body.unpacked.front().getType() ||
        value.getType().getIntOrFloatBitWidth() != 32)
      return false;
  int64_t bytesOfElement = columns * 4 * body.unpacked.size();
  int64_t bytesOfBlock = elements * bytesOfElement;
  chunkBlocks = std::max<int64_t>(tiles.bufferBytes / bytesOfBlock, 1);
  chunkElements = elements;
  if (bytesOfBlock > 2 * tiles.bufferBytes && blocks == 1)
    chunkElements = std::max<int64_t>(tiles.bufferBytes / bytesOfElement, 1);
  return chunkElements < elements || bytesOfBlock <= kMaxBufferBytes;
}

Value RegisterTiles::unpack(const Range &blocks, const Range &elements) {
  int64_t parallel = body.unpacked.size();
  auto getSizes = [&](Value size, int64_t all) {
    std::optional<int64_t> known = getConstantIntValue(size);
    return known ? *known : all;
  };
  int64_t numBlocks = getSizes(blocks.size, chunkBlocks),
          numElements = getSizes(elements.size, chunkElements);
  Value buffer = tensor::EmptyOp::create(
      b, ArrayRef<int64_t>{numBlocks, numElements * parallel, columns},
      body.unpacked.front().getType());
  return forEach(
             constant(0), blocks.size, constant(1), buffer,
             [&](Value block, ValueRange buffers) {
               return forEach(
                   constant(0), elements.size, constant(1), buffers,
                   [&](Value k, ValueRange buffers) {
                     Values known;
                     Value buffer = buffers[0];
                     Value first =
                         b.createOrFold<arith::MulIOp>(k, constant(parallel));
                     Indices at{{loops.blocks, add(blocks.begin, block)},
                                {sums.elements, add(elements.begin, k)}};
                     for (auto [number, value] : llvm::enumerate(body.unpacked))
                       buffer =
                           vector::TransferWriteOp::create(
                               b,
                               toVector(compute(sums.inner, value, at, known)),
                               buffer,
                               ValueRange{block, add(first, constant(number)),
                                          constant(0)},
                               ArrayRef<bool>{true})
                               .getResult();
                     return SmallVector<Value>{buffer};
                   });
             })
      .front();
}

Value RegisterTiles::emitUnpacked(Value result) {
  SmallVector<int64_t> ranges = sums.inner.getStaticLoopRanges();
  int64_t numBlocks = ranges[loops.blocks], numElements = ranges[sums.elements];
  bool hasLongBlock = chunkElements < numElements;
  Type sumType = getElementTypeOrSelf(sums.inner.getResult(0));
  auto getEnd = [&](Value begin, int64_t chunk, int64_t all) {
    if (all % chunk == 0)
      return constant(chunk);
    return b.createOrFold<arith::MinUIOp>(constant(chunk),
                                          subtract(constant(all), begin));
  };
  auto forTiles = [&](Value result, TileBody emitTile) {
    return forEachTile(tiles.unpackedRows, tiles.unpackedColumns, result,
                       emitTile);
  };
  Range all{constant(0), constant(numBlocks)};
  // The result has the sums so far: of rows, or of the only block.
  result = forTiles(result, [&](Value row, int64_t rows, Value column,
                                Value result) {
    SmallVector<Value> start;
    for (int64_t i = 0; i < rows; ++i) {
      Value at = add(row, constant(i));
      start.push_back(
          hasLongBlock ? readStart(sums.inner,
                                   {{loops.rows, at}, {loops.columns, column}})
                       : readStart(sums.outer,
                                   {{sums.rows, at}, {sums.columns, column}}));
    }
    return writeRows(row, column, start, result);
  });
  int64_t count = hasLongBlock ? numElements : numBlocks,
          chunk = hasLongBlock ? chunkElements : chunkBlocks;
  result =
      forEach(
          constant(0), constant(count), constant(chunk), result,
          [&](Value begin, ValueRange results) {
            Range part{begin, getEnd(begin, chunk, count)};
            Range blocks = hasLongBlock ? all : part;
            Range elements =
                hasLongBlock ? part : Range{constant(0), constant(numElements)};
            Value buffer = unpack(blocks, elements);
            Type type = hasLongBlock ? sumType : getElementTypeOrSelf(result);
            return SmallVector<Value>{
                forTiles(results[0], [&](Value row, int64_t rows, Value column,
                                         Value result) {
                  SmallVector<Value> states;
                  for (int64_t i = 0; i < rows; ++i)
                    states.push_back(readResult(result, add(row, constant(i)),
                                                column, type));
                  states = hasLongBlock
                               ? addElements(row, column, constant(0), blocks,
                                             elements, states, buffer)
                               : addBlocks(row, column, blocks, states, buffer);
                  return writeRows(row, column, states, result);
                })};
          })
          .front();
  if (!hasLongBlock)
    return result;
  return forTiles(result, [&](Value row, int64_t rows, Value column,
                              Value result) {
    SmallVector<Value> parts, states;
    for (int64_t i = 0; i < rows; ++i) {
      Value at = add(row, constant(i));
      parts.push_back(readResult(result, at, column, sumType));
      states.push_back(
          readStart(sums.outer, {{sums.rows, at}, {sums.columns, column}}));
    }
    return writeRows(row, column,
                     addBlock(row, column, constant(0), parts, states), result);
  });
}

void RegisterTiles::emit() {
  linalg::GenericOp outer = sums.outer;
  b.setInsertionPoint(outer);
  Value result = outer.getDpsInits().front();
  if (auto fill = result.getDefiningOp<linalg::FillOp>())
    result = fill.getDpsInits().front();
  Value count = getSize(outer, sums.rows);
  std::optional<int64_t> known = getConstantIntValue(count);
  if (body.unpacked.empty() || !findChunks() ||
      (known && *known < tiles.minUnpackedRows)) {
    result = emitDirect(result);
  } else if (known) {
    result = emitUnpacked(result);
  } else {
    Value isMany = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, count,
                                         constant(tiles.minUnpackedRows));
    auto branch = scf::IfOp::create(b, result.getType(), isMany,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, emitUnpacked(result));
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, emitDirect(result));
    result = branch.getResult(0);
  }
  rewriter.replaceOp(outer, result);
  rewriter.eraseOp(sums.inner);
}

void mlir::posenc::emitRegisterTiles(RewriterBase &rewriter,
                                     const BlockSums &sums,
                                     const BlockSumTiles &tiles) {
  RegisterTiles(rewriter, sums, tiles).emit();
}
