//===- FlagAssertions.cpp - assertions on elements of tensors -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The assertions of a linalg operation become a reduction of its own: the
// minimum of the numbers of those that fail. Loops carry this number.
//
// The operations behind a failed assertion run, so they must neither end the
// process nor run forever. Reads whose indices an assertion bounded are clamped
// later, as all that are not proven to be in bounds. Divisions of integers by
// zero have a result in kernels, but not those of type index. A scf.while ends
// when an assertion has failed.
//
//===----------------------------------------------------------------------===//

#include "FlagAssertions.h"

#include "posenc/IR/KernelConfig.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::posenc;

using Slice = llvm::SetVector<Value>;

/// Adds the values in a region from which a value is computed.
static void addSlice(Value value, Region &region, Slice &slice) {
  if (!region.isAncestor(value.getParentRegion()) || !slice.insert(value))
    return;
  if (Operation *op = value.getDefiningOp())
    for (Value operand : op->getOperands())
      addSlice(operand, region, slice);
}

static bool isDivision(Operation *op) {
  return isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
             arith::CeilDivSIOp, arith::CeilDivUIOp, arith::RemSIOp,
             arith::RemUIOp>(op);
}

/// Divides numbers of type index as i64, for which kernels define the results
/// of divisions by zero.
static void guardDivisions(func::FuncOp function) {
  SmallVector<Operation *> divisions;
  function.walk([&](Operation *op) {
    if (isDivision(op) && op->getResult(0).getType().isIndex() &&
        !matchPattern(op->getOperand(1), m_Constant()))
      divisions.push_back(op);
  });
  for (Operation *op : divisions) {
    OpBuilder builder(op);
    Type index = builder.getIndexType(), i64 = builder.getI64Type();
    for (OpOperand &operand : op->getOpOperands())
      operand.set(arith::IndexCastOp::create(builder, op->getLoc(), i64,
                                             operand.get()));
    Value result = op->getResult(0);
    result.setType(i64);
    builder.setInsertionPointAfter(op);
    auto cast =
        arith::IndexCastOp::create(builder, op->getLoc(), index, result);
    result.replaceAllUsesExcept(cast, cast);
  }
}

/// Returns why the values that a condition depends on cannot be computed apart
/// from the linalg operation, or an empty string.
static StringRef explainInseparable(linalg::GenericOp op, const Slice &slice) {
  if (!op.hasPureTensorSemantics())
    return "it is in an operation on memrefs";
  unsigned numInputs = op.getNumDpsInputs();
  bool isParallel = op.getNumParallelLoops() == op.getNumLoops();
  for (Value value : slice) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == op.getBody() && !isParallel &&
          argument.getArgNumber() >= numInputs)
        return "its condition depends on the result of a reduction so far";
      continue;
    }
    Operation *definition = value.getDefiningOp();
    if (definition->getNumRegions() != 0 ||
        definition->getBlock() != op.getBody())
      return "its condition depends on an operation with a region";
  }
  return "";
}

std::string mlir::posenc::explainUnflagged(cf::AssertOp assertion) {
  Operation *parent = assertion->getParentOp();
  if (auto generic = dyn_cast<linalg::GenericOp>(parent)) {
    Slice slice;
    addSlice(assertion.getArg(), generic.getRegion(), slice);
    StringRef reason = explainInseparable(generic, slice);
    if (!reason.empty())
      return reason.str();
    parent = parent->getParentOp();
  }
  for (; isa<scf::ForOp, scf::IfOp, scf::WhileOp>(parent);
       parent = parent->getParentOp())
    ;
  if (auto function = dyn_cast<func::FuncOp>(parent))
    return function.isPublic() ? "" : "it is in a function that others call";
  std::string name = parent->getName().getStringRef().str();
  if (isa<scf::ForallOp, scf::ParallelOp>(parent))
    return "it is in '" + name + "', whose iterations run in parallel";
  return "it is in '" + name + "'";
}

/// Returns the condition's effect on the number of the first failure.
static Value addFailure(OpBuilder &builder, Location loc, Value condition,
                        Value first, int64_t number) {
  Value own = arith::ConstantIntOp::create(builder, loc, number, 64);
  return arith::SelectOp::create(
      builder, loc, condition, first,
      arith::MinSIOp::create(builder, loc, first, own));
}

