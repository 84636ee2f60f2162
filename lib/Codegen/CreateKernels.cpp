//===- CreateKernels.cpp - kernels with output arguments and C signatures -===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/SizeSignature.h"

#include "posenc/ABI/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Names.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCCREATEKERNELSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Returns the operand that the result may overwrite, or null: the input of a
/// rotation, which reads each row before it writes it, or the cache of a
/// kv_append.
static OpOperand *getInPlaceOperand(OpResult result) {
  Operation *op = result.getOwner();
  if (isa<RopeOp, RotateOp>(op))
    return &op->getOpOperand(result.getResultNumber());
  if (auto append = dyn_cast<KvAppendOp>(op))
    return append.getTiedOpOperand(result);
  return nullptr;
}

/// Returns the index of the input that an elementwise result may overwrite, or
/// -1.
static int64_t findElementwiseInput(linalg::LinalgOp op, ArgAttr output,
                                    ArrayRef<ArgAttr> inputs) {
  for (Value operand : op.getDpsInputs()) {
    auto input = dyn_cast<BlockArgument>(operand);
    if (input && isa<FunctionOpInterface>(input.getOwner()->getParentOp()) &&
        inputs[input.getArgNumber()].getType() == output.getType() &&
        inputs[input.getArgNumber()].getSizes() == output.getSizes() &&
        canWriteOver(op, input))
      return input.getArgNumber();
  }
  return -1;
}

