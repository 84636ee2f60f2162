//===- AttentionToVector.cpp - attention as vectors -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCode.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/Transforms/VectorizableAttention.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCATTENTIONTOVECTORPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// Emits what the keys that are packed add to a group of queries.
static void emitGroup(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                      AttentionBlock block, Value numKeys, Value count) {
  AttentionOp op = code.op;
  auto toRow = [&](Value key) {
    return subIndex(builder, key, block.firstKey);
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value a, Value b) {
    return Value(arith::CmpIOp::create(builder, predicate, a, b));
  };
  // What any query sees, and what all of them see.
  Value zero = createIndex(builder, 0);
  Value step = createIndex(builder, code.tiles.scoreRows);
  Value firstOfAny =
      maxIndex(builder, zero, toRow(emitFirstKey(builder, op, block.place)));
  block.firstRow = builder.createOrFold<arith::SubIOp>(
      firstOfAny, builder.createOrFold<arith::RemUIOp>(firstOfAny, step));
  block.endRow = minIndex(
      builder, count, toRow(emitEndKey(builder, op, block.lastPlace, numKeys)));
  Value firstOfAll = toRow(emitFirstKey(builder, op, block.lastPlace));
  Value endOfAll = toRow(emitEndKey(builder, op, block.place, numKeys));

  auto isAny = scf::IfOp::create(
      builder, compare(arith::CmpIPredicate::slt, block.firstRow, block.endRow),
      /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(isAny.thenBlock());
  emitDistances(builder, code, block);
  Value rest = arith::RemUIOp::create(builder, block.endRow, step);
  Value isPartial = compare(arith::CmpIPredicate::ne, rest, zero);
  isPartial = arith::OrIOp::create(
      builder, isPartial,
      compare(arith::CmpIPredicate::slt, endOfAll, block.endRow));
  isPartial = arith::OrIOp::create(
      builder, isPartial,
      compare(arith::CmpIPredicate::sgt, firstOfAll, block.firstRow));
  SmallVector<Type> types(code.tiles.vectors, code.getVectorType());
  auto scores = scf::IfOp::create(builder, types, isPartial,
                                  /*withElseRegion=*/true);
  for (bool partial : {true, false}) {
    OpBuilder::InsertionGuard inner(builder);
    builder.setInsertionPointToStart(partial ? scores.thenBlock()
                                             : scores.elseBlock());
    scf::YieldOp::create(builder, emitScores(builder, code, block, partial));
  }
  emitValues(builder, code, block,
             emitSoftmax(builder, code, block, scores.getResults()));
}

/// Calls `body` for each group of a task, with its block and how many of its
/// lanes are tokens.
static void forEachGroup(ImplicitLocOpBuilder &builder,
                         const AttentionCode &code, const AttentionTask &task,
                         function_ref<void(AttentionBlock, Value count)> body) {
  const AttentionTiles &tiles = code.tiles;
  Value zero = createIndex(builder, 0);
  Value group = createIndex(builder, tiles.getGroup());
  createLoop(builder, zero, createIndex(builder, tiles.heads), 1,
             [&](Value head) {
               createLoop(builder, zero, task.numGroups, 1, [&](Value number) {
                 Value first = mulIndex(builder, number, tiles.getGroup());
                 Value count = minIndex(
                     builder, group, subIndex(builder, task.numTokens, first));
                 AttentionBlock block;
                 block.batch = task.batch;
                 block.queryStart = task.queryStart;
                 block.queryHead = addIndex(builder, task.queryHead, head);
                 block.group = addIndex(
                     builder, mulIndex(builder, head, tiles.getGroupsPerHead()),
                     number);
                 block.token = addIndex(builder, task.firstToken, first);
                 block.place = addIndex(builder, task.firstPlace, first);
                 Value last = addIndex(builder, count, -1);
                 block.lastToken = addIndex(builder, block.token, last);
                 block.lastPlace = addIndex(builder, block.place, last);
                 body(block, count);
               });
             });
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

static Value loadIndex(ImplicitLocOpBuilder &builder, Value memref,
                       ValueRange at) {
  Value value = memref::LoadOp::create(builder, memref, at);
  return builder.createOrFold<arith::IndexCastOp>(builder.getIndexType(),
                                                  value);
}

/// `index`, held between 0 and `most`.
static Value clampIndex(ImplicitLocOpBuilder &builder, Value index,
                        Value most) {
  return maxIndex(builder, createIndex(builder, 0),
                  minIndex(builder, index, most));
}

static Value emitNumKeys(ImplicitLocOpBuilder &builder, AttentionOp op,
                         Value batch) {
  Value capacity =
      getDimSize(builder, builder.getLoc(), op.getKey(), op.getKeyTokenDim());
  if (!op.getLengths())
    return capacity;
  if (Value table = op.getBlockTable())
    capacity = arith::MulIOp::create(
        builder, capacity, getDimSize(builder, builder.getLoc(), table, 1));
  return clampIndex(builder, loadIndex(builder, op.getLengths(), batch),
                    capacity);
}

namespace {
/// Packed tokens. What is behind the last sequence is a sequence, too.
class PackedTokens {
public:
  PackedTokens(ImplicitLocOpBuilder &builder, Value starts, Value size)
      : b(builder), starts(starts), size(size),
        numSequences(
            addIndex(b, getDimSize(b, b.getLoc(), starts, /*dim=*/0), -1)) {}

  Value getNumSequences() const { return numSequences; }
  /// Never beyond the tensor, whatever the list has.
  Value getStart(Value sequence) {
    return clampIndex(b, loadIndex(b, starts, sequence), size);
  }
  /// `endOfLast` is that of the one behind the last.
  Value getLength(Value sequence, Value endOfLast) {
    Value start = getStart(sequence);
    Value next = minIndex(b, addIndex(b, sequence, 1), numSequences);
    Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, sequence,
                                         numSequences);
    Value end = arith::SelectOp::create(b, isLast, endOfLast, getStart(next));
    return maxIndex(b, createIndex(b, 0), subIndex(b, end, start));
  }
  /// The tiles of `step` tokens of a sequence begin at this one; to that of the
  /// next there are as many as it needs, or one more.
  Value getFirstTile(Value sequence, Value step) {
    Value number = arith::DivUIOp::create(b, getStart(sequence), step);
    return addIndex(b, number, sequence);
  }
  Value getNumTiles(Value step) {
    Value number = b.createOrFold<arith::DivUIOp>(size, step);
    return addIndex(b, addIndex(b, number, numSequences), 1);
  }
  Value findSequence(Value tile, Value step);

private:
  ImplicitLocOpBuilder &b;
  Value starts, size, numSequences;
};
} // namespace

/// The last sequence that begins at the tile or before, by bisection.
Value PackedTokens::findSequence(Value tile, Value step) {
  Type index = b.getIndexType();
  auto inBody = [&](OpBuilder &nested, function_ref<void()> body) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(nested.getInsertionBlock(), nested.getInsertionPoint());
    body();
  };
  auto loop = scf::WhileOp::create(
      b, TypeRange{index, index}, ValueRange{createIndex(b, 0), numSequences},
      [&](OpBuilder &nested, Location, ValueRange range) {
        inBody(nested, [&] {
          Value isOpen = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                               range[0], range[1]);
          scf::ConditionOp::create(b, isOpen, range);
        });
      },
      [&](OpBuilder &nested, Location, ValueRange range) {
        inBody(nested, [&] {
          Value sum = addIndex(b, addIndex(b, range[0], range[1]), 1);
          Value middle = arith::DivUIOp::create(b, sum, createIndex(b, 2));
          Value isBefore = arith::CmpIOp::create(
              b, arith::CmpIPredicate::sle, getFirstTile(middle, step), tile);
          Value low = arith::SelectOp::create(b, isBefore, middle, range[0]);
          Value high = arith::SelectOp::create(b, isBefore, range[1],
                                               addIndex(b, middle, -1));
          scf::YieldOp::create(b, ValueRange{low, high});
        });
      });
  return loop.getResult(0);
}

