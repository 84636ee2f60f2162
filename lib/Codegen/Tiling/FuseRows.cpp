//===- FuseRows.cpp - operations that follow each other by rows -*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations of which each needs the same rows of the one before (a norm, a
// softmax, the sum of a tensor and a table of positions) become one loop over
// these rows, by upstream's tile and fuse. What they leave for each other is of
// one row then, and stays in the first cache.
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
  explicit RowGroup(linalg::LinalgOp root) : root(root) {}

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
  bool keepsInPlaceInputs(const Member &producer);
  bool isUsedOutside(Operation *producer);
  void removeUnplaced();

  linalg::LinalgOp root;
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

/// The dimensions of a result that the loops of its operation are, or failure
/// where some are none.
static FailureOr<AffineMap> getResultMap(OpResult result) {
  if (auto op = dyn_cast<linalg::LinalgOp>(result.getOwner())) {
    AffineMap map = op.getMatchingIndexingMap(op.getTiedOpOperand(result));
    if (!map.isProjectedPermutation())
      return failure();
    return map;
  }
  auto op = dyn_cast<SinusoidalOp>(result.getOwner());
  if (!op)
    return failure();
  // A row of the table for each position.
  return AffineMap::getMultiDimIdentityMap(op.getNumLoops(), op.getContext());
}

/// Whether an operation may be computed anywhere at no cost.
static bool isFree(Operation *op) { return isa<linalg::FillOp>(op); }

static bool isFusable(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return isTiledElementwise(linalgOp) || isTiledReduction(linalgOp) ||
           isFree(op);
  auto table = dyn_cast<SinusoidalOp>(op);
  return table && table.getNumLoops() > 0;
}

static unsigned getNumLoops(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp.getNumLoops();
  return cast<SinusoidalOp>(op).getNumLoops();
}

/// Whether an iteration's part of the first result has few elements.
bool RowGroup::hasFewElements(const Member &producer) {
  OpResult result = producer.op->getResult(0);
  FailureOr<AffineMap> map = getResultMap(result);
  int64_t elements = 1;
  for (auto [dim, size] :
       llvm::enumerate(cast<RankedTensorType>(result.getType()).getShape())) {
    if (dim < map->getNumResults() &&
        producer.rows[map->getDimPosition(dim)] >= 0)
      continue;
    if (ShapedType::isDynamic(size) || size > kMaxElements)
      return false;
    elements *= size;
  }
  return elements <= kMaxElements;
}

/// Whether a producer, which moves to the root, reads inputs that a result may
/// overwrite only where the root does: what the same iteration writes.
bool RowGroup::keepsInPlaceInputs(const Member &producer) {
  if (!readsInPlaceInput(producer.op))
    return true;
  auto op = dyn_cast<linalg::LinalgOp>(producer.op);
  OpOperand *written = root.getDpsInitOperand(0);
  BlockArgument mine = getInPlaceInput(written->get());
  const Member &last = members.front();
  return op && llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *input) {
           if (!isInPlaceInput(input->get()))
             return true;
           AffineMap read = op.getMatchingIndexingMap(input);
           AffineMap write = root.getMatchingIndexingMap(written);
           auto isSameRow = [&](unsigned dim) {
             return producer.rows[read.getDimPosition(dim)] ==
                    last.rows[write.getDimPosition(dim)];
           };
           return input->get() == mine &&
                  llvm::all_of(llvm::seq(read.getNumResults()), isSameRow);
         });
}

/// Adds what computes an operand. Returns whether it is to be fused but has not
/// all loops of the rows, and which of the root are then missing.
bool RowGroup::addProducer(const Member &consumer, OpOperand &operand,
                           llvm::SmallBitVector &missing) {
  auto result = dyn_cast<OpResult>(operand.get());
  if (!result || result.getOwner()->getBlock() != root->getBlock() ||
      !isFusable(result.getOwner()) || rejected.contains(result.getOwner()))
    return false;
  FailureOr<AffineMap> map = getResultMap(result);
  auto user = dyn_cast<linalg::LinalgOp>(consumer.op);
  // Positions of a table are given.
  if (failed(map) || !user)
    return false;
  AffineMap used = user.getMatchingIndexingMap(&operand);
  Member producer{result.getOwner(),
                  SmallVector<int64_t>(getNumLoops(result.getOwner()), -1)};
  llvm::SmallBitVector unseen(root.getNumLoops());
  for (int64_t row : members.front().rows)
    if (row >= 0)
      unseen.set(row);
  for (unsigned dim = 0; dim < map->getNumResults(); ++dim)
    if (int64_t row = consumer.rows[used.getDimPosition(dim)]; row >= 0) {
      producer.rows[map->getDimPosition(dim)] = row;
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
  } else if (keepsInPlaceInputs(producer) &&
             (hasFewElements(producer) ||
              (consumer.op == root && findReusableInput(root) == &operand))) {
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
  SmallVector<int64_t> own(root.getNumLoops(), -1);
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

bool RowGroup::find() {
  SmallVector<int64_t> ranges = root.getStaticLoopRanges();
  llvm::SmallBitVector rows(root.getNumLoops());
  for (auto [loop, type] : llvm::enumerate(root.getIteratorTypesArray()))
    if (type == utils::IteratorType::parallel)
      rows.set(loop);
  // Elements of a row are vectors.
  AffineMap out = root.getMatchingIndexingMap(root.getDpsInitOperand(0));
  if (root.getNumParallelLoops() == root.getNumLoops())
    rows.reset(out.getDimPosition(out.getNumResults() - 1));
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
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
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
      auto root = dyn_cast<linalg::LinalgOp>(op);
      Operation *previous = op->getPrevNode();
      if (root && root->getNumResults() == 1 && !isFree(root) &&
          (isTiledElementwise(root) || isTiledReduction(root))) {
        RowGroup group(root);
        if (group.find()) {
          Operation *next = root->getNextNode();
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