/// Returns the index of the input that `output`, with the value `value`, may
/// overwrite, or -1. The input must have the type and sizes of the output and
/// no other readers.
static int64_t findOverwrittenInput(Value value, ArgAttr output,
                                    ArrayRef<ArgAttr> inputs) {
  auto result = dyn_cast<OpResult>(value);
  if (auto op = value.getDefiningOp<linalg::LinalgOp>())
    return findElementwiseInput(op, output, inputs);
  OpOperand *source = result ? getInPlaceOperand(result) : nullptr;
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

/// Emits an error for a splat of more than 256 MiB, which takes the memory of
/// all its elements. Other constants are as large as the input.
static LogicalResult checkConstants(func::FuncOp function) {
  constexpr double maxBytes = 256 << 20;
  WalkResult result = function.walk([&](arith::ConstantOp op) {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || !isa<SplatElementsAttr>(op.getValue()) ||
        !type.getElementType().isIntOrIndexOrFloat())
      return WalkResult::advance();
    double bytes = type.getElementType().isIndex()
                       ? 8
                       : (type.getElementTypeBitWidth() + 7) / 8;
    for (int64_t size : type.getShape())
      bytes *= size;
    if (bytes <= maxBytes)
      return WalkResult::advance();
    op.emitError() << "a constant of type " << type
                   << " has more than 256 MiB of equal elements: make it an "
                      "argument";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Replaces destinations that are function inputs, but whose elements are not
/// read, by empty tensors. Only the shapes of such inputs are then used.
static void detachUnreadInits(RewriterBase &rewriter, func::FuncOp function) {
  function.walk([&](DestinationStyleOpInterface dps) {
    for (OpOperand &init : dps.getDpsInitsMutable()) {
      Value root = init.get();
      while (auto cast = root.getDefiningOp<tensor::CastOp>())
        root = cast.getSource();
      auto type = dyn_cast<RankedTensorType>(init.get().getType());
      auto argument = dyn_cast<BlockArgument>(root);
      if (!type || !argument ||
          argument.getOwner() != &function.getBody().front() ||
          !isUnreadInit(dps, init))
        continue;
      rewriter.setInsertionPoint(dps);
      SmallVector<OpFoldResult> sizes =
          tensor::getMixedSizes(rewriter, dps.getLoc(), init.get());
      Value empty = tensor::EmptyOp::create(rewriter, dps.getLoc(), sizes,
                                            type.getElementType());
      if (empty.getType() != type)
        empty = tensor::CastOp::create(rewriter, dps.getLoc(), type, empty);
      rewriter.modifyOpInPlace(dps, [&] { init.set(empty); });
    }
  });
}

/// Whether only the sizes of a tensor are read, and none of its elements.
static bool isOnlyShapeRead(Value tensor) {
  return llvm::all_of(tensor.getUsers(), [](Operation *user) {
    auto cast = dyn_cast<tensor::CastOp>(user);
    return isa<tensor::DimOp>(user) || (cast && isOnlyShapeRead(cast));
  });
}

/// Makes the names of sizes unique: appends underscores to a name that an
/// argument or another size already has.
static SmallVector<StringAttr> makeUnique(MLIRContext *context,
                                          ArrayRef<std::string> names,
                                          ArrayRef<ArgAttr> inputs,
                                          ArrayRef<ArgAttr> outputs) {
  llvm::StringSet<> taken;
  for (ArgAttr arg : llvm::concat<const ArgAttr>(inputs, outputs))
    taken.insert(arg.getName());
  SmallVector<StringAttr> unique;
  for (std::string name : names) {
    while (!taken.insert(name).second)
      name += "_";
    unique.push_back(StringAttr::get(context, name));
  }
  return unique;
}

/// Whether an index of a read is a loop of the linalg operation around it that
/// does not run beyond the static size of this dimension.
static bool isLoopWithin(tensor::ExtractOp read, unsigned dim) {
  auto index = read.getIndices()[dim].getDefiningOp<linalg::IndexOp>();
  auto op = dyn_cast<linalg::LinalgOp>(read->getParentOp());
  auto type = dyn_cast<RankedTensorType>(read.getTensor().getType());
  if (!index || !op || !type || type.isDynamicDim(dim))
    return false;
  int64_t range = op.getStaticLoopRanges()[index.getDim()];
  return !ShapedType::isDynamic(range) && range <= type.getDimSize(dim);
}

/// Clamps the indices of a read to its tensor, which is not empty. Entry points
/// reject out-of-bounds indices in inputs; this covers indices that are
/// computed, and inputs in GPU memory.
static void clampIndices(tensor::ExtractOp read) {
  Location loc = read.getLoc();
  OpBuilder sizes(read.getContext()), builder(read);
  sizes.setInsertionPointAfterValue(read.getTensor());
  Value zero = arith::ConstantIndexOp::create(sizes, loc, 0);
  Value one = arith::ConstantIndexOp::create(sizes, loc, 1);
  for (auto [dim, index] : llvm::enumerate(read.getIndicesMutable())) {
    if (matchPattern(index.get(), m_Constant()) || isLoopWithin(read, dim))
      continue;
    Value size = sizes.createOrFold<tensor::DimOp>(loc, read.getTensor(), dim);
    Value last = sizes.createOrFold<arith::SubIOp>(loc, size, one);
    Value clamped = arith::MaxSIOp::create(
        builder, loc, arith::MinSIOp::create(builder, loc, index.get(), last),
        zero);
    index.set(clamped);
  }
}

/// Computes the C signature of a function on tensors. Emits an error if it has
/// none.
static FailureOr<AbiAttr> computeAbi(func::FuncOp function,
                                     func::ReturnOp terminator) {
  MLIRContext *context = function.getContext();
  auto emitError = [&] { return function.emitError(); };
  // Types that the C interface does not support are rejected first, as the
  // analysis of sizes handles operations on tensors only.
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(),
                                            function.getResultTypes())) {
    auto shaped = dyn_cast<ShapedType>(type);
    if (shaped && shaped.getElementType().isUnsignedInteger())
      return emitError() << "type " << type
                         << " is not supported: expected i8 with '"
                         << kUnsignedAttrName << "' for u8";
    int64_t numSizes =
        shaped && shaped.hasRank() ? shaped.getNumDynamicDims() : 0;
    SmallVector<int64_t> sizes(numSizes, 0);
    if (!ArgAttr::getChecked(emitError, context, StringRef("argument"), type,
                             ArrayRef<int64_t>(sizes), StringAttr()))
      return failure();
  }
  SizeAnalysis analysis(function);
  if (failed(analysis.run()))
    return failure();
  for (tensor::ExtractOp read : analysis.getUnprovenReads())
    clampIndices(read);
  SizeSignature sizes(analysis, context);
  SmallVector<std::string> sizeNames;

  auto createArg = [&](StringAttr name, std::string fallback, Attribute u8,
                       Value value, bool isResult) -> FailureOr<ArgAttr> {
    SmallVector<int64_t> argSizes;
    Type type = value.getType();
    if (u8) {
      RankedTensorType codes = getUnsignedType(type);
      if (!codes)
        return emitError() << "'" << kUnsignedAttrName
                           << "' needs a tensor of i8, got " << type;
      type = codes;
    }
    StringRef chosen = name ? name.getValue() : StringRef(fallback);
    ArrayAttr givenNames;
    if (auto argument = dyn_cast<BlockArgument>(value);
        argument && !isResult &&
        isa<FunctionOpInterface>(argument.getOwner()->getParentOp()))
      givenNames = function.getArgAttrOfType<ArrayAttr>(
          argument.getArgNumber(), PosencDialect::kSizesAttrName);
    auto tensor = dyn_cast<RankedTensorType>(type);
    for (int64_t dim = 0, rank = tensor ? tensor.getRank() : 0; dim < rank;
         ++dim) {
      if (!tensor.isDynamicDim(dim))
        continue;
      std::optional<int64_t> size = isResult ? sizes.addResultSize(value, dim)
                                             : sizes.addInputSize(value, dim);
      if (!size)
        return emitError() << "cannot compute size " << dim << " of result "
                           << type << " from the arguments";
      size_t number = argSizes.size();
      argSizes.push_back(*size);
      if (*size < static_cast<int64_t>(sizeNames.size()))
        continue;
      sizeNames.push_back(givenNames && number < givenNames.size()
                              ? cast<StringAttr>(givenNames[number]).str()
                              : (chosen + "_dim" + Twine(dim)).str());
    }
    StringAttr layout;
    if (auto argument = dyn_cast<BlockArgument>(value); argument && !isResult)
      layout = function.getArgAttrOfType<StringAttr>(
          argument.getArgNumber(), PosencDialect::kLayoutAttrName);
    auto arg = ArgAttr::getChecked(emitError, context, chosen, type,
                                   ArrayRef<int64_t>(argSizes), layout);
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
                  "in" + std::to_string(number),
                  function.getArgAttr(number, kUnsignedAttrName), argument,
                  /*isResult=*/false);
    if (failed(arg))
      return failure();
    inputs.push_back(*arg);
  }
  SmallVector<int64_t> inPlace;
  // The number of a failed assertion is no output of the entry points.
  ValueRange results(terminator.getOperands());
  results = results.drop_back(getKernelConfig(function).assertions ? 1 : 0);
  for (auto [number, value] : llvm::enumerate(results)) {
    if (!isa<RankedTensorType>(value.getType()))
      return emitError() << "result #" << number << " is " << value.getType()
                         << ", expected a ranked tensor: a kernel writes its "
                            "results to memory";
    FailureOr<ArgAttr> arg =
        createArg(function.getResultAttrOfType<StringAttr>(
                      number, PosencDialect::kNameAttrName),
                  "out" + std::to_string(number),
                  function.getResultAttr(number, kUnsignedAttrName), value,
                  /*isResult=*/true);
    if (failed(arg))
      return failure();
    outputs.push_back(*arg);

    int64_t input = findOverwrittenInput(value, *arg, inputs);
    // Two outputs cannot both overwrite one input.
    inPlace.push_back(llvm::is_contained(inPlace, input) ? -1 : input);
  }
  sizes.finish(inputs.size());
  auto abi = AbiAttr::getChecked(
      emitError, context, ArrayRef(inputs), ArrayRef(outputs), sizes.getSizes(),
      ArrayRef(inPlace), /*shapeOnly=*/ArrayRef<int64_t>(), sizes.getBounds(),
      ArrayRef(makeUnique(context, sizeNames, inputs, outputs)),
      sizes.getTerms(), sizes.getRelations());
  if (!abi)
    return failure();
  return abi;
}