static Value emitKeyHead(ImplicitLocOpBuilder &builder, AttentionOp op,
                         Value queryHead) {
  auto getHeads = [](Value tensor, unsigned dim) {
    return cast<ShapedType>(tensor.getType()).getDimSize(dim);
  };
  int64_t ratio = getHeads(op.getQuery(), op.getQueryHeadDim()) /
                  getHeads(op.getKey(), op.getKeyHeadDim());
  return builder.createOrFold<arith::DivUIOp>(queryHead,
                                              createIndex(builder, ratio));
}

/// The task at an iteration over sequences, query heads and tiles; over all
/// tiles where queries are packed.
static AttentionTask emitTask(ImplicitLocOpBuilder &builder,
                              const AttentionCode &code, ValueRange indices,
                              Value step) {
  AttentionOp op = code.op;
  const AttentionTiles &tiles = code.tiles;
  Value tokens = getDimSize(builder, builder.getLoc(), op.getQuery(),
                            op.getQueryTokenDim());
  AttentionTask task;
  task.batch = indices[0];
  task.queryHead = mulIndex(builder, indices[1], tiles.heads);
  task.keyHead = emitKeyHead(builder, op, task.queryHead);
  if (!op.arePackedQueries()) {
    task.firstToken = mulIndex(builder, indices[2], tiles.getTokens());
    task.numKeys = emitNumKeys(builder, op, task.batch);
  } else {
    Value zero = createIndex(builder, 0);
    PackedTokens packed(builder, op.getCuSeqlens()[0], tokens);
    task.batch = packed.findSequence(indices[2], step);
    task.queryStart = packed.getStart(task.batch);
    Value tile =
        subIndex(builder, indices[2], packed.getFirstTile(task.batch, step));
    task.firstToken =
        mulIndex(builder, maxIndex(builder, zero, tile), tiles.getTokens());
    tokens = packed.getLength(task.batch, tokens);
    if (op.arePackedKeys()) {
      PackedTokens keys(builder, op.getCuSeqlens()[1],
                        getDimSize(builder, builder.getLoc(), op.getKey(),
                                   op.getKeyTokenDim()));
      task.keyStart = keys.getStart(task.batch);
      task.numKeys = keys.getLength(task.batch, task.keyStart);
    } else {
      Value isSequence =
          arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, task.batch,
                                packed.getNumSequences());
      auto hasKeys =
          scf::IfOp::create(builder, builder.getIndexType(), isSequence,
                            /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(hasKeys.thenBlock());
      scf::YieldOp::create(builder, emitNumKeys(builder, op, task.batch));
      builder.setInsertionPointToStart(hasKeys.elseBlock());
      scf::YieldOp::create(builder, zero);
      task.numKeys = hasKeys.getResult(0);
    }
  }
  task.sequenceTokens = tokens;
  task.numTokens =
      minIndex(builder, step, subIndex(builder, tokens, task.firstToken));
  task.numGroups = builder.createOrFold<arith::CeilDivSIOp>(
      task.numTokens, createIndex(builder, tiles.getGroup()));
  task.firstPlace = addIndex(builder, task.firstToken,
                             subIndex(builder, task.numKeys, tokens));
  if (Value trailing = op.getTrailingQueries())
    task.firstPlace = subIndex(builder, task.firstPlace, trailing);
  return task;
}

