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
#include "llvm/Transforms/IPO/GlobalDCE.h"
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

LogicalResult mlir::posenc::lowerModule(ModuleOp module, Stage to,
                                        const TargetSpec &target, Stage from) {
  PosencToCPUOptions options;
  options.vectorBytes = target.vectorBytes;
  options.nativeBF16 = target.hasBF16Conversion;
  options.prefetchDistance = target.tuning.prefetchDistance;
  options.prefetchFrom = target.tuning.prefetchFrom;
  options.streamFrom = target.tuning.streamFrom;
  options.streamTablesFrom = target.tuning.streamTablesFrom;
  options.blockPositions = target.tuning.blockPositions;
  options.blockBelow = target.tuning.blockBelow;
  PassManager manager(module.getContext());
  if (to == Stage::Linalg)
    buildPosencToLinalgPipeline(manager);
  // No CPU kernel passes through linalg as a whole.
  if (to >= Stage::Vector && from < Stage::Vector)
    buildPosencToVectorPipeline(manager, options);
  if (to >= Stage::Llvm && from < Stage::Llvm)
    buildVectorToLLVMPipeline(manager, options);
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
  function.removeFnAttr("target-features");
  bool isX86 = function.getParent()->getTargetTriple().isX86();
  function.addFnAttr("target-cpu", isX86 ? "x86-64" : "generic");
}

static void setTarget(llvm::Function &function, const TargetSpec &target) {
  function.addFnAttr("target-cpu", target.cpu);
  // The input may say otherwise, at the LLVM stage.
  function.removeFnAttr("target-features");
  if (!target.features.empty())
    function.addFnAttr("target-features", target.features);
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

/// The LLVM module of one variant, with the entries if it is the first.
static std::unique_ptr<llvm::Module>
translateVariant(ModuleOp module, llvm::LLVMContext &context,
                 ArrayRef<TargetSpec> targets, unsigned variant,
                 StringRef prefix) {
  PosencEmitCInterfacePassOptions options;
  options.prefix = prefix.str();
  options.targets = llvm::join(
      llvm::map_range(targets, [](const auto &target) { return target.name; }),
      ",");
  for (const TargetSpec &target : targets)
    options.cpuFeatures.push_back(target.cpuFeatures);
  options.variant = variant;
  options.entries = variant == 0;
  PassManager manager(module.getContext());
  manager.addPass(createPosencEmitCInterfacePass(options));
  if (failed(manager.run(module)))
    return nullptr;

  std::unique_ptr<llvm::Module> result =
      translateModuleToLLVMIR(module, context, prefix);
  if (!result) {
    module.emitError("cannot be translated to LLVM IR");
    return nullptr;
  }
  result->setTargetTriple(llvm::Triple(targets[variant].triple));
  // The backend calls memcpy and its like by name: nothing here must have it.
  std::string suffix = variant ? ".local." + std::to_string(variant) : ".local";
  for (llvm::GlobalValue &value : result->global_values())
    if (value.hasLocalLinkage() && !value.getName().contains('.'))
      value.setName(value.getName() + suffix);
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    if (isExportedSymbol(prefix, function.getName()))
      setFloor(function);
    else
      setTarget(function, targets[variant]);
    // Nothing throws, and no unwinder is linked.
    function.setDoesNotThrow();
  }
  return result;
}

/// Links `other` into `module`, as code for the same machine.
static LogicalResult linkModule(llvm::Module &module,
                                std::unique_ptr<llvm::Module> other) {
  other->setTargetTriple(module.getTargetTriple());
  other->setDataLayout(module.getDataLayout());
  return failure(llvm::Linker::linkModules(module, std::move(other)));
}

std::unique_ptr<llvm::Module> mlir::posenc::translateModule(
    ArrayRef<ModuleOp> modules, llvm::LLVMContext &context,
    ArrayRef<TargetSpec> targets, StringRef prefix, Threads threads) {
  ModuleOp first = modules.front();
  if (getKernels(first).empty()) {
    first.emitError("no public function to compile");
    return nullptr;
  }
  LLVMErrors errors(context, first.getLoc());
  const TargetSpec &target = targets.front();
  std::unique_ptr<llvm::TargetMachine> machine = target.createTargetMachine();
  std::unique_ptr<llvm::Module> result;
  for (auto [variant, module] : llvm::enumerate(modules)) {
    std::unique_ptr<llvm::Module> code =
        translateVariant(module, context, targets, variant, prefix);
    if (!code)
      return nullptr;
    if (variant == 0) {
      result = std::move(code);
      result->setDataLayout(machine->createDataLayout());
    } else if (failed(linkModule(*result, std::move(code)))) {
      first.emitError("cannot be linked with code for another target");
      return nullptr;
    }
  }

  if (llvm::verifyModule(*result)) {
    first.emitError("lowers to invalid LLVM IR");
    return nullptr;
  }
  // Without the prelude, which was optimized when it was compiled.
  optimize(*result, *machine);
  llvm::Expected<std::unique_ptr<llvm::Module>> prelude =
      llvm::parseBitcodeFile(
          llvm::MemoryBufferRef(getPrelude(target, threads), "prelude"),
          context);
  if (!prelude) {
    first.emitError() << llvm::toString(prelude.takeError());
    return nullptr;
  }
  for (llvm::Function &function : **prelude)
    if (!function.isDeclaration())
      setFloor(function);
  if (failed(linkModule(*result, std::move(*prelude)))) {
    first.emitError("cannot be linked with the prelude");
    return nullptr;
  }
  llvm::internalizeModule(*result, [&](const llvm::GlobalValue &value) {
    return isExportedSymbol(prefix, value.getName());
  });
  llvm::ModuleAnalysisManager analyses;
  llvm::PassBuilder(machine.get()).registerModuleAnalyses(analyses);
  llvm::GlobalDCEPass().run(*result, analyses);
  if (errors.any())
    return nullptr;
  return result;
}
