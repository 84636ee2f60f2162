//===- CInterface.cpp - names and metadata of a kernel library ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/CInterface.h"
#include "posenc/IR/KernelConfig.h"

#include "posenc/runtime/types.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::posenc;

static constexpr llvm::StringLiteral kFfiPrefix = POSENC_FFI_PREFIX;

SmallVector<KernelFunction> mlir::posenc::getKernels(ModuleOp module) {
  SmallVector<KernelFunction> kernels;
  for (auto function : module.getOps<FunctionOpInterface>())
    if (AbiAttr abi = getAbi(function))
      kernels.push_back({function, abi});
  return kernels;
}

KernelMemory mlir::posenc::getKernelMemory(FunctionOpInterface function) {
  KernelConfig config = getKernelConfig(function);
  return {static_cast<int64_t>(
              llvm::alignTo(config.sharedBytes, kWorkspaceAlignment)),
          llvm::sum_of(config.scratchBytes)};
}

MemRefType mlir::posenc::getKernelMemRefType(RankedTensorType tensor) {
  // Kernels have signless integers.
  Type element = tensor.getElementType();
  if (element.isUnsignedInteger())
    element =
        IntegerType::get(tensor.getContext(), element.getIntOrFloatBitWidth());
  if (tensor.getRank() < 2)
    return MemRefType::get(tensor.getShape(), element);
  SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
  strides.back() = 1;
  return MemRefType::get(
      tensor.getShape(), element,
      StridedLayoutAttr::get(tensor.getContext(), /*offset=*/0, strides));
}

std::string mlir::posenc::getKernelSymbol(StringRef function,
                                          unsigned variant) {
  return llvm::formatv("{0}.kernel.{1}", function, variant).str();
}

std::string mlir::posenc::getGpuKernelSymbol(StringRef function) {
  return (function + ".kernel.gpu").str();
}

std::string mlir::posenc::getEntrySymbol(StringRef prefix, StringRef function,
                                         StringRef suffix) {
  return (prefix + "_" + function + suffix).str();
}

std::string mlir::posenc::getVulkanCodeSymbol(StringRef prefix) {
  return getEntrySymbol(prefix, kVulkanCodeName);
}

std::string mlir::posenc::getFfiEntrySymbol(StringRef prefix,
                                            StringRef function) {
  return kFfiPrefix.str() + getEntrySymbol(prefix, function);
}

std::string mlir::posenc::getFfiCudaSymbol(StringRef function) {
  return (function + ".ffi.cuda").str();
}

bool mlir::posenc::isExportedSymbol(StringRef prefix, StringRef symbol) {
  symbol.consume_front(kFfiPrefix);
  return symbol.consume_front(prefix) && symbol.starts_with("_");
}