/// The keys that any query of a task sees.
static std::pair<Value, Value> emitKeyRange(ImplicitLocOpBuilder &builder,
                                            AttentionOp op,
                                            const AttentionTask &task) {
  Value lastPlace =
      addIndex(builder, task.firstPlace, addIndex(builder, task.numTokens, -1));
  Value end = emitEndKey(builder, op, lastPlace, task.numKeys);
  return {emitFirstKey(builder, op, task.firstPlace), end};
}

namespace {
/// Code for few tokens, and when it is taken: null where they are always few.
struct FewTokensCode {
  AttentionCode code;
  Value isTaken;
  /// Of how many tasks each takes parts of the keys.
  Value numShares;
};
} // namespace

/// Makes results of what the shares of tasks over few tokens have left.
static void emitMerges(ImplicitLocOpBuilder &builder,
                       ArrayRef<FewTokensCode> codes) {
  Value zero = createIndex(builder, 0), one = createIndex(builder, 1);
  SmallVector<Value> sizes;
  for (const FewTokensCode &few : codes) {
    AttentionOp op = few.code.op;
    Value isAlone = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                          few.numShares, one);
    Value batch = getDimSize(builder, builder.getLoc(), op.getQuery(), 0);
    Value size = arith::SelectOp::create(builder, isAlone, zero, batch);
    if (few.isTaken)
      size = arith::SelectOp::create(builder, few.isTaken, size, zero);
    sizes.push_back(size);
  }
  // Stays apart, also where it is a single iteration.
  auto after =
      scf::ExecuteRegionOp::create(builder, TypeRange(), builder.getUnitAttr());
  builder.setInsertionPointToStart(&after.getRegion().emplaceBlock());
  for (auto [few, size] : llvm::zip_equal(codes, sizes)) {
    const AttentionCode &code = few.code;
    Value step = createIndex(builder, code.tiles.getTokens());
    createLoop(builder, zero, size, 1, [&](Value sequence) {
      createLoop(builder, zero, createIndex(builder, code.getHeadTasks()), 1,
                 [&](Value heads) {
                   AttentionTask task =
                       emitTask(builder, code, {sequence, heads, zero}, step);
                   auto [begin, end] = emitKeyRange(builder, code.op, task);
                   emitMerge(builder, code, task, begin, end);
                 });
    });
  }
  scf::YieldOp::create(builder);
}