/// Returns the signature with the inputs marked of which the function reads
/// only the shape.
static AbiAttr addShapeOnly(AbiAttr abi, func::FuncOp function) {
  SmallVector<int64_t> shapeOnly;
  for (auto [number, input] : llvm::enumerate(abi.getInputs()))
    if (isa<RankedTensorType>(input.getType()) && !abi.hasSizesOf(number) &&
        isOnlyShapeRead(function.getArgument(number)))
      shapeOnly.push_back(number);
  return AbiAttr::get(abi.getContext(), abi.getInputs(), abi.getOutputs(),
                      abi.getSizes(), abi.getInPlace(), shapeOnly,
                      abi.getBounds(), abi.getSizeNames(), abi.getTerms(),
                      abi.getRelations());
}

/// Sets the function's documentation for the C header to the names of its
/// operations, unless the function has documentation.
static void addDoc(func::FuncOp function) {
  if (function->hasAttr(PosencDialect::kDocAttrName))
    return;
  SmallVector<std::string> names;
  for (Operation &op : function.front().without_terminator()) {
    // Lists posenc and linalg operations only, not shape computations and
    // checks.
    if (!isa<PosencDialect, linalg::LinalgDialect>(op.getDialect()))
      continue;
    auto [dialect, mnemonic] = op.getName().getStringRef().split('.');
    std::string name = (dialect + " " + mnemonic).str();
    if (!llvm::is_contained(names, name))
      names.push_back(std::move(name));
  }
  constexpr size_t kMaxNames = 8;
  if (names.empty() || names.size() > kMaxNames)
    return;
  std::string doc = "Computes " + names.front();
  for (const std::string &name : ArrayRef(names).drop_front())
    doc += (name == names.back() ? " and " : ", ") + name;
  function->setAttr(PosencDialect::kDocAttrName,
                    StringAttr::get(function.getContext(), doc + "."));
}

