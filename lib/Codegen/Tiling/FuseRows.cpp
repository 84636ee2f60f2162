//===- FuseRows.cpp - fusion of operations row by row ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chain of operations in which each one reads the same rows of its producer
// (a norm, a softmax, the sum of a tensor and a table of positions, a norm and
// a rope) becomes one loop over these rows, by upstream's tile and fuse. The
// intermediate results of an iteration are single rows, which stay in the L1
// cache.
//
// The loop must not recompute a row of a producer, so each row must belong to
// one iteration. Loops of the last operation that a producer does not have (for
// a table of positions, the batch) therefore stay inside the iteration.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/Posenc.h"
#include "posenc/IR/Remarks.h"

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

#define DEBUG_TYPE "posenc-fuse-rows"

/// Maximum number of elements between two operations of an iteration: a few
/// rows of a model, which fit on the stack.
static constexpr int64_t kMaxElements = 8192;
/// Number of iterations that suffices for any number of threads.
static constexpr int64_t kEnoughRows = 64;
/// Maximum number of scalar operations of an iteration. The loop's body is one
/// block for LLVM, whose time grows faster than the number of instructions.
static constexpr size_t kMaxRowOperations = 256;

namespace {
/// An operation of the fusion. `rows` maps each of its loops to the row loop of
/// the last operation that it corresponds to, or to -1.
struct Member {
  Operation *op;
  SmallVector<int64_t> rows;
};

/// The operations that are computed row by row with `root`, the last of them.
class RowFusion {
public:
  explicit RowFusion(DestinationStyleOpInterface root) : root(root) {}

  /// Whether a member reduces rows, and none computes a table of positions.
  bool hasOnlyReductions() const;

  /// Finds the operations. Returns whether there is anything to fuse.
  bool find();
  /// Returns the names of the producers that are fused.
  std::string getNames() const;
  /// Replaces the operations by one scf.forall over rows.
  LogicalResult fuse(RewriterBase &rewriter);

private:
  const Member *lookup(Operation *op) const;
  /// Finds the members if `rows` are the root's row loops. Returns whether a
  /// producer was left out because it lacks loops, which are added to
  /// `missing`.
  bool findMembers(const llvm::SmallBitVector &rows,
                   llvm::SmallBitVector &missing);
  bool addProducer(const Member &consumer, OpOperand &operand,
                   llvm::SmallBitVector &missing);
  bool hasFewOperations(Operation *producer);
  bool hasFewElements(const Member &producer);
  bool keepsInPlaceInput(const Member &producer, OpOperand &input);
  bool isUsedOutside(Operation *producer);
  void removeUnfusable();
  bool writesOver(const Member &consumer, OpOperand &operand);

  DestinationStyleOpInterface root;
  /// Consumers come before producers; the root is first.
  SmallVector<Member> members;
  /// The scalar operations of all members.
  size_t numOperations = 0;
  /// Producers whose users read different rows.
  llvm::SmallPtrSet<Operation *, 4> rejected;
};
} // namespace

const Member *RowFusion::lookup(Operation *op) const {
  auto found =
      llvm::find_if(members, [&](const Member &m) { return m.op == op; });
  return found == members.end() ? nullptr : &*found;
}

/// Returns for each dimension of an operand the loop of its operation that
/// indexes it, or -1 if every iteration reads all of it. Fails for other
/// indexing.
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

/// Whether an operation may be duplicated at no cost.
static bool isFree(Operation *op) { return isa<linalg::FillOp>(op); }

/// Whether tiles of the operation can be computed where they are needed.
static bool isFusable(Operation *op) {
  if (op->getNumResults() != 1)
    return false;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return isTiledElementwise(linalgOp) || isFree(op) ||
           (isTiledReduction(linalgOp) &&
            llvm::all_of(linalgOp.getIndexingMapsArray(), [](AffineMap map) {
              return map.isProjectedPermutation();
            }));
  return isa<SinusoidalOp, RopeOp, RotateOp>(op) &&
         cast<PositionalOpInterface>(op).getNumLoops() > 0;
}

/// Whether an operation may be the last one of a fusion.
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

/// Returns the number of iterations of each loop, or kDynamic.
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

/// Returns the number of scalar operations for one element of the result.
static size_t countRowOperations(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp ? linalgOp.getBlock()->getOperations().size() : 1;
}

/// Whether an iteration that computes the producer as well has at most
/// kMaxRowOperations. Counts those of the producer if so.
bool RowFusion::hasFewOperations(Operation *producer) {
  size_t sum = numOperations + countRowOperations(producer);
  if (sum > kMaxRowOperations)
    return false;
  numOperations = sum;
  return true;
}

