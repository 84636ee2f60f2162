//===- LowerLaunches.cpp - launches to calls of the support library -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceFacts.h"
#include "DeviceWorkspace.h"
#include "PlanMemory.h"
#include "TensorMaps.h"

#include "posenc/ABI/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/IR/KernelConfig.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCLOWERLAUNCHESPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Must equal kMaxCudaDevices of the kernel support library.
static constexpr int64_t kMaxDevices = 64;

namespace {
/// Replaces the launches and device allocations of a module.
class LaunchLowering {
public:
  explicit LaunchLowering(ModuleOp module)
      : module(module), builder(module.getContext()), i64(builder.getI64Type()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  /// Must be called first. Fails if a launch cannot be lowered.
  LogicalResult checkLaunches();
  LogicalResult lower(func::FuncOp function);

private:
  void lower(gpu::LaunchFuncOp launch, Value call);
  /// Returns the address of the memory, an integer. `addresses` are those of
  /// earlier tensors.
  Value lower(const PlannedMemory &memory, ValueRange addresses, Value call);
  void lower(nvgpu::TmaCreateDescriptorOp op, Value call);
  void lower(func::CallOp query, Value call);
  SmallVector<Value> getParameters(gpu::LaunchFuncOp launch);
  Value emitArray(Location loc, ValueRange words);
  /// Returns the address of an element of an array.
  Value getElement(Location loc, Value array, Type type, size_t number) {
    return LLVM::GEPOp::create(builder, loc, pointer, type, array,
                               LLVM::GEPArg(static_cast<int32_t>(number)));
  }
  Value getKernel(StringRef name);

  Value constant(int64_t value) {
    return LLVM::ConstantOp::create(builder, module.getLoc(), i64, value);
  }
  Value widen(Value index) {
    return arith::IndexCastOp::create(builder, index.getLoc(), i64, index);
  }

  ModuleOp module;
  OpBuilder builder;
  Type i64, pointer;
  /// The largest dynamic shared memory among the launches of each kernel.
  llvm::StringMap<int64_t> maxSharedBytes;
  /// The addresses of the tensor maps that the host creates.
  DenseMap<Value, Value> maps;
};
} // namespace

/// Returns the dynamic shared memory of a launch in bytes; nullopt if it is not
/// a constant.
static std::optional<int64_t> getSharedBytes(gpu::LaunchFuncOp launch) {
  Value size = launch.getDynamicSharedMemorySize();
  return size ? getConstantIntValue(size) : 0;
}

/// Emits an error unless the tensor maps of a launch are created for it.
static LogicalResult checkOperands(gpu::LaunchFuncOp launch) {
  for (Value operand : launch.getKernelOperands())
    if (isa<nvgpu::TensorMapDescriptorType>(operand.getType()) &&
        !operand.getDefiningOp<nvgpu::TmaCreateDescriptorOp>())
      return launch.emitOpError("expected a tensor map that "
                                "nvgpu.tma.create.descriptor creates");
  return success();
}

LogicalResult LaunchLowering::checkLaunches() {
  WalkResult result = module.walk([](nvgpu::TmaCreateDescriptorOp op) {
    for (Operation *user : op->getUsers())
      if (!isa<gpu::LaunchFuncOp>(user)) {
        user->emitOpError("expected launches only as users of a tensor map");
        return WalkResult::interrupt();
      }
    return failed(checkTensorMap(op)) ? WalkResult::interrupt()
                                      : WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  result = module.walk([](memref::AllocOp memory) {
    auto function = memory->getParentOfType<func::FuncOp>();
    if (!function || !getAbi(function))
      return WalkResult::advance();
    std::optional<StringRef> obstacle = getWorkspaceObstacle(memory);
    if (!obstacle)
      return WalkResult::advance();
    memory.emitOpError("cannot be in the workspace of '")
        << function.getName() << "': " << *obstacle;
    return WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return failure();
  result = module.walk([&](gpu::LaunchFuncOp launch) {
    std::optional<int64_t> bytes = getSharedBytes(launch);
    if (!bytes || *bytes < 0) {
      launch.emitOpError("expected a constant size of dynamic shared memory, "
                         "since a device permits it to a kernel when the "
                         "kernel is loaded");
      return WalkResult::interrupt();
    }
    if (failed(checkOperands(launch)))
      return WalkResult::interrupt();
    int64_t &maxBytes = maxSharedBytes[launch.getKernelName()];
    maxBytes = std::max(maxBytes, *bytes);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Returns the kernel's parameters as `convert-gpu-to-nvvm` expands them: a
/// memref becomes two pointers, an offset, and a size and a stride per
/// dimension. A pointer among the values is that of a parameter itself.
SmallVector<Value> LaunchLowering::getParameters(gpu::LaunchFuncOp launch) {
  SmallVector<Value> words;
  for (Value operand : launch.getKernelOperands()) {
    Location loc = operand.getLoc();
    if (isa<MemRefType>(operand.getType())) {
      auto metadata =
          memref::ExtractStridedMetadataOp::create(builder, loc, operand);
      Value address = widen(memref::ExtractAlignedPointerAsIndexOp::create(
          builder, loc, operand));
      words.append({address, address, widen(metadata.getOffset())});
      for (Value value : metadata.getSizes())
        words.push_back(widen(value));
      for (Value value : metadata.getStrides())
        words.push_back(widen(value));
    } else if (Value map = maps.lookup(operand)) {
      words.push_back(map);
    } else if (operand.getType().isIndex()) {
      words.push_back(widen(operand));
    } else if (operand.getType() == i64) {
      words.push_back(operand);
    } else {
      words.push_back(arith::ExtSIOp::create(builder, loc, i64, operand));
    }
  }
  return words;
}

/// Creates the `struct GpuKernel` of a kernel: its name, its dynamic shared
/// memory and, for each device, the handle of the loaded kernel. Returns its
/// address.
Value LaunchLowering::getKernel(StringRef name) {
  std::string symbol = ("posenc.kernel." + name).str();
  Location loc = module.getLoc();
  if (!module.lookupSymbol(symbol)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(module.getBody());
    std::string text = name.str() + '\0';
    LLVM::GlobalOp::create(
        builder, loc,
        LLVM::LLVMArrayType::get(builder.getI8Type(), text.size()),
        /*isConstant=*/true, LLVM::Linkage::Internal, symbol + ".name",
        builder.getStringAttr(text));
    auto slots = LLVM::LLVMArrayType::get(i64, kMaxDevices);
    auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(),
                                                 {pointer, i64, slots});
    auto global = LLVM::GlobalOp::create(
        builder, loc, type,
        /*isConstant=*/false, LLVM::Linkage::Internal, symbol, Attribute());
    builder.createBlock(&global.getInitializer());
    Value value = LLVM::ZeroOp::create(builder, loc, type);
    value = LLVM::InsertValueOp::create(
        builder, loc, value,
        LLVM::AddressOfOp::create(builder, loc, pointer, symbol + ".name"),
        ArrayRef<int64_t>{0});
    value = LLVM::InsertValueOp::create(builder, loc, value,
                                        constant(maxSharedBytes.lookup(name)),
                                        ArrayRef<int64_t>{1});
    LLVM::ReturnOp::create(builder, loc, value);
  }
  return LLVM::AddressOfOp::create(builder, loc, pointer, symbol);
}

/// Stores integers to the stack; returns the address.
Value LaunchLowering::emitArray(Location loc, ValueRange words) {
  Value array = LLVM::AllocaOp::create(builder, loc, pointer, i64,
                                       constant(words.size()));
  for (auto [number, word] : llvm::enumerate(words))
    LLVM::StoreOp::create(builder, loc, word,
                          getElement(loc, array, i64, number));
  return array;
}

/// Returns the symbol of the support library that replaces a function which
/// host code asks about the device; an empty one for other functions.
static StringRef getQuerySymbol(StringRef function) {
  return llvm::StringSwitch<StringRef>(function)
      .Case(kRunsOnFunction, kRunsOnSymbol)
      .Case(kMultiprocessorsFunction, kMultiprocessorsSymbol)
      .Default("");
}

/// Lowers a question about the device, whose answer is an i64 or an i1.
void LaunchLowering::lower(func::CallOp query, Value call) {
  Location loc = query.getLoc();
  builder.setInsertionPoint(query);
  SmallVector<Value> arguments{call};
  llvm::append_range(arguments, query.getOperands());
  Value answer =
      LLVM::CallOp::create(builder, loc, TypeRange(i64),
                           getQuerySymbol(query.getCallee()), arguments)
          .getResult();
  Type type = query.getResultTypes().front();
  if (type != i64)
    answer = arith::TruncIOp::create(builder, loc, type, answer);
  query.replaceAllUsesWith(ValueRange(answer));
  query.erase();
}

/// Lowers the creation of a tensor map to a call that encodes it on the stack.
void LaunchLowering::lower(nvgpu::TmaCreateDescriptorOp op, Value call) {
  Location loc = op.getLoc();
  builder.setInsertionPoint(op);
  Value map = LLVM::AllocaOp::create(builder, loc, pointer, i64,
                                     constant(kTensorMapBytes / 8),
                                     kTensorMapAlignment);
  LLVM::CallOp::create(
      builder, loc, TypeRange(), kEncodeTensorMapSymbol,
      ValueRange{call, map, emitArray(loc, emitTensorMapWords(builder, op))});
  maps[op.getTensorMap()] = map;
}

void LaunchLowering::lower(gpu::LaunchFuncOp launch, Value call) {
  Location loc = launch.getLoc();
  builder.setInsertionPoint(launch);
  SmallVector<Value> words, addresses;
  for (Value parameter : getParameters(launch)) {
    bool isAddress = parameter.getType() == pointer;
    addresses.push_back(isAddress ? parameter : Value());
    if (!isAddress)
      words.push_back(parameter);
  }
  Value values = emitArray(loc, words);
  Value parameters = LLVM::AllocaOp::create(builder, loc, pointer, pointer,
                                            constant(addresses.size()));
  size_t numWords = 0;
  for (auto [number, address] : llvm::enumerate(addresses))
    LLVM::StoreOp::create(builder, loc,
                          address ? address
                                  : getElement(loc, values, i64, numWords++),
                          getElement(loc, parameters, pointer, number));
  LLVM::CallOp::create(
      builder, loc, TypeRange(), kEnqueueSymbol,
      ValueRange{call, getKernel(launch.getKernelName()),
                 widen(launch.getGridSizeX()), widen(launch.getBlockSizeX()),
                 constant(*getSharedBytes(launch)), parameters});
  launch.erase();
}

/// Lowers an allocation of device memory to a call, which returns the address
/// of a part of the workspace, or to a view of an earlier part.
Value LaunchLowering::lower(const PlannedMemory &memory, ValueRange addresses,
                            Value call) {
  memref::AllocOp alloc = memory.alloc;
  Location loc = alloc.getLoc();
  builder.setInsertionPoint(alloc);
  MemRefType type = alloc.getType();
  Value bytes = emitByteSize(builder, alloc);
  Value integer =
      memory.predecessor
          ? addresses[*memory.predecessor]
          : LLVM::CallOp::create(builder, loc, TypeRange(i64), kAllocateSymbol,
                                 ValueRange{call, bytes})
                .getResult();
  Value address = LLVM::IntToPtrOp::create(builder, loc, pointer, integer);
  // Builds the memref descriptor of the upstream conversion, which has no
  // public helper for it.
  auto one = LLVM::LLVMArrayType::get(i64, 1);
  Value descriptor = LLVM::PoisonOp::create(
      builder, loc,
      LLVM::LLVMStructType::getLiteral(builder.getContext(),
                                       {pointer, pointer, i64, one, one}));
  auto insert = [&](Value value, ArrayRef<int64_t> at) {
    descriptor =
        LLVM::InsertValueOp::create(builder, loc, descriptor, value, at);
  };
  insert(address, 0);
  insert(address, 1);
  insert(constant(0), 2);
  insert(bytes, {3, 0});
  insert(constant(1), {4, 0});
  auto flat = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
  Value all = UnrealizedConversionCastOp::create(builder, loc, flat, descriptor)
                  .getResult(0);
  Value begin = arith::ConstantIndexOp::create(builder, loc, 0);
  Value view = memref::ViewOp::create(builder, loc, type, all, begin,
                                      alloc.getDynamicSizes());
  alloc.replaceAllUsesWith(view);
  alloc.erase();
  return integer;
}

LogicalResult LaunchLowering::lower(func::FuncOp function) {
  SmallVector<gpu::LaunchFuncOp> launches;
  // Planned before operations are replaced, which decides when memory is in
  // use.
  SmallVector<PlannedMemory> memories = planMemory(function);
  SmallVector<nvgpu::TmaCreateDescriptorOp> descriptors;
  SmallVector<func::CallOp> queries;
  function.walk([&](func::CallOp query) {
    if (!getQuerySymbol(query.getCallee()).empty())
      queries.push_back(query);
  });
  function.walk([&](gpu::LaunchFuncOp launch) { launches.push_back(launch); });
  function.walk(
      [&](nvgpu::TmaCreateDescriptorOp op) { descriptors.push_back(op); });
  auto nothing = LLVM::LLVMVoidType::get(module.getContext());
  auto declare = [&](StringRef name, Type result, ArrayRef<Type> arguments) {
    if (module.lookupSymbol(name))
      return;
    builder.setInsertionPointToEnd(module.getBody());
    LLVM::LLVMFuncOp::create(builder, module.getLoc(), name,
                             LLVM::LLVMFunctionType::get(result, arguments));
  };
  declare(kEnqueueSymbol, nothing, {i64, pointer, i64, i64, i64, pointer});
  if (!descriptors.empty())
    declare(kEncodeTensorMapSymbol, nothing, {i64, pointer, pointer});
  for (func::CallOp query : queries)
    declare(getQuerySymbol(query.getCallee()), i64,
            SmallVector<Type>(1 + query.getNumOperands(), i64));
  if (!memories.empty())
    declare(kAllocateSymbol, i64, {i64, i64});
  // The last argument is the handle of the call that the launches belong to.
  if (failed(function.insertArgument(function.getNumArguments(), i64, {},
                                     function.getLoc())))
    return function.emitOpError("cannot take one more argument of type i64");
  updateKernelConfig(function, [&](KernelConfig &config) {
    config.hasLaunches = true;
    // Until now, it told whether the CPU's code needs a workspace.
    config.hasWorkspace = !memories.empty();
  });
  for (func::CallOp query : queries)
    lower(query, function.getArguments().back());
  for (nvgpu::TmaCreateDescriptorOp op : descriptors)
    lower(op, function.getArguments().back());
  for (gpu::LaunchFuncOp launch : launches)
    lower(launch, function.getArguments().back());
  for (nvgpu::TmaCreateDescriptorOp op : descriptors)
    op.erase();
  SmallVector<Value> addresses;
  for (const PlannedMemory &memory : memories)
    addresses.push_back(
        lower(memory, addresses, function.getArguments().back()));
  return success();
}

namespace {
struct LowerLaunches final
    : mlir::posenc::impl::PosencLowerLaunchesPassBase<LowerLaunches> {
  using Base::Base;

  void runOnOperation() override {
    for (Operation &op : *getOperation().getBody()) {
      auto symbol = dyn_cast<SymbolOpInterface>(op);
      if (!symbol || !symbol.getName().contains('.'))
        continue;
      op.emitError() << "symbol '" << symbol.getName()
                     << "' is reserved for the kernel support library; "
                        "rename it";
      return signalPassFailure();
    }
    LaunchLowering lowering(getOperation());
    if (failed(lowering.checkLaunches()))
      return signalPassFailure();
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (getAbi(function) && !getKernelConfig(function).hasLaunches &&
          failed(lowering.lower(function)))
        return signalPassFailure();
    // Calls of these have become calls of the support library.
    for (StringRef name : {kRunsOnFunction, kMultiprocessorsFunction})
      if (auto query = getOperation().lookupSymbol<func::FuncOp>(name))
        if (SymbolTable::symbolKnownUseEmpty(query, getOperation()))
          query.erase();
  }
};
} // namespace
