//===- Import.cpp - import of StableHLO and TTIR --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Converter.h"
#include "posenc/IR/Names.h"
#include "posenc/Import/Hlo.h"
#include "posenc/Import/Passes.h"

#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
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
/// the new tensor.
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
  // Start indices are the operands from this one on, and have one type.
  auto getFirstIndex = [](Operation *op) -> unsigned {
    return op->getName().getStringRef().ends_with("dynamic_update_slice") ? 2
                                                                          : 1;
  };
  auto unit = UnitAttr::get(function.getContext());
  function.walk([&](Operation *op) {
    if (llvm::any_of(op->getOperands(), isUnsigned) ||
        llvm::any_of(op->getResults(), isUnsigned))
      op->setDiscardableAttr(kUnsigned, unit);
    if (op->getNumOperands() > 0 && isUnsigned(op->getOperand(0)))
      op->setDiscardableAttr(kUnsignedOperand, unit);
    unsigned index = getFirstIndex(op);
    if (op->getNumOperands() > index && isUnsigned(op->getOperand(index)))
      op->setDiscardableAttr(kUnsignedIndex, unit);
  });
  // Entry points have u8 beside i8.
  auto isBytes = [](Type type) {
    return isa<RankedTensorType>(type) &&
           getElementTypeOrSelf(type).isUnsignedInteger(8);
  };
  for (auto [number, type] : llvm::enumerate(function.getArgumentTypes()))
    if (isBytes(type))
      function.setArgAttr(number, kUnsignedAttrName, unit);
  for (auto [number, type] : llvm::enumerate(function.getResultTypes()))
    if (isBytes(type))
      function.setResultAttr(number, kUnsignedAttrName, unit);
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
  if (isBinaryOperation(name) || llvm::is_contained({"compare",
                                                     "eq",
                                                     "ne",
                                                     "lt",
                                                     "le",
                                                     "gt",
                                                     "ge",
                                                     "dot",
                                                     "dot_general",
                                                     "matmul",
                                                     "gather",
                                                     "reduce",
                                                     "pad",
                                                     "embedding",
                                                     "fill_cache",
                                                     "dynamic_update_slice",
                                                     "dynamic_broadcast_in_dim",
                                                     "dynamic_reshape",
                                                     "dynamic_gather",
                                                     "dynamic_pad",
                                                     "scatter",
                                                     "reduce_window",
                                                     "convolution",
                                                     "conv2d"},
                                                    name))
    return 2;
  return llvm::is_contained({"top_k", "dynamic_iota"}, name) ? 1 : 0;
}

/// Replaces results. Operations of other dialects get the types that they had.
static void replaceResults(Operation *op, ArrayRef<Value> values) {
  for (auto [result, value] : llvm::zip_equal(op->getResults(), values)) {
    if (result.getType() != value.getType()) {
      Value cast;
      for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
        if (isForeign(use.getOwner()))
          continue;
        if (!cast) {
          OpBuilder builder(op);
          cast = tensor::CastOp::create(builder, op->getLoc(), result.getType(),
                                        value);
        }
        use.set(cast);
      }
    }
    result.replaceAllUsesWith(value);
  }
}

/// Returns a result whose elements follow from sizes, or null.
static Value convertElements(Operation *op, StringRef name,
                             ArrayRef<Size> elements, Converter &converter) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  bool isConstant = llvm::all_of(elements, [](const Size &size) {
    return size.getConstant().has_value();
  });
  // Numbers of positions stay operations, which say more than constants.
  if (isConstant &&
      (name == "constant" || name == "iota" ||
       (type.getNumElements() != 1 && name != "get_dimension_size")))
    return {};
  return converter.createElements(type, elements);
}