/// Creates the reduction of the assertions of one operation, whose slice it
/// computes again, and returns its result.
static Value createCheck(OpBuilder &builder, linalg::GenericOp op,
                         ArrayRef<cf::AssertOp> assertions, int64_t number,
                         const Slice &slice, Value status) {
  // The loops and operands that the conditions depend on.
  llvm::SmallBitVector loops(op.getNumLoops()), covered(op.getNumLoops()),
      operands(op->getNumOperands());
  auto addOperand = [&](unsigned operand) {
    operands.set(operand);
    for (AffineExpr expr : op.getIndexingMapsArray()[operand].getResults())
      expr.walk([&](AffineExpr part) {
        if (auto dim = dyn_cast<AffineDimExpr>(part)) {
          loops.set(dim.getPosition());
          if (part == expr)
            covered.set(dim.getPosition());
        }
      });
  };
  for (Value value : slice) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      addOperand(argument.getArgNumber());
    else if (auto index = value.getDefiningOp<linalg::IndexOp>())
      loops.set(index.getDim());
  }
  // Operands that only have the loops' sizes.
  for (unsigned operand = op->getNumOperands(); operand-- > 0;) {
    llvm::SmallBitVector missing = loops;
    missing.reset(covered);
    if (missing.none())
      break;
    addOperand(operand);
  }
  MLIRContext *context = op.getContext();
  Location loc = op.getLoc();
  SmallVector<AffineExpr> dims(op.getNumLoops(),
                               getAffineConstantExpr(0, context));
  unsigned numLoops = 0;
  SmallVector<unsigned> newLoops(op.getNumLoops(), 0);
  for (unsigned loop : loops.set_bits()) {
    dims[loop] = getAffineDimExpr(numLoops, context);
    newLoops[loop] = numLoops++;
  }
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (unsigned operand : operands.set_bits()) {
    inputs.push_back(op->getOperand(operand));
    maps.push_back(op.getIndexingMapsArray()[operand].replaceDimsAndSymbols(
        dims, {}, numLoops, 0));
  }
  maps.push_back(AffineMap::get(numLoops, 0, context));
  SmallVector<utils::IteratorType> iterators(numLoops,
                                             utils::IteratorType::reduction);
  builder.setInsertionPoint(op);
  return linalg::GenericOp::create(
             builder, loc, status.getType(), inputs, status, maps, iterators,
             [&](OpBuilder &nested, Location loc, ValueRange args) {
               IRMapping mapping;
               for (auto [operand, argument] :
                    llvm::zip_equal(operands.set_bits(), args.drop_back()))
                 mapping.map(op.getBody()->getArgument(operand), argument);
               Value first = args.back();
               for (Operation &part : *op.getBody()) {
                 if (auto index = dyn_cast<linalg::IndexOp>(part)) {
                   if (slice.contains(index.getResult()))
                     mapping.map(index.getResult(),
                                 linalg::IndexOp::create(
                                     nested, loc, newLoops[index.getDim()])
                                     .getResult());
                 } else if (llvm::is_contained(assertions, &part)) {
                   Value condition = mapping.lookupOrDefault(
                       cast<cf::AssertOp>(part).getArg());
                   first = addFailure(nested, loc, condition, first, number++);
                 } else if (llvm::any_of(part.getResults(), [&](Value result) {
                              return slice.contains(result);
                            })) {
                   nested.clone(part, mapping);
                 }
               }
               linalg::YieldOp::create(nested, loc, first);
             })
      .getResult(0);
}

namespace {
/// The number of the first assertion that failed so far, as a tensor<i64>, as
/// an i64, or both.
struct Status {
  Value tensor, scalar;
};

/// Replaces assertions of a function by a number that its operations pass on.
class Flagger {
public:
  Flagger(func::FuncOp function, ArrayRef<cf::AssertOp> assertions)
      : function(function), rewriter(function.getContext()),
        assertions(assertions.begin(), assertions.end()) {}

  void run();

private:
  /// Both create the other form of the number where the builder is.
  Value getScalar(Status &status);
  Value getTensor(Status &status);

