//===- EmitEntries.cpp - exported functions of a kernel library -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CInterfaceEmitter.h"
#include "posenc/ABI/CInterface.h"
#include "posenc/IR/KernelConfig.h"

using namespace mlir;
using namespace mlir::posenc;

LLVM::LLVMFuncOp CInterfaceEmitter::createFunction(StringRef name, Type result,
                                                   ArrayRef<Type> arguments,
                                                   LLVM::Linkage linkage) {
  builder.setInsertionPointToEnd(module.getBody());
  return LLVM::LLVMFuncOp::create(
      builder, module.getLoc(), name,
      LLVM::LLVMFunctionType::get(result, arguments), linkage);
}

Value CInterfaceEmitter::getWordAddress(Location loc, Value words,
                                        int64_t number) {
  return LLVM::GEPOp::create(
      builder, loc, pointer, i64, words,
      ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(number)));
}

Value CInterfaceEmitter::loadWord(Location loc, Value words, int64_t number) {
  return LLVM::LoadOp::create(builder, loc, i64,
                              getWordAddress(loc, words, number));
}

void CInterfaceEmitter::declareKernelSupport() {
  auto declare = [&](StringRef name, Type result, ArrayRef<Type> arguments) {
    createFunction(name, result, arguments, LLVM::Linkage::External);
  };
  declare(kGetOutputSizesSymbol, i32,
          {pointer, pointer, pointer, pointer, pointer, pointer, pointer, i64});
  if (isGpu) {
    declare(kLaunchCudaSymbol, i32,
            {pointer, pointer, pointer, pointer, pointer, i64, pointer, i64});
    declare(kLaunchVulkanSymbol, i32,
            {pointer, pointer, pointer, pointer, pointer, i64});
    declare(kLaunchFfiCudaSymbol, i32,
            {pointer, pointer, i32, pointer, pointer, pointer, pointer, i64});
    declare(kGetDeviceWorkspaceSymbol, i64, {pointer, pointer});
    builder.setInsertionPointToEnd(module.getBody());
    for (auto [symbol, type] : {std::pair(kCudaImagesSymbol, pointer),
                                std::pair(kNumCudaImagesSymbol, i64)})
      LLVM::GlobalOp::create(builder, module.getLoc(), type,
                             /*isConstant=*/true, LLVM::Linkage::External,
                             symbol, Attribute());
    return;
  }
  declare(kLaunchSymbol, i32, {pointer, pointer});
  declare(kLaunchTensorsSymbol, i32, {pointer, pointer, pointer, pointer, i64});
  declare(kLaunchFfiSymbol, i32,
          {pointer, pointer, i32, pointer, pointer, pointer, pointer});
  declare(kGetWorkspaceSymbol, i64, {pointer, pointer});
  declare(kSetParallelForSymbol, nothing, {pointer, pointer});
  declare(kRunSharedSymbol, nothing, {pointer, pointer});
  declare(kRunSmallSharedSymbol, nothing, {pointer, pointer});
}

SmallVector<Type>
CInterfaceEmitter::getArgumentTypes(const CallLayout &layout) {
  SmallVector<Type> types;
  for (auto [number, arg] : llvm::enumerate(layout.getArguments()))
    types.push_back(layout.getTensor(number)  ? pointer
                    : arg.getType().isIndex() ? i64
                                              : arg.getType());
  return types;
}

SmallVector<Value>
CInterfaceEmitter::createArgumentWords(Location loc, ValueRange arguments) {
  SmallVector<Value> words;
  for (Value value : arguments) {
    if (value.getType() == pointer)
      value = LLVM::PtrToIntOp::create(builder, loc, i64, value);
    if (auto type = dyn_cast<FloatType>(value.getType()))
      value = LLVM::BitcastOp::create(
          builder, loc, builder.getIntegerType(type.getWidth()), value);
    if (value.getType() == i32)
      value = LLVM::SExtOp::create(builder, loc, i64, value);
    words.push_back(value);
  }
  return words;
}

/// A fence, which is no instruction, follows this number of stores of
/// arguments. LLVM's scheduler compares all accesses between two fences with
/// each other.
static constexpr size_t kMaxOrderedStores = 512;

