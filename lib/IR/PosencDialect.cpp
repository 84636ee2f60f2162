//===- PosencDialect.cpp - registration and printing ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Names.h"
#include "posenc/IR/Posenc.h"
#include "posenc/IR/Weights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::posenc;

#include "posenc/IR/PosencAttrInterfaces.cpp.inc"
#include "posenc/IR/PosencDialect.cpp.inc"
#include "posenc/IR/PosencEnums.cpp.inc"
#include "posenc/IR/PosencOpInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "posenc/IR/PosencAttrs.cpp.inc"

namespace {
/// Prints long attributes that several operations share as aliases.
struct PosencAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const final {
    if (isa<FrequenciesAttr>(attr)) {
      os << "frequencies";
      return AliasResult::OverridableAlias;
    }
    if (isa<RotationAttr>(attr)) {
      os << "rotation";
      return AliasResult::OverridableAlias;
    }
    return AliasResult::NoAlias;
  }
};
} // namespace

void PosencDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "posenc/IR/PosencOps.cpp.inc"
      >();
  addInterfaces<PosencAsmInterface>();
}

void PosencDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "posenc/IR/PosencAttrs.cpp.inc"
      >();
}

Operation *PosencDialect::materializeConstant(OpBuilder &builder,
                                              Attribute value, Type type,
                                              Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

template <typename... OpTys> static bool isOp(Operation *op) {
  return isa<OpTys...>(op);
}

template <typename... AttrTys> static bool isAttr(Attribute attr) {
  return isa<AttrTys...>(attr);
}

static bool isBytes(Attribute attr) {
  auto bytes = dyn_cast<IntegerAttr>(attr);
  return bytes && bytes.getType().isInteger(64) && bytes.getInt() > 0;
}

static bool areLayers(Attribute attr) {
  auto layers = dyn_cast<DenseI64ArrayAttr>(attr);
  return layers && !layers.empty() && layers[0] >= 0 &&
         llvm::is_sorted(layers.asArrayRef(), std::less_equal<int64_t>());
}

static bool areWeights(Attribute attr) {
  if (isa<UnitAttr>(attr))
    return true;
  auto weights = dyn_cast<DictionaryAttr>(attr);
  return weights && llvm::all_of(weights, [](NamedAttribute weight) {
           return isa<ElementsAttr, IntegerAttr>(weight.getValue());
         });
}

static bool isFunctionType(Attribute attr) {
  auto type = dyn_cast<TypeAttr>(attr);
  return type && isa<FunctionType>(type.getValue());
}

namespace {
/// A discardable attribute of operations.
struct DiscardableAttr {
  StringRef name;
  bool (*isOnItsOp)(Operation *op);
  bool (*isValue)(Attribute value);
  StringRef expected;
};
} // namespace

/// Checks that the last arguments of a kernel, which are no memrefs, are those
/// that `posenc.kernel` says. The others depend on the level of the lowering.
static LogicalResult verifyLastArguments(FunctionOpInterface function,
                                         KernelAttr kernel) {
  size_t count = kernel.getTasks() ? 2 : kernel.getLaunches() ? 1 : 0;
  ArrayRef<Type> types = function.getArgumentTypes();
  auto isInteger = [](Type type) {
    return type.isIndex() || type.isInteger(64);
  };
  if (types.size() < count || !llvm::all_of(types.take_back(count), isInteger))
    return function.emitError()
           << "expected the last "
           << (kernel.getTasks() ? "two arguments of a kernel with 'tasks'"
                                 : "argument of a kernel with 'launches'")
           << " to be of type index or i64";
  return success();
}

LogicalResult PosencDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  constexpr auto isFunction = isOp<FunctionOpInterface>;
  static const DiscardableAttr attributes[] = {
      {kAbiAttrName, isFunction, isAttr<AbiAttr>,
       "a #posenc.abi attribute of a function"},
      {kKernelAttrName, isFunction, isAttr<KernelAttr>,
       "a #posenc.kernel attribute of a function"},
      {kDocAttrName, isFunction, isAttr<StringAttr>,
       "an attribute of a function, a string"},
      {kLayersAttrName, isFunction, areLayers,
       "an attribute of a function, a list of layers as i64 in ascending "
       "order"},
      {kTasksByAttrName, isOp<scf::ForallOp>, isAttr<TasksByAttr>,
       "a #posenc.tasks_by attribute of an scf.forall"},
      {kSharedBufferAttrName, isOp<memref::AllocaOp>, isAttr<UnitAttr>,
       "a unit attribute of a memref.alloca"},
      {kStreamedAttrName, isOp<linalg::LinalgOp>, isAttr<UnitAttr>,
       "a unit attribute of a linalg operation"},
      {kChipAttrName, isOp<FunctionOpInterface, scf::ForallOp>,
       isAttr<ChipAttr>,
       "a #posenc.chip attribute of a function or an scf.forall"},
      {kKernelTypeAttrName, isFunction, isFunctionType,
       "an attribute of a function, a type of a function"},
      {kKernelConstantsAttrName, isOp<ModuleOp>, isAttr<DenseI32ArrayAttr>,
       "an attribute of a module, a list of i32"},
      {kGpuAttrName, isOp<ModuleOp>, isAttr<GpuAttr>,
       "a #posenc.gpu attribute of a module"},
      {kStackLimitAttrName, isOp<ModuleOp>, isBytes,
       "an attribute of a module, a positive number of bytes as i64"},
      {kWeightsAttrName, isOp<ModuleOp, FunctionOpInterface>, areWeights,
       "an attribute of a module, a dictionary of elements or numbers, or a "
       "unit attribute of a function"}};
  StringRef name = attr.getName();
  const auto *known = llvm::find_if(
      attributes, [&](const DiscardableAttr &it) { return it.name == name; });
  if (known == std::end(attributes))
    return op->emitError() << "unknown attribute '" << name << "'";
  if (!known->isOnItsOp(op) || !known->isValue(attr.getValue()))
    return op->emitError() << "'" << name << "' is " << known->expected;
  if (auto kernel = dyn_cast<KernelAttr>(attr.getValue()))
    return verifyLastArguments(cast<FunctionOpInterface>(op), kernel);
  return success();
}

