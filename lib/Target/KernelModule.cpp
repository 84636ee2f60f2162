//===- KernelModule.cpp - from MLIR to a kernel library ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/KernelModule.h"

#include "posenc/Codegen/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/Pipelines/Pipelines.h"
#include "posenc/Target/LLVMErrors.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace mlir;
using namespace mlir::posenc;

// Compiled from Prelude/Prelude.c and embedded by the generated
// PreludeData.cpp.
extern "C" const char posenc_prelude_x86_64_none[],
    posenc_prelude_x86_64_none_end[], posenc_prelude_x86_64_openmp[],
    posenc_prelude_x86_64_openmp_end[], posenc_prelude_aarch64_none[],
    posenc_prelude_aarch64_none_end[], posenc_prelude_aarch64_openmp[],
    posenc_prelude_aarch64_openmp_end[];

LogicalResult mlir::posenc::lowerModule(ModuleOp module, Stage stage,
                                        const TargetSpec &target) {
  PosencToCPUOptions options;
  options.vectorBytes = target.vectorBytes;
  options.nativeBF16 = target.hasBF16Conversion;
  PassManager manager(module.getContext());
  switch (stage) {
  case Stage::Posenc:
    return success();
  case Stage::Linalg:
    buildPosencToLinalgPipeline(manager);
    break;
  case Stage::Vector:
    buildPosencToVectorPipeline(manager, options);
    break;
  case Stage::Llvm:
    buildPosencToVectorPipeline(manager, options);
    buildVectorToLLVMPipeline(manager, options);
    break;
  }
  return manager.run(module);
}

static StringRef getPrelude(const TargetSpec &target, Threads threads) {
  auto range = [](const char *begin, const char *end) {
    return StringRef(begin, end - begin);
  };
  bool openmp = threads == Threads::OpenMP;
  if (llvm::Triple(target.triple).isAArch64())
    return openmp ? range(posenc_prelude_aarch64_openmp,
                          posenc_prelude_aarch64_openmp_end)
                  : range(posenc_prelude_aarch64_none,
                          posenc_prelude_aarch64_none_end);
  return openmp ? range(posenc_prelude_x86_64_openmp,
                        posenc_prelude_x86_64_openmp_end)
                : range(posenc_prelude_x86_64_none,
                        posenc_prelude_x86_64_none_end);
}

/// What every CPU of an architecture has. An entry runs before it is known that
/// the CPU has more.
static void setFloor(llvm::Function &function) {
  bool isX86 = function.getParent()->getTargetTriple().isX86();
  function.addFnAttr("target-cpu", isX86 ? "x86-64" : "generic");
}

static void setTarget(llvm::Function &function, const TargetSpec &target) {
  function.addFnAttr("target-cpu", target.cpu);
  if (!target.features.empty())
    function.addFnAttr("target-features", target.features);
  if (target.tuneCpu != target.cpu)
    function.addFnAttr("tune-cpu", target.tuneCpu);
  function.addFnAttr("prefer-vector-width",
                     std::to_string(8 * target.vectorBytes));
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

std::unique_ptr<llvm::Module>
mlir::posenc::translateModule(ModuleOp module, llvm::LLVMContext &context,
                              const TargetSpec &target, StringRef prefix,
                              Threads threads) {
  if (getKernels(module).empty()) {
    module.emitError("no public function to compile");
    return nullptr;
  }
  PassManager manager(module.getContext());
  PosencEmitCInterfacePassOptions options;
  options.prefix = prefix.str();
  options.targets = target.name;
  options.cpuFeatures = {target.cpuFeatures};
  manager.addPass(createPosencEmitCInterfacePass(options));
  if (failed(manager.run(module)))
    return nullptr;

  LLVMErrors errors(context, module.getLoc());
  std::unique_ptr<llvm::Module> result =
      translateModuleToLLVMIR(module, context, prefix);
  if (!result) {
    module.emitError("cannot be translated to LLVM IR");
    return nullptr;
  }
  // The backend calls memcpy and its like by name: nothing here must have it.
  for (llvm::GlobalValue &value : result->global_values())
    if (value.hasLocalLinkage() && !value.getName().contains('.'))
      value.setName(value.getName() + ".local");
  std::unique_ptr<llvm::TargetMachine> machine = target.createTargetMachine();
  result->setTargetTriple(llvm::Triple(target.triple));
  result->setDataLayout(machine->createDataLayout());

  llvm::Expected<std::unique_ptr<llvm::Module>> prelude =
      llvm::parseBitcodeFile(
          llvm::MemoryBufferRef(getPrelude(target, threads), "prelude"),
          context);
  if (!prelude) {
    module.emitError() << llvm::toString(prelude.takeError());
    return nullptr;
  }
  std::string exported = prefix.str() + "_";
  auto isExported = [&](const llvm::GlobalValue &value) {
    return value.getName().starts_with(exported);
  };
  for (llvm::Function &function : *result)
    if (isExported(function))
      setFloor(function);
    else
      setTarget(function, target);
  (*prelude)->setTargetTriple(result->getTargetTriple());
  (*prelude)->setDataLayout(result->getDataLayout());
  for (llvm::Function &function : **prelude)
    setFloor(function);
  if (llvm::Linker::linkModules(*result, std::move(*prelude))) {
    module.emitError("cannot be linked with the prelude");
    return nullptr;
  }
  llvm::internalizeModule(*result, isExported);
  // Nothing throws, and no unwinder is linked.
  for (llvm::Function &function : *result)
    if (!function.isDeclaration())
      function.setDoesNotThrow();
  if (llvm::verifyModule(*result)) {
    module.emitError("lowers to invalid LLVM IR");
    return nullptr;
  }
  optimize(*result, *machine);
  if (errors.any())
    return nullptr;
  return result;
}
