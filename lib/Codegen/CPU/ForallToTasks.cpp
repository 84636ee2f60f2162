//===- ForallToTasks.cpp - division of a kernel into tasks ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The caller runs a kernel as a number of tasks, possibly on several threads.
// Each parallel loop is a phase, whose iterations are divided among the tasks;
// the ops between two such loops are a phase with a single task. The caller
// waits for all tasks of a phase before it starts the next phase.
//
//===----------------------------------------------------------------------===//

#include "VectorTarget.h"

#include "posenc/ABI/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCFORALLTOTASKSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-forall-to-tasks"

namespace {
/// Operations of a function's body that must wait for those of the previous
/// phase.
struct Phase {
  SmallVector<Operation *> operations;
  /// The only operation, if it is a loop whose iterations are divided among
  /// tasks; else null.
  scf::ForallOp forall;
};

/// The phases of a function, and the buffers that more than one of them uses.
struct Work {
  SmallVector<Phase> phases;
  SmallVector<memref::AllocaOp> shared;

  bool hasParallelPhase() const {
    return llvm::any_of(phases, [](const Phase &p) { return bool(p.forall); });
  }
  bool isOneLoop() const {
    return phases.size() == 1 && phases.front().forall && shared.empty();
  }
};

/// Divides a function's body into phases.
class PhaseFinder {
public:
  /// `measure` is the op that stores the size of the workspace, or null.
  PhaseFinder(Block &body, Operation *measure) : body(body), measure(measure) {}

  Work find();

private:
  bool canRunInEveryTask(Operation &op);
  static bool isParallel(Operation &op);
  /// Returns the phase of an operation, or nullopt if every task executes it.
  std::optional<size_t> getPhase(Operation *op) const {
    auto found = phaseOf.find(body.findAncestorOpInBlock(*op));
    return found == phaseOf.end() ? std::nullopt : std::optional(found->second);
  }
  void collectPhases(Value buffer, llvm::SmallSet<size_t, 4> &phases,
                     bool &isStored);
  bool hasCrossingValue();
  bool findShared();
  void join();

  Block &body;
  Operation *measure;
  llvm::SmallDenseMap<Operation *, size_t> phaseOf;
  Work work;
};
} // namespace

/// Whether every task may execute the operation before all phases, because it
/// accesses no memory other than the task's own stack. A store that follows an
/// access by a phase stays behind it. Operations that are not speculatable,
/// such as divisions, run in any case.
bool PhaseFinder::canRunInEveryTask(Operation &op) {
  bool isPrivate = isMemoryEffectFree(&op) || isa<memref::AllocaOp>(op);
  if (auto store = dyn_cast<memref::StoreOp>(op)) {
    llvm::SmallSet<size_t, 4> phases;
    bool isStored = false;
    collectPhases(store.getMemRef(), phases, isStored);
    isPrivate =
        store.getMemRef().getDefiningOp<memref::AllocaOp>() && phases.empty();
  }
  return isPrivate && llvm::all_of(op.getOperands(), [&](Value operand) {
           Operation *source = operand.getDefiningOp();
           return !source || !getPhase(source);
         });
}

bool PhaseFinder::isParallel(Operation &op) {
  auto forall = dyn_cast<scf::ForallOp>(op);
  return forall && forall.getNumResults() == 0 && forall.getRank() > 0 &&
         llvm::all_of(forall.getMixedLowerBound(), isZeroInteger);
}

/// Collects the phases that use a buffer, and whether every task stores to it.
void PhaseFinder::collectPhases(Value buffer, llvm::SmallSet<size_t, 4> &phases,
                                bool &isStored) {
  for (Operation *user : buffer.getUsers()) {
    if (std::optional<size_t> phase = getPhase(user)) {
      phases.insert(*phase);
      continue;
    }
    isStored |= isa<memref::StoreOp>(user);
    for (Value result : user->getResults())
      if (isa<MemRefType>(result.getType()))
        collectPhases(result, phases, isStored);
  }
}

/// Whether a phase uses an SSA result of another phase, which is not passed in
/// memory.
bool PhaseFinder::hasCrossingValue() {
  for (auto [number, phase] : llvm::enumerate(work.phases))
    for (Operation *op : phase.operations)
      for (Operation *user : op->getUsers())
        if (getPhase(user) != number)
          return true;
  return false;
}

/// Finds the buffers that pass data from one phase to another. Fails if every
/// task would store to one of them.
bool PhaseFinder::findShared() {
  for (auto alloca : body.getOps<memref::AllocaOp>()) {
    if (!alloca->hasAttr(PosencDialect::kSharedBufferAttrName))
      continue;
    llvm::SmallSet<size_t, 4> phases;
    bool isStored = false;
    collectPhases(alloca, phases, isStored);
    if (phases.size() < 2)
      continue;
    if (isStored || !alloca.getType().hasStaticShape() ||
        !alloca.getType().getLayout().isIdentity())
      return false;
    work.shared.push_back(alloca);
  }
  return true;
}