Value CInterfaceEmitter::createArray(Location loc, int64_t size,
                                     ValueRange words) {
  // The array has at least one element, so that it has an address.
  Value array = LLVM::AllocaOp::create(
      builder, loc, pointer, i64, constant(loc, std::max<int64_t>(size, 1)));
  for (auto [number, word] : llvm::enumerate(words)) {
    LLVM::StoreOp::create(builder, loc, word,
                          getWordAddress(loc, array, number));
    if ((number + 1) % kMaxOrderedStores == 0)
      LLVM::FenceOp::create(builder, loc, LLVM::AtomicOrdering::seq_cst,
                            "singlethread");
  }
  return array;
}

Value CInterfaceEmitter::getDescription(LLVM::LLVMFuncOp kernel) {
  return address(kernel.getLoc(), (kernel.getName() + ".description").str());
}

Value CInterfaceEmitter::createWords(LLVM::LLVMFuncOp kernel,
                                     const CallLayout &layout, ValueRange words,
                                     Value workspace) {
  Location loc = kernel.getLoc();
  Value result = createArray(loc, layout.getNumWords(), words);
  if (workspace)
    LLVM::StoreOp::create(builder, loc, workspace,
                          getWordAddress(loc, result, layout.getScratchWord()));
  return result;
}

Block *CInterfaceEmitter::createEntry(StringRef name, ArrayRef<Type> types,
                                      Type result) {
  LLVM::LLVMFuncOp entry = createFunction(name, result ? result : i32, types,
                                          LLVM::Linkage::External);
  Block *block = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  return block;
}

void CInterfaceEmitter::finishEntry(Location loc, StringRef launch,
                                    ValueRange operands) {
  auto call =
      LLVM::CallOp::create(builder, loc, TypeRange(i32), launch, operands);
  LLVM::ReturnOp::create(builder, loc, call.getResult());
}

void CInterfaceEmitter::emitPlainEntry(LLVM::LLVMFuncOp kernel,
                                       const CallLayout &layout) {
  Location loc = kernel.getLoc();
  ArrayRef<int64_t> sizes = layout.getAbi().getSizes();
  SmallVector<Type> types = getArgumentTypes(layout);
  size_t numArguments = types.size();
  types.append(llvm::count(sizes, -1), i64);
  bool hasWorkspace = getKernelConfig(kernel).hasWorkspace;
  if (hasWorkspace)
    types.push_back(pointer);
  Block *block = createEntry(getEntrySymbol(prefix, kernel.getName()), types);

  SmallVector<Value> words =
      createArgumentWords(loc, block->getArguments().take_front(numArguments));
  ArrayRef<BlockArgument> given =
      block->getArguments().drop_front(numArguments);
  for (int64_t size : sizes) {
    // The kernel support library computes derived sizes.
    words.push_back(size == -1  ? Value(given.front())
                    : size < -1 ? constant(loc, -1)
                                : words[size]);
    given = given.drop_front(size == -1);
  }
  finishEntry(loc, kLaunchSymbol,
              {getDescription(kernel),
               createWords(kernel, layout, words,
                           hasWorkspace ? Value(given.front()) : Value())});
}

void CInterfaceEmitter::emitWorkspaceEntry(LLVM::LLVMFuncOp kernel,
                                           const CallLayout &layout) {
  Location loc = kernel.getLoc();
  ArrayRef<int64_t> sizes = layout.getAbi().getSizes();
  SmallVector<Type> types(llvm::count(sizes, -1), i64);
  Block *block = createEntry(
      getEntrySymbol(prefix, kernel.getName(),
                     isGpu ? kCudaWorkspaceSuffix : kWorkspaceSuffix),
      types, /*result=*/i64);
  // Arguments, and sizes that are scalar inputs, are unknown here.
  SmallVector<Value> words(layout.getArguments().size(), constant(loc, 0));
  ArrayRef<BlockArgument> given = block->getArguments();
  for (int64_t size : sizes) {
    // Derived sizes are not passed.
    words.push_back(size == -1 ? Value(given.front())
                               : constant(loc, size < -1 ? -1 : 0));
    given = given.drop_front(size == -1);
  }
  auto bytes = LLVM::CallOp::create(
      builder, loc, TypeRange(i64),
      isGpu ? kGetDeviceWorkspaceSymbol : kGetWorkspaceSymbol,
      ValueRange{getDescription(kernel),
                 createWords(kernel, layout, words, /*workspace=*/nullptr)});
  LLVM::ReturnOp::create(builder, loc, bytes.getResult());
}

