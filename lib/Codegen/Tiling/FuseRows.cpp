//===- FuseRows.cpp - operations that follow each other by rows -*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations of which each needs the same rows of the one before (a norm, a
// softmax, the sum of a tensor and a table of positions, a norm and a rope)
// become one loop over these rows, by upstream's tile and fuse. What they leave
// for each other is of one row then, and stays in the first cache.
//
// A producer is computed once only where each of its rows belongs to one
// iteration: loops of the last operation that a producer does not have (the
// batch, of a table of positions) stay within the iteration.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCFUSEROWSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Elements that an iteration may keep between two operations: some rows of a
/// model, and what fits on the stack.
static constexpr int64_t kMaxElements = 8192;
/// Iterations that are enough for any number of threads.
static constexpr int64_t kEnoughRows = 64;

namespace {
/// An operation, and for each of its loops the loop over rows of the group's
/// last operation that it is, or -1.
struct Member {
  Operation *op;
  SmallVector<int64_t> rows;
};

class RowGroup {
public:
  /// Finds what can be computed row by row with the operation, which comes
  /// last.
  explicit RowGroup(DestinationStyleOpInterface root) : root(root) {}

  /// Whether there is anything to fuse.
  bool find();
  LogicalResult fuse(RewriterBase &rewriter);

private:
  const Member *lookup(Operation *op) const;
  /// Finds the members for the rows that these loops are.
  bool findMembers(const llvm::SmallBitVector &rows,
                   llvm::SmallBitVector &missing);
  bool addProducer(const Member &consumer, OpOperand &operand,
                   llvm::SmallBitVector &missing);
  bool hasFewElements(const Member &producer);
  bool keepsInPlaceInput(const Member &producer, OpOperand &input);
  bool isUsedOutside(Operation *producer);
  void removeUnplaced();
  bool writesOver(const Member &consumer, OpOperand &operand);

  DestinationStyleOpInterface root;
  /// Consumers before producers.
  SmallVector<Member> members;
  /// Producers of which users need different rows.
  llvm::SmallPtrSet<Operation *, 4> rejected;
};
} // namespace

const Member *RowGroup::lookup(Operation *op) const {
  auto found =
      llvm::find_if(members, [&](const Member &m) { return m.op == op; });
  return found == members.end() ? nullptr : &*found;
}

/// For each dimension of an operand the loop of its operation that it is, or -1
/// if every iteration has all of it; failure if it is something else.
static FailureOr<SmallVector<int64_t>> getLoopsOfDims(OpOperand &operand) {
  SmallVector<int64_t> loops;
  if (auto op = dyn_cast<linalg::LinalgOp>(operand.getOwner())) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!map.isProjectedPermutation())
      return failure();
    for (unsigned dim = 0; dim < map.getNumResults(); ++dim)
      loops.push_back(map.getDimPosition(dim));
    return loops;
  }
  auto op = cast<PositionalOpInterface>(operand.getOwner());
  loops = op.getDimSymbols(operand.getOperandNumber());
  for (int64_t &loop : loops)
    loop = loop < op.getNumLoops() ? loop : -1;
  return loops;
}

static FailureOr<SmallVector<int64_t>> getLoopsOfDims(OpResult result) {
  auto dps = cast<DestinationStyleOpInterface>(result.getOwner());
  return getLoopsOfDims(*dps.getTiedOpOperand(result));
}

/// Whether an operation may be computed anywhere at no cost.
static bool isFree(Operation *op) { return isa<linalg::FillOp>(op); }

/// Whether tiles of the operation can be computed where they are needed.
static bool isFusable(Operation *op) {
  if (op->getNumResults() != 1)
    return false;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return isTiledElementwise(linalgOp) || isTiledReduction(linalgOp) ||
           isFree(op);
  return isa<SinusoidalOp, RopeOp, RotateOp>(op) &&
         cast<PositionalOpInterface>(op).getNumLoops() > 0;
}

