//===- EmitCInterface.cpp - the C entries of a kernel library ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is called in three steps. The entry `<prefix>_<function>` puts its
// arguments into an array of 64-bit words: the inputs, the outputs, the sizes.
// The prelude (lib/Target/Prelude) checks them against a constant description
// and hands chunks of the work to the threads. For each chunk it calls the
// packed form of the kernel, which unpacks the words into memref descriptors.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEMITCINTERFACEPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {

/// Emits the entries of a module, one function after the other.
class Emitter {
public:
  Emitter(ModuleOp module, StringRef prefix, uint64_t cpuFeatures)
      : module(module), builder(module.getBodyRegion()), prefix(prefix.str()),
        cpuFeatures(cpuFeatures),
        pointer(LLVM::LLVMPointerType::get(module.getContext())),
        i32(builder.getI32Type()), i64(builder.getI64Type()),
        nothing(LLVM::LLVMVoidType::get(module.getContext())) {}

  void declarePrelude();
  /// Emits an error unless the function has the arguments that its signature
  /// asks for.
  LogicalResult check(LLVM::LLVMFuncOp kernel, AbiAttr abi);
  void emitEntry(LLVM::LLVMFuncOp kernel, AbiAttr abi);
  void emitMetadata(StringRef metadata);
  void emitSetParallelFor();

private:
  SmallVector<Type> getKernelTypes(LLVM::LLVMFuncOp kernel, AbiAttr abi);
  LLVM::LLVMFuncOp createFunction(StringRef name, Type result,
                                  ArrayRef<Type> arguments,
                                  LLVM::Linkage linkage);
  Value constant(Location loc, int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, i64, value);
  }
  Value loadWord(Location loc, Value words, int64_t number);
  Value address(Location loc, StringRef symbol) {
    return LLVM::AddressOfOp::create(builder, loc, pointer, symbol);
  }
  LLVM::LLVMFuncOp emitPacked(LLVM::LLVMFuncOp kernel, AbiAttr abi);
  LLVM::GlobalOp emitDescription(LLVM::LLVMFuncOp kernel, AbiAttr abi);

  ModuleOp module;
  OpBuilder builder;
  std::string prefix;
  uint64_t cpuFeatures;
  Type pointer, i32, i64, nothing;
};

} // namespace

static bool isTensor(ArgAttr arg) {
  return isa<RankedTensorType>(arg.getType());
}

static SmallVector<ArgAttr> getArguments(AbiAttr abi) {
  SmallVector<ArgAttr> arguments(abi.getInputs());
  llvm::append_range(arguments, abi.getOutputs());
  return arguments;
}

/// The bytes of an element times the static sizes; nothing if no memory has as
/// many.
static std::optional<int64_t> getStaticBytes(RankedTensorType tensor) {
  if (llvm::is_contained(tensor.getShape(), 0))
    return 0;
  std::optional<int64_t> bytes = tensor.getElementType().isIndex()
                                     ? 8
                                     : tensor.getElementTypeBitWidth() / 8;
  for (int64_t size : tensor.getShape())
    if (bytes && !ShapedType::isDynamic(size))
      bytes = llvm::checkedMul(*bytes, size);
  return bytes;
}

/// The word that holds size `number`, behind inputs and outputs.
static int64_t getSizeWord(AbiAttr abi, int64_t number) {
  return abi.getInputs().size() + abi.getOutputs().size() + number;
}

LLVM::LLVMFuncOp Emitter::createFunction(StringRef name, Type result,
                                         ArrayRef<Type> arguments,
                                         LLVM::Linkage linkage) {
  builder.setInsertionPointToEnd(module.getBody());
  return LLVM::LLVMFuncOp::create(
      builder, module.getLoc(), name,
      LLVM::LLVMFunctionType::get(result, arguments), linkage);
}

void Emitter::declarePrelude() {
  createFunction(kLaunchSymbol, i32, {pointer, pointer, pointer},
                 LLVM::Linkage::External);
  createFunction(kSetParallelForSymbol, nothing, {pointer, pointer},
                 LLVM::Linkage::External);
}

SmallVector<Type> Emitter::getKernelTypes(LLVM::LLVMFuncOp kernel,
                                          AbiAttr abi) {
  SmallVector<Type> types;
  for (ArgAttr arg : getArguments(abi)) {
    if (auto tensor = dyn_cast<RankedTensorType>(arg.getType())) {
      types.append({pointer, pointer});
      types.append(1 + 2 * tensor.getRank(), i64);
    } else {
      types.push_back(arg.getType().isInteger(32) ? i32 : i64);
    }
  }
  if (kernel->hasAttr(PosencDialect::kChunkedAttrName))
    types.append(2, i64);
  return types;
}

