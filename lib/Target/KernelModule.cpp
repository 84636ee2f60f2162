//===- KernelModule.cpp - LLVM module of a kernel library -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/KernelModule.h"

#include "DefineGlobal.h"
#include "posenc/ABI/Passes.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Weights.h"
#include "posenc/Pipelines/Pipelines.h"
#include "posenc/Target/LLVMErrors.h"
#include "posenc/kernel/CpuFeatures.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace mlir;
using namespace mlir::posenc;

// Compiled from runtime/kernel/KernelSupport.c and embedded by the generated
// KernelSupportData.cpp.
extern "C" const char posenc_kernel_support_x86_64_none[],
    posenc_kernel_support_x86_64_none_end[],
    posenc_kernel_support_x86_64_openmp[],
    posenc_kernel_support_x86_64_openmp_end[],
    posenc_kernel_support_aarch64_none[],
    posenc_kernel_support_aarch64_none_end[],
    posenc_kernel_support_aarch64_openmp[],
    posenc_kernel_support_aarch64_openmp_end[];

/// Returns a feature that an intrinsic needs and the target lacks; empty if
/// none.
static StringRef findMissing(StringRef intrinsic, const TargetSpec &target) {
  StringRef arch =
      llvm::Triple::getArchTypePrefix(llvm::Triple(target.triple).getArch());
  StringRef rest = intrinsic;
  rest.consume_front("llvm.");
  if (llvm::Intrinsic::isTargetIntrinsic(
          llvm::Intrinsic::lookupIntrinsicID(intrinsic)) &&
      rest.split('.').first != arch)
    return "instructions of another architecture";
  if (!target.hasBF16Conversion && rest.starts_with("x86.avx512bf16."))
    return "AVX512-BF16";
  if (!target.hasInt8Dots && rest.starts_with("x86.avx512.vpdpbusd"))
    return "AVX512-VNNI";
  if (!target.hasAMXBF16 &&
      (rest.starts_with("x86.tile") || rest.starts_with("x86.tdp")))
    return "AMX-BF16";
  if (target.vectorBytes < 64 && rest.starts_with("x86.avx512"))
    return "AVX-512";
  return "";
}

/// Whether the backend lowers an operation of the LLVM dialect to a call of
/// libm, which kernels do not link. Operations of the math dialect are never
/// lowered to such operations.
static bool isLibmCall(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    name = call.getIntrin().rsplit('.').first;
  if (!name.consume_front("llvm.intr.") && !name.consume_front("llvm."))
    return false;
  static const llvm::StringSet<> functions = {
      "acos",  "asin", "atan",  "atan2", "cos",    "cosh",  "exp",  "exp2",
      "exp10", "frem", "frexp", "ldexp", "log",    "log10", "log2", "modf",
      "pow",   "powi", "sin",   "sinh",  "sincos", "tan",   "tanh"};
  return functions.contains(name);
}

