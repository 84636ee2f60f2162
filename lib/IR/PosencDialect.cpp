//===- PosencDialect.cpp - registration and printing ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Assertions.h"
#include "posenc/IR/Posenc.h"

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

LogicalResult PosencDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  StringRef name = attr.getName();
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (name == kAbiAttrName) {
    auto abi = dyn_cast<AbiAttr>(attr.getValue());
    if (!function || !abi)
      return op->emitError()
             << "'" << name << "' is a #posenc.abi attribute of a function";
    return success();
  }
  if (name == kAssertionsAttrName) {
    auto messages = dyn_cast<ArrayAttr>(attr.getValue());
    if (!function || !messages ||
        !llvm::all_of(messages, llvm::IsaPred<StringAttr>))
      return op->emitError() << "'" << name
                             << "' is an attribute of a function, a list of "
                                "messages";
    return success();
  }
  if (name == kTasksAttrName) {
    auto by = dyn_cast<StringAttr>(attr.getValue());
    if (!function || !(isa<UnitAttr>(attr.getValue()) ||
                       (by && (by == "inputs" || by == "all"))))
      return op->emitError() << "'" << name
                             << "' is an attribute of a function, a unit, "
                                "\"inputs\" or \"all\"";
    return success();
  }
  if (name == kPhasesAttrName) {
    auto phases = dyn_cast<DenseBoolArrayAttr>(attr.getValue());
    if (!function || !phases || phases.empty() || phases.size() > 63)
      return op->emitError() << "'" << name
                             << "' is an attribute of a function, a list of 1 "
                                "to 63 booleans";
    return success();
  }
  if (name == kLaunchesAttrName || name == kWorkspaceAttrName ||
      name == kMeasuredAttrName) {
    if (!function || !isa<UnitAttr>(attr.getValue()))
      return op->emitError()
             << "'" << name << "' is a unit attribute of a function";
    return success();
  }
  if (name == kByAllAttrName || name == kByInputsAttrName ||
      name == kSharedBufferAttrName || name == kStreamedAttrName) {
    bool isOnItsOp = name == kByAllAttrName      ? bool(function)
                     : name == kByInputsAttrName ? isa<scf::ForallOp>(op)
                     : name == kStreamedAttrName ? isa<linalg::LinalgOp>(op)
                                                 : isa<memref::AllocaOp>(op);
    if (!isOnItsOp || !isa<UnitAttr>(attr.getValue()))
      return op->emitError()
             << "'" << name << "' is a unit attribute of "
             << (name == kByAllAttrName      ? "a function"
                 : name == kByInputsAttrName ? "an scf.forall"
                 : name == kStreamedAttrName ? "a linalg operation"
                                             : "a memref.alloca");
    return success();
  }
  if (name == kKernelTypeAttrName) {
    auto type = dyn_cast<TypeAttr>(attr.getValue());
    if (!type || !isa<FunctionType>(type.getValue()))
      return op->emitError() << "'" << name << "' is a type of a function";
    return success();
  }
  if (name == kKernelConstantsAttrName) {
    auto words = dyn_cast<DenseIntElementsAttr>(attr.getValue());
    if (!isa<ModuleOp>(op) || !words ||
        !words.getElementType().isSignlessInteger(32))
      return op->emitError()
             << "'" << name << "' is an attribute of a module, a list of i32";
    return success();
  }
  bool isOfModule = name == kStackLimitAttrName;
  if (name == kScratchAttrName) {
    auto bytes = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
    if (!function || !bytes ||
        !llvm::all_of(bytes.asArrayRef(),
                      [](int64_t size) { return size > 0; }))
      return op->emitError() << "'" << name
                             << "' is an attribute of a function, a list of "
                                "positive numbers of bytes as i64";
    return success();
  }
  if (isOfModule || name == kSharedAttrName) {
    auto bytes = dyn_cast<IntegerAttr>(attr.getValue());
    if (!(isOfModule ? isa<ModuleOp>(op) : bool(function)) || !bytes ||
        !bytes.getType().isInteger(64) || bytes.getInt() <= 0)
      return op->emitError() << "'" << name << "' is an attribute of a "
                             << (isOfModule ? "module" : "function")
                             << ", a positive number of bytes as i64";
    return success();
  }
  if (name == kLayersAttrName) {
    auto layers = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
    if (!function || !layers || layers.empty() || layers[0] < 0 ||
        !llvm::is_sorted(layers.asArrayRef(), std::less_equal<int64_t>()))
      return op->emitError() << "'" << name
                             << "' is an attribute of a function, a list of "
                                "layers as i64 in ascending order";
    return success();
  }
  if (name == kChipAttrName) {
    if (!isa<StringAttr>(attr.getValue()))
      return op->emitError() << "'" << name << "' is a string";
    return success();
  }
  if (name == kDocAttrName) {
    if (!function || !isa<StringAttr>(attr.getValue()))
      return op->emitError()
             << "'" << name << "' is an attribute of a function, a string";
    return success();
  }
  return op->emitError() << "unknown attribute '" << name << "'";
}

/// Checks `posenc.name`, the name of an argument or a result.
static LogicalResult verifyName(Operation *op, NamedAttribute attr) {
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
  if (attr.getName() == kPackedAttrName) {
    if (!isa<UnitAttr, StringAttr>(attr.getValue()))
      return op->emitError()
             << "expected '" << kPackedAttrName
             << "' as a unit or a string, got " << attr.getValue();
    return success();
  }
  if (attr.getName() != kSizesAttrName)
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
