//===- CInterface.cpp - names and metadata of a kernel library --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/CInterface.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::posenc;

static constexpr llvm::StringLiteral kFfiPrefix = "__tvm_ffi_";

SmallVector<KernelFunction> mlir::posenc::getKernels(ModuleOp module) {
  SmallVector<KernelFunction> kernels;
  for (auto function : module.getOps<FunctionOpInterface>())
    if (auto abi =
            function->getAttrOfType<AbiAttr>(PosencDialect::kAbiAttrName))
      kernels.push_back({function, abi});
  return kernels;
}

MemRefType mlir::posenc::getKernelMemRefType(RankedTensorType tensor) {
  if (tensor.getRank() < 2)
    return MemRefType::get(tensor.getShape(), tensor.getElementType());
  SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
  strides.back() = 1;
  return MemRefType::get(
      tensor.getShape(), tensor.getElementType(),
      StridedLayoutAttr::get(tensor.getContext(), /*offset=*/0, strides));
}

std::string mlir::posenc::getPackedSymbol(StringRef function,
                                          unsigned variant) {
  return llvm::formatv("{0}.packed.{1}", function, variant).str();
}

std::string mlir::posenc::getGpuPackedSymbol(StringRef function) {
  return (function + ".packed.gpu").str();
}

std::string mlir::posenc::getEntrySymbol(StringRef prefix, StringRef function) {
  return (prefix + "_" + function).str();
}

std::string mlir::posenc::getTensorEntrySymbol(StringRef prefix,
                                               StringRef function) {
  return getEntrySymbol(prefix, function) + kTensorSuffix.str();
}

std::string mlir::posenc::getCudaEntrySymbol(StringRef prefix,
                                             StringRef function) {
  return getEntrySymbol(prefix, function) + kCudaSuffix.str();
}

std::string mlir::posenc::getVulkanEntrySymbol(StringRef prefix,
                                               StringRef function) {
  return getEntrySymbol(prefix, function) + kVulkanSuffix.str();
}

std::string mlir::posenc::getVulkanCodeSymbol(StringRef prefix) {
  return getEntrySymbol(prefix, kVulkanCodeName);
}

std::string mlir::posenc::getFfiEntrySymbol(StringRef prefix,
                                            StringRef function) {
  return kFfiPrefix.str() + getEntrySymbol(prefix, function);
}

bool mlir::posenc::isExportedSymbol(StringRef prefix, StringRef symbol) {
  symbol.consume_front(kFfiPrefix);
  return symbol.consume_front(prefix) && symbol.starts_with("_");
}

std::optional<int64_t> mlir::posenc::getStaticBytes(RankedTensorType tensor) {
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

std::string mlir::posenc::getSizeName(AbiAttr abi, int64_t number) {
  int64_t scalar = abi.getSizes()[number];
  if (scalar >= 0)
    return abi.getInputs()[scalar].getName().str();
  // Numbered in the order of the C signature; no argument has such a name.
  std::string name =
      "n" + std::to_string(llvm::count(abi.getSizes().take_front(number), -1));
  auto taken = [&](ArgAttr arg) { return arg.getName() == name; };
  while (llvm::any_of(abi.getInputs(), taken) ||
         llvm::any_of(abi.getOutputs(), taken))
    name.insert(name.begin(), 'n');
  return name;
}

StringRef mlir::posenc::getTypeName(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isF64())
    return "f64";
  if (type.isF32())
    return "f32";
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  if (type.isIndex())
    return "index";
  return type.isInteger(32) ? "i32" : "i64";
}

//===----------------------------------------------------------------------===//
// Metadata
//===----------------------------------------------------------------------===//

static llvm::json::Value describe(AbiAttr abi, ArgAttr arg) {
  llvm::json::Object object{{"name", arg.getName()},
                            {"dtype", getTypeName(arg.getType())}};
  auto tensor = dyn_cast<RankedTensorType>(arg.getType());
  object["kind"] = tensor ? "tensor" : "scalar";
  if (tensor) {
    llvm::json::Array shape;
    ArrayRef<int64_t> sizes = arg.getSizes();
    for (int64_t size : tensor.getShape()) {
      if (!ShapedType::isDynamic(size)) {
        shape.push_back(size);
        continue;
      }
      shape.push_back(getSizeName(abi, sizes.front()));
      sizes = sizes.drop_front();
    }
    object["shape"] = std::move(shape);
  }
  return object;
}

std::string mlir::posenc::createMetadata(ArrayRef<LibraryKernel> kernels,
                                         StringRef prefix, StringRef targets,
                                         uint64_t vulkanBytes) {
  llvm::json::Array functions;
  for (LibraryKernel kernel : kernels) {
    AbiAttr abi = kernel.abi;
    StringRef name = kernel.function.getName();
    llvm::json::Array inputs, outputs, sizes;
    for (ArgAttr arg : abi.getInputs())
      inputs.push_back(describe(abi, arg));
    for (auto [arg, partner] :
         llvm::zip_equal(abi.getOutputs(), abi.getInPlace())) {
      llvm::json::Value output = describe(abi, arg);
      if (partner >= 0)
        (*output.getAsObject())["in_place"] =
            abi.getInputs()[partner].getName();
      outputs.push_back(std::move(output));
    }
    for (auto [number, size] : llvm::enumerate(abi.getSizes()))
      if (size < 0)
        sizes.push_back(getSizeName(abi, number));
    llvm::json::Object function{{"name", name},
                                {"strided", true},
                                {"inputs", std::move(inputs)},
                                {"outputs", std::move(outputs)},
                                {"sizes", std::move(sizes)}};
    if (kernel.onCpu) {
      function["symbol"] = getEntrySymbol(prefix, name);
      function["dl"] = getTensorEntrySymbol(prefix, name);
      function["tvm_ffi"] = getFfiEntrySymbol(prefix, name);
    }
    if (kernel.onCuda)
      function["cuda"] = getCudaEntrySymbol(prefix, name);
    if (kernel.onVulkan)
      function["vulkan"] = getVulkanEntrySymbol(prefix, name);
    functions.push_back(std::move(function));
  }
  llvm::json::Array targetNames;
  SmallVector<StringRef> names;
  targets.split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef name : names)
    targetNames.push_back(name);
  llvm::json::Object root{{"posenc", POSENC_VERSION},
                          {"abi", 1},
                          {"prefix", prefix},
                          {"llvm", LLVM_VERSION_STRING},
                          {"targets", std::move(targetNames)},
                          {"functions", std::move(functions)}};
  if (vulkanBytes)
    root["vulkan"] =
        llvm::json::Object{{"symbol", getVulkanCodeSymbol(prefix)},
                           {"bytes", static_cast<int64_t>(vulkanBytes)}};
  return llvm::formatv("{0}", llvm::json::Value(std::move(root))).str();
}
