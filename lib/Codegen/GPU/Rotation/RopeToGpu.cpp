//===- RopeToGpu.cpp - rope and rotate to GPU kernels ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelPositions.h"
#include "LoopSizes.h"
#include "RopeKernel.h"

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCROPETOGPUPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Emits a kernel with wide accesses, one for unaligned tensors, and the
/// selection between them at run time.
static void emitKernels(
    OpBuilder &host, const Rotation &rotation,
    function_ref<void(OpBuilder &, bool isWide, const WorkSplit &)> emit) {
  if (rotation.inits.empty())
    return;
  Location loc = rotation.op->getLoc();
  auto dims = rotation.dims;
  bool isOne = dims.empty();
  if (!dims.empty()) {
    auto type = cast<MemRefType>(rotation.inits.front().getType());
    isOne = type.getDimSize(dims.back()) == 1;
  }
  WorkSplit split = chooseWorkSplit(rotation, /*hasManyPositions=*/!isOne);
  if (split.access == 1)
    return emit(host, /*isWide=*/false, split);
  SmallVector<Value> memrefs(rotation.inputs);
  llvm::append_range(memrefs, rotation.inits);
  scf::IfOp::create(
      host, loc, areAligned(host, loc, memrefs, split.access),
      [&](OpBuilder &b, Location l) {
        emit(b, /*isWide=*/true, split);
        scf::YieldOp::create(b, l);
      },
      [&](OpBuilder &b, Location l) {
        emit(b, /*isWide=*/false, split);
        scf::YieldOp::create(b, l);
      });
}

template <typename Op> static Rotation getRotation(Op op, int64_t rotaryDim) {
  Type element = getElementTypeOrSelf(op.getInits().front().getType());
  Type compute =
      element.isF64() ? element : Type(Float32Type::get(op.getContext()));
  // Statically empty tensors have no rows.
  SmallVector<Value> inputs, inits;
  for (auto [input, init] : llvm::zip_equal(op.getInputs(), op.getInits())) {
    if (llvm::is_contained(cast<ShapedType>(init.getType()).getShape(), 0))
      continue;
    inputs.push_back(input);
    inits.push_back(init);
  }
  return {op.getOperation(),
          inputs,
          inits,
          op.getDims(),
          op.getPairing() == Pairing::Half,
          rotaryDim,
          static_cast<int64_t>(op.getOffset()),
          element,
          compute};
}

static StringRef getSuffix(bool isWide) { return isWide ? "" : "_narrow"; }

static void convertRope(OpBuilder &builder, RopeOp op) {
  int64_t rotaryDim = op.getFrequencies().getDim();
  Rotation rotation = getRotation(op, rotaryDim);
  emitKernels(
      builder, rotation,
      [&](OpBuilder &host, bool isWide, const WorkSplit &split) {
        GpuKernel kernel(op, getSuffix(isWide), split.threads);
        RopeKernel rows(host, kernel, rotation, split, isWide);
        KernelPositions positions(host, kernel, op.getPositions(),
                                  op.getAxesAttr());
        SmallVector<Value> turns = kernel.addTensors(host, op.getTurns());
        SharedTable table(kernel, split.positions, rotaryDim / 2,
                          rotation.compute);
        Angles angles{op.getFrequencies(), op.getAxesAttr(), turns,
                      op.getInverse(), areFloats(op.getPositions())};
        AngleAddition steps(host, kernel.getFunction(), angles,
                            rotation.element, TableUse::Rotation,
                            llvm::to_vector(llvm::seq(rotaryDim / 2)));
        rows.emit(table, [&](OpBuilder &b, Location l, ValueRange loops,
                             Value pair) {
          return emitElement(
              b, l, steps, positions.load(b, l, steps.getPhases(), loops), pair,
              /*lanes=*/1);
        });
        kernel.launch(host, rows.getNumBlocks());
      });
}

static void convertRotate(OpBuilder &builder, RotateOp op) {
  Rotation rotation = getRotation(op, op.getRotaryDim());
  emitKernels(builder, rotation,
              [&](OpBuilder &host, bool isWide, const WorkSplit &split) {
                GpuKernel kernel(op, getSuffix(isWide), split.threads);
                RopeKernel rows(host, kernel, rotation, split, isWide);
                GpuKernel::Tensor cos = kernel.addTensor(host, op.getCos());
                GpuKernel::Tensor sin = kernel.addTensor(host, op.getSin());
                SharedTable table(kernel, split.positions,
                                  op.getRotaryDim() / 2, rotation.compute);
                rows.emit(table, [&](OpBuilder &b, Location l, ValueRange loops,
                                     Value pair) {
                  SmallVector<Value> indices(loops);
                  indices.push_back(pair);
                  auto type = VectorType::get({1}, rotation.compute);
                  auto load = [&](const GpuKernel::Tensor &from) -> Value {
                    Value at = getOffset(b, l, indices, from.strides);
                    auto narrow =
                        VectorType::get({1}, getElementTypeOrSelf(from.memref));
                    Value value =
                        vector::LoadOp::create(b, l, narrow, from.memref, at);
                    if (value.getType() == type)
                      return value;
                    return arith::ExtFOp::create(b, l, type, value);
                  };
                  Value sinValue = load(sin);
                  if (op.getInverse())
                    sinValue = arith::NegFOp::create(b, l, sinValue);
                  return AngleAddition::CosSin{load(cos), sinValue};
                });
                kernel.launch(host, rows.getNumBlocks());
              });
}

namespace {
struct ConvertPosencRopeToGpu final
    : mlir::posenc::impl::ConvertPosencRopeToGpuPassBase<
          ConvertPosencRopeToGpu> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> operations;
    getOperation().walk([&](Operation *op) {
      if (isa<RopeOp, RotateOp>(op))
        operations.push_back(op);
    });
    for (Operation *op : operations) {
      if (failed(checkBuffers(op)))
        return signalPassFailure();
      OpBuilder builder(op);
      if (auto rope = dyn_cast<RopeOp>(op))
        convertRope(builder, rope);
      else
        convertRotate(builder, cast<RotateOp>(op));
      op->erase();
    }
    eraseProducers(getOperation());
  }
};
} // namespace
