//===- BufferizeKernels.cpp - bufferization with kernel layouts -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/IR/KernelConfig.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCBUFFERIZEKERNELSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Returns the memref type of a private function's argument: as
/// `getKernelMemRefType`, but with a dynamic offset, since it may be a slice of
/// a buffer.
static MemRefType getCalleeMemRefType(RankedTensorType tensor) {
  SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
  if (!strides.empty())
    strides.back() = 1;
  return MemRefType::get(tensor.getShape(), tensor.getElementType(),
                         StridedLayoutAttr::get(tensor.getContext(),
                                                ShapedType::kDynamic, strides));
}

/// Checks that the memref arguments of a kernel have the layouts that its entry
/// points pass. With other layouts, the kernel would read strided tensors
/// incorrectly.
static LogicalResult checkLayouts(func::FuncOp function) {
  AbiAttr abi = getAbi(function);
  if (!abi)
    return success();
  auto args = llvm::concat<const ArgAttr>(abi.getInputs(), abi.getOutputs());
  // The arguments of the signature precede the memory that tasks share, the
  // phase and the numbers of the task.
  for (auto [number, pair] :
       llvm::enumerate(llvm::zip(args, function.getArgumentTypes()))) {
    auto [arg, type] = pair;
    auto tensor = dyn_cast<RankedTensorType>(arg.getType());
    auto memref = dyn_cast<MemRefType>(type);
    if (tensor && memref && memref != getKernelMemRefType(tensor))
      return function.emitError()
             << "argument #" << number << " is " << memref << ", expected "
             << getKernelMemRefType(tensor);
  }
  return success();
}

/// Whether the memory is a part of a buffer as posenc-decompose-moves creates.
static bool isStaticView(Value memory) {
  auto view = memory.getDefiningOp<memref::SubViewOp>();
  return view && view.getType().hasStaticShape();
}

/// Whether an operation after the write may write to the tensor, or to another
/// one that may be computed in its memory, or reads such a tensor other than
/// the source of the write, which overwrites it.
static bool isReusedAfter(bufferization::ToTensorOp tensor,
                          bufferization::MaterializeInDestinationOp write) {
  SmallVector<Value> worklist{tensor.getResult()};
  llvm::SmallPtrSet<Operation *, 8> visited;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      auto op = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
      bool isRead =
          (op && op.isDpsInput(&use)) ||
          isa<bufferization::MaterializeInDestinationOp>(use.getOwner());
      if (isa<tensor::DimOp>(use.getOwner()) ||
          (isRead && value == write.getSource()))
        continue;
      Operation *user =
          write->getBlock()->findAncestorOpInBlock(*use.getOwner());
      if (!user || !user->isBeforeInBlock(write))
        return true;
      if (!isRead && visited.insert(user).second)
        llvm::append_range(worklist, user->getResults());
    }
  }
  return false;
}

