//===- PackArguments.cpp - panel packing of function arguments ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Panels.h"
#include "ProductTiling.h"

#include "posenc/ABI/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCPACKARGUMENTSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Returns the dimension of an argument that is n (columns) in the matrix
/// products that read it as their right-hand side. Fails if it has no such use,
/// any other use, or if the products disagree about the dimension.
static FailureOr<unsigned> findColumnsDim(BlockArgument argument) {
  std::optional<unsigned> found;
  for (OpOperand &use : argument.getUses()) {
    if (isa<tensor::DimOp>(use.getOwner()))
      continue;
    auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
    FailureOr<Product> product =
        op ? getProduct(op) : FailureOr<Product>(failure());
    if (failed(product) || product->getOperand(1) != argument ||
        product->getOperand(0) == argument ||
        found.value_or(product->getColumnsDim()) != product->getColumnsDim())
      return failure();
    found = product->getColumnsDim();
  }
  if (!found)
    return failure();
  return *found;
}

/// Returns the name of an argument in the generated C header.
static std::string getArgName(func::FuncOp function, unsigned argument) {
  auto name = function.getArgAttrOfType<StringAttr>(
      argument, PosencDialect::kNameAttrName);
  return name ? name.str() : "in" + std::to_string(argument);
}

namespace {
struct PackArguments final
    : mlir::posenc::impl::PosencPackArgumentsPassBase<PackArguments> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (function.getArgAttrOfType<UnitAttr>(
                i, PosencDialect::kPackedAttrName) &&
            failed(pack(function, i)))
          return signalPassFailure();
  }

private:
  LogicalResult pack(func::FuncOp function, unsigned number) {
    auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[number]);
    if (function.isExternal() || !function.isPublic() || !type ||
        type.getRank() != 2 || !type.hasStaticShape() ||
        type.getNumElements() == 0 || !isa<FloatType>(type.getElementType()))
      return function.emitError()
             << "expected argument #" << number << " with '"
             << PosencDialect::kPackedAttrName
             << "' to be a non-empty 2-D tensor of floats with a static shape, "
                "in a public function with a body";
    BlockArgument argument = function.getArgument(number);
    FailureOr<unsigned> columnsDim = findColumnsDim(argument);
    if (failed(columnsDim))
      return function.emitError()
             << "expected argument #" << number << " with '"
             << PosencDialect::kPackedAttrName
             << "' to be used only as the right-hand side of matrix products, "
                "with the same dimension as columns in all of them";
    std::string name =
        (function.getName() + kPackInfix + getArgName(function, number)).str();
    if (Operation *other = getOperation().lookupSymbol(name))
      return other->emitError()
             << "symbol '" << name
             << "' is reserved for the function that packs an argument of '"
             << function.getName() << "'; rename it";
    createPacker(function, name, type, *columnsDim);

    Location loc = argument.getLoc();
    SmallVector<Type> types(function.getArgumentTypes());
    types[number] = getPanelsType(type, *columnsDim);
    function.setFunctionType(
        FunctionType::get(&getContext(), types, function.getResultTypes()));
    function.removeArgAttr(number, PosencDialect::kPackedAttrName);
    function.setArgAttr(number, PosencDialect::kLayoutAttrName,
                        StringAttr::get(&getContext(), kPanelsLayout));
    argument.setType(types[number]);
    OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
    Value matrix = unpackPanels(builder, loc, argument, type, *columnsDim);
    argument.replaceAllUsesExcept(matrix, matrix.getDefiningOp());
    return success();
  }

  /// Creates the function `name` after `function`: it takes the matrix and
  /// returns its panels.
  void createPacker(func::FuncOp function, StringRef name,
                    RankedTensorType type, unsigned columnsDim) {
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(function);
    Location loc = function.getLoc();
    auto packer = func::FuncOp::create(
        builder, loc, name,
        builder.getFunctionType(type, getPanelsType(type, columnsDim)));
    packer.addEntryBlock();
    packer.setArgAttr(0, PosencDialect::kNameAttrName,
                      builder.getStringAttr("matrix"));
    packer.setResultAttr(0, PosencDialect::kNameAttrName,
                         builder.getStringAttr("panels"));
    builder.setInsertionPointToStart(&packer.front());
    Value packed = packPanels(builder, loc, packer.getArgument(0), columnsDim);
    func::ReturnOp::create(builder, loc, packed);
  }
};
} // namespace