/// Whether an operation may be the last one of a group.
static bool isRoot(Operation *op) {
  if (isa<RopeOp, RotateOp>(op))
    return op->getNumResults() > 0 &&
           cast<PositionalOpInterface>(op).getNumLoops() > 0;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && !isFree(op) && isFusable(op);
}

static unsigned getNumLoops(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp.getNumLoops();
  return cast<PositionalOpInterface>(op).getNumLoops();
}

/// The iterations of each loop, where they are known.
static SmallVector<int64_t> getLoopRanges(DestinationStyleOpInterface op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op.getOperation()))
    return linalgOp.getStaticLoopRanges();
  SmallVector<int64_t> ranges(getNumLoops(op), ShapedType::kDynamic);
  OpOperand &init = *op.getDpsInitsMutable().begin();
  auto type = cast<RankedTensorType>(init.get().getType());
  for (auto [dim, loop] : llvm::enumerate(*getLoopsOfDims(init)))
    if (loop >= 0)
      ranges[loop] = type.getDimSize(dim);
  return ranges;
}

/// Whether an iteration's part of the result has few elements.
bool RowGroup::hasFewElements(const Member &producer) {
  OpResult result = producer.op->getResult(0);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(result.getType()).getShape();
  int64_t elements = 1;
  for (auto [size, loop] : llvm::zip_equal(shape, *getLoopsOfDims(result))) {
    if (loop >= 0 && producer.rows[loop] >= 0)
      continue;
    if (ShapedType::isDynamic(size) || size > kMaxElements)
      return false;
    elements *= size;
  }
  return elements <= kMaxElements;
}

/// Whether a producer, which moves to the root, reads of an input that a result
/// may overwrite only what the same iteration of the root writes.
bool RowGroup::keepsInPlaceInput(const Member &producer, OpOperand &input) {
  if (!isInPlaceInput(input.get()))
    return true;
  FailureOr<SmallVector<int64_t>> read = getLoopsOfDims(input);
  for (OpOperand &init : root.getDpsInitsMutable()) {
    FailureOr<SmallVector<int64_t>> written = getLoopsOfDims(init);
    if (getInPlaceInput(init.get()) != input.get() || failed(read) ||
        failed(written))
      continue;
    auto getRow = [](const Member &member, int64_t loop) {
      return loop < 0 ? -1 : member.rows[loop];
    };
    return llvm::all_of(llvm::zip_equal(*read, *written), [&](auto loops) {
      return getRow(producer, std::get<0>(loops)) ==
             getRow(members.front(), std::get<1>(loops));
    });
  }
  return false;
}

/// Whether the root can write its result over an operand: that needs no memory
/// on the way.
bool RowGroup::writesOver(const Member &consumer, OpOperand &operand) {
  auto op = dyn_cast<linalg::LinalgOp>(root.getOperation());
  return op && consumer.op == op && findReusableInput(op) == &operand;
}

/// Adds what computes an operand. Returns whether it is to be fused but has not
/// all loops of the rows, and which of the root are then missing.
bool RowGroup::addProducer(const Member &consumer, OpOperand &operand,
                           llvm::SmallBitVector &missing) {
  auto result = dyn_cast<OpResult>(operand.get());
  if (!result || result.getOwner()->getBlock() != root->getBlock() ||
      !isFusable(result.getOwner()) || rejected.contains(result.getOwner()))
    return false;
  FailureOr<SmallVector<int64_t>> mine = getLoopsOfDims(result);
  FailureOr<SmallVector<int64_t>> used = getLoopsOfDims(operand);
  if (failed(mine) || failed(used))
    return false;
  Member producer{result.getOwner(),
                  SmallVector<int64_t>(getNumLoops(result.getOwner()), -1)};
  llvm::SmallBitVector unseen(getNumLoops(root));
  for (int64_t row : members.front().rows)
    if (row >= 0)
      unseen.set(row);
  for (auto [ofUse, loop] : llvm::zip_equal(*used, *mine))
    if (int64_t row = ofUse < 0 ? -1 : consumer.rows[ofUse];
        row >= 0 && loop >= 0) {
      producer.rows[loop] = row;
      unseen.reset(row);
    }
  if (const Member *known = lookup(producer.op)) {
    // Rows of one user may be no rows of another: columns, for example.
    if (known->rows != producer.rows && !isFree(producer.op))
      rejected.insert(producer.op);
  } else if (isFree(producer.op)) {
    members.push_back(std::move(producer));
  } else if (unseen.any()) {
    missing |= unseen;
    return true;
  } else if (llvm::all_of(producer.op->getOpOperands(),
                          [&](OpOperand &input) {
                            return keepsInPlaceInput(producer, input);
                          }) &&
             (hasFewElements(producer) || writesOver(consumer, operand))) {
    members.push_back(std::move(producer));
  }
  return false;
}

