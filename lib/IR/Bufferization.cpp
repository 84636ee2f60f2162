//===- Bufferization.cpp - BufferizableOpInterface of the operations ------===//
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

/// Whether the last dimension of a buffer is contiguous, as vector accesses of
/// the lowerings require.
static bool hasContiguousRows(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  return !type || type.getRank() == 0 || type.isLastDimUnitStride();
}

namespace {

/// The buffers of an operation. A buffer whose last dimension is not
/// contiguous, such as a slice with a stride, is replaced by a contiguous copy;
/// a destination is copied back after the operation.
class ContiguousBuffers {
public:
  ContiguousBuffers(RewriterBase &rewriter, Location loc,
                    const BufferizationOptions &options)
      : rewriter(rewriter), loc(loc), options(options) {}

  /// Creates a contiguous buffer of the same shape, and copies the elements if
  /// `isRead`.
  FailureOr<Value> create(Value buffer, bool isRead) {
    auto type = cast<MemRefType>(buffer.getType());
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        sizes.push_back(memref::DimOp::create(rewriter, loc, buffer, dim));
    FailureOr<Value> copy = options.createAlloc(
        rewriter, loc, MemRefType::get(type.getShape(), type.getElementType()),
        sizes);
    if (succeeded(copy) && isRead &&
        failed(options.createMemCpy(rewriter, loc, buffer, *copy)))
      return failure();
    return copy;
  }

  LogicalResult copy(Value from, Value to) {
    return options.createMemCpy(rewriter, loc, from, to);
  }

private:
  RewriterBase &rewriter;
  Location loc;
  const BufferizationOptions &options;
};

/// Bufferizes an operation of the dialect. Its interface tells whether
/// destinations are read.
template <typename OpTy>
struct PosencBufferization
    : DstBufferizableOpInterfaceExternalModel<PosencBufferization<OpTy>, OpTy> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return cast<PositionalOpInterface>(op).readsDestinations() ||
           !cast<DestinationStyleOpInterface>(op).isDpsInit(&operand);
  }

  /// A rotated tensor may be written over its own input, but not over another
  /// one: both lanes of a pair are read before either is written, but one
  /// tensor may be rotated before the next is read.
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
    if (auto rotate = dyn_cast<RotateOp>(op); rotate && rotate.getFullTables())
      return op->emitOpError()
             << "has no form on memrefs with full_tables; run "
                "convert-posenc-rope-to-linalg before";
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
    if (failed(makeContiguous(op, operands, rewriter, options)))
      return failure();
    mlir::posenc::detail::cloneWith(rewriter, op, /*resultTypes=*/TypeRange(),
                                    operands);
    ContiguousBuffers buffers(rewriter, op->getLoc(), options);
    for (auto [result, written] :
         llvm::zip_equal(results, ArrayRef(operands).take_back(results.size())))
      if (result != written && failed(buffers.copy(written, result)))
        return failure();
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }

private:
  /// Replaces buffers with non-contiguous rows by contiguous copies.
  static LogicalResult makeContiguous(Operation *op,
                                      MutableArrayRef<Value> operands,
                                      RewriterBase &rewriter,
                                      const BufferizationOptions &options) {
    ContiguousBuffers buffers(rewriter, op->getLoc(), options);
    size_t numInits = op->getNumResults();
    MutableArrayRef<Value> inits = operands.take_back(numInits);
    for (Value &init : inits) {
      if (hasContiguousRows(init))
        continue;
      bool isRead = cast<PositionalOpInterface>(op).readsDestinations();
      FailureOr<Value> copy = buffers.create(init, isRead);
      if (failed(copy))
        return failure();
      init = *copy;
    }
    // A rotation can work in the buffer of its destination, without allocation.
    bool isRotation = isa<RotateOp, RopeOp>(op);
    for (auto [number, value] : llvm::enumerate(operands.drop_back(numInits))) {
      if (hasContiguousRows(value))
        continue;
      if (isRotation && number < numInits) {
        if (failed(buffers.copy(value, inits[number])))
          return failure();
        value = inits[number];
        continue;
      }
      FailureOr<Value> copy = buffers.create(value, /*isRead=*/true);
      if (failed(copy))
        return failure();
      value = *copy;
    }
    return success();
  }
};

/// Bufferizes products on panels, whose sums are read and written in place.
struct TileProductBufferization
    : DstBufferizableOpInterfaceExternalModel<TileProductBufferization,
                                              TileProductOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    if (!isa<TensorType>(cast<TileProductOp>(op).getA().getType()))
      return success();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      operands.push_back(*buffer);
    }
    mlir::posenc::detail::cloneWith(rewriter, op, /*resultTypes=*/TypeRange(),
                                    operands);
    replaceOpWithBufferizedValues(rewriter, op, operands.back());
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
    TileProductOp::attachInterface<TileProductBufferization>(*context);
    context->loadDialect<memref::MemRefDialect>();
  });
}
