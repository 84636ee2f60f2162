//===- CreateKernels.cpp - destinations and C signatures --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexBounds.h"
#include "SizeAnalysis.h"

#include "posenc/Codegen/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCCREATEKERNELSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// The operand whose memory a result may have: of a rotation, which reads a row
/// before it writes it, the input, and of new rows of caches the cache.
static OpOperand *getSource(OpResult result) {
  Operation *op = result.getOwner();
  if (isa<RopeOp, RotateOp>(op))
    return &op->getOpOperand(result.getResultNumber());
  if (auto append = dyn_cast<KvAppendOp>(op))
    return append.getTiedOpOperand(result);
  return nullptr;
}

/// The input that an output may be, if nothing else reads it; else -1.
static int64_t findPartner(Value value, ArgAttr output,
                           ArrayRef<ArgAttr> inputs) {
  auto result = dyn_cast<OpResult>(value);
  OpOperand *source = result ? getSource(result) : nullptr;
  auto input = source ? dyn_cast<BlockArgument>(source->get()) : nullptr;
  if (!input || !isa<FunctionOpInterface>(input.getOwner()->getParentOp()) ||
      inputs[input.getArgNumber()].getType() != output.getType() ||
      inputs[input.getArgNumber()].getSizes() != output.getSizes())
    return -1;
  auto dps = cast<DestinationStyleOpInterface>(result.getOwner());
  bool readsInits =
      cast<PositionalOpInterface>(result.getOwner()).readsDestinations();
  bool isOnlyUse = llvm::all_of(input.getUses(), [&](OpOperand &use) {
    return isa<tensor::DimOp>(use.getOwner()) || &use == source ||
           (use.getOwner() == dps && dps.isDpsInit(&use) && !readsInits);
  });
  return isOnlyUse ? static_cast<int64_t>(input.getArgNumber()) : -1;
}

/// Constants become data of the library: all elements, of a splat, too.
static LogicalResult checkConstants(func::FuncOp function) {
  constexpr double largestBytes = 256 << 20;
  WalkResult result = function.walk([&](arith::ConstantOp op) {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || !type.getElementType().isIntOrIndexOrFloat())
      return WalkResult::advance();
    double bytes = type.getElementType().isIndex()
                       ? 8
                       : (type.getElementTypeBitWidth() + 7) / 8;
    for (int64_t size : type.getShape())
      bytes *= size;
    if (bytes <= largestBytes)
      return WalkResult::advance();
    op.emitError() << "a constant of type " << type
                   << " has more than 256 MiB: make it an argument";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// The C signature of a function on tensors, or an error at the function.
static FailureOr<AbiAttr> computeAbi(func::FuncOp function,
                                     func::ReturnOp terminator) {
  MLIRContext *context = function.getContext();
  SizeAnalysis analysis(function);
  auto emitError = [&] { return function.emitError(); };
  DenseMap<int64_t, int64_t> sizeOfClass;
  SmallVector<int64_t> sizes;

  auto createArg = [&](StringAttr name, std::string fallback, Type type,
                       Value value, bool isResult) -> FailureOr<ArgAttr> {
    SmallVector<int64_t> argSizes;
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      for (int64_t dim = 0; dim < tensor.getRank(); ++dim) {
        if (!tensor.isDynamicDim(dim))
          continue;
        int64_t sizeClass = analysis.getClass(value, dim);
        auto [entry, inserted] = sizeOfClass.insert({sizeClass, sizes.size()});
        argSizes.push_back(entry->second);
        if (!inserted)
          continue;
        std::optional<unsigned> scalar = analysis.getScalarArgument(sizeClass);
        if (isResult && !scalar)
          return emitError() << "size " << dim << " of result " << type
                             << " does not follow from the arguments";
        // An input's own size is always passed: only so can a caller who
        // disagrees with the scalar be told.
        sizes.push_back(scalar && isResult ? int64_t{*scalar} : -1);
      }
    }
    StringRef chosen = name ? name.getValue() : StringRef(fallback);
    auto arg = ArgAttr::getChecked(emitError, context, chosen, type,
                                   ArrayRef<int64_t>(argSizes));
    if (!arg)
      return failure();
    return arg;
  };

  SmallVector<ArgAttr> inputs, outputs;
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    FailureOr<ArgAttr> arg =
        createArg(function.getArgAttrOfType<StringAttr>(
                      number, PosencDialect::kNameAttrName),
                  "in" + std::to_string(number), argument.getType(), argument,
                  /*isResult=*/false);
    if (failed(arg))
      return failure();
    inputs.push_back(*arg);
  }
  SmallVector<int64_t> inPlace;
  for (auto [number, value] : llvm::enumerate(terminator.getOperands())) {
    FailureOr<ArgAttr> arg =
        createArg(function.getResultAttrOfType<StringAttr>(
                      number, PosencDialect::kNameAttrName),
                  "out" + std::to_string(number), value.getType(), value,
                  /*isResult=*/true);
    if (failed(arg))
      return failure();
    outputs.push_back(*arg);

    inPlace.push_back(findPartner(value, *arg, inputs));
  }
  SmallVector<BoundAttr> bounds =
      findIndexBounds(function, analysis, sizeOfClass);
  auto abi = AbiAttr::getChecked(emitError, context, ArrayRef(inputs),
                                 ArrayRef(outputs), ArrayRef(sizes),
                                 ArrayRef(inPlace), ArrayRef(bounds));
  if (!abi)
    return failure();
  return abi;
}