/// Makes the producer of `value` write to `destination` directly. For a
/// kv_append, the contents of the cache are copied to the destination first.
static void writeInto(RewriterBase &rewriter, Value value, Value destination) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  auto result = dyn_cast<OpResult>(value);
  auto dps = result ? dyn_cast<DestinationStyleOpInterface>(result.getOwner())
                    : nullptr;
  if (!dps)
    return;
  OpOperand *init = dps.getTiedOpOperand(result);
  bool isEmpty = init->get().getDefiningOp<tensor::EmptyOp>() != nullptr;
  bool isRead = !isUnreadInit(dps, *init);
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

/// Whether a function needs a workspace argument because its buffers may exceed
/// the stack limit. This depends on its operations and the module's limit only,
/// so the C signature is the same for all targets and tunings.
static bool needsWorkspace(func::FuncOp function) {
  std::optional<int64_t> limit =
      getStackLimit(function->getParentOfType<ModuleOp>());
  // More than the tiles of attention take on any target, with any tuning.
  constexpr int64_t maxTileBytes = int64_t{1} << 20;
  if (!limit || *limit >= maxTileBytes)
    return false;
  return function.walk([](AttentionOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

static LogicalResult createKernel(RewriterBase &rewriter,
                                  func::FuncOp function) {
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitError("expected a function with a single block");
  auto terminator =
      dyn_cast<func::ReturnOp>(function.getBody().front().getTerminator());
  if (!terminator)
    return function.emitError("expected a function that ends with func.return");
  if (failed(checkConstants(function)))
    return failure();
  FailureOr<AbiAttr> abi = computeAbi(function, terminator);
  if (failed(abi))
    return failure();

  Location loc = function.getLoc();
  // Inputs are read-only: bufferization must not write to them.
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
  detachUnreadInits(rewriter, function);
  function->setAttr(PosencDialect::kAbiAttrName, addShapeOnly(*abi, function));
  if (needsWorkspace(function))
    updateKernelConfig(function, &KernelConfig::hasWorkspace, true);
  return success();
}

/// Removes the result that says which assertion fails, and what computes it.
static void dropAssertions(RewriterBase &rewriter, func::FuncOp function) {
  if (!getKernelConfig(function).assertions)
    return;
  Operation *terminator = function.front().getTerminator();
  unsigned last = function.getNumResults() - 1;
  terminator->eraseOperand(last);
  llvm::BitVector dropped(function.getNumResults());
  dropped.set(last);
  (void)function.eraseResults(dropped);
  updateKernelConfig(function, &KernelConfig::assertions, ArrayAttr());
  (void)runRegionDCE(rewriter, function->getRegions());
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
    bool areNew = getKernels(getOperation()).empty();
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!function.isPublic() || function.isExternal() || getAbi(function))
        continue;
      if (called.contains(function.getSymNameAttr())) {
        function.emitError("a kernel cannot be called by other functions: make "
                           "this function private");
        return signalPassFailure();
      }
      addDoc(function);
      if (!assertions)
        dropAssertions(rewriter, function);
      if (failed(createKernel(rewriter, function)))
        return signalPassFailure();
    }
    // Erases assertions: entry points make these checks for the whole call,
    // including the functions that a kernel calls.
    if (areNew)
      getOperation().walk(
          [&](cf::AssertOp assertion) { rewriter.eraseOp(assertion); });
  }
};
} // namespace