/// Makes the writes to destinations visible to the analysis of tensors, which
/// knows nothing of writes to memrefs. A destination may hold another result
/// than its own while that is computed, if both begin with the same tensor.
/// Without the write, the analysis would let that result stay there, although
/// it is read after the destination has been overwritten.
static void writeToTensors(func::FuncOp function) {
  DenseMap<Value, SmallVector<bufferization::ToTensorOp>> tensors;
  SmallVector<bufferization::MaterializeInDestinationOp> writes;
  function.walk([&](Operation *op) {
    if (auto tensor = dyn_cast<bufferization::ToTensorOp>(op);
        tensor && tensor.getRestrict())
      tensors[tensor.getBuffer()].push_back(tensor);
    if (auto write = dyn_cast<bufferization::MaterializeInDestinationOp>(op);
        write && write->getParentOp() == function &&
        isa<BaseMemRefType>(write.getDest().getType()) &&
        (isa<BlockArgument>(write.getDest()) || isStaticView(write.getDest())))
      writes.push_back(write);
  });
  // A value that is returned twice is read from where it has been written.
  DenseMap<Value, Value> written;
  for (bufferization::MaterializeInDestinationOp write : writes) {
    auto known = tensors.find(write.getDest());
    if (known == tensors.end())
      continue;
    ArrayRef<bufferization::ToTensorOp> all = known->second;
    bufferization::ToTensorOp tensor = all.front();
    if (Operation *view = write.getDest().getDefiningOp())
      tensor->moveAfter(view);
    else
      tensor->moveBefore(&function.front(), function.front().begin());
    for (bufferization::ToTensorOp other : all.drop_front()) {
      other.replaceAllUsesWith(tensor.getResult());
      other.erase();
    }
    // Outputs are written last, but parts of a concatenation are not.
    if (!isa<BlockArgument>(write.getDest()) && isReusedAfter(tensor, write)) {
      auto type = cast<RankedTensorType>(tensor.getType());
      OpBuilder builder(tensor);
      tensor.replaceAllUsesWith(
          tensor::EmptyOp::create(builder, tensor.getLoc(), type.getShape(),
                                  type.getElementType())
              .getResult());
      tensor.erase();
      continue;
    }
    Value source = write.getSource();
    auto [result, isNew] = written.try_emplace(source);
    OpBuilder builder(write);
    auto copy = bufferization::MaterializeInDestinationOp::create(
        builder, write.getLoc(), isNew ? source : result->second,
        tensor.getResult());
    write.getSourceMutable().assign(copy.getResult());
    if (isNew)
      result->second = copy.getResult();
  }
}

