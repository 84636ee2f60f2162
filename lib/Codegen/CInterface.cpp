//===- CInterface.cpp - metadata and header of a kernel library -*- C++ -*-===//
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

SmallVector<Kernel> mlir::posenc::getKernels(ModuleOp module) {
  SmallVector<Kernel> kernels;
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

static StringRef getTypeName(Type type) {
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

static StringRef getCType(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isF64())
    return "double";
  if (type.isF32())
    return "float";
  if (type.isF16() || type.isBF16())
    return "uint16_t";
  return type.isInteger(32) ? "int32_t" : "int64_t";
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

std::string mlir::posenc::createMetadata(ArrayRef<Kernel> kernels,
                                         StringRef prefix, StringRef targets) {
  llvm::json::Array functions;
  for (auto [kernel, abi] : kernels) {
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
    functions.push_back(
        llvm::json::Object{{"name", kernel.getName()},
                           {"symbol", (prefix + "_" + kernel.getName()).str()},
                           {"inputs", std::move(inputs)},
                           {"outputs", std::move(outputs)},
                           {"sizes", std::move(sizes)}});
  }
  llvm::json::Array targetNames;
  SmallVector<StringRef> names;
  targets.split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef name : names)
    targetNames.push_back(name);
  llvm::json::Value root =
      llvm::json::Object{{"posenc", POSENC_VERSION},
                         {"abi", 1},
                         {"prefix", prefix},
                         {"llvm", LLVM_VERSION_STRING},
                         {"targets", std::move(targetNames)},
                         {"functions", std::move(functions)}};
  return llvm::formatv("{0}", root).str();
}

//===----------------------------------------------------------------------===//
// Header
//===----------------------------------------------------------------------===//

static void describeArg(raw_ostream &os, AbiAttr abi, ArgAttr arg,
                        StringRef direction) {
  os << " *   " << arg.getName() << ": ";
  if (auto tensor = dyn_cast<RankedTensorType>(arg.getType())) {
    ArrayRef<int64_t> sizes = arg.getSizes();
    for (int64_t size : tensor.getShape()) {
      os << '[';
      if (ShapedType::isDynamic(size)) {
        os << getSizeName(abi, sizes.front());
        sizes = sizes.drop_front();
      } else {
        os << size;
      }
      os << ']';
    }
    os << ' ';
  }
  os << getTypeName(arg.getType()) << ", " << direction << "\n";
}

static void declareKernel(raw_ostream &os, FunctionOpInterface kernel,
                          AbiAttr abi, StringRef prefix) {
  os << "/* " << kernel.getName() << "\n";
  for (ArgAttr arg : abi.getInputs())
    describeArg(os, abi, arg, "read");
  for (auto [arg, partner] :
       llvm::zip_equal(abi.getOutputs(), abi.getInPlace()))
    describeArg(os, abi, arg,
                partner < 0 ? std::string("written")
                            : "written, may be " +
                                  abi.getInputs()[partner].getName().str());
  os << " */\nint32_t " << prefix << '_' << kernel.getName() << '(';
  SmallVector<std::string> parameters;
  for (ArgAttr arg : abi.getInputs())
    parameters.push_back(
        isa<RankedTensorType>(arg.getType())
            ? ("const " + getCType(arg.getType()) + " *" + arg.getName()).str()
            : (getCType(arg.getType()) + " " + arg.getName()).str());
  for (ArgAttr arg : abi.getOutputs())
    parameters.push_back(
        (getCType(arg.getType()) + " *" + arg.getName()).str());
  for (auto [number, size] : llvm::enumerate(abi.getSizes()))
    if (size < 0)
      parameters.push_back("int64_t " + getSizeName(abi, number));
  if (parameters.empty())
    parameters.push_back("void");
  os << llvm::join(parameters, ", ") << ");\n\n";
}

std::string mlir::posenc::createHeader(ArrayRef<Kernel> kernels,
                                       StringRef prefix) {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string guard = prefix.upper() + "_H";
  os << "/* Kernels of " << prefix << ", made by posenc " << POSENC_VERSION
     << ".\n"
        " *\n"
        " * Tensors are contiguous and row-major. f16 and bf16 are their bits "
        "in "
        "uint16_t.\n"
        " * A kernel allocates nothing, and returns 0 or why it did nothing:\n"
        " *   1  a pointer is NULL, and its tensor is not empty\n"
        " *   2  a size is negative, or sizes multiply beyond 63 bits\n"
        " *   3  an output overlaps another tensor and is not the input it may "
        "be\n"
        " *   4  the CPU lacks an instruction set that the library was "
        "compiled "
        "for\n"
        " */\n"
        "#ifndef "
     << guard << "\n#define " << guard << "\n\n#include <stdint.h>\n\n"
     << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  for (auto [kernel, abi] : kernels)
    declareKernel(os, kernel, abi, prefix);
  os << "/* The functions, their signatures and targets, as JSON. */\n"
     << "const char *" << prefix << "_metadata(void);\n\n"
     << "/* Sets the loop that runs body(arg, i) for every i in [0, n), in any "
        "order and on\n * any threads, and returns when all are done; NULL "
        "restores the default. Not to be\n * called while a kernel runs. */\n"
     << "void " << prefix
     << "_set_parallel_for(\n    void (*pf)(void *ctx, void (*body)(void *arg, "
        "int64_t i), void *arg,\n               int64_t n),\n    void "
        "*ctx);\n\n"
     << "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return text;
}
