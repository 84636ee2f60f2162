//===- SpirvCode.cpp - kernels for Vulkan devices ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/SpirvCode.h"

#include "posenc/ABI/CInterface.h"
#include "posenc/Codegen/SpirvKernels.h"
#include "posenc/Pipelines/Pipelines.h"
#include "posenc/Target/GpuCode.h"

#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/SPIRV/Serialization.h"
#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace mlir::posenc;

static constexpr llvm::StringLiteral kIntroduction =
    R"(/* Kernels in SPIR-V, made by posenc. Each takes the elements of its tensors as
 * storage buffers 0, 1, ... of descriptor set 0, then the constants below, and
 * words: the number of the first block, then in the order of the arguments where
 * a tensor begins in its buffer, in elements; an index, i32 or f32 in one word; an
 * i64 or f64 in two, the lower first. The words are push constants, or, where
 * there are more than 32, one more buffer. */
)";

/// Describes the type of an argument of a kernel.
static void describe(raw_ostream &os, Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (memref)
    os << "tensor of " << memref.getElementType();
  else
    os << type;
}

static void describe(raw_ostream &os, spirv::FuncOp kernel, FunctionType type,
                     bool hasConstants) {
  SpirvKernelAbi abi(type, hasConstants);
  os << "/* " << kernel.getName() << "(";
  llvm::interleaveComma(type.getInputs(), os,
                        [&](Type input) { describe(os, input); });
  os << ")\n *   " << abi.numBuffers << " buffers, " << abi.numWords
     << " words " << (abi.isPushed() ? "pushed" : "in the last buffer")
     << " */\n";
}

static std::string describeKernels(ModuleOp module, spirv::ModuleOp kernels,
                                   StringRef prefix) {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string guard = prefix.upper() + "_H";
  auto constants = module->getAttrOfType<DenseIntElementsAttr>(
      PosencDialect::kKernelConstantsAttrName);
  os << kIntroduction << "#ifndef " << guard << "\n#define " << guard
     << "\n\n#include <stdint.h>\n\n";
  for (auto kernel : kernels.getOps<spirv::FuncOp>())
    if (auto type =
            kernel->getAttrOfType<TypeAttr>(PosencDialect::kKernelTypeAttrName))
      describe(os, kernel, cast<FunctionType>(type.getValue()),
               constants != nullptr);
  if (constants) {
    os << "\nstatic const uint32_t " << prefix << "_constants["
       << constants.getNumElements() << "] = {";
    for (auto [number, word] : llvm::enumerate(constants.getValues<int32_t>()))
      os << (number ? "," : "") << (number % 8 ? " " : "\n    ")
         << static_cast<uint32_t>(word) << "u";
    os << "};\n";
  }
  os << "\n#endif\n";
  return text;
}

namespace {
/// A module lowered to kernels in SPIR-V.
struct SpirvForm {
  spirv::ModuleOp module;
  SmallVector<uint32_t> words;
};
} // namespace

/// Lowers a module of launches and kernels in place.
static std::optional<SpirvForm> lowerToSpirv(ModuleOp module) {
  PassManager manager(module.getContext());
  buildGpuToSPIRVPipeline(manager, PosencToSPIRVOptions());
  if (failed(manager.run(module)))
    return std::nullopt;
  auto modules = module.getOps<spirv::ModuleOp>();
  SpirvForm form;
  if (modules.empty() ||
      failed(spirv::serialize(*modules.begin(), form.words))) {
    module.emitError("the kernels have become no SPIR-V");
    return std::nullopt;
  }
  form.module = *modules.begin();
  return form;
}

std::optional<SpirvCode> mlir::posenc::generateSpirvCode(ModuleOp module,
                                                         StringRef prefix) {
  if (failed(lowerToGpu(module, /*hasFunctions=*/false)))
    return std::nullopt;
  std::optional<SpirvForm> form = lowerToSpirv(module);
  if (!form)
    return std::nullopt;
  SpirvCode code;
  code.binary.assign(reinterpret_cast<const char *>(form->words.data()),
                     form->words.size() * sizeof(uint32_t));
  code.header = describeKernels(module, form->module, prefix);
  return code;
}

/// Returns the letter that encodes the type of an argument.
static char getLetter(Type type) {
  if (auto memref = dyn_cast<MemRefType>(type))
    return static_cast<char>('0' + memref.getElementTypeBitWidth() / 8);
  if (type.isIndex())
    return 'i';
  return SpirvKernelAbi::countWords(type) == 2 ? 'd' : 'w';
}

static void addText(std::vector<uint32_t> &words, StringRef text) {
  std::string padded = text.str();
  padded.resize(llvm::alignTo(text.size(), 4));
  for (size_t at = 0; at < padded.size(); at += 4)
    words.push_back(llvm::support::endian::read32le(padded.data() + at));
}

std::optional<std::vector<uint32_t>>
mlir::posenc::generateVulkanCode(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  std::optional<SpirvForm> form = lowerToSpirv(*copy);
  if (!form)
    return std::nullopt;
  SmallVector<uint32_t> constants;
  if (auto data = (*copy)->getAttrOfType<DenseIntElementsAttr>(
          PosencDialect::kKernelConstantsAttrName))
    llvm::append_range(constants, data.getValues<int32_t>());
  std::vector<uint32_t> words{kVulkanMagic,
                              kVulkanVersion,
                              0,
                              0,
                              static_cast<uint32_t>(form->words.size()),
                              static_cast<uint32_t>(constants.size()),
                              0};
  llvm::append_range(words, form->words);
  llvm::append_range(words, constants);
  for (auto kernel : form->module.getOps<spirv::FuncOp>()) {
    auto type =
        kernel->getAttrOfType<TypeAttr>(PosencDialect::kKernelTypeAttrName);
    if (!type)
      continue;
    std::string letters;
    for (Type input : cast<FunctionType>(type.getValue()).getInputs())
      letters += getLetter(input);
    words.push_back(kernel.getName().size());
    words.push_back(letters.size());
    addText(words, kernel.getName());
    addText(words, letters);
    ++words[6];
  }
  words[2] = words.size();
  words[3] = posencSumVulkanWords(words.data() + 4, words.size() - 4);
  return words;
}

StringRef mlir::posenc::getSpirvBytes(ArrayRef<uint32_t> vulkanCode) {
  ArrayRef<uint32_t> words =
      vulkanCode.slice(kVulkanHeaderWords, vulkanCode[4]);
  return {reinterpret_cast<const char *>(words.data()),
          words.size() * sizeof(uint32_t)};
}