/// Joins all phases to one.
void PhaseFinder::join() {
  Phase all;
  for (const Phase &phase : work.phases)
    llvm::append_range(all.operations, phase.operations);
  work.phases.assign(1, all);
  work.shared.clear();
  for (Operation *op : all.operations)
    phaseOf[op] = 0;
}

Work PhaseFinder::find() {
  for (Operation &op : body.without_terminator()) {
    if (&op == measure || canRunInEveryTask(op))
      continue;
    bool splits = isParallel(op);
    if (work.phases.empty() || splits || work.phases.back().forall)
      work.phases.emplace_back();
    Phase &phase = work.phases.back();
    phase.operations.push_back(&op);
    if (splits)
      phase.forall = cast<scf::ForallOp>(op);
    phaseOf[&op] = work.phases.size() - 1;
  }
  if (work.phases.size() > 1 && (hasCrossingValue() || !findShared()))
    join();
  return std::move(work);
}

/// Replaces a loop by one over the task's share of its iterations.
static void splitLoop(RewriterBase &rewriter, scf::ForallOp forall, Value task,
                      Value numTasks) {
  Location loc = forall.getLoc();
  // Iterations [total*task/numTasks, total*(task+1)/numTasks).
  rewriter.setInsertionPoint(forall);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  SmallVector<Value> steps =
      getValueOrCreateConstantIndexOp(rewriter, loc, forall.getMixedStep());
  SmallVector<Value> sizes = getValueOrCreateConstantIndexOp(
      rewriter, loc, forall.getMixedUpperBound());
  for (auto [size, step] : llvm::zip_equal(sizes, steps))
    size = rewriter.createOrFold<arith::CeilDivSIOp>(loc, size, step);
  Value total = sizes.front();
  for (Value size : ArrayRef(sizes).drop_front())
    total = arith::MulIOp::create(rewriter, loc, total, size);
  auto bound = [&](Value of) -> Value {
    Value product = arith::MulIOp::create(rewriter, loc, total, of);
    return arith::DivUIOp::create(rewriter, loc, product, numTasks);
  };
  Value first = bound(task);
  Value last = bound(arith::AddIOp::create(rewriter, loc, task, constant(1)));
  auto loop = scf::ForOp::create(rewriter, loc, first, last, constant(1));

  // Delinearizes the iteration in row-major order.
  rewriter.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> indices(sizes.size());
  Value rest = loop.getInductionVar();
  for (unsigned i = sizes.size(); i-- > 1;) {
    indices[i] = arith::RemUIOp::create(rewriter, loc, rest, sizes[i]);
    rest = arith::DivUIOp::create(rewriter, loc, rest, sizes[i]);
  }
  indices.front() = rest;
  for (auto [index, step] : llvm::zip_equal(indices, steps))
    index = rewriter.createOrFold<arith::MulIOp>(loc, index, step);
  rewriter.eraseOp(forall.getTerminator());
  rewriter.inlineBlockBefore(forall.getBody(), loop.getBody()->getTerminator(),
                             indices);
  rewriter.eraseOp(forall);
}

namespace {
struct ForallToTasks final
    : mlir::posenc::impl::PosencForallToTasksPassBase<ForallToTasks> {
  using Base::Base;

  /// Returns the tensors whose bytes determine the number of tasks, unless
  /// tiling found that these are all.
  static TasksBy getTasksBy(const Work &work) {
    bool isByInputs = llvm::any_of(work.phases, [](const Phase &phase) {
      auto by = phase.forall ? phase.forall->getAttrOfType<TasksByAttr>(
                                   PosencDialect::kTasksByAttrName)
                             : nullptr;
      return by && by.getValue() == TasksBy::Inputs;
    });
    // The copy of a cache that is not updated in place does not count as work:
    // the bytes of the new inputs do.
    isByInputs |= !work.phases.front().forall;
    return isByInputs ? TasksBy::Inputs : TasksBy::Outputs;
  }

  void report(const Work &work, TasksBy tasksBy) {
    reportChoice(getOperation(), DEBUG_TYPE,
                 llvm::formatv("phases: {0}, parallel: {1}; the bytes of {2} "
                               "determine the number of tasks",
                               work.phases.size(),
                               llvm::count_if(work.phases,
                                              [](const Phase &phase) {
                                                return bool(phase.forall);
                                              }),
                               tasksBy == TasksBy::Outputs ? "the outputs"
                               : tasksBy == TasksBy::All   ? "all tensors"
                                                           : "the inputs"));
  }

  /// Replaces the buffers that phases share by views of one buffer, which
  /// becomes an argument.
  LogicalResult shareBuffers(RewriterBase &rewriter,
                             ArrayRef<memref::AllocaOp> buffers,
                             unsigned number) {
    FunctionOpInterface function = getOperation();
    int64_t total = getSharedBytes(buffers);
    auto type = MemRefType::get({total}, rewriter.getI8Type());
    if (failed(function.insertArgument(number, type, {}, function.getLoc())))
      return failure();
    int64_t begin = 0;
    for (memref::AllocaOp buffer : buffers) {
      rewriter.setInsertionPoint(buffer);
      Value offset =
          arith::ConstantIndexOp::create(rewriter, buffer.getLoc(), begin);
      begin += getBytes(buffer);
      rewriter.replaceOpWithNewOp<memref::ViewOp>(buffer, buffer.getType(),
                                                  function.getArgument(number),
                                                  offset, ValueRange());
    }
    return success();
  }

  static int64_t getBytes(memref::AllocaOp buffer) {
    MemRefType type = buffer.getType();
    int64_t element = type.getElementType().isIndex()
                          ? 8
                          : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    return llvm::alignTo(element * type.getNumElements(), 64);
  }

  static int64_t getSharedBytes(ArrayRef<memref::AllocaOp> buffers) {
    int64_t total = 0;
    for (memref::AllocaOp buffer : buffers)
      total += getBytes(buffer);
    return total;
  }

  /// Executes each phase only if the caller requests its number.
  void branchToPhases(RewriterBase &rewriter, ArrayRef<Phase> phases,
                      Value phaseNumber) {
    for (auto [number, phase] : llvm::enumerate(phases)) {
      if (phase.operations.empty())
        continue;
      Operation *last = phase.operations.back();
      Location loc = last->getLoc();
      rewriter.setInsertionPointAfter(last);
      Value wanted = arith::ConstantIntOp::create(
          rewriter, loc, rewriter.getI64Type(), int64_t(number));
      Value isMine = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::eq, phaseNumber, wanted);
      auto branch = scf::IfOp::create(rewriter, loc, isMine,
                                      /*withElseRegion=*/false);
      for (Operation *op : phase.operations)
        rewriter.moveOpBefore(op, branch.thenYield());
    }
  }

