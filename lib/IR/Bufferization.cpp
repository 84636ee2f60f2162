//===- Bufferization.cpp - bufferization of the operations ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::posenc;

namespace {

/// Only operations whose interface says so read what destinations hold.
template <typename OpTy>
struct PosencBufferization
    : DstBufferizableOpInterfaceExternalModel<PosencBufferization<OpTy>, OpTy> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return cast<PositionalOpInterface>(op).readsDestinations() ||
           !cast<DestinationStyleOpInterface>(op).isDpsInit(&operand);
  }

  /// A rotated tensor may take the place of its input, though of no other:
  /// both lanes of a pair are read before either is written, but one tensor
  /// may be rotated before the next is read.
  bool bufferizesToElementwiseAccess(Operation *op, const AnalysisState &,
                                     ArrayRef<OpOperand *> operands) const {
    if (!isa<RotateOp, RopeOp>(op))
      return false;
    unsigned numTensors = op->getNumResults();
    unsigned firstInit = op->getNumOperands() - numTensors;
    auto getTensor = [&](OpOperand *operand) -> std::optional<unsigned> {
      unsigned number = operand->getOperandNumber();
      if (number < numTensors)
        return number;
      if (number >= firstInit)
        return number - firstInit;
      return std::nullopt;
    };
    std::optional<unsigned> tensor = getTensor(operands.front());
    return tensor && llvm::all_of(operands, [&](OpOperand *operand) {
             return getTensor(operand) == tensor;
           });
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto dps = cast<DestinationStyleOpInterface>(op);
    if (dps.hasPureBufferSemantics())
      return success();
    SmallVector<Value> operands, results;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (isa<TensorType>(value.getType())) {
        FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
        if (failed(buffer))
          return failure();
        value = *buffer;
        if (dps.isDpsInit(&operand))
          results.push_back(value);
      }
      operands.push_back(value);
    }
    mlir::posenc::detail::cloneWith(rewriter, op, /*resultTypes=*/TypeRange(),
                                    operands);
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

} // namespace

void mlir::posenc::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, PosencDialect *) {
    AttentionOp::attachInterface<PosencBufferization<AttentionOp>>(*context);
    OnlineAttentionOp::attachInterface<PosencBufferization<OnlineAttentionOp>>(
        *context);
    KvAppendOp::attachInterface<PosencBufferization<KvAppendOp>>(*context);
    SincosOp::attachInterface<PosencBufferization<SincosOp>>(*context);
    RotateOp::attachInterface<PosencBufferization<RotateOp>>(*context);
    RopeOp::attachInterface<PosencBufferization<RopeOp>>(*context);
    SinusoidalOp::attachInterface<PosencBufferization<SinusoidalOp>>(*context);
    context->loadDialect<memref::MemRefDialect>();
  });
}
