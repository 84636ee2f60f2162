//===- KernelCode.cpp - code of a kernel library --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/KernelCode.h"

#include "StackUse.h"
#include "posenc/ABI/CInterface.h"
#include "posenc/ABI/Passes.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Weights.h"
#include "posenc/Target/CodeCache.h"
#include "posenc/Target/LLVMErrors.h"
#include "posenc/Target/SpirvCode.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <atomic>

using namespace mlir;
using namespace mlir::posenc;

/// Returns the maximum stack use of all variants of a kernel, or nullopt if it
/// is unbounded.
static std::optional<int64_t> findStackBytes(const llvm::Module &module,
                                             StringRef prefix, StringRef name,
                                             const Frames &frames) {
  int64_t maxBytes = 0;
  for (const std::string &entry : {getEntrySymbol(prefix, name),
                                   getEntrySymbol(prefix, name, kTensorSuffix),
                                   getFfiEntrySymbol(prefix, name)}) {
    std::optional<int64_t> bytes = getStackBytes(module, entry, frames);
    if (!bytes)
      return std::nullopt;
    maxBytes = std::max(maxBytes, *bytes);
  }
  return maxBytes;
}

namespace {
/// Adds the stack use of the kernels to the metadata. This must happen after
/// all functions have been compiled, when their frames are known, and before
/// the constants are emitted. Function passes are finalized in reverse order,
/// so this pass is added after the AsmPrinter.
class DescribeStack final : public llvm::FunctionPass {
public:
  DescribeStack(const LibraryParts &parts, const LLVMErrors &errors,
                SmallVectorImpl<LibraryKernel> &kernels)
      : llvm::FunctionPass(id), parts(parts), errors(errors), kernels(kernels) {
  }
  bool runOnFunction(llvm::Function &) override { return false; }
  bool doFinalization(llvm::Module &module) override {
    for (LibraryKernel &kernel : kernels)
      if (kernel.onCpu)
        kernel.stackBytes =
            findStackBytes(module, parts.prefix, kernel.function.getName(),
                           errors.getFrames());
    llvm::GlobalVariable *text =
        module.getGlobalVariable(kMetadataSymbol, /*AllowInternal=*/true);
    text->replaceInitializer(llvm::ConstantDataArray::getString(
        module.getContext(), parts.createMetadata(kernels)));
    return true;
  }

private:
  static char id;
  const LibraryParts &parts;
  const LLVMErrors &errors;
  SmallVectorImpl<LibraryKernel> &kernels;
};
char DescribeStack::id;
} // namespace

/// Returns the effort of the backend. For tiles of AMX, LLVM 22 without
/// optimization may load a configuration in which a tile has columns but no
/// rows, which is a fault.
static llvm::CodeGenOptLevel getLevel(const llvm::Module &module,
                                      OptLevel level) {
  if (level != OptLevel::O0)
    return llvm::CodeGenOptLevel::Aggressive;
  bool hasAMX = llvm::any_of(module, [](const llvm::Function &function) {
    return function.getName().starts_with("llvm.x86.tile");
  });
  return hasAMX ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::None;
}

/// Returns assembly or an object file's bytes; nullopt after an error at `loc`.
/// Adds the stack use to the kernels and to the metadata.
static std::optional<std::string>
generateCode(llvm::Module &module, const LibraryParts &parts,
             llvm::CodeGenFileType type, Location loc,
             SmallVectorImpl<LibraryKernel> &kernels) {
  LLVMErrors errors(module.getContext(), loc);
  requestFrames(module);
  llvm::SmallString<0> buffer;
  llvm::raw_svector_ostream os(buffer);
  llvm::legacy::PassManager manager;
  std::unique_ptr<llvm::TargetMachine> machine =
      parts.targets.front().createTargetMachine(
          getLevel(module, parts.optLevel));
  // This fails only for file types that a target does not support, and all CPU
  // targets support these.
  machine->addPassesToEmitFile(manager, os, nullptr, type);
  manager.add(new DescribeStack(parts, errors, kernels));
  manager.run(module);
  if (errors.any())
    return std::nullopt;
  return std::string(buffer);
}

/// Emits an error for each kernel that needs more stack than the limit of its
/// module says.
static LogicalResult checkStackLimit(ModuleOp module,
                                     ArrayRef<LibraryKernel> kernels) {
  std::optional<int64_t> limit = getStackLimit(module);
  LogicalResult result = success();
  for (LibraryKernel kernel : kernels) {
    if (!limit || !kernel.onCpu)
      continue;
    if (!kernel.stackBytes)
      result = kernel.function.emitError()
               << "the stack use of '" << kernel.function.getName()
               << "' is unbounded, so --stack-limit cannot be met";
    else if (*kernel.stackBytes > *limit)
      result = kernel.function.emitError()
               << "'" << kernel.function.getName() << "' needs "
               << *kernel.stackBytes
               << " bytes of stack, more than the limit of " << *limit
               << ": pass --stack-limit=" << *kernel.stackBytes << " or more";
  }
  return result;
}

std::string mlir::posenc::printModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  os << "\n";
  return text;
}