  /// These update the number from that before the operations to that behind.
  void visitBlock(Block &block, Status &status);
  void visitGeneric(linalg::GenericOp op, Status &status);
  void visitFor(scf::ForOp loop, Status &status);
  void visitIf(scf::IfOp branch, Status &status);
  void visitWhile(scf::WhileOp loop, Status &status);
  /// Visits a block of a loop or branch, whose number is an i64 before it, and
  /// adds the number behind it to the operands of the terminator.
  Value visitNested(Block &block, Value before);
  bool hasAssertions(Operation *op);

  func::FuncOp function;
  IRRewriter rewriter;
  llvm::SmallPtrSet<Operation *, 8> assertions;
  SmallVector<Attribute> messages;
  /// The number that no assertion has.
  Value none;
};
} // namespace

Value Flagger::getScalar(Status &status) {
  if (!status.scalar)
    status.scalar = tensor::ExtractOp::create(rewriter, status.tensor.getLoc(),
                                              status.tensor, ValueRange());
  return status.scalar;
}

Value Flagger::getTensor(Status &status) {
  if (!status.tensor)
    status.tensor = tensor::FromElementsOp::create(
        rewriter, status.scalar.getLoc(),
        RankedTensorType::get({}, rewriter.getI64Type()), status.scalar);
  return status.tensor;
}