LogicalResult Emitter::check(LLVM::LLVMFuncOp kernel, AbiAttr abi) {
  StringRef name = kernel.getName();
  if (!llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    return kernel.emitError() << "'" << name << "' is not a C identifier";
  if (name == "metadata" || name == "set_parallel_for")
    return kernel.emitError()
           << "'" << name << "' is the name of a library's own function";
  if (kernel.isExternal() || kernel.isVarArg() ||
      !isa<LLVM::LLVMVoidType>(kernel.getFunctionType().getReturnType()) ||
      kernel.getArgumentTypes() != ArrayRef<Type>(getKernelTypes(kernel, abi)))
    return kernel.emitError()
           << "type " << kernel.getFunctionType()
           << " is not that of a kernel with the signature " << abi;
  for (ArgAttr arg : getArguments(abi))
    if (isTensor(arg) && !getStaticBytes(cast<RankedTensorType>(arg.getType())))
      return kernel.emitError() << "no memory has room for '" << arg.getName()
                                << "' of type " << arg.getType();
  return success();
}

Value Emitter::loadWord(Location loc, Value words, int64_t number) {
  Value at = LLVM::GEPOp::create(builder, loc, pointer, i64, words,
                                 ArrayRef<LLVM::GEPArg>(number));
  return LLVM::LoadOp::create(builder, loc, i64, at);
}

LLVM::LLVMFuncOp Emitter::emitPacked(LLVM::LLVMFuncOp kernel, AbiAttr abi) {
  Location loc = kernel.getLoc();
  LLVM::LLVMFuncOp packed =
      createFunction((kernel.getName() + ".packed").str(), nothing,
                     {pointer, i64, i64}, LLVM::Linkage::Internal);
  Block *entry = packed.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  Value words = entry->getArgument(0);
  SmallVector<Value> operands;
  for (auto [number, arg] : llvm::enumerate(getArguments(abi))) {
    Value word = loadWord(loc, words, number);
    auto tensor = dyn_cast<RankedTensorType>(arg.getType());
    if (!tensor) {
      if (arg.getType().isInteger(32))
        word = LLVM::TruncOp::create(builder, loc, i32, word);
      operands.push_back(word);
      continue;
    }
    Value data = LLVM::IntToPtrOp::create(builder, loc, pointer, word);
    SmallVector<Value> sizes, strides(tensor.getRank());
    ArrayRef<int64_t> names = arg.getSizes();
    for (int64_t size : tensor.getShape()) {
      if (!ShapedType::isDynamic(size)) {
        sizes.push_back(constant(loc, size));
        continue;
      }
      sizes.push_back(loadWord(loc, words, getSizeWord(abi, names.front())));
      names = names.drop_front();
    }
    Value stride = constant(loc, 1);
    for (int64_t dim = tensor.getRank(); dim-- > 0;) {
      strides[dim] = stride;
      stride = LLVM::MulOp::create(builder, loc, stride, sizes[dim]);
    }
    operands.append({data, data, constant(loc, 0)});
    llvm::append_range(operands, sizes);
    llvm::append_range(operands, strides);
  }
  if (kernel->hasAttr(PosencDialect::kChunkedAttrName))
    operands.append({entry->getArgument(1), entry->getArgument(2)});
  LLVM::CallOp::create(builder, loc, kernel, operands);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return packed;
}

LLVM::GlobalOp Emitter::emitDescription(LLVM::LLVMFuncOp kernel, AbiAttr abi) {
  // The layout is `struct Description` of lib/Target/Prelude/Prelude.c.
  SmallVector<ArgAttr> arguments = getArguments(abi);
  SmallVector<int64_t> words{static_cast<int64_t>(cpuFeatures),
                             kernel->hasAttr(PosencDialect::kChunkedAttrName),
                             getSizeWord(abi, 0),
                             static_cast<int64_t>(abi.getSizes().size()),
                             llvm::count_if(arguments, isTensor)};
  for (auto [number, arg] : llvm::enumerate(arguments)) {
    auto tensor = dyn_cast<RankedTensorType>(arg.getType());
    if (!tensor)
      continue;
    int64_t output = static_cast<int64_t>(number) -
                     static_cast<int64_t>(abi.getInputs().size());
    words.append({static_cast<int64_t>(number), output >= 0,
                  output >= 0 ? abi.getInPlace()[output] : -1,
                  *getStaticBytes(tensor),
                  static_cast<int64_t>(arg.getSizes().size())});
    for (int64_t size : arg.getSizes())
      words.push_back(getSizeWord(abi, size));
  }
  builder.setInsertionPointToEnd(module.getBody());
  auto type = RankedTensorType::get({static_cast<int64_t>(words.size())}, i64);
  return LLVM::GlobalOp::create(
      builder, kernel.getLoc(), LLVM::LLVMArrayType::get(i64, words.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal,
      (kernel.getName() + ".description").str(),
      DenseElementsAttr::get(type, ArrayRef<int64_t>(words)));
}

void Emitter::emitEntry(LLVM::LLVMFuncOp kernel, AbiAttr abi) {
  LLVM::LLVMFuncOp packed = emitPacked(kernel, abi);
  LLVM::GlobalOp description = emitDescription(kernel, abi);
  Location loc = kernel.getLoc();

  SmallVector<Type> types;
  for (ArgAttr arg : getArguments(abi))
    types.push_back(isTensor(arg)                 ? pointer
                    : arg.getType().isInteger(32) ? i32
                                                  : i64);
  types.append(llvm::count(abi.getSizes(), -1), i64);
  LLVM::LLVMFuncOp entry = createFunction(prefix + "_" + kernel.getName().str(),
                                          i32, types, LLVM::Linkage::External);
  Block *block = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);

  SmallVector<Value> words;
  unsigned next = 0;
  for (ArgAttr arg : getArguments(abi)) {
    Value value = block->getArgument(next++);
    if (isTensor(arg))
      value = LLVM::PtrToIntOp::create(builder, loc, i64, value);
    else if (arg.getType().isInteger(32))
      value = LLVM::SExtOp::create(builder, loc, i64, value);
    words.push_back(value);
  }
  for (int64_t size : abi.getSizes())
    words.push_back(size < 0 ? Value(block->getArgument(next++)) : words[size]);

  Value array = LLVM::AllocaOp::create(builder, loc, pointer, i64,
                                       constant(loc, words.size()));
  for (auto [number, word] : llvm::enumerate(words)) {
    Value at = LLVM::GEPOp::create(
        builder, loc, pointer, i64, array,
        ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(number)));
    LLVM::StoreOp::create(builder, loc, word, at);
  }
  auto launch = LLVM::CallOp::create(
      builder, loc, TypeRange(i32), kLaunchSymbol,
      ValueRange{address(loc, description.getSymName()), array,
                 address(loc, packed.getSymName())});
  LLVM::ReturnOp::create(builder, loc, launch.getResult());
  kernel.setLinkage(LLVM::Linkage::Internal);
  kernel->setAttr("no_inline", builder.getUnitAttr());
}