  void runOnOperation() override {
    FunctionOpInterface function = getOperation();
    KernelConfig config = getKernelConfig(function);
    if (!getAbi(function) || config.hasTasks || function.isExternal() ||
        !llvm::hasSingleElement(function.getFunctionBody()))
      return;
    Block &body = function.getFunctionBody().front();
    bool isMeasured = config.isMeasured;
    Operation *measure = nullptr;
    if (isMeasured)
      for (Operation *user : body.getArguments().back().getUsers())
        measure = user;
    Work work = PhaseFinder(body, measure).find();
    // A kernel that is asked for its workspace has phases, even if all tensors
    // are empty and nothing is left to compute.
    if (isMeasured && work.phases.empty())
      work.phases.emplace_back();
    bool fits =
        config.hasWorkspace || getSharedBytes(work.shared) <= kSharedBytes;
    if (work.phases.empty() ||
        (!isMeasured && (!work.hasParallelPhase() || !fits)))
      return;

    IRRewriter rewriter(&getContext());
    Location loc = function.getLoc();
    Type index = rewriter.getIndexType();
    TasksBy tasksBy =
        config.tasksBy == TasksBy::All ? TasksBy::All : getTasksBy(work);
    report(work, tasksBy);
    bool isOneLoop = work.isOneLoop() && !isMeasured;
    SmallVector<bool> areParallel;
    if (!isOneLoop)
      for (const Phase &phase : work.phases)
        areParallel.push_back(bool(phase.forall));
    updateKernelConfig(function, [&](KernelConfig &config) {
      config.hasTasks = true;
      config.tasksBy = tasksBy;
      config.phases = areParallel;
      config.sharedBytes = getSharedBytes(work.shared);
    });
    if (!work.shared.empty() &&
        failed(shareBuffers(rewriter, work.shared,
                            function.getNumArguments() - isMeasured)))
      return signalPassFailure();
    if (!isOneLoop && !isMeasured) {
      auto control = MemRefType::get({1}, rewriter.getI64Type());
      if (failed(function.insertArgument(function.getNumArguments(), control,
                                         {}, loc)))
        return signalPassFailure();
    }
    unsigned numArguments = function.getNumArguments();
    for (unsigned i : {0, 1})
      if (failed(function.insertArgument(numArguments + i, index, {}, loc)))
        return signalPassFailure();
    if (!isOneLoop) {
      Value control = function.getArgument(numArguments - 1);
      rewriter.setInsertionPointToStart(&body);
      Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
      Value phase = memref::LoadOp::create(rewriter, loc, control, zero);
      branchToPhases(rewriter, work.phases, phase);
      if (measure) {
        rewriter.setInsertionPoint(measure);
        Value none = arith::ConstantIntOp::create(rewriter, loc,
                                                  rewriter.getI64Type(), -1);
        Value isAsked = arith::CmpIOp::create(
            rewriter, loc, arith::CmpIPredicate::eq, phase, none);
        auto branch = scf::IfOp::create(rewriter, loc, isAsked,
                                        /*withElseRegion=*/false);
        rewriter.moveOpBefore(measure, branch.thenYield());
      }
    }
    for (const Phase &phase : work.phases)
      if (phase.forall)
        splitLoop(rewriter, phase.forall, function.getArgument(numArguments),
                  function.getArgument(numArguments + 1));
  }
};
} // namespace