/// Sizes are known without the operation.
bool RowGroup::isUsedOutside(Operation *producer) {
  return llvm::any_of(producer->getUsers(), [&](Operation *user) {
    return !lookup(user) && !isa<tensor::DimOp>(user);
  });
}

/// Lets sizes of a result be those of its destination.
static void detachSizes(RewriterBase &rewriter, OpResult result) {
  auto dps = cast<DestinationStyleOpInterface>(result.getOwner());
  Value init = dps.getTiedOpOperand(result)->get();
  rewriter.replaceUsesWithIf(result, init, [](OpOperand &use) {
    return isa<tensor::DimOp>(use.getOwner());
  });
}

/// Removes producers whose results others than members read before the root,
/// and what these alone need.
void RowGroup::removeUnplaced() {
  auto isPlaced = [&](const Member &member) {
    if (member.op == root || isFree(member.op))
      return true;
    bool hasUser = false;
    for (Operation *user : member.op->getUsers()) {
      if (isa<tensor::DimOp>(user))
        continue;
      Operation *top = root->getBlock()->findAncestorOpInBlock(*user);
      bool isMember = top == user && lookup(user);
      hasUser |= isMember;
      if (!isMember && (!top || !root->isBeforeInBlock(top)))
        return false;
    }
    return hasUser;
  };
  for (bool hasChanged = true; hasChanged;) {
    hasChanged = false;
    for (unsigned i = members.size(); i-- > 1;)
      if (!isPlaced(members[i])) {
        members.erase(members.begin() + i);
        hasChanged = true;
      }
  }
}

bool RowGroup::findMembers(const llvm::SmallBitVector &rows,
                           llvm::SmallBitVector &missing) {
  SmallVector<int64_t> own(getNumLoops(root), -1);
  for (unsigned loop : rows.set_bits())
    own[loop] = loop;
  bool isMissing;
  size_t numRejected;
  do {
    numRejected = rejected.size();
    isMissing = false;
    missing.reset();
    members.assign(1, {root, own});
    for (unsigned i = 0; i < members.size(); ++i) {
      Member member = members[i];
      for (OpOperand &operand : member.op->getOpOperands())
        isMissing |= addProducer(member, operand, missing);
    }
  } while (rejected.size() != numRejected);
  removeUnplaced();
  return isMissing;
}

/// The loops over rows.
static llvm::SmallBitVector getRows(DestinationStyleOpInterface root) {
  llvm::SmallBitVector rows(getNumLoops(root), true);
  auto op = dyn_cast<linalg::LinalgOp>(root.getOperation());
  if (!op)
    return rows;
  for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray()))
    if (type != utils::IteratorType::parallel)
      rows.reset(loop);
  // Elements of a row are vectors.
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (op.getNumParallelLoops() == op.getNumLoops())
    rows.reset(out.getDimPosition(out.getNumResults() - 1));
  return rows;
}

bool RowGroup::find() {
  SmallVector<int64_t> ranges = getLoopRanges(root);
  llvm::SmallBitVector rows = getRows(root);
  auto isEnough = [&](const llvm::SmallBitVector &loops) {
    int64_t count = 1;
    for (unsigned loop : loops.set_bits())
      count = ShapedType::isDynamic(ranges[loop])
                  ? kEnoughRows
                  : std::min(count * ranges[loop], kEnoughRows);
    return loops.any() && count == kEnoughRows;
  };
  while (rows.any()) {
    llvm::SmallBitVector missing(rows.size());
    if (findMembers(rows, missing)) {
      llvm::SmallBitVector fewer = rows;
      fewer.reset(missing);
      if (isEnough(fewer)) {
        rows = fewer;
        continue;
      }
    }
    return llvm::any_of(members, [&](const Member &member) {
      return member.op != root && !isFree(member.op);
    });
  }
  return false;
}