/// Emits an error unless the requested functions have kernels. If no function
/// has a name, it stands for those whose names it begins: one for each layer
/// type.
static LogicalResult checkNeeded(ModuleOp module, const GpuCode &gpu,
                                 ArrayRef<std::string> needed) {
  SmallVector<KernelFunction> kernels = getKernels(*gpu.host);
  for (const std::string &name : needed) {
    bool isExact = module.lookupSymbol(name) != nullptr;
    for (auto function : module.getOps<func::FuncOp>()) {
      StringRef own = function.getName();
      bool isNeeded = isExact
                          ? own == name
                          : function.isPublic() && own.starts_with(name + "_");
      if (isNeeded && llvm::none_of(kernels, [&](KernelFunction kernel) {
            return kernel.first.getName() == own;
          }))
        return module.emitError() << "'" << own << "' cannot run on a GPU";
    }
  }
  return success();
}

/// Returns the first image of a kind, PTX or cubin; nullopt after an error.
static std::optional<KernelCode> getImage(ModuleOp module, const GpuCode &gpu,
                                          CodeKind kind) {
  for (const CudaImage &image : gpu.images)
    if (image.isPtx == (kind == CodeKind::Ptx))
      return KernelCode{image.bytes, ""};
  module.emitError("cannot generate a cubin: it needs ptxas of a CUDA toolkit, "
                   "or of the Python package nvidia-cuda-nvcc or triton, that "
                   "supports the architecture");
  return std::nullopt;
}

/// Runs one pass.
static LogicalResult runPass(ModuleOp module, std::unique_ptr<Pass> pass) {
  PassManager manager(module.getContext());
  manager.addPass(std::move(pass));
  return manager.run(module);
}

/// Moves the weights of a module at the vector stage to the file, if there is
/// to be one. What remains must fit in the code.
static LogicalResult extractWeights(ModuleOp module, const CodeOptions &options,
                                    WeightsFile &weights) {
  if (options.weights) {
    PosencExtractWeightsPassOptions extraction;
    extraction.maxEmbeddedBytes = options.weights->maxEmbeddedBytes;
    if (failed(runPass(module, createPosencExtractWeightsPass(extraction))))
      return failure();
    if (llvm::Error error = weights.add(module))
      return module.emitError() << llvm::toString(std::move(error));
  }
  // Code addresses its constants within 2 GiB.
  constexpr double kMaxBytes = 1 << 30;
  double total = 0;
  for (auto global : module.getOps<memref::GlobalOp>())
    if (auto elements =
            dyn_cast_if_present<ElementsAttr>(global.getInitialValueAttr());
        elements && elements.getElementType().isIntOrIndexOrFloat())
      total += getNumBytes(elements.getShapedType()).value_or(INT64_MAX);
  if (total <= kMaxBytes)
    return success();
  return module.emitError(
      "the constants have more than 1 GiB, which code cannot have: compile a "
      "library with weights in a file, by posenc-compile --weights=file");
}

/// Makes code at the LLVM stage find the weights that were extracted.
static LogicalResult loadWeights(ModuleOp module) {
  return module->hasAttr(kWeightsAttrName)
             ? runPass(module, createPosencLoadWeightsPass())
             : success();
}

static LogicalResult writeWeights(ModuleOp module, const CodeOptions &options,
                                  WeightsFile &weights) {
  llvm::Expected<std::string> path = options.weights->create();
  if (!path)
    return module.emitError() << llvm::toString(path.takeError());
  std::string targets = llvm::join(
      llvm::map_range(options.targets,
                      [](const TargetSpec &target) { return target.name; }),
      ",");
  if (llvm::Error error = weights.write(*path, targets))
    return module.emitError() << llvm::toString(std::move(error));
  return success();
}

