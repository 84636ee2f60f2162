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
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCIMPORTHLOPASS
#include "posenc/Import/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

/// Returns the dialect and the name of an operation of StableHLO, TTIR or
/// tm_tensor.
static std::pair<StringRef, StringRef> getForeignName(Operation *op) {
  auto [dialect, name] = op->getName().getStringRef().split('.');
  if (dialect == "stablehlo" || dialect == "ttir" || dialect == "chlo" ||
      dialect == "tm_tensor")
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
    module.getBody()->getOperations().splice(Block::iterator(inner),
                                             inner.getBody()->getOperations());
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
    llvm::copy_if(
        attributes, std::back_inserter(kept),
        [&](NamedAttribute attribute) { return !isAnnotation(attribute); });
    return kept;
  };
  op->setDiscardableAttrs(
      filter(SmallVector<NamedAttribute>(op->getDiscardableAttrs())));
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

/// Returns the type without the signs of integers, which arith does not have.
static Type getSignless(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto integer = dyn_cast<IntegerType>(tensor ? tensor.getElementType() : type);
  if (!integer || integer.isSignless())
    return type;
  Type signless = IntegerType::get(type.getContext(), integer.getWidth());
  return tensor ? Type(tensor.clone(signless)) : signless;
}

static bool isUnsigned(Value value) {
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(value.getType()));
  return integer && integer.isUnsigned();
}

/// Makes all integers of a function signless, and marks the operations on
/// unsigned ones.
static void removeSigns(func::FuncOp function) {
  auto unit = UnitAttr::get(function.getContext());
  function.walk([&](Operation *op) {
    if (llvm::any_of(op->getOperands(), isUnsigned) ||
        llvm::any_of(op->getResults(), isUnsigned))
      op->setDiscardableAttr(kUnsigned, unit);
    if (op->getNumOperands() > 0 && isUnsigned(op->getOperand(0)))
      op->setDiscardableAttr(kUnsignedOperand, unit);
  });
  auto convertAll = [](ValueRange values) {
    for (Value value : values)
      value.setType(getSignless(value.getType()));
  };
  function.walk([&](Operation *op) {
    convertAll(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        convertAll(block.getArguments());
    // The elements of constants.
    auto properties =
        dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
    for (DictionaryAttr attributes :
         {properties, op->getDiscardableAttrDictionary()}) {
      auto value = attributes ? attributes.getAs<DenseElementsAttr>("value")
                              : DenseElementsAttr();
      if (!value || getSignless(value.getType()) == value.getType())
        continue;
      auto type = cast<ShapedType>(getSignless(value.getType()));
      DenseElementsAttr signless = value.bitcast(type.getElementType());
      if (attributes != properties) {
        op->setDiscardableAttr("value", signless);
        continue;
      }
      NamedAttrList changed(properties);
      changed.set("value", signless);
      (void)op->setPropertiesFromAttribute(
          changed.getDictionary(op->getContext()), nullptr);
    }
  });
  SmallVector<Type> arguments, results;
  for (Type type : function.getArgumentTypes())
    arguments.push_back(getSignless(type));
  for (Type type : function.getResultTypes())
    results.push_back(getSignless(type));
  function.setType(
      FunctionType::get(function.getContext(), arguments, results));
}

/// Returns how many operands the conversion of an operation reads. The generic
/// form may have fewer.
static unsigned getMinOperands(StringRef name) {
  if (llvm::is_contained({"select", "clamp", "where", "update_cache"}, name))
    return 3;
  return llvm::is_contained(
             {"add", "subtract", "multiply", "divide", "div", "maximum",
              "minimum", "remainder", "power", "pow", "atan2", "and", "or",
              "xor", "logical_and", "logical_or", "logical_xor", "bitwise_and",
              "bitwise_or", "bitwise_xor", "complex", "compare", "eq", "ne",
              "lt", "le", "gt", "ge", "dot", "dot_general", "matmul", "gather",
              "reduce", "pad", "embedding", "fill_cache",
              "dynamic_update_slice"},
             name)
             ? 2
             : 0;
}

static LogicalResult convert(Operation *op) {
  auto [dialect, name] = getForeignName(op);
  if (dialect == "tm_tensor") {
    FailureOr<SmallVector<Value>> results =
        name == "scan" ? Converter(op).convertScan()
                       : FailureOr<SmallVector<Value>>(op->emitError()
                                                       << "'" << op->getName()
                                                       << "' is not supported");
    if (failed(results))
      return failure();
    op->replaceAllUsesWith(*results);
    op->erase();
    return success();
  }
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
  }
  // Signs matter to these.
  if (op->hasAttr(kUnsigned) &&
      llvm::is_contained({"divide", "div", "remainder", "maximum", "minimum",
                          "max", "min", "reduce", "compare", "lt", "le", "gt",
                          "ge", "clamp", "power", "pow"},
                         name))
    return op->emitError() << "'" << op->getName()
                           << "' on unsigned integers is not supported";
  if (op->getNumOperands() < getMinOperands(name))
    return op->emitError() << "'" << op->getName() << "' expected at least "
                           << getMinOperands(name) << " operands, got "
                           << op->getNumOperands();
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
    removeSigns(function);
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && failed(convertFunction(function)))
      return failure();
  module.walk([](Operation *op) {
    op->removeDiscardableAttr(kUnsigned);
    op->removeDiscardableAttr(kUnsignedOperand);
  });
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