std::optional<int64_t> mlir::posenc::getStaticBytes(RankedTensorType tensor) {
  if (llvm::is_contained(tensor.getShape(), 0))
    return 0;
  std::optional<int64_t> bytes =
      tensor.getElementType().isIndex()
          ? 8
          : llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
  for (int64_t size : tensor.getShape())
    if (bytes && !ShapedType::isDynamic(size))
      bytes = llvm::checkedMul(*bytes, size);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Expressions of sizes
//===----------------------------------------------------------------------===//

namespace {
/// Prints expressions with the names of sizes.
class SizePrinter {
public:
  SizePrinter(AbiAttr abi, function_ref<std::string(int64_t)> getSize)
      : abi(abi), getSize(getSize) {}

  std::string print(AffineExpr expr, bool isFactor = false);
  std::string printTerm(TermAttr term);

private:
  AbiAttr abi;
  function_ref<std::string(int64_t)> getSize;
};
} // namespace

std::string SizePrinter::print(AffineExpr expr, bool isFactor) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return std::to_string(constant.getValue());
  if (auto name = dyn_cast<AffineSymbolExpr>(expr)) {
    int64_t symbol = name.getPosition();
    if (symbol < abi.getInputSymbol(0))
      return getSize(symbol);
    if (symbol < abi.getTermSymbol(0)) {
      ArgAttr input = abi.getInputs()[symbol - abi.getInputSymbol(0)];
      bool isElement = isa<RankedTensorType>(input.getType());
      return (input.getName() + (isElement ? "[0]" : "")).str();
    }
    return printTerm(abi.getTerms()[symbol - abi.getTermSymbol(0)]);
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  AffineExpr left = binary.getLHS(), right = binary.getRHS();
  if (expr.getKind() == AffineExprKind::Mul)
    return print(left, /*isFactor=*/true) + " * " +
           print(right, /*isFactor=*/true);
  // A negative term is printed as a subtraction.
  std::string sum = print(left);
  auto product = dyn_cast<AffineBinaryOpExpr>(right);
  auto factor = product && product.getKind() == AffineExprKind::Mul
                    ? dyn_cast<AffineConstantExpr>(product.getRHS())
                    : AffineConstantExpr();
  auto constant = dyn_cast<AffineConstantExpr>(right);
  if (factor && factor.getValue() == -1) {
    sum += " - " + print(product.getLHS(), /*isFactor=*/true);
  } else if (constant && constant.getValue() < 0 &&
             constant.getValue() != INT64_MIN) {
    sum += " - " + std::to_string(-constant.getValue());
  } else {
    sum += " + " + print(right);
  }
  return isFactor ? "(" + sum + ")" : sum;
}

std::string SizePrinter::printTerm(TermAttr term) {
  auto operand = [&](unsigned number, bool isFactor = false) {
    return print(term.getOperands().getResult(number), isFactor);
  };
  auto choose = [&](StringRef comparison) {
    return "(" + operand(0) + comparison.str() + operand(1) + " ? " +
           operand(2) + " : " + operand(3) + ")";
  };
  switch (term.getKind()) {
  case TermKind::Value:
    return operand(0, /*isFactor=*/true);
  case TermKind::Quotient:
    return "(" + operand(0, /*isFactor=*/true) + " / " +
           operand(1, /*isFactor=*/true) + ")";
  case TermKind::Remainder:
    return "(" + operand(0, /*isFactor=*/true) + " % " +
           operand(1, /*isFactor=*/true) + ")";
  case TermKind::Min:
    return "min(" + operand(0) + ", " + operand(1) + ")";
  case TermKind::Max:
    return "max(" + operand(0) + ", " + operand(1) + ")";
  case TermKind::IfLess:
    return choose(" < ");
  case TermKind::IfEqual:
    return choose(" == ");
  }
  llvm_unreachable("an unknown kind of term");
}

std::string mlir::posenc::describeSize(AbiAttr abi, AffineExpr expr) {
  auto getSize = [&](int64_t number) -> std::string {
    for (ArgAttr arg :
         llvm::concat<const ArgAttr>(abi.getInputs(), abi.getOutputs())) {
      auto tensor = dyn_cast<RankedTensorType>(arg.getType());
      ArrayRef<int64_t> sizes = arg.getSizes();
      for (int64_t dim = 0, rank = tensor ? tensor.getRank() : 0; dim < rank;
           ++dim) {
        if (!tensor.isDynamicDim(dim))
          continue;
        if (sizes.front() == number)
          return ("dimension " + Twine(dim) + " of " + arg.getName()).str();
        sizes = sizes.drop_front();
      }
    }
    return "a size of no argument";
  };
  return SizePrinter(abi, getSize).print(expr);
}

std::string mlir::posenc::getSizeName(AbiAttr abi, int64_t number) {
  assert(number >= 0 && number < int64_t(abi.getSizes().size()) &&
         "there is no such size");
  int64_t scalar = abi.getSizes()[number];
  if (scalar < -1) {
    auto getSize = [&](int64_t size) { return getSizeName(abi, size); };
    return SizePrinter(abi, getSize).printTerm(abi.getTerms()[-2 - scalar]);
  }
  if (scalar >= 0)
    return abi.getInputs()[scalar].getName().str();
  if (!abi.getSizeNames().empty())
    return abi.getSizeNames()[number].str();
  // Numbered in the order of the C signature; no argument has such a name.
  std::string name =
      "n" + std::to_string(llvm::count(abi.getSizes().take_front(number), -1));
  auto taken = [&](ArgAttr arg) { return arg.getName() == name; };
  while (llvm::any_of(abi.getInputs(), taken) ||
         llvm::any_of(abi.getOutputs(), taken))
    name.insert(name.begin(), 'n');
  return name;
}

bool mlir::posenc::hasComputedShapes(AbiAttr abi) {
  return llvm::any_of(abi.getOutputs(), [&](ArgAttr output) {
    return llvm::any_of(output.getSizes(), [&](int64_t size) {
      return abi.getSizes()[size] != -1;
    });
  });
}

bool mlir::posenc::hasSizeValue(AbiAttr abi, int64_t input) {
  Type type = abi.getInputs()[input].getType();
  return type.isIntOrIndex() ||
         (isa<RankedTensorType>(type) && abi.hasSizesOf(input));
}

ElementTypeInfo mlir::posenc::getElementTypeInfo(Type type) {
  type = getElementTypeOrSelf(type);
#define POSENC_ELEMENT_TYPE(name, text, bytes, code)                           \
  constexpr ElementTypeInfo k##name = {text, bytes, code};
  POSENC_ELEMENT_TYPES(POSENC_ELEMENT_TYPE)
#undef POSENC_ELEMENT_TYPE
  if (type.isF64())
    return kF64;
  if (type.isF32())
    return kF32;
  if (type.isF16())
    return kF16;
  if (type.isBF16())
    return kBF16;
  if (type.isIndex())
    return kIndex;
  if (isa<Float8E4M3FNType>(type))
    return kF8E4M3FN;
  if (isa<Float8E5M2Type>(type))
    return kF8E5M2;
  if (type.isInteger(1))
    return kI1;
  if (type.isUnsignedInteger(8))
    return kU8;
  if (type.isInteger(8))
    return kI8;
  return type.isInteger(32) ? kI32 : kI64;
}

//===----------------------------------------------------------------------===//
// Metadata
//===----------------------------------------------------------------------===//

static llvm::json::Value describe(AbiAttr abi, ArgAttr arg) {
  llvm::json::Object object{{"name", arg.getName()},
                            {"dtype", getElementTypeInfo(arg.getType()).name}};
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
  if (StringAttr layout = arg.getLayout())
    object["layout"] = layout.getValue();
  return object;
}

std::string mlir::posenc::createMetadata(ArrayRef<LibraryKernel> kernels,
                                         StringRef prefix, StringRef targets,
                                         uint64_t vulkanBytes,
                                         StringRef weights) {
  llvm::json::Array functions;
  for (LibraryKernel kernel : kernels) {
    AbiAttr abi = kernel.abi;
    StringRef name = kernel.function.getName();
    llvm::json::Array inputs, outputs, sizes;
    for (auto [number, arg] : llvm::enumerate(abi.getInputs())) {
      llvm::json::Value input = describe(abi, arg);
      if (llvm::is_contained(abi.getShapeOnly(), number))
        (*input.getAsObject())["shape_only"] = true;
      if (hasSizeValue(abi, number))
        (*input.getAsObject())["size_value"] = true;
      inputs.push_back(std::move(input));
    }
    for (auto [arg, partner] :
         llvm::zip_equal(abi.getOutputs(), abi.getInPlace())) {
      llvm::json::Value output = describe(abi, arg);
      if (partner >= 0)
        (*output.getAsObject())["in_place"] =
            abi.getInputs()[partner].getName();
      outputs.push_back(std::move(output));
    }
    for (auto [number, size] : llvm::enumerate(abi.getSizes()))
      if (size == -1)
        sizes.push_back(getSizeName(abi, number));
    llvm::json::Object function{{"name", name},
                                {"strided", true},
                                {"inputs", std::move(inputs)},
                                {"outputs", std::move(outputs)},
                                {"sizes", std::move(sizes)}};
    if (auto doc = kernel.function->getAttrOfType<StringAttr>(
            PosencDialect::kDocAttrName))
      function["doc"] = doc.getValue();
    if (auto layers = kernel.function->getAttrOfType<DenseI64ArrayAttr>(
            PosencDialect::kLayersAttrName))
      function["layers"] = llvm::json::Array(layers.asArrayRef());
    if (kernel.onCpu) {
      function["symbol"] = getEntrySymbol(prefix, name);
      function["dl"] = getEntrySymbol(prefix, name, kTensorSuffix);
    }
    if (kernel.onCpu || kernel.onCuda)
      function["tvm_ffi"] = getFfiEntrySymbol(prefix, name);
    if (kernel.hasWorkspace)
      function["workspace"] = getEntrySymbol(prefix, name, kWorkspaceSuffix);
    if (kernel.hasCudaWorkspace)
      function["cuda_workspace"] =
          getEntrySymbol(prefix, name, kCudaWorkspaceSuffix);
    function["output_sizes"] = getEntrySymbol(prefix, name, kOutputSizesSuffix);
    if (hasComputedShapes(abi))
      function["output_sizes_by_values"] =
          getEntrySymbol(prefix, name, kOutputSizesByValuesSuffix);
    if (kernel.hasWeights)
      function["weights"] = true;
    if (kernel.stackBytes)
      function["stack_bytes"] = *kernel.stackBytes;
    if (kernel.onCuda)
      function["cuda"] = getEntrySymbol(prefix, name, kCudaSuffix);
    if (kernel.onVulkan)
      function["vulkan"] = getEntrySymbol(prefix, name, kVulkanSuffix);
    functions.push_back(std::move(function));
  }
  llvm::json::Array targetNames;
  SmallVector<StringRef> names;
  targets.split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef name : names)
    targetNames.push_back(name);
  llvm::json::Object root{{"posenc", POSENC_VERSION},
                          {"abi", POSENC_ABI},
                          {"prefix", prefix},
                          {"llvm", LLVM_VERSION_STRING},
                          {"targets", std::move(targetNames)},
                          {"functions", std::move(functions)}};
  if (vulkanBytes)
    root["vulkan"] =
        llvm::json::Object{{"symbol", getVulkanCodeSymbol(prefix)},
                           {"bytes", static_cast<int64_t>(vulkanBytes)}};
  if (!weights.empty())
    root["weights"] = llvm::json::Object{
        {"file", llvm::json::fixUTF8(weights)},
        {"symbol", getEntrySymbol(prefix, kWeightsOpenName)}};
  return llvm::formatv("{0}", llvm::json::Value(std::move(root))).str();
}
