//===- FlagAssertions.cpp - assertions on elements of tensors -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The assertions of a linalg operation become a reduction of its own: the
// minimum of the numbers of those that fail. Reads whose indices an assertion
// bounded are clamped later, as all that are not proven to be in bounds.
//
//===----------------------------------------------------------------------===//

#include "FlagAssertions.h"

#include "posenc/IR/Assertions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
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

/// Whether a zero divisor could end the process if assertions do not.
static bool divides(Operation *op) {
  return op
      ->walk([](Operation *nested) {
        bool isDivision =
            isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
                arith::CeilDivSIOp, arith::CeilDivUIOp, arith::RemSIOp,
                arith::RemUIOp>(nested);
        return isDivision && !matchPattern(nested->getOperand(1), m_Constant())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether assertions in the operation can be computed apart from it.
static bool canSeparate(linalg::GenericOp op, const Slice &slice) {
  if (!op.hasPureTensorSemantics() || divides(op))
    return false;
  unsigned numInputs = op.getNumDpsInputs();
  bool isParallel = op.getNumParallelLoops() == op.getNumLoops();
  return llvm::all_of(slice, [&](Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument.getOwner() == op.getBody() &&
             (isParallel || argument.getArgNumber() < numInputs);
    return value.getDefiningOp()->getNumRegions() == 0 &&
           value.getDefiningOp()->getBlock() == op.getBody();
  });
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

void mlir::posenc::flagAssertions(func::FuncOp function,
                                  ArrayRef<cf::AssertOp> assertions) {
  auto terminator = dyn_cast<func::ReturnOp>(function.front().getTerminator());
  if (!terminator || function->hasAttr(kAssertionsAttrName))
    return;
  OpBuilder builder(function.getContext());
  // The operations with assertions, in their order.
  llvm::MapVector<Operation *, SmallVector<cf::AssertOp>> groups;
  for (cf::AssertOp assertion : assertions) {
    Operation *parent = assertion->getParentOp();
    bool isOutside = parent == function;
    if (!isOutside && (!isa<linalg::GenericOp>(parent) ||
                       parent->getBlock() != &function.front()))
      continue;
    if (isOutside && divides(function))
      continue;
    groups[isOutside ? assertion.getOperation() : parent].push_back(assertion);
  }
  SmallVector<Attribute> messages;
  SmallVector<cf::AssertOp> done;
  auto type = RankedTensorType::get({}, builder.getI64Type());
  builder.setInsertionPointToStart(&function.front());
  auto start = arith::ConstantOp::create(
      builder, function.getLoc(),
      DenseElementsAttr::get(type, builder.getI64IntegerAttr(0)));
  Value status = start;
  for (auto &[op, group] : groups) {
    if (auto assertion = dyn_cast<cf::AssertOp>(op)) {
      builder.setInsertionPoint(assertion);
      Location loc = assertion.getLoc();
      Value first =
          tensor::ExtractOp::create(builder, loc, status, ValueRange());
      first =
          addFailure(builder, loc, assertion.getArg(), first, messages.size());
      status = tensor::FromElementsOp::create(builder, loc, type, first);
    } else {
      auto generic = cast<linalg::GenericOp>(op);
      Slice slice;
      for (cf::AssertOp assertion : group)
        addSlice(assertion.getArg(), generic.getRegion(), slice);
      if (!canSeparate(generic, slice))
        continue;
      status =
          createCheck(builder, generic, group, messages.size(), slice, status);
    }
    for (cf::AssertOp assertion : group) {
      messages.push_back(assertion.getMsgAttr());
      done.push_back(assertion);
    }
  }
  if (done.empty()) {
    start.erase();
    return;
  }
  start.setValueAttr(
      DenseElementsAttr::get(type, builder.getI64IntegerAttr(messages.size())));
  for (cf::AssertOp assertion : done)
    assertion.erase();
  terminator.getOperandsMutable().append(status);
  SmallVector<Type> results(function.getResultTypes());
  results.push_back(type);
  function.setType(FunctionType::get(function.getContext(),
                                     function.getArgumentTypes(), results));
  if (ArrayAttr attrs = function.getAllResultAttrs()) {
    SmallVector<Attribute> all(attrs.begin(), attrs.end());
    all.push_back(builder.getDictionaryAttr({}));
    function.setAllResultAttrs(builder.getArrayAttr(all));
  }
  function->setAttr(kAssertionsAttrName, builder.getArrayAttr(messages));
}