void CInterfaceEmitter::emitOutputSizesEntries(LLVM::LLVMFuncOp kernel,
                                               const CallLayout &layout) {
  Location loc = kernel.getLoc();
  auto emit = [&](StringRef suffix, ArrayRef<Type> types) {
    Block *block =
        createEntry(getEntrySymbol(prefix, kernel.getName(), suffix), types);
    SmallVector<Value> operands{
        getDescription(kernel),
        createWords(kernel, layout, {}, /*workspace=*/nullptr),
        createArray(loc, layout.getNumWords(), {})};
    llvm::append_range(operands, block->getArguments());
    return operands;
  };
  SmallVector<Value> operands = emit(kOutputSizesSuffix, {pointer, pointer});
  Value null = LLVM::ZeroOp::create(builder, loc, pointer);
  operands.insert(operands.end() - 1, null); // The values are unknown.
  operands.append({null, constant(loc, 0)});
  finishEntry(loc, kGetOutputSizesSymbol, operands);
  if (hasComputedShapes(layout.getAbi()))
    finishEntry(loc, kGetOutputSizesSymbol,
                emit(kOutputSizesByValuesSuffix,
                     {pointer, pointer, pointer, pointer, i64}));
}

SmallVector<Value> CInterfaceEmitter::beginTensorEntry(LLVM::LLVMFuncOp kernel,
                                                       const CallLayout &layout,
                                                       StringRef symbol,
                                                       bool hasWorkspace,
                                                       ArrayRef<Type> more) {
  Location loc = kernel.getLoc();
  SmallVector<Type> types = getArgumentTypes(layout);
  size_t numArguments = types.size();
  if (hasWorkspace)
    types.push_back(pointer);
  llvm::append_range(types, more);
  Block *block = createEntry(symbol, types);
  SmallVector<Value> words =
      createArgumentWords(loc, block->getArguments().take_front(numArguments));
  ArrayRef<BlockArgument> rest = block->getArguments().drop_front(numArguments);
  Value workspace = hasWorkspace ? Value(rest.front()) : Value();
  SmallVector<Value> operands{getDescription(kernel),
                              createArray(loc, words.size(), words),
                              createWords(kernel, layout, {}, workspace)};
  llvm::append_range(operands, rest.drop_front(hasWorkspace));
  return operands;
}

void CInterfaceEmitter::emitTensorEntry(LLVM::LLVMFuncOp kernel,
                                        const CallLayout &layout) {
  SmallVector<Value> operands = beginTensorEntry(
      kernel, layout, getEntrySymbol(prefix, kernel.getName(), kTensorSuffix),
      getKernelConfig(kernel).hasWorkspace, {pointer, i64});
  finishEntry(kernel.getLoc(), kLaunchTensorsSymbol, operands);
}

void CInterfaceEmitter::addImages(Location loc, SmallVector<Value> &operands) {
  operands.push_back(address(loc, kCudaImagesSymbol));
  operands.push_back(LLVM::LoadOp::create(builder, loc, i64,
                                          address(loc, kNumCudaImagesSymbol)));
}

void CInterfaceEmitter::emitCudaEntry(LLVM::LLVMFuncOp kernel,
                                      const CallLayout &layout) {
  SmallVector<Value> operands = beginTensorEntry(
      kernel, layout, getEntrySymbol(prefix, kernel.getName(), kCudaSuffix),
      getKernelConfig(kernel).hasWorkspace, {pointer, pointer, i64});
  addImages(kernel.getLoc(), operands);
  finishEntry(kernel.getLoc(), kLaunchCudaSymbol, operands);
}