static LogicalResult convert(Operation *op, FunctionSizes &sizes) {
  auto [dialect, name] = getForeignName(op);
  Converter converter(op, sizes);
  if (dialect == "tm_tensor") {
    FailureOr<SmallVector<Value>> results =
        name == "scan" ? converter.convertScan()
                       : FailureOr<SmallVector<Value>>(op->emitError()
                                                       << "'" << op->getName()
                                                       << "' is not supported");
    if (failed(results))
      return failure();
    op->replaceAllUsesWith(*results);
    op->erase();
    return success();
  }
  auto refuse = [&](Type type, StringRef kind) {
    return op->emitError() << "'" << op->getName()
                           << "' is supported on tensors of " << kind
                           << " only, got " << type;
  };
  bool isTtir = dialect == "ttir";
  StringRef kind = isTtir ? "static shapes" : "known ranks";
  for (Value value : op->getOperands()) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || (isTtir && !type.hasStaticShape()))
      return refuse(value.getType(), kind);
    if (!llvm::all_of(sizes.getShape(value),
                      [](const Size &size) { return size.isValid(); }))
      return refuse(type, "sizes that follow from those of arguments");
  }
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || (isTtir && !tensor.hasStaticShape()))
      return refuse(type, kind);
  }
  // Signs matter to these.
  if (op->hasAttr(kUnsigned) &&
      llvm::is_contained({"max", "min", "reduce", "reduce_window", "power",
                          "pow", "sign", "abs"},
                         name))
    return op->emitError() << "'" << op->getName()
                           << "' on unsigned integers is not supported";
  if (op->getNumOperands() < getMinOperands(name))
    return op->emitError() << "'" << op->getName() << "' expected at least "
                           << getMinOperands(name) << " operands, got "
                           << op->getNumOperands();
  std::optional<Shape> elements =
      isTtir ? std::nullopt : evaluateElements(op, name, sizes);
  Value known =
      elements ? convertElements(op, name, *elements, converter) : Value();
  FailureOr<SmallVector<Value>> results =
      known    ? FailureOr<SmallVector<Value>>(SmallVector<Value>{known})
      : isTtir ? converter.convertTtir(name)
               : converter.convertStableHlo(name);
  if (failed(results))
    return failure();
  if (converter.hasInvalidSize())
    return op->emitError() << "'" << op->getName()
                           << "' has a size that is negative or too large an "
                              "expression of the sizes of arguments";
  if (op->getNumResults() == 0) {
    if (!results->empty())
      replaceInPlace(op, results->front());
    op->erase();
    return success();
  }
  if (results->size() != op->getNumResults())
    return op->emitError() << "'" << op->getName() << "' has "
                           << op->getNumResults() << " results, expected "
                           << results->size();
  for (auto [value, type] : llvm::zip_equal(*results, op->getResultTypes()))
    if (value = converter.refine(value, cast<RankedTensorType>(type)); !value)
      return failure();
  if (elements)
    sizes.setElements(results->front(), *elements);
  replaceResults(op, *results);
  op->erase();
  return success();
}

LogicalResult hlo::convertNested(Operation *op, FunctionSizes &sizes) {
  return isForeign(op) ? convert(op, sizes) : success();
}

/// Makes the tensors that replace arguments after writes in place results of
/// the function, unless they are, so that the changes are not lost.
static void returnChangedArguments(func::FuncOp function,
                                   ArrayRef<Value> values) {
  auto terminator = dyn_cast<func::ReturnOp>(function.front().getTerminator());
  if (!terminator)
    return;
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

/// Erases operations that are not used, such as arithmetic on sizes.
static void eraseDeadOps(Region &region) {
  for (Block &block : region)
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (isOpTriviallyDead(&op)) {
        op.erase();
        continue;
      }
      for (Region &nested : op.getRegions())
        eraseDeadOps(nested);
    }
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
  Region &region = function.getBody();
  FunctionSizes sizes(region.hasOneBlock() ? &region.front() : nullptr);
  for (Operation *op : ops) {
    Value written = op->getNumResults() == 0 && op->getNumOperands() > 0
                        ? op->getOperand(0)
                        : Value();
    Operation *next = op->getNextNode();
    bool isAssertion = getForeignName(op).second == "custom_call";
    if (failed(convert(op, sizes)))
      return failure();
    if (!written || isAssertion)
      continue;
    Value root = written;
    for (auto &[argument, last] : changes)
      if (last == written)
        root = argument;
    changes[root] = next->getPrevNode()->getResult(0);
  }
  SmallVector<Value> values;
  for (auto &[root, last] : changes)
    if (isa<BlockArgument>(root))
      values.push_back(last);
  returnChangedArguments(function, values);
  eraseDeadOps(region);
  return success();
}

