//===- KernelPositions.h - positions in a kernel ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ROTATION_KERNELPOSITIONS_H
#define POSENC_LIB_CODEGEN_GPU_ROTATION_KERNELPOSITIONS_H

#include "GPU/Launch/GpuKernel.h"
#include "posenc/Numerics/ExactPhase.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::posenc {

/// Returns the elementwise operation, such as a sum, that computes a tensor of
/// positions and has only users of this dialect; null if there is none.
linalg::GenericOp findPositionsProducer(Value positions);

/// Erases producers without users, and their memory.
void eraseProducers(ModuleOp module);

/// The positions of an operation in a kernel: a scalar, to which the index is
/// added, or a tensor, with a row for each axis if there are axes. An
/// elementwise computation of positions is emitted where they are used.
class KernelPositions {
public:
  KernelPositions(OpBuilder &host, GpuKernel &kernel, Value positions,
                  AxesAttr axes);
  ExactPhase::Position load(OpBuilder &builder, Location loc,
                            const ExactPhase &phases, ValueRange loops) const;

private:
  AxesAttr axes;
  Value scalar;
  /// The tensor of positions, or the inputs of the producer.
  SmallVector<GpuKernel::Tensor, 1> tensors;
  linalg::GenericOp producer;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ROTATION_KERNELPOSITIONS_H