/// Gives a producer that does not read its destination one of its own: one that
/// it shares with others, which softmax decomposes to, would be copied.
static void detachInit(RewriterBase &rewriter, Operation *producer) {
  auto op = dyn_cast<linalg::LinalgOp>(producer);
  OpOperand *init = op ? op.getDpsInitOperand(0) : nullptr;
  if (!init || op.payloadUsesValueFromOperand(init) || init->get().hasOneUse())
    return;
  rewriter.setInsertionPoint(op);
  Type element = getElementTypeOrSelf(init->get().getType());
  Value empty = tensor::EmptyOp::create(
      rewriter, op.getLoc(),
      tensor::getMixedSizes(rewriter, op.getLoc(), init->get()), element);
  rewriter.modifyOpInPlace(op, [&] { init->set(empty); });
}

LogicalResult RowGroup::fuse(RewriterBase &rewriter) {
  // As results of the loop, for those behind it.
  llvm::SmallPtrSet<Operation *, 4> yielded;
  for (const Member &member : ArrayRef(members).drop_front()) {
    if (!isFree(member.op) && isUsedOutside(member.op))
      yielded.insert(member.op);
    else
      detachInit(rewriter, member.op);
  }
  scf::SCFTileAndFuseOptions options;
  options.tilingOptions.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp);
  SmallVector<OpFoldResult> sizes;
  for (unsigned loop = 0; loop < getNumLoops(root); ++loop)
    sizes.push_back(
        rewriter.getIndexAttr(members.front().rows[loop] >= 0 ? 1 : 0));
  options.tilingOptions.setTileSizes(sizes);
  options.setFusionControlFn(
      [&](tensor::ExtractSliceOp, OpResult result,
          bool) -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
        Operation *producer = result.getOwner();
        if (!lookup(producer))
          return std::nullopt;
        return scf::SCFTileAndFuseOptions::ControlFnResult{
            yielded.erase(producer)};
      });
  rewriter.setInsertionPoint(root);
  FailureOr<scf::SCFTileAndFuseResult> tiled =
      scf::tileConsumerAndFuseProducersUsingSCF(
          rewriter, cast<TilingInterface>(root.getOperation()), options);
  if (failed(tiled))
    return failure();
  for (const Member &member : members)
    for (OpResult result : member.op->getResults()) {
      detachSizes(rewriter, result);
      if (Value replacement = tiled->replacements.lookup(result))
        rewriter.replaceUsesWithIf(result, replacement, [&](OpOperand &use) {
          return !lookup(use.getOwner());
        });
    }
  for (const Member &member : members)
    if (member.op->use_empty())
      rewriter.eraseOp(member.op);
  return success();
}

namespace {
struct FuseRows final : mlir::posenc::impl::PosencFuseRowsPassBase<FuseRows> {
  using Base::Base;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    IRRewriter rewriter(&getContext());
    Block &body = getOperation().getFunctionBody().front();
    // The walk begins with the last operation: a group takes operations before
    // the one that is looked at.
    for (Operation *op = body.empty() ? nullptr : &body.back(); op;) {
      Operation *previous = op->getPrevNode();
      if (isRoot(op)) {
        RowGroup group(cast<DestinationStyleOpInterface>(op));
        if (group.find()) {
          Operation *next = op->getNextNode();
          if (failed(group.fuse(rewriter)))
            return signalPassFailure();
          previous = next ? next->getPrevNode() : nullptr;
        }
      }
      op = previous;
    }
    RewritePatternSet patterns(&getContext());
    tensor::populateFoldTensorEmptyPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
  }
};
} // namespace