/// Checks `posenc.name`, the name of an argument or a result, and
/// `posenc.unsigned`.
static LogicalResult verifyName(Operation *op, NamedAttribute attr) {
  if (attr.getName() == kUnsignedAttrName) {
    if (!isa<UnitAttr>(attr.getValue()))
      return op->emitError() << "expected '" << kUnsignedAttrName
                             << "' as a unit, got " << attr.getValue();
    return success();
  }
  if (attr.getName() != PosencDialect::kNameAttrName ||
      !isa<StringAttr>(attr.getValue()))
    return op->emitError() << "expected '" << PosencDialect::kNameAttrName
                           << "' with a string, got '"
                           << attr.getName().getValue()
                           << "' = " << attr.getValue();
  return success();
}

LogicalResult PosencDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                      unsigned,
                                                      NamedAttribute attr) {
  StringRef name = attr.getName();
  if (name == kPackedAttrName || name == kLayoutAttrName) {
    bool isPacked = name == kPackedAttrName;
    if (isPacked ? !isa<UnitAttr>(attr.getValue())
                 : !isa<StringAttr>(attr.getValue()))
      return op->emitError()
             << "expected '" << name << "' as a "
             << (isPacked ? "unit" : "string") << ", got " << attr.getValue();
    return success();
  }
  if (name != kSizesAttrName)
    return verifyName(op, attr);
  auto names = dyn_cast<ArrayAttr>(attr.getValue());
  if (!names || !llvm::all_of(names, llvm::IsaPred<StringAttr>))
    return op->emitError() << "expected '" << kSizesAttrName
                           << "' with an array of strings, got "
                           << attr.getValue();
  return success();
}

LogicalResult PosencDialect::verifyRegionResultAttribute(Operation *op,
                                                         unsigned, unsigned,
                                                         NamedAttribute attr) {
  return verifyName(op, attr);
}