/// Emits the task at an iteration for few tokens.
static void emitFew(ImplicitLocOpBuilder &builder, const FewTokensCode &few,
                    const AttentionRows &queryRows,
                    const AttentionRows &keyRows, ValueRange indices) {
  const AttentionCode &code = few.code;
  SmallVector<Value> at(indices);
  Value share = std::exchange(at[2], createIndex(builder, 0));
  AttentionTask task =
      emitTask(builder, code, at, createIndex(builder, code.tiles.getTokens()));
  auto [begin, end] = emitKeyRange(builder, code.op, task);
  emitDecode(builder, code, queryRows, keyRows, task, begin, end, share,
             few.numShares);
}

/// Emits a task for any number of tokens.
static void emitAny(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                    const AttentionRows &queryRows,
                    const AttentionRows &keyRows, const AttentionTask &task) {
  AttentionOp op = code.op;
  const AttentionTiles &tiles = code.tiles;
  std::pair<Value, Value> range = emitKeyRange(builder, op, task);
  Value begin = range.first, end = range.second;
  emitQueries(builder, code, queryRows, task);
  emitStart(builder, code, task);
  createLoop(builder, begin, end, tiles.keys, [&](Value firstKey) {
    Value count = minIndex(builder, createIndex(builder, tiles.keys),
                           subIndex(builder, end, firstKey));
    emitKeys(builder, code, keyRows, task, firstKey, count);
    Value isUnsafe;
    if (code.hasMasks())
      isUnsafe = emitIsUnsafe(builder, code, count);
    forEachGroup(builder, code, task, [&](AttentionBlock block, Value) {
      block.firstKey = firstKey;
      if (code.target.attentionPrefetch)
        prefetchKeys(builder, code, task, block.group,
                     addIndex(builder, firstKey, tiles.keys), end);
      block.isUnsafe = isUnsafe;
      emitGroup(builder, code, block, task.numKeys, count);
    });
  });
  forEachGroup(builder, code, task, [&](AttentionBlock block, Value count) {
    emitResults(builder, code, block, count);
  });
}

