//===- AttentionBF16TilesFaultsTest.cpp - faults in bf16 tiles ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Faults in the vector code of a prefill that uses AMX tiles.
//
//===----------------------------------------------------------------------===//

#include "AttentionFaults.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace posenc;
using namespace posenc::test;
namespace amx = mlir::amx;
namespace arith = mlir::arith;
using arith::CmpFPredicate;

namespace {

AttentionCase getTilesCase() {
  AttentionCase c;
  c.dtype = POSENC_BF16;
  c.dim = 72, c.valueDim = 48;
  c.causal = c.lengths = true;
  c.scale = 1;
  c.keyAngles = Angles::TokenIndices;
  return c;
}

/// Whether the tile is one of f32.
bool isF32(mlir::Value tile) {
  return mlir::cast<amx::TileType>(tile.getType()).getElementType().isF32();
}

bool loadsSums(mlir::Operation *load) { return isF32(load->getResult(0)); }

bool isProductOfLoads(mlir::Operation *product) {
  return product->getOperand(2).getDefiningOp<amx::TileLoadOp>() != nullptr;
}

/// Replaces loaded accumulators by zeros.
void dropSums(mlir::Operation *load) {
  mlir::OpBuilder builder(load);
  load->getResult(0).replaceAllUsesWith(amx::TileZeroOp::create(
      builder, load->getLoc(), load->getResult(0).getType()));
}

const Fault kTilesFaults[] = {
    control(),
    {"SumsDropped", op<amx::TileLoadOp>(loadsSums), dropSums},
    {"OneProductLess", op<amx::TileMulFOp>(isProductOfLoads), forward(2)},
    {"MaxNeverRaised",
     cmpf(CmpFPredicate::OGT, usedBy<arith::SelectOp>(),
          operand(1, op<arith::AddFOp>())),
     setPredicate(CmpFPredicate::AlwaysFalse)},
    {"NotRescaled", cmpf(CmpFPredicate::UNE, usedBy<arith::OrIOp>()),
     setPredicate(CmpFPredicate::AlwaysFalse)},
    {"WordsNotTransposed",
     op<mlir::vector::ShuffleOp>(onVectors(), usedBy<mlir::vector::StoreOp>()),
     forward(0)},
};
INSTANTIATE_TEST_SUITE_P(
    BF16Tiles, AttentionFaultTest,
    testing::ValuesIn(withSubject({getTilesCase(),
                                   {3, 40, 331},
                                   KeyValues::Finite,
                                   mlir::posenc::Stage::Vector,
                                   Products::BF16Tiles},
                                  kTilesFaults)),
    getAttentionFaultName);

} // namespace