std::optional<KernelCode>
mlir::posenc::generateKernelCode(ModuleOp module, const CodeOptions &options,
                                 CodeKind kind, StageHandler showStage) {
  // Printed on demand only, as the types of a small module can be huge text.
  auto showModule = [&](ModuleOp lowered, const TargetSpec &target,
                        StringRef stage) {
    if (!showStage)
      return;
    std::string suffix = options.targets.size() > 1 ? "." + target.name : "";
    showStage(suffix + stage.str(), printModule(lowered));
  };
  std::optional<GpuCode> gpu;
  if (!options.gpus.empty()) {
    gpu = generateGpuCode(module, options.gpus,
                          /*withCubins=*/kind != CodeKind::Ptx);
    if (!gpu || failed(checkNeeded(module, *gpu, options.neededOnGpu)))
      return std::nullopt;
    for (const CudaImage &image : gpu->images) {
      if (!showStage)
        break;
      std::string stem = "." + image.target.chip;
      showStage(stem + (image.isPtx ? ".ptx" : ".cubin"), image.bytes);
      if (!image.isPtx)
        showStage(stem + ".ptxas.txt", image.log);
    }
    if (showStage && !gpu->vulkan.empty())
      showStage(".vulkan.spv", getSpirvBytes(gpu->vulkan));
    if (kind == CodeKind::Ptx || kind == CodeKind::Cubin)
      return getImage(module, *gpu, kind);
  }
  SmallVector<OwningOpRef<ModuleOp>> copies;
  WeightsFile weights(options.weights
                          ? ArrayRef<ModelFile>(options.weights->modelFiles)
                          : ArrayRef<ModelFile>());
  LibraryParts parts;
  parts.targets = options.targets;
  parts.gpu = gpu ? &*gpu : nullptr;
  parts.prefix = options.prefix;
  parts.threads = options.threads;
  parts.optLevel = options.optLevel;
  if (options.hasCpuCode) {
    for (const TargetSpec &target : options.targets) {
      bool isLast = &target == &options.targets.back();
      ModuleOp lowered = module;
      if (!isLast) {
        copies.push_back(module.clone());
        lowered = *copies.back();
      }
      if (failed(lowerModule(lowered, Stage::Vector, target)))
        return std::nullopt;
      showModule(lowered, target, ".vector.mlir");
      if (failed(extractWeights(lowered, options, weights)) ||
          failed(lowerModule(lowered, Stage::Llvm, target, Stage::Vector)) ||
          failed(loadWeights(lowered)))
        return std::nullopt;
      showModule(lowered, target, ".llvm.mlir");
      parts.modules.push_back(lowered);
    }
  }
  parts.unifyKernels();
  if (!weights.empty()) {
    if (failed(writeWeights(module, options, weights)))
      return std::nullopt;
    parts.weights = &weights;
    parts.weightsName = options.weights->name;
  }
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateLibrary(parts, context);
  if (!code)
    return std::nullopt;
  KernelCode result;
  SmallVector<LibraryKernel> kernels = parts.getKernels();
  auto generate =
      [&](llvm::Module &code,
          llvm::CodeGenFileType type) -> std::optional<std::string> {
    std::optional<std::string> text =
        generateCode(code, parts, type, module.getLoc(), kernels);
    if (!text || failed(checkStackLimit(module, kernels)))
      return std::nullopt;
    return text;
  };
  if (showStage || kind == CodeKind::LlvmIR) {
    llvm::raw_string_ostream(result.code) << *code;
    if (kind == CodeKind::LlvmIR)
      return result;
    showStage(".ll", result.code);
  }
  if (showStage || kind == CodeKind::Asm) {
    // Code generation changes the module: the object needs its own copy.
    std::optional<std::string> assembly = generate(
        *llvm::CloneModule(*code), llvm::CodeGenFileType::AssemblyFile);
    if (!assembly)
      return std::nullopt;
    result.code = std::move(*assembly);
    if (kind == CodeKind::Asm)
      return result;
    showStage(".s", result.code);
  }
  std::optional<std::string> object =
      generate(*code, llvm::CodeGenFileType::ObjectFile);
  if (!object)
    return std::nullopt;
  result.code = std::move(*object);
  result.header = createHeader(kernels, options.prefix, parts.weightsName);
  result.hasWeights = !weights.empty();
  result.refersToModel = weights.refersToModel();
  if (showStage)
    showStage(".o", result.code);
  return result;
}

/// Returns the bytes of the constants of a module.
static double measureConstants(ModuleOp module) {
  double total = 0;
  module->walk([&](Operation *op) {
    for (NamedAttribute attribute : op->getAttrs())
      if (auto elements = dyn_cast<ElementsAttr>(attribute.getValue());
          elements && elements.getElementType().isIntOrIndexOrFloat())
        total += getNumBytes(elements.getShapedType()).value_or(INT64_MAX);
  });
  return total;
}

/// Warns of the first problem of this process with the cache. It is none of the
/// module, so it has no location.
static void warnOfCache(MLIRContext *context, llvm::Error error) {
  static std::atomic<bool> hasWarned = false;
  std::string text = llvm::toString(std::move(error));
  if (!hasWarned.exchange(true))
    emitWarning(UnknownLoc::get(context))
        << "compiled code is not cached: " << text
        << "; pass another folder or 'off' in POSENC_CACHE";
}

std::optional<KernelCode>
mlir::posenc::generateKernelCode(ModuleOp module, const CodeOptions &options,
                                 CodeKind kind, const CodeCache &cache) {
  // The cache is for code, and files of weights can be larger than all of it.
  bool mayHaveWeights =
      options.weights &&
      measureConstants(module) > options.weights->maxEmbeddedBytes;
  std::string key = mayHaveWeights ? "" : cache.getKey(module, options, kind);
  llvm::Expected<std::optional<KernelCode>> known = cache.load(key);
  if (!known) {
    warnOfCache(module.getContext(), known.takeError());
    key.clear();
  } else if (*known) {
    return std::move(*known);
  }
  // Code with warnings is not cached, so that the warnings appear every time.
  bool isSilent = true;
  ScopedDiagnosticHandler watch(module.getContext(), [&](Diagnostic &) {
    isSilent = false;
    return failure();
  });
  std::optional<KernelCode> code =
      generateKernelCode(module, options, kind, StageHandler());
  if (code && isSilent && !code->hasWeights)
    if (llvm::Error error = cache.store(key, *code))
      warnOfCache(module.getContext(), std::move(error));
  return code;
}