/// Emits the task at an iteration for packed tokens, few or any number.
static void emitPacked(ImplicitLocOpBuilder &builder, const AttentionCode &any,
                       ArrayRef<FewTokensCode> codes,
                       const AttentionRows &queryRows,
                       const AttentionRows &keyRows, ValueRange indices) {
  AttentionTask task = emitTask(builder, any, indices,
                                createIndex(builder, any.tiles.getTokens()));
  auto compare = [&](arith::CmpIPredicate predicate, Value a, int64_t b) {
    return Value(
        arith::CmpIOp::create(builder, predicate, a, createIndex(builder, b)));
  };
  auto startIf = [&](Value condition) {
    auto branch =
        scf::IfOp::create(builder, condition, /*withElseRegion=*/true);
    builder.setInsertionPointToStart(branch.thenBlock());
    return branch;
  };
  // Some sequences need fewer tiles than they could have.
  startIf(compare(arith::CmpIPredicate::sgt, task.numTokens, 0));
  Value isFirst = compare(arith::CmpIPredicate::eq, task.firstToken, 0);
  for (const FewTokensCode &few : codes) {
    const AttentionTiles &tiles = few.code.tiles;
    Value less = addIndex(builder, task.sequenceTokens, -tiles.leastTokens);
    scf::IfOp branch = startIf(compare(arith::CmpIPredicate::ule, less,
                                       tiles.getTokens() - tiles.leastTokens));
    // One of some tasks does what all have to, the next for the next sequence.
    // It takes all tokens of a sequence, also where tasks for many take fewer.
    int64_t tasks = tiles.heads / any.tiles.heads;
    Value number = createIndex(builder, tasks);
    auto isMine = [&](Value index) {
      return builder.createOrFold<arith::RemUIOp>(index, number);
    };
    startIf(arith::AndIOp::create(
        builder, isFirst,
        arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                              isMine(indices[1]), isMine(indices[2]))));
    AttentionTask all = task;
    all.numTokens = task.sequenceTokens;
    all.queryHead = mulIndex(
        builder, builder.createOrFold<arith::DivUIOp>(indices[1], number),
        tiles.heads);
    all.keyHead = emitKeyHead(builder, any.op, all.queryHead);
    auto [begin, end] = emitKeyRange(builder, any.op, all);
    emitDecode(builder, few.code, queryRows, keyRows, all, begin, end,
               /*share=*/nullptr, few.numShares);
    builder.setInsertionPointToStart(branch.elseBlock());
  }
  emitAny(builder, any, queryRows, keyRows, task);
}