/// Replaces composites: those that the conversion knows by operations, and
/// others by calls of their decompositions.
static LogicalResult replaceComposites(ModuleOp module) {
  SmallVector<Operation *> composites;
  module.walk([&](Operation *op) {
    if (op->getName().getStringRef() == "stablehlo.composite")
      composites.push_back(op);
  });
  for (Operation *op : composites) {
    OpBuilder builder(op);
    auto attributes = op->getDiscardableAttrDictionary();
    if (auto properties =
            dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
      attributes = properties;
    auto name = attributes.getAs<StringAttr>("name");
    auto callee = attributes.getAs<FlatSymbolRefAttr>("decomposition");
    auto inner = attributes.getAs<DictionaryAttr>("composite_attributes");
    StringRef text = name ? name.getValue() : "";
    if (text == "chlo.erf" || text == "chlo.top_k") {
      OperationState state(op->getLoc(),
                           ("stablehlo." + text.split('.').second).str());
      state.addOperands(op->getOperands());
      state.addTypes(op->getResultTypes());
      if (auto k = inner ? inner.getAs<IntegerAttr>("k") : IntegerAttr())
        state.addAttribute("k", k);
      op->replaceAllUsesWith(builder.create(state));
      op->erase();
      continue;
    }
    auto function =
        callee ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, callee)
               : func::FuncOp();
    if (!function)
      return op->emitError()
             << "'" << op->getName() << "' lacks its decomposition";
    if (!llvm::equal(function.getArgumentTypes(), op->getOperandTypes()) ||
        !llvm::equal(function.getResultTypes(), op->getResultTypes()))
      return op->emitError() << "'" << op->getName()
                             << "' has other types than its decomposition";
    op->replaceAllUsesWith(func::CallOp::create(builder, op->getLoc(), function,
                                                op->getOperands()));
    op->erase();
  }
  return success();
}

/// Returns the functions that custom calls name, which are read with them.
static DenseSet<Operation *> getCalledComputations(ModuleOp module) {
  DenseSet<Operation *> functions;
  module.walk([&](Operation *op) {
    auto callees = op->getAttrOfType<ArrayAttr>("called_computations");
    if (!callees)
      return;
    for (Attribute callee : callees)
      if (auto symbol = dyn_cast<FlatSymbolRefAttr>(callee))
        if (auto function =
                SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, symbol))
          functions.insert(function);
  });
  return functions;
}

static bool hasForeign(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return isForeign(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {

struct ImportHlo final
    : mlir::posenc::impl::PosencImportHloPassBase<ImportHlo> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (hasForeign(module) && failed(import(module)))
      signalPassFailure();
  }

private:
  /// Inlines private functions and removes them.
  LogicalResult inlineCalls(ModuleOp module) {
    OpPassManager manager(ModuleOp::getOperationName());
    manager.addPass(createSymbolDCEPass());
    manager.addPass(createInlinerPass({}, [](OpPassManager &) {}));
    manager.addPass(createSymbolDCEPass());
    return runPipeline(manager, module);
  }

  LogicalResult import(ModuleOp module) {
    // Any operation of the dialects may end a block for the parser.
    WalkResult ended = module.walk([](func::FuncOp function) {
      for (Block &block : function.getBody())
        if (block.empty() || isForeign(&block.back())) {
          (block.empty() ? function->emitError() : block.back().emitError())
              << "expected a block of a function to end with 'return'";
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    if (ended.wasInterrupted())
      return failure();
    flatten(module);
    module.walk(removeAnnotations);
    for (auto function : module.getOps<func::FuncOp>())
      removeSigns(function);
    if (failed(replaceComposites(module)))
      return failure();
    for (Operation *function : getCalledComputations(module))
      cast<func::FuncOp>(function).setPrivate();
    if (failed(inlineCalls(module)))
      return failure();
    DenseSet<Operation *> computations = getCalledComputations(module);
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && !computations.contains(function) &&
          failed(convertFunction(function)))
        return failure();
    for (Operation *function : computations)
      if (SymbolTable::symbolKnownUseEmpty(function, module))
        function->erase();
    module.walk([](Operation *op) {
      op->removeDiscardableAttr(kUnsigned);
      op->removeDiscardableAttr(kUnsignedOperand);
      op->removeDiscardableAttr(kUnsignedIndex);
    });
    OpPassManager manager(ModuleOp::getOperationName());
    manager.addPass(createCanonicalizerPass());
    return runPipeline(manager, module);
  }
};

} // namespace
