//===- Import.cpp - import of StableHLO and TTIR --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Converter.h"
#include "posenc/Import/Hlo.h"
#include "posenc/Import/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCIMPORTHLOPASS
#include "posenc/Import/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

/// Returns the dialect and the name of an operation of StableHLO or TTIR.
static std::pair<StringRef, StringRef> getForeignName(Operation *op) {
  auto [dialect, name] = op->getName().getStringRef().split('.');
  if (dialect == "stablehlo" || dialect == "ttir" || dialect == "chlo")
    return {dialect, name};
  return {};
}

static bool isForeign(Operation *op) {
  return !getForeignName(op).first.empty();
}

/// Moves the functions of a module within the module to the outside.
static void flatten(ModuleOp module) {
  for (auto inner : llvm::make_early_inc_range(module.getOps<ModuleOp>())) {
    flatten(inner);
    module.getBody()->getOperations().splice(
        Block::iterator(inner), inner.getBody()->getOperations());
    inner.erase();
  }
}

/// Removes attributes of other dialects: annotations for other compilers.
static void removeAnnotations(Operation *op) {
  auto isAnnotation = [](NamedAttribute attribute) {
    StringRef dialect = attribute.getName().getValue().split('.').first;
    return attribute.getName().getValue().contains('.') &&
           llvm::is_contained({"mhlo", "sdy", "jax", "ttir", "ttcore", "tt"},
                              dialect);
  };
  auto filter = [&](ArrayRef<NamedAttribute> attributes) {
    SmallVector<NamedAttribute> kept;
    llvm::copy_if(attributes, std::back_inserter(kept),
                  [&](NamedAttribute attribute) {
                    return !isAnnotation(attribute);
                  });
    return kept;
  };
  op->setDiscardableAttrs(filter(
      SmallVector<NamedAttribute>(op->getDiscardableAttrs())));
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return;
  for (unsigned number = 0; number < function.getNumArguments(); ++number)
    function.setArgAttrs(number, filter(function.getArgAttrs(number)));
  for (unsigned number = 0; number < function.getNumResults(); ++number)
    function.setResultAttrs(number, filter(function.getResultAttrs(number)));
}

/// Replaces an operation that writes its first operand. Later operations read
/// the new tensor. A changed argument that the function does not return becomes
/// a result, so that the change is not lost.
static void replaceInPlace(Operation *op, Value result) {
  Value old = op->getOperand(0);
  for (OpOperand &use : llvm::make_early_inc_range(old.getUses())) {
    Operation *user = use.getOwner();
    if (user != op && user != result.getDefiningOp() &&
        user->getBlock() == op->getBlock() && op->isBeforeInBlock(user))
      use.set(result);
  }
}

static LogicalResult convert(Operation *op) {
  auto [dialect, name] = getForeignName(op);
  for (Value value : op->getOperands())
    if (auto type = dyn_cast<RankedTensorType>(value.getType());
        !type || !type.hasStaticShape())
      return op->emitError()
             << "'" << op->getName()
             << "' is supported on tensors of static shapes only, got "
             << value.getType();
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return op->emitError()
             << "'" << op->getName()
             << "' is supported on tensors of static shapes only, got " << type;
    if (auto integer = dyn_cast<IntegerType>(tensor.getElementType());
        integer && integer.isUnsigned())
      return op->emitError() << "'" << op->getName()
                             << "' on unsigned integers is not supported";
  }
  Converter converter(op);
  FailureOr<SmallVector<Value>> results =
      dialect == "ttir" ? converter.convertTtir(name)
                        : converter.convertStableHlo(name);
  if (failed(results))
    return failure();
  if (op->getNumResults() == 0)
    replaceInPlace(op, (*results)[0]);
  else
    op->replaceAllUsesWith(*results);
  op->erase();
  return success();
}

/// Returns the tensors that replace arguments after writes in place. A function
/// returns them, too, if it does not already.
static void returnChangedArguments(func::FuncOp function,
                                   ArrayRef<unsigned> changed,
                                   ArrayRef<Value> values) {
  auto terminator = cast<func::ReturnOp>(function.front().getTerminator());
  SmallVector<Value> added;
  for (Value value : values)
    if (!llvm::is_contained(terminator.getOperands(), value))
      added.push_back(value);
  if (added.empty())
    return;
  terminator.getOperandsMutable().append(added);
  SmallVector<Type> results(function.getResultTypes());
  llvm::append_range(results, ValueRange(added).getTypes());
  function.setType(FunctionType::get(function.getContext(),
                                     function.getArgumentTypes(), results));
}

static LogicalResult convertFunction(func::FuncOp function) {
  // Arguments that operations write, and the last tensor written.
  llvm::MapVector<Value, Value> changes;
  SmallVector<Operation *> ops;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isForeign(op))
      return WalkResult::advance();
    ops.push_back(op);
    // Regions of reductions are converted with them.
    return WalkResult::skip();
  });
  for (Operation *op : ops) {
    Value written = op->getNumResults() == 0 && op->getNumOperands() > 0
                        ? op->getOperand(0)
                        : Value();
    Operation *next = op->getNextNode();
    if (failed(convert(op)))
      return failure();
    if (!written)
      continue;
    Value root = written;
    for (auto &[argument, last] : changes)
      if (last == written)
        root = argument;
    changes[root] = next->getPrevNode()->getResult(0);
  }
  SmallVector<unsigned> numbers;
  SmallVector<Value> values;
  for (auto &[root, last] : changes)
    if (auto argument = dyn_cast<BlockArgument>(root)) {
      numbers.push_back(argument.getArgNumber());
      values.push_back(last);
    }
  returnChangedArguments(function, numbers, values);
  return success();
}

/// Converts the module if it has operations of StableHLO or TTIR; returns
/// whether it has.
static FailureOr<bool> importHlo(ModuleOp module) {
  bool hasForeign = module
                        .walk([](Operation *op) {
                          return isForeign(op) ? WalkResult::interrupt()
                                               : WalkResult::advance();
                        })
                        .wasInterrupted();
  if (!hasForeign)
    return false;
  flatten(module);
  module.walk(removeAnnotations);
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && failed(convertFunction(function)))
      return failure();
  return true;
}

namespace {

struct ImportHlo final
    : mlir::posenc::impl::PosencImportHloPassBase<ImportHlo> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<bool> changed = importHlo(getOperation());
    if (failed(changed))
      return signalPassFailure();
    if (!*changed)
      return;
    OpPassManager manager(ModuleOp::getOperationName());
    manager.addPass(createInlinerPass());
    manager.addPass(createSymbolDCEPass());
    if (failed(runPipeline(manager, getOperation())))
      signalPassFailure();
  }
};

} // namespace