void Emitter::emitMetadata(StringRef metadata) {
  Location loc = module.getLoc();
  std::string terminated = metadata.str();
  terminated.push_back('\0');
  builder.setInsertionPointToEnd(module.getBody());
  auto text = LLVM::GlobalOp::create(
      builder, loc,
      LLVM::LLVMArrayType::get(builder.getI8Type(), terminated.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal, "metadata.text",
      builder.getStringAttr(terminated));
  LLVM::LLVMFuncOp function = createFunction(prefix + "_metadata", pointer, {},
                                             LLVM::Linkage::External);
  builder.setInsertionPointToStart(function.addEntryBlock(builder));
  LLVM::ReturnOp::create(builder, loc, address(loc, text.getSymName()));
}

void Emitter::emitSetParallelFor() {
  Location loc = module.getLoc();
  LLVM::LLVMFuncOp function =
      createFunction(prefix + "_set_parallel_for", nothing, {pointer, pointer},
                     LLVM::Linkage::External);
  Block *block = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  LLVM::CallOp::create(builder, loc, TypeRange(), kSetParallelForSymbol,
                       block->getArguments());
  LLVM::ReturnOp::create(builder, loc, ValueRange());
}

namespace {
struct EmitCInterface final
    : mlir::posenc::impl::PosencEmitCInterfacePassBase<EmitCInterface> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<Kernel> kernels = getKernels(module);
    Emitter emitter(module, prefix, cpuFeatures);
    for (auto [kernel, abi] : kernels) {
      auto function = dyn_cast<LLVM::LLVMFuncOp>(kernel.getOperation());
      if (!function) {
        kernel.emitError("expected a kernel in the LLVM dialect");
        return signalPassFailure();
      }
      if (failed(emitter.check(function, abi)))
        return signalPassFailure();
    }
    std::string metadata = createMetadata(kernels, prefix, targets);
    // Functions of the input are reached through the entries only, and must
    // not take the name of one.
    for (Operation &op : *module.getBody()) {
      auto symbol = dyn_cast<SymbolOpInterface>(op);
      if (symbol && (symbol.getName().starts_with(prefix + "_") ||
                     symbol.getName().contains('.'))) {
        op.emitError() << "symbol '" << symbol.getName()
                       << "' collides with the library's own";
        return signalPassFailure();
      }
      if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
        if (!function.isExternal())
          function.setLinkage(LLVM::Linkage::Internal);
    }
    emitter.declarePrelude();
    for (auto [kernel, abi] : kernels)
      emitter.emitEntry(cast<LLVM::LLVMFuncOp>(kernel.getOperation()), abi);
    emitter.emitMetadata(metadata);
    emitter.emitSetParallelFor();
  }
};
} // namespace
