//===- EmitPacked.cpp - packed calling convention of kernels --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CInterfaceEmitter.h"
#include "posenc/ABI/CInterface.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/kernel/CallLayout.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::posenc;

/// Kernels with more parameters read them from the words of a call. LLVM's time
/// grows with the square of the parameters, and each task copies them to the
/// stack.
static constexpr size_t kMaxParameters = 256;

/// Returns the argument types of a kernel in the LLVM dialect.
static SmallVector<Type> getKernelTypes(LLVM::LLVMFuncOp kernel,
                                        const CallLayout &layout) {
  MLIRContext *context = kernel.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context);
  Type i64 = IntegerType::get(context, 64);
  SmallVector<Type> types;
  for (auto [number, arg] : llvm::enumerate(layout.getArguments())) {
    if (RankedTensorType tensor = layout.getTensor(number)) {
      types.append({pointer, pointer});
      types.append(1 + 2 * tensor.getRank(), i64);
    } else {
      types.push_back(arg.getType().isIndex() ? i64 : arg.getType());
    }
  }
  const KernelConfig &config = layout.getConfig();
  if (config.assertions)
    types.append({pointer, pointer, i64});
  size_t numBuffers = config.isMeasured + (config.sharedBytes ? 1 : 0) +
                      config.scratchBytes.size() +
                      (config.phases.empty() ? 0 : 1);
  for (size_t i = 0; i < numBuffers; ++i) {
    types.append({pointer, pointer});
    types.append(3, i64);
  }
  if (config.hasTasks)
    types.append(2, i64);
  if (config.hasLaunches)
    types.push_back(i64);
  return types;
}

std::string CInterfaceEmitter::getSymbol(LLVM::LLVMFuncOp kernel,
                                         unsigned variant) {
  return isGpu ? getGpuKernelSymbol(kernel.getName())
               : getKernelSymbol(kernel.getName(), variant);
}