SmallVector<Value> CInterfaceEmitter::beginFfiEntry(LLVM::LLVMFuncOp kernel,
                                                    const CallLayout &layout,
                                                    const llvm::Twine &symbol) {
  Location loc = kernel.getLoc();
  // handle, args, num_args, result
  Block *block = createEntry(symbol.str(), {pointer, pointer, i32, pointer});
  return {getDescription(kernel),
          block->getArgument(1),
          block->getArgument(2),
          block->getArgument(3),
          createArray(loc, layout.getArguments().size(), {}),
          createArray(loc, layout.getNumWords(), {})};
}

void CInterfaceEmitter::emitFfiCudaFunction(LLVM::LLVMFuncOp kernel,
                                            const CallLayout &layout,
                                            bool isEntry) {
  SmallVector<Value> operands =
      beginFfiEntry(kernel, layout,
                    isEntry ? getFfiEntrySymbol(prefix, kernel.getName())
                            : getFfiCudaSymbol(kernel.getName()));
  addImages(kernel.getLoc(), operands);
  finishEntry(kernel.getLoc(), kLaunchFfiCudaSymbol, operands);
}

void CInterfaceEmitter::emitVulkanEntry(LLVM::LLVMFuncOp kernel,
                                        const CallLayout &layout) {
  SmallVector<Value> operands = beginTensorEntry(
      kernel, layout, getEntrySymbol(prefix, kernel.getName(), kVulkanSuffix),
      /*hasWorkspace=*/false, {pointer, pointer, i64});
  finishEntry(kernel.getLoc(), kLaunchVulkanSymbol, operands);
}

void CInterfaceEmitter::emitFfiEntry(LLVM::LLVMFuncOp kernel,
                                     const CallLayout &layout, bool hasCuda) {
  Location loc = kernel.getLoc();
  std::string onCuda = getFfiCudaSymbol(kernel.getName());
  if (hasCuda)
    createFunction(onCuda, i32, {pointer, pointer, i32, pointer},
                   LLVM::Linkage::External);
  SmallVector<Value> operands = beginFfiEntry(
      kernel, layout, getFfiEntrySymbol(prefix, kernel.getName()));
  operands.push_back(hasCuda
                         ? address(loc, onCuda)
                         : Value(LLVM::ZeroOp::create(builder, loc, pointer)));
  finishEntry(loc, kLaunchFfiSymbol, operands);
}

void CInterfaceEmitter::emitMetadata(StringRef metadata) {
  Location loc = module.getLoc();
  createText(kMetadataSymbol, metadata.str() + '\0');
  LLVM::LLVMFuncOp function =
      createFunction(getEntrySymbol(prefix, kMetadataName), pointer, {},
                     LLVM::Linkage::External);
  builder.setInsertionPointToStart(function.addEntryBlock(builder));
  LLVM::ReturnOp::create(builder, loc, address(loc, kMetadataSymbol));
}

void CInterfaceEmitter::emitSetParallelFor() {
  Location loc = module.getLoc();
  LLVM::LLVMFuncOp function =
      createFunction(getEntrySymbol(prefix, kSetParallelForName), nothing,
                     {pointer, pointer}, LLVM::Linkage::External);
  Block *block = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  LLVM::CallOp::create(builder, loc, TypeRange(), kSetParallelForSymbol,
                       block->getArguments());
  LLVM::ReturnOp::create(builder, loc, ValueRange());
}

void CInterfaceEmitter::emitWeightsOpen() {
  Location loc = module.getLoc();
  LLVM::LLVMFuncOp open =
      createFunction(kOpenWeightsSymbol, i32, {pointer, pointer, pointer, i64},
                     LLVM::Linkage::External);
  LLVM::GlobalOp::create(builder, loc, pointer, /*isConstant=*/true,
                         LLVM::Linkage::External, kWeightsFileSymbol,
                         Attribute());
  Block *block = createEntry(getEntrySymbol(prefix, kWeightsOpenName),
                             {pointer, pointer, i64});
  SmallVector<Value> operands{address(loc, kWeightsFileSymbol)};
  llvm::append_range(operands, block->getArguments());
  finishEntry(loc, open.getSymName(), operands);
}
