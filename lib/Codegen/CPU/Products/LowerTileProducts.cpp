//===- LowerTileProducts.cpp - tile products to the target's units --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileProductUnits.h"

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCLOWERTILEPRODUCTSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {
struct LowerTileProducts final
    : mlir::posenc::impl::PosencLowerTileProductsPassBase<LowerTileProducts> {
  using Base::Base;

  void runOnOperation() override {
    // The first unit that computes a product does.
    const ProductUnit units[] = {getAMXUnit(), getBF16DotUnit(),
                                 getInt8DotUnit(), getFMAUnit(),
                                 getPortableUnit()};
    ProductTarget target{bf16Dots, amxBF16, int8Dots, amxInt8};
    SmallVector<TileProductOp> products;
    getOperation().walk([&](TileProductOp op) { products.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (TileProductOp op : products) {
      const auto *unit = llvm::find_if(units, [&](const ProductUnit &each) {
        return each.computes(op, target);
      });
      if (!unit->needsMemory || isa<MemRefType>(op.getA().getType()))
        unit->lower(rewriter, op);
    }
  }
};
} // namespace