LogicalResult CInterfaceEmitter::check(LLVM::LLVMFuncOp kernel,
                                       const CallLayout &layout) {
  StringRef name = kernel.getName();
  const KernelConfig &config = layout.getConfig();
  if (isGpu && config.assertions)
    return kernel.emitError()
           << "assertions on elements of tensors are supported on CPUs only; "
              "posenc-compile --assert=drop leaves them out";
  if (ArgAttr input = isGpu ? layout.getAbi().getSizeElement() : nullptr)
    return kernel.emitError()
           << "sizes that depend on the element of '" << input.getName()
           << "' are supported on CPUs only";
  if (!llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    return kernel.emitError() << "'" << name << "' is not a C identifier";
  if (name == kMetadataName || name == kSetParallelForName ||
      name == kVulkanCodeName || name == kWeightsOpenName)
    return kernel.emitError()
           << "'" << name << "' is a reserved name of the library: rename the "
           << "function";
  if (kernel.isExternal() || kernel.isVarArg() ||
      !isa<LLVM::LLVMVoidType>(kernel.getFunctionType().getReturnType()) ||
      kernel.getArgumentTypes() !=
          ArrayRef<Type>(getKernelTypes(kernel, layout)))
    return kernel.emitError()
           << "type " << kernel.getFunctionType()
           << " is not that of a kernel with the signature " << layout.getAbi();
  if (config.sharedBytes > kSharedBytes && !config.hasWorkspace)
    return kernel.emitError()
           << "the tasks of a kernel can share at most "
           << int64_t{kSharedBytes} << " bytes without a workspace, got "
           << config.sharedBytes;
  for (auto [number, arg] : llvm::enumerate(layout.getArguments())) {
    RankedTensorType tensor = layout.getTensor(number);
    if (tensor && !getStaticBytes(tensor))
      return kernel.emitError() << "size of '" << arg.getName() << "' of type "
                                << arg.getType() << " overflows 2^63 bytes";
  }
  return success();
}

/// Clones the operations that compute `value` from `words` for a kernel that
/// has the words as `kernelWords`.
static Value cloneFromWords(OpBuilder &builder, Value value, Value words,
                            Value kernelWords) {
  if (value == words)
    return kernelWords;
  IRMapping mapping;
  for (Value operand : value.getDefiningOp()->getOperands())
    mapping.map(operand, cloneFromWords(builder, operand, words, kernelWords));
  Operation *op = builder.clone(*value.getDefiningOp(), mapping);
  // No kernel writes the words of its arguments.
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    load.setInvariant(true);
  return op->getResult(0);
}

/// Replaces the first parameters of the kernel, for which `operands` are
/// computed from `words` only, by the words. Each user computes its operands,
/// since LLVM would keep thousands of loads at the beginning of the kernel in
/// order, in a time that grows with their square.
static void passWords(LLVM::LLVMFuncOp kernel, SmallVector<Value> &operands,
                      size_t numReplaced, Value words) {
  Block &body = kernel.getBody().front();
  OpBuilder builder(kernel.getContext());
  Value kernelWords = body.insertArgument(0u, words.getType(), kernel.getLoc());
  for (size_t number = 0; number < numReplaced; ++number) {
    BlockArgument parameter = body.getArgument(1 + number);
    SetVector<Operation *> users(parameter.user_begin(), parameter.user_end());
    for (Operation *user : users) {
      builder.setInsertionPoint(user);
      user->replaceUsesOfWith(
          parameter,
          cloneFromWords(builder, operands[number], words, kernelWords));
    }
  }
  body.eraseArguments(1, numReplaced);
  SmallVector<Type> types(body.getArgumentTypes());
  SmallVector<Attribute> attributes{builder.getDictionaryAttr({})};
  for (size_t number = numReplaced; number < operands.size(); ++number) {
    DictionaryAttr own = kernel.getArgAttrDict(number);
    attributes.push_back(own ? own : builder.getDictionaryAttr({}));
  }
  kernel.setFunctionType(LLVM::LLVMFunctionType::get(
      kernel.getFunctionType().getReturnType(), types));
  kernel.setArgAttrsAttr(builder.getArrayAttr(attributes));
  operands.erase(operands.begin(), operands.begin() + numReplaced);
  operands.insert(operands.begin(), words);
}

bool CInterfaceEmitter::isCalled(LLVM::LLVMFuncOp kernel) {
  if (!callees) {
    callees.emplace();
    module.walk([&](Operation *op) {
      if (auto call = dyn_cast<LLVM::CallOp>(op); call && call.getCallee())
        callees->insert(*call.getCallee());
      if (auto use = dyn_cast<LLVM::AddressOfOp>(op))
        callees->insert(use.getGlobalName());
    });
  }
  return callees->contains(kernel.getName());
}

void CInterfaceEmitter::emitPacked(LLVM::LLVMFuncOp kernel,
                                   const CallLayout &layout, unsigned variant) {
  Location loc = kernel.getLoc();
  LLVM::LLVMFuncOp packed =
      createFunction(getSymbol(kernel, variant) + ".packed", nothing,
                     {pointer, i64, i64}, LLVM::Linkage::Internal);
  Block *entry = packed.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  Value words = entry->getArgument(0);
  const KernelConfig &config = layout.getConfig();
  SmallVector<Value> operands;
  for (auto [number, arg] : llvm::enumerate(layout.getArguments())) {
    Value word = loadWord(loc, words, number);
    RankedTensorType tensor = layout.getTensor(number);
    if (!tensor) {
      Type type = arg.getType();
      if (type.isInteger(32) || type.isF32())
        word = LLVM::TruncOp::create(builder, loc, i32, word);
      if (isa<FloatType>(type))
        word = LLVM::BitcastOp::create(builder, loc, type, word);
      operands.push_back(word);
      continue;
    }
    Value data = LLVM::IntToPtrOp::create(builder, loc, pointer, word);
    operands.append({data, data, constant(loc, 0)});
    for (auto [size, sizeWord] :
         llvm::zip_equal(tensor.getShape(), layout.getDimWords(number)))
      operands.push_back(sizeWord < 0 ? constant(loc, size)
                                      : loadWord(loc, words, sizeWord));
    int64_t stride = layout.getStridesWord(number);
    for (int64_t dim = 0; dim + 1 < tensor.getRank(); ++dim)
      operands.push_back(loadWord(loc, words, stride + dim));
    if (tensor.getRank() > 0)
      operands.push_back(constant(loc, 1));
  }
  size_t numArgumentOperands = operands.size();
  if (config.assertions) {
    Value status = getWordAddress(loc, words, layout.getStatusWord());
    operands.append({status, status, constant(loc, 0)});
  }
  auto addBuffer = [&](Value address, int64_t size) {
    Value data = LLVM::IntToPtrOp::create(builder, loc, pointer, address);
    operands.append(
        {data, data, constant(loc, 0), constant(loc, size), constant(loc, 1)});
  };
  // Marks the buffer noalias and aligned, as an alloca is.
  auto addOwnBuffer = [&](Value address, int64_t size) {
    unsigned argument = operands.size() + 1;
    kernel.setArgAttr(argument, LLVM::LLVMDialect::getNoAliasAttrName(),
                      builder.getUnitAttr());
    kernel.setArgAttr(argument, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(64));
    addBuffer(address, size);
  };
  // The size follows from the words of the call and is not read here.
  if (config.isMeasured)
    addOwnBuffer(loadWord(loc, words, layout.getMeasuredWord()), 0);
  if (int64_t bytes = config.sharedBytes) // of f32
    addBuffer(loadWord(loc, words, layout.getSharedWord()), bytes / 4);
  if (!config.scratchBytes.empty()) {
    Value task = entry->getArgument(1), total = constant(loc, 0);
    for (int64_t bytes : config.scratchBytes)
      total = LLVM::AddOp::create(builder, loc, total, constant(loc, bytes));
    Value address = LLVM::AddOp::create(
        builder, loc, loadWord(loc, words, layout.getScratchWord()),
        LLVM::MulOp::create(builder, loc, task, total));
    for (int64_t bytes : config.scratchBytes) {
      addOwnBuffer(address, bytes);
      address =
          LLVM::AddOp::create(builder, loc, address, constant(loc, bytes));
    }
  }
  if (!config.phases.empty())
    addBuffer(LLVM::PtrToIntOp::create(
                  builder, loc, i64,
                  getWordAddress(loc, words, layout.getPhaseWord())),
              1);
  if (config.hasTasks)
    operands.append({entry->getArgument(1), entry->getArgument(2)});
  // GPU kernels are not divided into tasks; the launcher is passed instead.
  if (config.hasLaunches)
    operands.push_back(entry->getArgument(1));
  if (operands.size() > kMaxParameters && !isCalled(kernel))
    passWords(kernel, operands, numArgumentOperands, words);
  LLVM::CallOp::create(builder, loc, kernel, operands);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  // The operands of replaced parameters are not used.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*entry)))
    if (isOpTriviallyDead(&op))
      op.erase();
  kernel->setAttr("no_inline", builder.getUnitAttr());
  emitKernel(kernel, config, variant, packed);
}

static_assert(int(TasksBy::Outputs) == kTasksByOutputs &&
              int(TasksBy::Inputs) == kTasksByInputs &&
              int(TasksBy::All) == kTasksByAll);

Type CInterfaceEmitter::getKernelType() {
  return LLVM::LLVMStructType::getLiteral(builder.getContext(),
                                          {pointer, i64, i64, pointer, i64});
}

void CInterfaceEmitter::emitKernel(LLVM::LLVMFuncOp kernel,
                                   const KernelConfig &config, unsigned variant,
                                   LLVM::LLVMFuncOp packed) {
  int64_t tasks = config.hasTasks ? int64_t(config.tasksBy) : kOneTask;
  SmallVector<int64_t> parallelPhases(
      llvm::divideCeil(config.phases.size(), 64));
  for (auto [number, isParallel] : llvm::enumerate(config.phases))
    parallelPhases[number / 64] |= uint64_t{isParallel} << number % 64;
  std::string symbol = getSymbol(kernel, variant);
  createTable(symbol + ".phases", parallelPhases);
  Location loc = kernel.getLoc();
  builder.setInsertionPointToEnd(module.getBody());
  // Entry points in another module refer to it by name; it becomes internal
  // after linking.
  auto global =
      LLVM::GlobalOp::create(builder, loc, getKernelType(), /*isConstant=*/true,
                             LLVM::Linkage::External, symbol, Attribute());
  builder.createBlock(&global.getInitializer());
  Value value = LLVM::UndefOp::create(builder, loc, global.getType());
  SmallVector<Value> fields{
      address(loc, packed.getName()), constant(loc, tasks),
      constant(loc, config.phases.size()), address(loc, symbol + ".phases"),
      constant(loc, config.isMeasured)};
  for (auto [number, field] : llvm::enumerate(fields))
    value = LLVM::InsertValueOp::create(builder, loc, value, field,
                                        ArrayRef<int64_t>{int64_t(number)});
  LLVM::ReturnOp::create(builder, loc, value);
}