bool Flagger::hasAssertions(Operation *op) {
  return op
      ->walk([&](cf::AssertOp assertion) {
        return assertions.contains(assertion) ? WalkResult::interrupt()
                                              : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool hasWhile(Operation *op) {
  return op->walk([](scf::WhileOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

void Flagger::visitGeneric(linalg::GenericOp op, Status &status) {
  SmallVector<cf::AssertOp> group;
  Slice slice;
  for (auto assertion : op.getOps<cf::AssertOp>())
    if (assertions.contains(assertion)) {
      group.push_back(assertion);
      addSlice(assertion.getArg(), op.getRegion(), slice);
    }
  if (group.empty())
    return;
  rewriter.setInsertionPoint(op);
  Value before = getTensor(status);
  status = {createCheck(rewriter, op, group, messages.size(), slice, before),
            Value()};
  for (cf::AssertOp assertion : group) {
    messages.push_back(assertion.getMsgAttr());
    rewriter.eraseOp(assertion);
  }
}

Value Flagger::visitNested(Block &block, Value before) {
  Status status{Value(), before};
  visitBlock(block, status);
  Operation *terminator = block.getTerminator();
  rewriter.setInsertionPoint(terminator);
  Value after = getScalar(status);
  terminator->insertOperands(terminator->getNumOperands(), after);
  return after;
}

void Flagger::visitFor(scf::ForOp loop, Status &status) {
  rewriter.setInsertionPoint(loop);
  if (!matchPattern(loop.getStep(), m_Constant())) {
    // A failed assertion may have been that the step is positive.
    Location loc = loop.getLoc();
    Value one = arith::ConstantOp::create(
        rewriter, loc, rewriter.getIntegerAttr(loop.getStep().getType(), 1));
    loop.setStep(arith::MaxSIOp::create(rewriter, loc, loop.getStep(), one));
  }
  if (hasAssertions(loop)) {
    auto carrying = cast<LoopLikeOpInterface>(loop.getOperation())
                        .replaceWithAdditionalIterOperands(
                            rewriter, getScalar(status),
                            /*replaceInitOperandUsesInLoop=*/false);
    loop = cast<scf::ForOp>(carrying->getOperation());
    // The loop returns the number as it is until the block is visited.
    Operation *yield = loop.getBody()->getTerminator();
    yield->eraseOperand(yield->getNumOperands() - 1);
    visitNested(*loop.getBody(), loop.getRegionIterArgs().back());
    status = {Value(), loop.getResults().back()};
  } else if (hasWhile(loop)) {
    Status inside{Value(), getScalar(status)};
    visitBlock(*loop.getBody(), inside);
  }
}

void Flagger::visitIf(scf::IfOp branch, Status &status) {
  if (!hasAssertions(branch) && !hasWhile(branch))
    return;
  rewriter.setInsertionPoint(branch);
  Location loc = branch.getLoc();
  Value before = getScalar(status);
  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(before.getType());
  auto carrying =
      scf::IfOp::create(rewriter, loc, types, branch.getCondition(),
                        /*addThenBlock=*/false, /*addElseBlock=*/false);
  for (auto [from, to] :
       llvm::zip_equal(branch->getRegions(), carrying->getRegions())) {
    to.takeBody(from);
    if (to.empty()) {
      rewriter.createBlock(&to);
      scf::YieldOp::create(rewriter, loc);
    }
    visitNested(to.front(), before);
  }
  status = {Value(), carrying.getResults().back()};
  rewriter.replaceOp(branch, carrying.getResults().drop_back());
}

void Flagger::visitWhile(scf::WhileOp loop, Status &status) {
  rewriter.setInsertionPoint(loop);
  Location loc = loop.getLoc();
  Value before = getScalar(status);
  Type i64 = before.getType();
  SmallVector<Type> types(loop.getResultTypes());
  SmallVector<Value> inits(loop.getInits());
  types.push_back(i64);
  inits.push_back(before);
  auto carrying = scf::WhileOp::create(rewriter, loc, types, inits);
  carrying.getBefore().takeBody(loop.getBefore());
  carrying.getAfter().takeBody(loop.getAfter());
  Value now = visitNested(*carrying.getBeforeBody(),
                          carrying.getBeforeBody()->addArgument(i64, loc));
  // The condition may hold forever if an assertion does not.
  scf::ConditionOp condition = carrying.getConditionOp();
  rewriter.setInsertionPoint(condition);
  Value passes =
      arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, now, none);
  condition.getConditionMutable().assign(
      arith::AndIOp::create(rewriter, loc, condition.getCondition(), passes));
  visitNested(*carrying.getAfterBody(),
              carrying.getAfterBody()->addArgument(i64, loc));
  status = {Value(), carrying.getResults().back()};
  rewriter.replaceOp(loop, carrying.getResults().drop_back());
}

void Flagger::visitBlock(Block &block, Status &status) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      visitGeneric(generic, status);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      visitFor(loop, status);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      visitIf(branch, status);
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      visitWhile(loop, status);
    } else if (auto assertion = dyn_cast<cf::AssertOp>(op);
               assertion && assertions.contains(assertion)) {
      rewriter.setInsertionPoint(assertion);
      status = {Value(),
                addFailure(rewriter, assertion.getLoc(), assertion.getArg(),
                           getScalar(status), messages.size())};
      messages.push_back(assertion.getMsgAttr());
      rewriter.eraseOp(assertion);
    }
  }
}

void Flagger::run() {
  auto terminator = cast<func::ReturnOp>(function.front().getTerminator());
  guardDivisions(function);
  // The number of assertions is known at the end only.
  rewriter.setInsertionPointToStart(&function.front());
  auto type = RankedTensorType::get({}, rewriter.getI64Type());
  auto start = arith::ConstantOp::create(
      rewriter, function.getLoc(),
      DenseElementsAttr::get(type, rewriter.getI64IntegerAttr(0)));
  auto scalar = arith::ConstantOp::create(rewriter, function.getLoc(),
                                          rewriter.getI64IntegerAttr(0));
  none = scalar;
  Status status{start, scalar};
  visitBlock(function.front(), status);
  rewriter.setInsertionPoint(terminator);
  terminator.getOperandsMutable().append(getTensor(status));
  IntegerAttr count = rewriter.getI64IntegerAttr(messages.size());
  start.setValueAttr(DenseElementsAttr::get(type, count));
  scalar.setValueAttr(count);
  for (arith::ConstantOp constant : {start, scalar})
    if (constant->use_empty())
      rewriter.eraseOp(constant);
  SmallVector<Type> results(function.getResultTypes());
  results.push_back(type);
  // setType() adds attributes of the result if other results have attributes.
  function.setType(FunctionType::get(function.getContext(),
                                     function.getArgumentTypes(), results));
  updateKernelConfig(function, &KernelConfig::assertions,
                     rewriter.getArrayAttr(messages));
}

void mlir::posenc::flagAssertions(func::FuncOp function,
                                  ArrayRef<cf::AssertOp> assertions) {
  if (!isa<func::ReturnOp>(function.front().getTerminator()) ||
      getKernelConfig(function).assertions)
    return;
  SmallVector<cf::AssertOp> flagged;
  for (cf::AssertOp assertion : assertions)
    if (explainUnflagged(assertion).empty())
      flagged.push_back(assertion);
  if (!flagged.empty())
    Flagger(function, flagged).run();
}