/// Allocates a contiguous buffer and casts it to the layout of `type`.
static FailureOr<Value> allocate(OpBuilder &builder, Location loc,
                                 MemRefType type, ValueRange sizes,
                                 unsigned alignment) {
  MemRefType contiguous =
      MemRefType::get(type.getShape(), type.getElementType(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace());
  Value buffer = memref::AllocOp::create(
      builder, loc, contiguous, sizes,
      alignment ? builder.getI64IntegerAttr(alignment) : IntegerAttr());
  if (type == contiguous)
    return buffer;
  if (!memref::CastOp::areCastCompatible(contiguous, type))
    return failure();
  return memref::CastOp::create(builder, loc, type, buffer).getResult();
}

/// Orders and names the globals of constants by their first use. Bufferization
/// creates them function by function, in an order that differs from run to run.
static void orderConstants(ModuleOp module) {
  constexpr llvm::StringLiteral kPrefix = "__constant_";
  llvm::MapVector<Operation *, SmallVector<memref::GetGlobalOp>> uses;
  SymbolTable symbols(module);
  module.walk([&](memref::GetGlobalOp use) {
    auto global = symbols.lookup<memref::GlobalOp>(use.getName());
    if (global && global.isPrivate() && global.getConstant() &&
        global.getSymName().starts_with(kPrefix))
      uses[global].push_back(use);
  });
  for (Operation *global : llvm::make_first_range(uses))
    symbols.remove(global);
  Operation *last = nullptr;
  for (auto &[global, users] : uses) {
    if (last)
      global->moveAfter(last);
    else
      global->moveBefore(module.getBody(), module.getBody()->begin());
    last = global;
    SymbolTable::setSymbolName(global, kPrefix.drop_back());
    symbols.insert(global);
    for (memref::GetGlobalOp use : users)
      use.setName(cast<memref::GlobalOp>(global).getSymName());
  }
}

/// Replaces collapsed tensors that have no elements by empty ones where a
/// dimension of size 0 is merged with dynamic ones: the size of the result is
/// dynamic, but that of a collapsed buffer would be 0.
static void replaceEmptyReshapes(ModuleOp module) {
  SmallVector<tensor::CollapseShapeOp> reshapes;
  module.walk([&](tensor::CollapseShapeOp op) {
    ArrayRef<int64_t> sizes = op.getSrcType().getShape();
    if (llvm::any_of(llvm::zip_equal(op.getReassociationIndices(),
                                     op.getResultType().getShape()),
                     [&](auto pair) {
                       const auto &[group, size] = pair;
                       return ShapedType::isDynamic(size) &&
                              llvm::any_of(group, [&](int64_t dim) {
                                return sizes[dim] == 0;
                              });
                     }))
      reshapes.push_back(op);
  });
  for (tensor::CollapseShapeOp op : reshapes) {
    OpBuilder builder(op);
    SmallVector<Value> dynamic;
    for (auto [group, size] : llvm::zip_equal(op.getReassociationIndices(),
                                              op.getResultType().getShape())) {
      if (!ShapedType::isDynamic(size))
        continue;
      Value product;
      for (int64_t dim : group) {
        Value next =
            tensor::DimOp::create(builder, op.getLoc(), op.getSrc(), dim);
        product =
            product ? arith::MulIOp::create(builder, op.getLoc(), product, next)
                          .getResult()
                    : next;
      }
      dynamic.push_back(product);
    }
    op.replaceAllUsesWith(tensor::EmptyOp::create(builder, op.getLoc(),
                                                  op.getResultType(), dynamic)
                              .getResult());
    op.erase();
  }
}

/// Replaces views that drop dimensions of size 1 by views of all dimensions,
/// which are collapsed, where memref.subview takes the wrong dimensions for the
/// dropped ones. It compares strides, which say nothing if they are dynamic,
/// and takes the first dimensions of size 1 then.
static LogicalResult collapseViews(ModuleOp module) {
  WalkResult result = module.walk([](memref::SubViewOp op) -> WalkResult {
    llvm::SmallBitVector dropped = op.getDroppedDims();
    if (dropped.none())
      return WalkResult::advance();
    MemRefType type = op.getType();
    SmallVector<int64_t> kept;
    for (auto [dim, size] : llvm::enumerate(op.getStaticSizes()))
      if (!dropped.test(dim))
        kept.push_back(size);
    if (ArrayRef(kept) == type.getShape())
      return WalkResult::advance();
    std::optional<SmallVector<ReassociationIndices>> groups =
        getReassociationIndicesForCollapse(op.getStaticSizes(),
                                           type.getShape());
    if (!groups)
      return op.emitError("cannot tell which dimensions this view drops");
    OpBuilder builder(op);
    Value view = memref::SubViewOp::create(
        builder, op.getLoc(), op.getSource(), op.getMixedOffsets(),
        op.getMixedSizes(), op.getMixedStrides());
    Value collapsed =
        memref::CollapseShapeOp::create(builder, op.getLoc(), view, *groups);
    if (collapsed.getType() != type)
      collapsed = memref::CastOp::create(builder, op.getLoc(), type, collapsed);
    op.replaceAllUsesWith(collapsed);
    op.erase();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct BufferizeKernels final
    : mlir::posenc::impl::PosencBufferizeKernelsPassBase<BufferizeKernels> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(checkLayouts(function)))
        return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        writeToTensors(function);
    replaceEmptyReshapes(getOperation());
    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.inferFunctionResultLayout = false;
    // Loops of graphs yield results of their bodies.
    options.allowReturnAllocsFromLoops = true;
    options.functionArgTypeConverterFn =
        [fallback = options.functionArgTypeConverterFn](
            bufferization::TensorLikeType type, Attribute space,
            func::FuncOp function,
            const bufferization::BufferizationOptions &bufferizationOptions)
        -> bufferization::BufferLikeType {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor)
        return fallback(type, space, function, bufferizationOptions);
      return cast<bufferization::BufferLikeType>(
          getAbi(function) ? getKernelMemRefType(tensor)
                           : getCalleeMemRefType(tensor));
    };
    options.allocationFn = allocate;
    bufferization::BufferizationState state;
    if (failed(bufferization::runOneShotModuleBufferize(getOperation(), options,
                                                        state)))
      return signalPassFailure();
    if (failed(collapseViews(getOperation())))
      return signalPassFailure();
    orderConstants(getOperation());
  }
};
} // namespace
