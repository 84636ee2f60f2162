//===- ConstantTables.cpp - numbers that kernels read -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/ConstantTables.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

std::string mlir::posenc::createConstants(OpBuilder &builder, Operation *op,
                                          StringRef prefix,
                                          DenseElementsAttr values,
                                          int64_t alignment) {
  Operation *module = SymbolTable::getNearestSymbolTable(op);
  auto type =
      MemRefType::get({values.getNumElements()}, values.getElementType());
  auto data = values.reshape(
      RankedTensorType::get(type.getShape(), type.getElementType()));
  for (auto global : module->getRegion(0).getOps<memref::GlobalOp>())
    if (global.getInitialValueAttr() == data && global.getConstant() &&
        global.getSymName().starts_with(prefix))
      return global.getSymName().str();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&module->getRegion(0).front());
  SymbolTable symbols(module);
  auto global = memref::GlobalOp::create(
      builder, op->getLoc(), prefix, builder.getStringAttr("private"), type,
      data, /*constant=*/true, builder.getI64IntegerAttr(alignment));
  return symbols.insert(global).str();
}

template <typename Number>
std::string mlir::posenc::createConstants(OpBuilder &builder, Operation *op,
                                          StringRef prefix,
                                          ArrayRef<Number> values,
                                          int64_t alignment) {
  Type element;
  if constexpr (std::is_integral_v<Number>)
    element = builder.getIntegerType(8 * sizeof(Number));
  else
    element = sizeof(Number) == 4 ? Type(builder.getF32Type())
                                  : Type(builder.getF64Type());
  auto type =
      RankedTensorType::get({static_cast<int64_t>(values.size())}, element);
  return createConstants(builder, op, prefix,
                         DenseElementsAttr::get(type, values), alignment);
}

template std::string mlir::posenc::createConstants(OpBuilder &, Operation *,
                                                   StringRef, ArrayRef<double>,
                                                   int64_t);
template std::string mlir::posenc::createConstants(OpBuilder &, Operation *,
                                                   StringRef, ArrayRef<float>,
                                                   int64_t);
template std::string mlir::posenc::createConstants(OpBuilder &, Operation *,
                                                   StringRef, ArrayRef<int32_t>,
                                                   int64_t);
template std::string mlir::posenc::createConstants(OpBuilder &, Operation *,
                                                   StringRef, ArrayRef<int64_t>,
                                                   int64_t);
