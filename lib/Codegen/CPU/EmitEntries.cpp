//===- EmitEntries.cpp - the functions that a library exports ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CInterfaceEmitter.h"
#include "posenc/Codegen/CInterface.h"

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

void CInterfaceEmitter::declarePrelude() {
  createFunction(kLaunchSymbol, i32, {pointer, pointer},
                 LLVM::Linkage::External);
  createFunction(kSetParallelForSymbol, nothing, {pointer, pointer},
                 LLVM::Linkage::External);
}

void CInterfaceEmitter::emitEntry(LLVM::LLVMFuncOp kernel,
                                  const CallLayout &layout) {
  AbiAttr abi = layout.getAbi();
  Location loc = kernel.getLoc();
  SmallVector<Type> types;
  for (auto [number, arg] : llvm::enumerate(layout.getArguments()))
    types.push_back(layout.getTensor(number)      ? pointer
                    : arg.getType().isInteger(32) ? i32
                                                  : i64);
  types.append(llvm::count(abi.getSizes(), -1), i64);
  LLVM::LLVMFuncOp entry = createFunction(prefix + "_" + kernel.getName().str(),
                                          i32, types, LLVM::Linkage::External);
  Block *block = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);

  SmallVector<Value> words;
  unsigned next = 0;
  for (auto [number, arg] : llvm::enumerate(layout.getArguments())) {
    Value value = block->getArgument(next++);
    if (layout.getTensor(number))
      value = LLVM::PtrToIntOp::create(builder, loc, i64, value);
    else if (arg.getType().isInteger(32))
      value = LLVM::SExtOp::create(builder, loc, i64, value);
    words.push_back(value);
  }
  for (int64_t size : abi.getSizes())
    words.push_back(size < 0 ? Value(block->getArgument(next++)) : words[size]);

  Value array = LLVM::AllocaOp::create(builder, loc, pointer, i64,
                                       constant(loc, layout.getNumWords()));
  for (auto [number, word] : llvm::enumerate(words))
    LLVM::StoreOp::create(builder, loc, word,
                          getWordAddress(loc, array, number));
  std::string description = (kernel.getName() + ".description").str();
  auto launch =
      LLVM::CallOp::create(builder, loc, TypeRange(i32), kLaunchSymbol,
                           ValueRange{address(loc, description), array});
  LLVM::ReturnOp::create(builder, loc, launch.getResult());
}

void CInterfaceEmitter::emitMetadata(StringRef metadata) {
  Location loc = module.getLoc();
  createText("metadata.text", metadata.str() + '\0');
  LLVM::LLVMFuncOp function = createFunction(prefix + "_metadata", pointer, {},
                                             LLVM::Linkage::External);
  builder.setInsertionPointToStart(function.addEntryBlock(builder));
  LLVM::ReturnOp::create(builder, loc, address(loc, "metadata.text"));
}

void CInterfaceEmitter::emitSetParallelFor() {
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
