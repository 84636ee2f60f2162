//===- UnrollSums.cpp - unrolled loops of register tiles ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of a register tile of 8 x 48 floats has 24 multiply-adds, 11 loads,
// and about 8 instructions for addresses, the end of the loop, and prefetches.
// On processors of Intel, these compete with the multiply-adds for two ports.
// An iteration of four steps shares them.
//
//===----------------------------------------------------------------------===//

#include "CPU/VectorTarget.h"

#include "posenc/Codegen/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCUNROLLSUMSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Returns how many registers a sum takes, or 0 if it is no vector of whole
/// registers.
static int64_t countRegisters(math::FmaOp sum, int64_t registerBits) {
  auto type = dyn_cast<VectorType>(sum.getType());
  if (!type || type.isScalable() || type.getRank() != 1 ||
      (!type.getElementType().isF32() && !type.getElementType().isF64()))
    return 0;
  int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
  return bits % registerBits == 0 ? bits / registerBits : 0;
}

/// Whether an operation of a loop keeps it from being unrolled: it has regions,
/// writes memory, or is a sum of partial registers or of another sum of the
/// step.
static bool preventsUnrolling(Operation &op, int64_t registerBits) {
  if (isa<LLVM::FenceOp>(op))
    return false;
  if (op.getNumRegions() != 0 || hasEffect<MemoryEffects::Write>(&op))
    return true;
  auto sum = dyn_cast<math::FmaOp>(op);
  return sum && (countRegisters(sum, registerBits) == 0 ||
                 llvm::any_of(sum->getOperands(), [](Value operand) {
                   return operand.getDefiningOp<math::FmaOp>() != nullptr;
                 }));
}

/// Whether a loop adds to the vectors of a register tile in each of many steps,
/// and fences separate the rows of the tile.
static bool addsToTile(scf::ForOp loop, int64_t factor, int64_t registerBits) {
  Block &body = *loop.getBody();
  if (getConstantIntValue(loop.getStep()) != 1 ||
      !loop.getInductionVar().getType().isIndex() ||
      body.getOps<math::FmaOp>().empty() ||
      body.getOps<LLVM::FenceOp>().empty() ||
      llvm::any_of(body, [&](Operation &op) {
        return preventsUnrolling(op, registerBits);
      }))
    return false;
  std::optional<APInt> steps = loop.getStaticTripCount();
  return !steps || steps->uge(2 * factor);
}

/// Moves the operations that depend on `op`, but are before it, to the fence
/// behind it.
static void moveUsers(Operation *op, Operation *fence) {
  ForwardSliceOptions options;
  options.filter = [&](Operation *user) {
    return user->getBlock() == op->getBlock() && user->isBeforeInBlock(fence);
  };
  SetVector<Operation *> users;
  getForwardSlice(op, &users, options);
  for (Operation *user : topologicalSort(users))
    if (user->isBeforeInBlock(op))
      user->moveBefore(fence);
}

/// Replaces a fence by an empty assembler statement that takes `sums` and
/// returns them.
static void replaceFence(LLVM::FenceOp fence, ArrayRef<math::FmaOp> sums,
                         int64_t registerBits) {
  OpBuilder b(fence);
  Location loc = fence.getLoc();
  SmallVector<Value> registers;
  for (math::FmaOp sum : sums) {
    int64_t count = countRegisters(sum, registerBits);
    int64_t lanes = cast<VectorType>(sum.getType()).getNumElements() / count;
    for (int64_t i = 0; i < count; ++i)
      registers.push_back(
          count == 1 ? sum.getResult()
                     : vector::ExtractStridedSliceOp::create(
                           b, loc, sum, i * lanes, lanes, /*strides=*/1));
  }
  // `v` is any vector register of AVX-512, `x` one of AVX2.
  std::string constraints;
  for (size_t i = 0; i < registers.size(); ++i)
    constraints += registerBits == 512 ? "=v," : "=x,";
  for (size_t i = 0; i < registers.size(); ++i)
    constraints += std::to_string(i) + ",";
  Type type = registers.front().getType();
  if (registers.size() > 1)
    type = LLVM::LLVMStructType::getLiteral(
        b.getContext(), SmallVector<Type>(ValueRange(registers).getTypes()));
  auto statement = LLVM::InlineAsmOp::create(
      b, loc, type, registers, /*asm_string=*/"", constraints + "~{memory}",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, /*asm_dialect=*/nullptr,
      /*operand_attrs=*/nullptr);
  int64_t next = 0;
  auto getRegister = [&]() -> Value {
    if (registers.size() == 1)
      return statement.getResult(0);
    return LLVM::ExtractValueOp::create(b, loc, statement.getResult(0), next++);
  };
  for (math::FmaOp sum : sums) {
    int64_t count = countRegisters(sum, registerBits);
    Value after = sum;
    SmallPtrSet<Operation *, 8> parts;
    for (Operation *user : sum->getUsers())
      if (user == statement || isa<vector::ExtractStridedSliceOp>(user))
        parts.insert(user);
    if (count == 1) {
      after = getRegister();
    } else {
      after = ub::PoisonOp::create(b, loc, sum.getType());
      int64_t lanes = cast<VectorType>(sum.getType()).getNumElements() / count;
      for (int64_t i = 0; i < count; ++i)
        after = vector::InsertStridedSliceOp::create(
            b, loc, getRegister(), after, i * lanes, /*strides=*/1);
    }
    sum.getResult().replaceUsesWithIf(
        after, [&](OpOperand &use) { return !parts.contains(use.getOwner()); });
  }
  moveUsers(statement, fence);
  fence.erase();
}

/// Replaces the fences of a loop by statements that also keep the sums before
/// them in their place. Fences order loads alone: in a long block, LLVM's
/// schedulers move multiply-adds behind the loads of later ones, for which no
/// registers are left.
static void separateSums(scf::ForOp loop, int64_t registerBits) {
  SmallVector<math::FmaOp> sums;
  for (Operation &op : llvm::make_early_inc_range(*loop.getBody())) {
    if (auto sum = dyn_cast<math::FmaOp>(op))
      sums.push_back(sum);
    auto fence = dyn_cast<LLVM::FenceOp>(op);
    if (!fence)
      continue;
    if (!sums.empty())
      replaceFence(fence, sums, registerBits);
    sums.clear();
  }
}

namespace {
struct UnrollSums final
    : mlir::posenc::impl::PosencUnrollSumsPassBase<UnrollSums> {
  using Base::Base;
  friend struct mlir::posenc::VectorTarget;

  void runOnOperation() override {
    VectorTarget target = VectorTarget::get(*this);
    int64_t factor = target.productUnroll;
    int64_t registerBits = 8 * target.vectorBytes;
    if (factor <= 1 || registerBits < 256)
      return;
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) {
      if (addsToTile(loop, factor, registerBits))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      separateSums(loop, registerBits);
      FailureOr<UnrolledLoopInfo> unrolled = loopUnrollByFactor(loop, factor);
      if (failed(unrolled))
        return signalPassFailure();
      // The step is a product of constants if the number of steps is unknown.
      if (std::optional<scf::ForOp> main = unrolled->mainLoopOp) {
        OpBuilder b(*main);
        main->setStep(
            arith::ConstantIndexOp::create(b, main->getLoc(), factor));
      }
    }
  }
};
} // namespace
