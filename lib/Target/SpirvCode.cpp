//===- SpirvCode.cpp - kernels for Vulkan devices ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/SpirvCode.h"

#include "posenc/Codegen/CInterface.h"
#include "posenc/Codegen/SpirvKernels.h"
#include "posenc/Pipelines/Pipelines.h"

#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/SPIRV/Serialization.h"

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

std::optional<SpirvCode> mlir::posenc::generateSpirvCode(ModuleOp module,
                                                         StringRef prefix) {
  PassManager toKernels(module.getContext());
  buildPosencToGpuPipeline(toKernels);
  if (failed(toKernels.run(module)))
    return std::nullopt;
  if (getKernels(module).empty()) {
    module.emitError("no public function that a GPU can run");
    return std::nullopt;
  }
  PassManager toSpirv(module.getContext());
  buildGpuToSPIRVPipeline(toSpirv, PosencToSPIRVOptions());
  if (failed(toSpirv.run(module)))
    return std::nullopt;
  SmallVector<uint32_t> words;
  auto modules = module.getOps<spirv::ModuleOp>();
  if (modules.empty() || failed(spirv::serialize(*modules.begin(), words))) {
    module.emitError("the kernels have become no SPIR-V");
    return std::nullopt;
  }
  SpirvCode code;
  code.binary.assign(reinterpret_cast<const char *>(words.data()),
                     words.size() * sizeof(uint32_t));
  code.header = describeKernels(module, *modules.begin(), prefix);
  return code;
}