/// Whether one iteration's slice of the result has at most kMaxElements.
bool RowFusion::hasFewElements(const Member &producer) {
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

/// Whether a producer may move to the root although it reads an input that an
/// output may overwrite: each iteration must read only the rows that the same
/// iteration of the root writes.
bool RowFusion::keepsInPlaceInput(const Member &producer, OpOperand &input) {
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

/// Whether the root writes its result over the operand, which then needs no
/// memory of its own.
bool RowFusion::writesOver(const Member &consumer, OpOperand &operand) {
  auto op = dyn_cast<linalg::LinalgOp>(root.getOperation());
  return op && consumer.op == op && findReusableInput(op) == &operand;
}

/// Adds the producer of an operand if it can be fused. Returns whether it could
/// be fused but lacks some of the row loops; adds these loops of the root to
/// `missing`.
bool RowFusion::addProducer(const Member &consumer, OpOperand &operand,
                            llvm::SmallBitVector &missing) {
  auto result = dyn_cast<OpResult>(operand.get());
  if (!result || result.getOwner()->getBlock() != root->getBlock() ||
      !isFusable(result.getOwner()) || rejected.contains(result.getOwner()))
    return false;
  FailureOr<SmallVector<int64_t>> producerLoops = getLoopsOfDims(result);
  FailureOr<SmallVector<int64_t>> consumerLoops = getLoopsOfDims(operand);
  if (failed(producerLoops) || failed(consumerLoops))
    return false;
  Member producer{result.getOwner(),
                  SmallVector<int64_t>(getNumLoops(result.getOwner()), -1)};
  llvm::SmallBitVector unseen(getNumLoops(root));
  for (int64_t row : members.front().rows)
    if (row >= 0)
      unseen.set(row);
  for (auto [consumerLoop, loop] :
       llvm::zip_equal(*consumerLoops, *producerLoops))
    if (int64_t row = consumerLoop < 0 ? -1 : consumer.rows[consumerLoop];
        row >= 0 && loop >= 0) {
      producer.rows[loop] = row;
      unseen.reset(row);
    }
  if (const Member *known = lookup(producer.op)) {
    // Another user reads it along different loops, columns for example.
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
             (hasFewElements(producer) || writesOver(consumer, operand)) &&
             hasFewOperations(producer.op)) {
    members.push_back(std::move(producer));
  }
  return false;
}

/// Whether the result has users outside the fusion. Uses by tensor.dim do not
/// count: `detachSizes` removes them.
bool RowFusion::isUsedOutside(Operation *producer) {
  return llvm::any_of(producer->getUsers(), [&](Operation *user) {
    return !lookup(user) && !isa<tensor::DimOp>(user);
  });
}

/// Replaces tensor.dim of a result by tensor.dim of its destination.
static void detachSizes(RewriterBase &rewriter, OpResult result) {
  auto dps = cast<DestinationStyleOpInterface>(result.getOwner());
  Value init = dps.getTiedOpOperand(result)->get();
  rewriter.replaceUsesWithIf(result, init, [](OpOperand &use) {
    return isa<tensor::DimOp>(use.getOwner());
  });
}

/// Removes producers whose results are read before the root by operations
/// outside the fusion, and producers that no remaining member reads.
void RowFusion::removeUnfusable() {
  auto isFusableHere = [&](const Member &member) {
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
      if (!isFusableHere(members[i])) {
        members.erase(members.begin() + i);
        hasChanged = true;
      }
  }
}

bool RowFusion::findMembers(const llvm::SmallBitVector &rows,
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
    numOperations = countRowOperations(root);
    for (unsigned i = 0; i < members.size(); ++i) {
      Member member = members[i];
      for (OpOperand &operand : member.op->getOpOperands())
        isMissing |= addProducer(member, operand, missing);
    }
  } while (rejected.size() != numRejected);
  removeUnfusable();
  return isMissing;
}

/// Returns the loops of the root that may be row loops: the parallel ones,
/// without the loop over the elements of a row.
static llvm::SmallBitVector getRows(DestinationStyleOpInterface root) {
  llvm::SmallBitVector rows(getNumLoops(root), true);
  auto op = dyn_cast<linalg::LinalgOp>(root.getOperation());
  if (!op)
    return rows;
  for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray()))
    if (type != utils::IteratorType::parallel)
      rows.reset(loop);
  // The innermost dimension is vectorized.
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (op.getNumParallelLoops() == op.getNumLoops())
    rows.reset(out.getDimPosition(out.getNumResults() - 1));
  return rows;
}

bool RowFusion::find() {
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

bool RowFusion::hasOnlyReductions() const {
  bool reduces = false;
  for (const Member &member : members) {
    auto op = dyn_cast<linalg::LinalgOp>(member.op);
    reduces |= op && op.getNumReductionLoops() > 0;
    if (isa<SinusoidalOp>(member.op))
      return false;
  }
  return reduces;
}

std::string RowFusion::getNames() const {
  std::string names;
  for (const Member &member : members)
    if (member.op != root && !isFree(member.op))
      names += (names.empty() ? "" : ", ") +
               member.op->getName().getStringRef().str();
  return names;
}

/// Gives a producer that does not read its destination a destination of its
/// own. A shared one, as in a decomposed softmax, would be copied.
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

LogicalResult RowFusion::fuse(RewriterBase &rewriter) {
  // Producers with users outside the fusion become results of the loop.
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
    // Visits operations from the last to the first: a fusion consists of a root
    // and operations before it.
    for (Operation *op = body.empty() ? nullptr : &body.back(); op;) {
      Operation *previous = op->getPrevNode();
      if (isRoot(op)) {
        RowFusion fusion(cast<DestinationStyleOpInterface>(op));
        if (fusion.find() && (!onlyReductions || fusion.hasOnlyReductions())) {
          reportChoice(op, DEBUG_TYPE,
                       "computes its producers row by row: " +
                           fusion.getNames());
          Operation *next = op->getNextNode();
          if (failed(fusion.fuse(rewriter)))
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