static void convertAttention(AttentionOp op, const VectorTarget &target,
                             AttentionScratch &scratch) {
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  auto getSize = [&](Value tensor, int64_t dim) {
    return getDimSize(builder, builder.getLoc(), tensor, dim);
  };
  Value tokens = getSize(op.getQuery(), op.getQueryTokenDim());
  // Code for few tokens takes parts of the memory of that for any number.
  std::optional<AttentionCode> any;
  if (!areAlwaysFew(op, target))
    any.emplace(builder, op, target, scratch, std::nullopt);
  SmallVector<FewTokensCode, 2> codes;
  for (FewTokens few : getFewTokens(op, target))
    codes.push_back({AttentionCode(builder, op, target, scratch, few), {}, {}});
  const AttentionCode &first = any ? *any : codes.front().code;
  int64_t mostRows = first.tiles.getGroup();
  for (const FewTokensCode &few : codes)
    mostRows = std::max(mostRows, few.code.tiles.getTokens());
  AttentionRows queryRows(builder, first, /*isKey=*/false, mostRows);
  AttentionRows keyRows(builder, first, /*isKey=*/true, /*numSlots=*/1);

  SmallVector<OpFoldResult> sizes{getSize(op.getQuery(), 0)};
  if (any) {
    Value step = createIndex(builder, any->tiles.getTokens());
    sizes.push_back(builder.getIndexAttr(any->getHeadTasks()));
    sizes.push_back(builder.createOrFold<arith::CeilDivUIOp>(tokens, step));
    if (op.arePackedQueries()) {
      sizes[0] = builder.getIndexAttr(1);
      sizes[2] =
          PackedTokens(builder, op.getCuSeqlens()[0], tokens).getNumTiles(step);
    }
  }
  if (op.arePackedQueries()) {
    llvm::erase_if(codes, [&](const FewTokensCode &few) {
      return few.code.tiles.heads % any->tiles.heads != 0;
    });
  }
  for (FewTokensCode &few : codes) {
    const AttentionCode &code = few.code;
    few.numShares = createIndex(builder, 1);
    if (op.arePackedQueries())
      continue;
    if (code.tiles.mostParts > 1)
      few.numShares = emitNumShares(builder, code);
    OpFoldResult heads = builder.getIndexAttr(code.getHeadTasks());
    if (!any) {
      llvm::append_values(sizes, heads, OpFoldResult(few.numShares));
      continue;
    }
    few.isTaken = arith::CmpIOp::create(
        builder, arith::CmpIPredicate::ule,
        subIndex(builder, tokens, createIndex(builder, code.tiles.leastTokens)),
        createIndex(builder, code.tiles.getTokens() - code.tiles.leastTokens));
    auto choose = [&](OpFoldResult mine, OpFoldResult other) -> OpFoldResult {
      Location loc = builder.getLoc();
      return arith::SelectOp::create(
                 builder, few.isTaken,
                 getValueOrCreateConstantIndexOp(builder, loc, mine),
                 getValueOrCreateConstantIndexOp(builder, loc, other))
          .getResult();
    };
    sizes[1] = choose(heads, sizes[1]);
    sizes[2] = choose(few.numShares, sizes[2]);
  }
  auto forall = scf::ForallOp::create(builder, sizes, /*outputs=*/ValueRange(),
                                      /*mapping=*/std::nullopt);
  // Few tokens write little and read much.
  forall->setAttr(kByInputsAttrName, builder.getUnitAttr());
  builder.setInsertionPointToStart(forall.getBody());
  SmallVector<Value> indices(forall.getInductionVars());
  if (op.arePackedQueries())
    return emitPacked(builder, *any, codes, queryRows, keyRows, indices);
  for (const FewTokensCode &few : codes) {
    if (!few.isTaken) {
      emitFew(builder, few, queryRows, keyRows, indices);
      continue;
    }
    auto branch =
        scf::IfOp::create(builder, few.isTaken, /*withElseRegion=*/true);
    builder.setInsertionPointToStart(branch.thenBlock());
    emitFew(builder, few, queryRows, keyRows, indices);
    builder.setInsertionPointToStart(branch.elseBlock());
  }
  if (any)
    emitAny(builder, *any, queryRows, keyRows,
            emitTask(builder, *any, indices,
                     createIndex(builder, any->tiles.getTokens())));
  llvm::erase_if(codes, [](const FewTokensCode &few) {
    return few.code.tiles.mostParts == 1;
  });
  if (codes.empty())
    return;
  builder.setInsertionPointAfter(forall);
  emitMerges(builder, codes);
}

namespace {
struct ConvertPosencAttentionToVector final
    : mlir::posenc::impl::ConvertPosencAttentionToVectorPassBase<
          ConvertPosencAttentionToVector> {
  using Base::Base;
  friend struct mlir::posenc::VectorTarget;

  void runOnOperation() override {
    SmallVector<AttentionOp> operations;
    getOperation().walk([&](AttentionOp op) { operations.push_back(op); });
    VectorTarget target = VectorTarget::get(*this);
    target.hasBF16Dots = bf16Dots;
    SmallVector<AttentionOp> convertible;
    for (AttentionOp op : operations) {
      if (std::optional<std::string> obstacle =
              getVectorUnsupportedReason(op)) {
        remark::missed(
            op.getLoc(),
            remark::RemarkOpts::name("AttentionToVector").category("posenc"))
            << remark::reason("{0}", *obstacle);
        continue;
      }
      convertible.push_back(op);
    }
    AttentionScratch scratch(convertible, target);
    for (AttentionOp op : convertible) {
      if (failed(checkConvertible(op, target)))
        return signalPassFailure();
      convertAttention(op, target, scratch);
      op.erase();
    }
  }
};
} // namespace