/// Rejects operations that the target cannot execute, which a module that was
/// lowered for another target may contain. The backend would end the process.
static LogicalResult checkIntrinsics(ModuleOp module,
                                     const TargetSpec &target) {
  WalkResult result = module.walk([&](Operation *op) {
    if (isLibmCall(op)) {
      op->emitError() << "'" << op->getName()
                      << "' would call libm, which kernels do not link; use "
                         "the operation of the math dialect";
      return WalkResult::interrupt();
    }
    auto call = dyn_cast<LLVM::CallIntrinsicOp>(op);
    StringRef missing;
    if (call)
      missing = findMissing(call.getIntrin(), target);
    if (missing.empty())
      return WalkResult::advance();
    op->emitError() << "'" << call.getIntrin() << "' needs " << missing
                    << ", which '" << target.name << "' does not have";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult mlir::posenc::lowerModule(ModuleOp module, Stage to,
                                        const TargetSpec &target, Stage from) {
  PosencToCPUOptions options;
  options.vectorBytes = target.vectorBytes;
  options.nativeBF16 = target.hasBF16Conversion;
  options.bf16Dots = target.hasBF16Dots;
  options.amxBF16 = target.hasAMXBF16;
  options.int8Dots = target.hasInt8Dots;
  options.amxInt8 = target.hasAMXInt8;
  options.schedule = target.schedule;
  copyTuning(target.tuning, options);
  PassManager toTiles(module.getContext()), toCode(module.getContext());
  if (to == Stage::Linalg)
    buildPosencToLinalgPipeline(toTiles);
  // No CPU kernel passes through linalg as a whole.
  if (to >= Stage::Tiled && from < Stage::Tiled)
    buildPosencToTiledPipeline(toTiles, options);
  if (to >= Stage::Vector && from < Stage::Vector)
    buildTiledToVectorPipeline(toCode, options);
  if (to >= Stage::Llvm && from < Stage::Llvm)
    buildVectorToLLVMPipeline(toCode, options);
  // A user's schedule may leave invalid IR, so each pass after it is verified.
  LogicalResult tiled = options.schedule.empty()
                            ? runUnverified(toTiles, module)
                            : toTiles.run(module);
  if (failed(tiled) || failed(runUnverified(toCode, module)))
    return failure();
  return to < Stage::Llvm ? success() : checkIntrinsics(module, target);
}

static StringRef getKernelSupport(const TargetSpec &target, Threads threads) {
  auto range = [](const char *begin, const char *end) {
    return StringRef(begin, end - begin);
  };
  bool openmp = threads == Threads::OpenMP;
  if (llvm::Triple(target.triple).isAArch64())
    return openmp ? range(posenc_kernel_support_aarch64_openmp,
                          posenc_kernel_support_aarch64_openmp_end)
                  : range(posenc_kernel_support_aarch64_none,
                          posenc_kernel_support_aarch64_none_end);
  return openmp ? range(posenc_kernel_support_x86_64_openmp,
                        posenc_kernel_support_x86_64_openmp_end)
                : range(posenc_kernel_support_x86_64_none,
                        posenc_kernel_support_x86_64_none_end);
}

/// Restricts a function to the baseline of its architecture. Entry points run
/// before the CPU's features are known.
static void setFloor(llvm::Function &function) {
  function.removeFnAttr("target-features");
  bool isX86 = function.getParent()->getTargetTriple().isX86();
  function.addFnAttr("target-cpu", isX86 ? "x86-64" : "generic");
}

static void setTarget(llvm::Function &function, const TargetSpec &target) {
  function.addFnAttr("target-cpu", target.cpu);
  // Input at the LLVM stage may have other features.
  function.removeFnAttr("target-features");
  if (!target.features.empty())
    function.addFnAttr("target-features", target.features);
  function.addFnAttr("tune-cpu", target.tuneCpu);
  function.addFnAttr("prefer-vector-width",
                     std::to_string(8 * target.vectorBytes));
}

/// Functions with more instructions are not unrolled by LLVM.
static constexpr unsigned kMaxInstructionsToUnroll = 2000;

/// Returns the function that a pass is about to change, or null if the pass is
/// not one of a function or a loop.
static const llvm::Function *getFunction(const llvm::Any &ir) {
  if (auto *loop = llvm::any_cast<const llvm::Loop *>(&ir))
    return (*loop)->getHeader()->getParent();
  auto *function = llvm::any_cast<const llvm::Function *>(&ir);
  return function ? *function : nullptr;
}

/// Whether to run a pass of LLVM's O3 pipeline that it does not require.
static bool shouldRunPass(StringRef pass, llvm::Any ir) {
  // LLVM 22's VectorCombine does not terminate on some functions (llvm-project
  // issue 211984 and similar ones), and finds nothing to combine in most
  // kernels.
  if (pass == "VectorCombinePass")
    return false;
  // Takes a quarter of O3 for attention, whose loops have many memory accesses
  // to compare in pairs, and changes no kernel: what a loop keeps is in
  // registers already.
  if (pass == "LoopLoadEliminationPass")
    return false;
  // Notes which functions indirect calls may call. Its time grows with more
  // than the square of the arguments, and kernels call only the host's loop by
  // a pointer.
  if (pass == "CalledValuePropagationPass")
    return false;
  // Unrolling by LLVM makes rotations up to 1.25 times as fast. Large functions
  // are attention, whose tiles are unrolled already: there it takes a third of
  // the compile time, and masked tiles are up to 1.14 times as fast without it
  // (Zen 4).
  if (pass == "LoopFullUnrollPass" || pass == "LoopUnrollPass") {
    const llvm::Function *function = getFunction(ir);
    return !function ||
           function->getInstructionCount() <= kMaxInstructionsToUnroll;
  }
  return true;
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback(shouldRunPass);
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
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

SmallVector<LibraryKernel> LibraryParts::getKernels() const {
  SmallVector<KernelFunction> onGpu;
  if (gpu)
    onGpu = posenc::getKernels(*gpu->host);
  bool hasCuda = gpu && !gpu->images.empty();
  bool hasVulkan = gpu && !gpu->vulkan.empty();
  SmallVector<LibraryKernel> result;
  auto hasWorkspace = [](FunctionOpInterface function) {
    return getKernelConfig(function).hasWorkspace;
  };
  if (modules.empty()) {
    for (auto [function, abi] : onGpu)
      result.push_back({function, abi, /*onCpu=*/false, hasCuda, hasVulkan,
                        /*hasWorkspace=*/false,
                        hasCuda && hasWorkspace(function)});
    return result;
  }
  for (auto [function, abi] : posenc::getKernels(modules.front())) {
    const auto *found =
        llvm::find_if(onGpu, [name = function.getName()](KernelFunction it) {
          return it.first.getName() == name;
        });
    bool isThere = found != onGpu.end();
    result.push_back({function, abi, /*onCpu=*/true, isThere && hasCuda,
                      isThere && hasVulkan, hasWorkspace(function),
                      isThere && hasCuda && hasWorkspace(found->first),
                      function->hasAttr(kWeightsAttrName)});
  }
  return result;
}

void LibraryParts::unifyKernels() {
  llvm::StringSet<> withWorkspace, withWeights;
  for (ModuleOp module : modules)
    for (auto [kernel, abi] : posenc::getKernels(module)) {
      if (getKernelConfig(kernel).hasWorkspace)
        withWorkspace.insert(kernel.getName());
      if (kernel->hasAttr(kWeightsAttrName))
        withWeights.insert(kernel.getName());
    }
  for (ModuleOp module : modules)
    for (auto [kernel, abi] : posenc::getKernels(module)) {
      if (withWorkspace.contains(kernel.getName()))
        updateKernelConfig(kernel, &KernelConfig::hasWorkspace, true);
      if (withWeights.contains(kernel.getName()))
        kernel->setAttr(kWeightsAttrName, UnitAttr::get(module.getContext()));
    }
}

/// Options of the C interface that all parts share.
static PosencEmitCInterfacePassOptions
getInterfaceOptions(const LibraryParts &parts) {
  PosencEmitCInterfacePassOptions options;
  options.prefix = parts.prefix;
  if (parts.weights)
    options.weights = parts.weightsName;
  SmallVector<StringRef> names;
  if (!parts.modules.empty())
    for (const TargetSpec &target : parts.targets)
      names.push_back(target.name);
  if (parts.gpu) {
    for (const CudaImage &image : parts.gpu->images)
      if (!llvm::is_contained(names, image.target.name))
        names.push_back(image.target.name);
    if (!parts.gpu->vulkan.empty())
      names.push_back(kVulkanTarget);
    options.cuda = !parts.gpu->images.empty();
    options.vulkanBytes = parts.gpu->vulkan.size() * sizeof(uint32_t);
  }
  options.targets = llvm::join(names, ",");
  for (LibraryKernel kernel : parts.getKernels()) {
    std::string name = kernel.function.getName().str();
    if (kernel.onCuda || kernel.onVulkan)
      options.gpuFunctions.push_back(name);
    if (kernel.hasCudaWorkspace)
      options.cudaWorkspaces.push_back(name);
  }
  for (const TargetSpec &target : parts.targets)
    options.cpuFeatures.push_back(target.cpuFeatures |
                                  static_cast<uint64_t>(target.family)
                                      << kCpuFamilyShift);
  // Other variants may need more memory than the one with the entry points.
  SmallVector<KernelMemory> maxMemory;
  for (ModuleOp module : parts.modules)
    for (auto [number, kernel] :
         llvm::enumerate(mlir::posenc::getKernels(module))) {
      assert((module == parts.modules.front() || number < maxMemory.size()) &&
             "all modules have the same functions");
      maxMemory.resize(std::max(maxMemory.size(), number + 1));
      KernelMemory memory = getKernelMemory(kernel.first);
      maxMemory[number].sharedBytes =
          std::max(maxMemory[number].sharedBytes, memory.sharedBytes);
      maxMemory[number].scratchBytes =
          std::max(maxMemory[number].scratchBytes, memory.scratchBytes);
    }
  for (const KernelMemory &memory : maxMemory) {
    options.sharedBytes.push_back(memory.sharedBytes);
    options.scratchBytes.push_back(memory.scratchBytes);
  }
  return options;
}

std::string
LibraryParts::createMetadata(ArrayRef<LibraryKernel> kernels) const {
  PosencEmitCInterfacePassOptions options = getInterfaceOptions(*this);
  return posenc::createMetadata(kernels, prefix, options.targets,
                                options.vulkanBytes, options.weights);
}

/// Emits the C interface into a module and translates it. Local symbols get a
/// suffix that is unique to the part.
static std::unique_ptr<llvm::Module>
translatePart(ModuleOp module, llvm::LLVMContext &context,
              const PosencEmitCInterfacePassOptions &options,
              const TargetSpec &target, StringRef suffix) {
  PassManager manager(module.getContext());
  manager.addPass(createPosencEmitCInterfacePass(options));
  if (failed(manager.run(module)))
    return nullptr;

  std::unique_ptr<llvm::Module> result =
      translateModuleToLLVMIR(module, context, options.prefix);
  if (!result) {
    module.emitError("cannot be translated to LLVM IR");
    return nullptr;
  }
  result->setTargetTriple(llvm::Triple(target.triple));
  // The backend calls memcpy and similar functions by name, so no symbol may
  // have such a name.
  for (llvm::GlobalValue &value : result->global_values())
    if (value.hasLocalLinkage() && !value.getName().contains('.'))
      value.setName(value.getName() + ".local" + suffix);
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    if (options.gpu || isExportedSymbol(options.prefix, function.getName()))
      setFloor(function);
    else
      setTarget(function, target);
    // No function throws, and no unwinder is linked.
    function.setDoesNotThrow();
  }
  return result;
}

/// Defines the table of images, as the kernel support library's `struct
/// CudaImage`.
static void defineImages(llvm::Module &module, ArrayRef<CudaImage> images) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *i64 = llvm::Type::getInt64Ty(context);
  auto *type =
      llvm::StructType::get(llvm::PointerType::get(context, 0), i64, i64);
  SmallVector<llvm::Constant *> rows;
  for (const CudaImage &image : images) {
    // The driver takes PTX as a C string.
    llvm::Constant *bytes = llvm::ConstantDataArray::getString(
        context, image.bytes, /*AddNull=*/image.isPtx);
    auto *data = new llvm::GlobalVariable(
        module, bytes->getType(), /*isConstant=*/true,
        llvm::GlobalValue::PrivateLinkage, bytes, "posenc.cuda_image");
    data->setAlignment(llvm::Align(64));
    int64_t flags = (image.isPtx ? 1 : 0) | (image.target.isExact ? 2 : 0);
    rows.push_back(llvm::ConstantStruct::get(
        type, data, llvm::ConstantInt::get(i64, image.target.arch),
        llvm::ConstantInt::get(i64, flags)));
  }
  auto *tableType = llvm::ArrayType::get(type, rows.size());
  defineGlobal(module, kCudaImagesSymbol,
               llvm::ConstantArray::get(tableType, rows));
  defineGlobal(module, kNumCudaImagesSymbol,
               llvm::ConstantInt::get(i64, images.size()));
}

/// Defines the Vulkan kernels as an exported symbol, which the runtime looks
/// up.
static void defineVulkanCode(llvm::Module &module, StringRef prefix,
                             ArrayRef<uint32_t> words) {
  llvm::Constant *value =
      llvm::ConstantDataArray::get(module.getContext(), words);
  auto *global = new llvm::GlobalVariable(
      module, value->getType(), /*isConstant=*/true,
      llvm::GlobalValue::ExternalLinkage, value, getVulkanCodeSymbol(prefix));
  global->setAlignment(llvm::Align(64));
}

/// Links `other` into `module`, as code for the same machine.
static LogicalResult linkModule(llvm::Module &module,
                                std::unique_ptr<llvm::Module> other) {
  other->setTargetTriple(module.getTargetTriple());
  other->setDataLayout(module.getDataLayout());
  return failure(llvm::Linker::linkModules(module, std::move(other)));
}

/// Links all parts into one module, without the kernel support library.
static std::unique_ptr<llvm::Module>
translateParts(const LibraryParts &parts, llvm::LLVMContext &context,
               const llvm::TargetMachine &machine) {
  PosencEmitCInterfacePassOptions options = getInterfaceOptions(parts);
  std::unique_ptr<llvm::Module> result;
  auto add = [&](std::unique_ptr<llvm::Module> code) {
    if (!code)
      return failure();
    if (result)
      return linkModule(*result, std::move(code));
    result = std::move(code);
    result->setDataLayout(machine.createDataLayout());
    return success();
  };
  for (auto [variant, module] : llvm::enumerate(parts.modules)) {
    options.variant = variant;
    options.entries = variant == 0;
    std::string suffix = variant ? "." + std::to_string(variant) : "";
    if (failed(add(translatePart(module, context, options,
                                 parts.targets[variant], suffix))))
      return nullptr;
  }
  if (!parts.gpu)
    return result;
  options.variant = 0;
  options.cpuFeatures = {0};
  options.gpu = true;
  options.entries = parts.modules.empty();
  options.sharedBytes.clear();
  options.scratchBytes.clear();
  if (failed(add(translatePart(*parts.gpu->host, context, options,
                               parts.targets.front(), ".gpu"))))
    return nullptr;
  if (!parts.gpu->images.empty())
    defineImages(*result, parts.gpu->images);
  if (!parts.gpu->vulkan.empty())
    defineVulkanCode(*result, parts.prefix, parts.gpu->vulkan);
  return result;
}

std::unique_ptr<llvm::Module>
mlir::posenc::translateLibrary(const LibraryParts &parts,
                               llvm::LLVMContext &context) {
  assert((parts.gpu || !parts.modules.empty()) && "a library without code");
  assert(
      !parts.targets.empty() &&
      (parts.modules.empty() || parts.modules.size() == parts.targets.size()) &&
      "each module has its target");
  ModuleOp first =
      parts.modules.empty() ? *parts.gpu->host : parts.modules.front();
  if (parts.getKernels().empty()) {
    first.emitError("no public function to compile");
    return nullptr;
  }
  LLVMErrors errors(context, first.getLoc());
  const TargetSpec &target = parts.targets.front();
  std::unique_ptr<llvm::TargetMachine> machine = target.createTargetMachine();
  std::unique_ptr<llvm::Module> result =
      translateParts(parts, context, *machine);
  if (!result)
    return nullptr;
  if (llvm::verifyModule(*result)) {
    first.emitError("lowers to invalid LLVM IR");
    return nullptr;
  }
  // The kernel support library is linked afterwards, as it is already
  // optimized.
  if (parts.optLevel == OptLevel::O3)
    optimize(*result, *machine);
  llvm::Expected<std::unique_ptr<llvm::Module>> support =
      llvm::parseBitcodeFile(
          llvm::MemoryBufferRef(getKernelSupport(target, parts.threads),
                                "kernel support library"),
          context);
  if (!support) {
    first.emitError() << llvm::toString(support.takeError());
    return nullptr;
  }
  for (llvm::Function &function : **support)
    if (!function.isDeclaration())
      setFloor(function);
  if (failed(linkModule(*result, std::move(*support)))) {
    first.emitError("cannot be linked with the kernel support library");
    return nullptr;
  }
  if (parts.weights)
    parts.weights->define(*result, parts.weightsName);
  llvm::internalizeModule(*result, [&](const llvm::GlobalValue &value) {
    return isExportedSymbol(parts.prefix, value.getName());
  });
  llvm::ModuleAnalysisManager analyses;
  llvm::PassBuilder(machine.get()).registerModuleAnalyses(analyses);
  llvm::GlobalDCEPass().run(*result, analyses);
  if (errors.any())
    return nullptr;
  return result;
}
