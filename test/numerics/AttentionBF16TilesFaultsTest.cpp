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
  // Steps are not pipelined with a mask.
  c.mask = Mask::Boolean;
  return c;
}

/// Steps are pipelined. Scores exceed those of the first keys by far.
AttentionCase getStepsCase() {
  AttentionCase c;
  c.dtype = POSENC_BF16;
  c.heads = 2, c.keyHeads = 1, c.dim = 32, c.valueDim = 128;
  c.causal = c.lengths = true;
  c.scale = 12;
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

/// Whether the value is one of two buffers: of scores, or of the weights of a
/// block of four steps.
bool isChosen(mlir::Operation *select, int64_t firstSize) {
  auto type = mlir::dyn_cast<mlir::MemRefType>(select->getResult(0).getType());
  return type && type.getDimSize(0) == firstSize;
}
bool choosesScores(mlir::Operation *select) { return isChosen(select, 2); }
bool choosesWeights(mlir::Operation *select) { return isChosen(select, 4); }

/// Whether products are the only part of a loop.
bool isDrain(mlir::Operation *loop) {
  auto products = mlir::cast<mlir::scf::ForOp>(loop);
  return products.getInitArgs().empty() &&
         !products.getBody()->getOps<amx::TileMulFOp>().empty();
}

const Fault kStepsFaults[] = {
    control(),
    {"MaxNeverRaised",
     cmpf(CmpFPredicate::OGT, usedBy<arith::SelectOp>(operand(2, splat(0.0)))),
     setPredicate(CmpFPredicate::AlwaysFalse)},
    {"SumsNotTested", cmpi(arith::CmpIPredicate::ne, onVectors()),
     setPredicate(arith::CmpIPredicate::slt)},
    {"ScoresOfThisStepOverwritten",
     op<arith::SelectOp>(choosesScores, usedBy<amx::TileStoreOp>()),
     swapOperands(1, 2)},
    {"WeightsOfAnotherBlock",
     op<arith::SelectOp>(choosesWeights, usedBy<amx::TileLoadOp>()),
     swapOperands(1, 2)},
    {"BlockSkipped", op<mlir::scf::ForOp>(isDrain), setOperand(0, 4)},
    {"SumsDropped", op<amx::TileLoadOp>(loadsSums), dropSums},
    {"OneProductLess", op<amx::TileMulFOp>(isProductOfLoads), forward(2)},
};
INSTANTIATE_TEST_SUITE_P(
    BF16TileSteps, AttentionFaultTest,
    testing::ValuesIn(withSubject({getStepsCase(),
                                   {1, 40, 331},
                                   KeyValues::Finite,
                                   mlir::posenc::Stage::Vector,
                                   Products::BF16Tiles},
                                  kStepsFaults)),
    getAttentionFaultName);

} // namespace