/// Lets the operation that produces `value` write to `destination` itself. What
/// caches hold is copied there first.
static void writeInto(RewriterBase &rewriter, Value value, Value destination) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  auto result = dyn_cast<OpResult>(value);
  auto dps = result ? dyn_cast<DestinationStyleOpInterface>(result.getOwner())
                    : nullptr;
  if (!dps)
    return;
  OpOperand *init = dps.getTiedOpOperand(result);
  auto positional = dyn_cast<PositionalOpInterface>(result.getOwner());
  bool isEmpty = init->get().getDefiningOp<tensor::EmptyOp>() != nullptr;
  bool isRead = !positional || positional.readsDestinations();
  if (isRead && !isEmpty && !isa<KvAppendOp>(result.getOwner()))
    return;
  rewriter.setInsertionPoint(dps);
  Value typed = destination;
  if (typed.getType() != init->get().getType())
    typed = tensor::CastOp::create(rewriter, dps.getLoc(),
                                   init->get().getType(), typed);
  if (isRead && !isEmpty)
    typed = linalg::CopyOp::create(rewriter, dps.getLoc(), init->get(), typed)
                .getResult(0);
  rewriter.modifyOpInPlace(dps, [&] { init->set(typed); });
}

static LogicalResult createKernel(RewriterBase &rewriter,
                                  func::FuncOp function) {
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitError("a kernel has no control flow");
  auto terminator =
      dyn_cast<func::ReturnOp>(function.getBody().front().getTerminator());
  if (!terminator)
    return function.emitError("a kernel ends with a return");
  if (failed(checkConstants(function)))
    return failure();
  FailureOr<AbiAttr> abi = computeAbi(function, terminator);
  if (failed(abi))
    return failure();

  Location loc = function.getLoc();
  // Inputs are read only: bufferization must not take one for scratch memory.
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (isa<RankedTensorType>(function.getArgument(i).getType()))
      function.setArgAttr(
          i, bufferization::BufferizationDialect::kWritableAttrName,
          rewriter.getBoolAttr(false));
  SmallVector<Value> destinations;
  for (Type type : function.getResultTypes()) {
    MemRefType memref = getKernelMemRefType(cast<RankedTensorType>(type));
    if (failed(function.insertArgument(function.getNumArguments(), memref, {},
                                       loc)))
      return failure();
    destinations.push_back(function.getArguments().back());
  }

  llvm::SmallPtrSet<Value, 4> written;
  for (auto [value, destination] :
       llvm::zip_equal(terminator.getOperands(), destinations)) {
    rewriter.setInsertionPointToStart(&function.getBody().front());
    Value tensor = bufferization::ToTensorOp::create(
        rewriter, loc, value.getType(), destination, /*restrict=*/true,
        /*writable=*/true);
    if (written.insert(value).second)
      writeInto(rewriter, value, tensor);
    rewriter.setInsertionPoint(terminator);
    auto materialize = bufferization::MaterializeInDestinationOp::create(
        rewriter, terminator.getLoc(), value, destination);
    materialize.setRestrict(true);
    materialize.setWritable(true);
  }
  rewriter.modifyOpInPlace(terminator,
                           [&] { terminator->setOperands(ValueRange()); });
  llvm::BitVector all(function.getNumResults(), true);
  if (failed(function.eraseResults(all)))
    return failure();
  function->setAttr(PosencDialect::kAbiAttrName, *abi);
  return success();
}

namespace {
struct CreateKernels final
    : mlir::posenc::impl::PosencCreateKernelsPassBase<CreateKernels> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    llvm::SmallPtrSet<Attribute, 8> called;
    if (auto uses = SymbolTable::getSymbolUses(&getOperation().getBodyRegion()))
      for (SymbolTable::SymbolUse use : *uses)
        called.insert(use.getSymbolRef().getRootReference());
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!function.isPublic() || function.isExternal() ||
          function->hasAttr(PosencDialect::kAbiAttrName))
        continue;
      if (called.contains(function.getSymNameAttr())) {
        function.emitError("a kernel cannot be called by other functions: make "
                           "this one private");
        return signalPassFailure();
      }
      if (failed(createKernel(rewriter, function)))
        return signalPassFailure();
    }
  }
};
} // namespace
