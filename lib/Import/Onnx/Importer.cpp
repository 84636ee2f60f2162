//===- Importer.cpp - building of a function from a graph -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops.h"

#include "posenc/IR/Names.h"
#include "posenc/IR/Posenc.h"
#include "posenc/IR/Weights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

/// Maximum number of bytes of a name that diagnostics print.
static constexpr size_t kMaxName = 200;

static StringRef shorten(StringRef name) { return name.take_front(kMaxName); }

/// Adds the names that nodes and results of a graph read, and its branches.
static void addReadNames(const Graph &graph, llvm::StringSet<> &names) {
  for (const Node &node : graph.nodes) {
    names.insert_range(node.inputs);
    for (const AttributeProto &attribute : node.attributes)
      if (attribute.graph)
        addReadNames(*attribute.graph, names);
  }
  for (const ValueInfo &output : graph.outputs)
    names.insert(output.name);
}

Importer::Importer(MLIRContext &context, const Model &model, StringRef file,
                   const OnnxImportOptions &options)
    : builder(FileLineColLoc::get(&context, file, 0, 0), &context),
      reader(&context, options), model(model), fileLoc(builder.getLoc()) {
  addAttentionOperators(table);
  addControlOperators(table);
  addConvolutionOperators(table);
  addEinsumOperators(table);
  addElementwiseOperators(table);
  addGatherOperators(table);
  addGroupQueryOperators(table);
  addMicrosoftOperators(table);
  addMoveOperators(table);
  addNormOperators(table);
  addProductOperators(table);
  addQuantizeLinearOperators(table);
  addQuantizedOperators(table);
  addReductionOperators(table);
  addRotaryOperators(table);
  addBinaryOperators(table);
  addShapeOperators(table);
  addSliceOperators(table);
  addReadNames(model.graph, readNames);
  // Absent inputs and outputs have this name.
  readNames.erase("");
  findWeights();
}

static bool isProduct(const Node &node) {
  return (node.domain.empty() &&
          llvm::is_contained({"MatMul", "Gemm"}, node.op)) ||
         (node.domain == "com.microsoft" && node.op == "FusedMatMul");
}

/// Whether the input is the right matrix of a product of integers.
static bool isCodeMatrix(const Node &node, unsigned input) {
  return (node.op == "MatMulInteger" && input == 1) ||
         (node.op == "QLinearMatMul" && input == 3);
}

namespace {
/// How a node uses an input whose elements it need not know while importing.
enum class WeightUse { None, Factor, Table };
} // namespace

static WeightUse getWeightUse(const Node &node, unsigned input) {
  if (isProduct(node))
    return WeightUse::Factor;
  if (node.domain == "com.microsoft") {
    bool isRead = (node.op == "MatMulNBits" && input >= 1 && input <= 3) ||
                  (node.op == "GatherBlockQuantized" && input != 1);
    return isRead ? WeightUse::Factor : WeightUse::None;
  }
  if (node.domain.empty() && isCodeMatrix(node, input))
    return WeightUse::Factor;
  if (!node.domain.empty() || input != 0)
    return WeightUse::None;
  if (node.op == "Transpose")
    return WeightUse::Factor;
  return node.op == "Gather" || node.op == "Reshape" ? WeightUse::Table
                                                     : WeightUse::None;
}

/// Adds the names that products read, also where a node of their own transposes
/// a matrix, in a graph and its branches.
static void addFactors(const Graph &graph, llvm::StringSet<> &factors) {
  for (const Node &node : llvm::reverse(graph.nodes)) {
    bool isTransposed = node.op == "Transpose" && !node.outputs.empty() &&
                        factors.contains(node.outputs.front());
    if (isProduct(node) || node.op == "MatMulNBits" || isTransposed)
      factors.insert_range(node.inputs);
    for (const AttributeProto &attribute : node.attributes)
      if (attribute.graph)
        addFactors(*attribute.graph, factors);
  }
}

/// Finds the initializers that are weights: products, and what transposes their
/// operands, do not read their elements here. Tables of rows are weights if
/// they are large or a product reads them, too. Other small ones may be those
/// of rotations, which are raised.
void Importer::findWeights() {
  llvm::StringSet<> factors, others;
  addFactors(model.graph, factors);
  findWeights(model.graph, factors, others);
  for (StringRef name : others.keys())
    mappedNames.erase(name);
}

void Importer::findWeights(const Graph &graph, const llvm::StringSet<> &factors,
                           llvm::StringSet<> &others) {
  constexpr uint64_t kMinTableBytes = (16 << 20) + 1;
  for (const ValueInfo &output : graph.outputs)
    others.insert(output.name);
  for (const Node &node : graph.nodes) {
    for (auto [number, input] : llvm::enumerate(node.inputs)) {
      WeightUse use = getWeightUse(node, number);
      if (use == WeightUse::None) {
        others.insert(input);
        continue;
      }
      uint64_t bytes = use == WeightUse::Table && !factors.contains(input)
                           ? kMinTableBytes
                           : uint64_t{kMinWeightBytes};
      if (node.op == "MatMulNBits" && number == 1)
        codeNames.insert(input);
      uint64_t &known = mappedNames[input];
      known = std::max(known, bytes);
    }
    for (const AttributeProto &attribute : node.attributes)
      if (attribute.graph)
        findWeights(*attribute.graph, factors, others);
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Tensor *Importer::find(StringRef name) {
  auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : &it->second;
}

void Importer::define(StringRef name, Tensor tensor) {
  auto [it, isNew] = tensors.insert_or_assign(name, std::move(tensor));
  if (isNew)
    definedNames.push_back(it->first());
}

const ValueInfo *Importer::findOutput(StringRef name) const {
  for (const ValueInfo &output : model.graph.outputs)
    if (output.name == name)
      return &output;
  return nullptr;
}

std::optional<Size> Importer::findSize(const DimensionProto &dim) const {
  if (dim.size)
    return Size(*dim.size);
  auto known = symbols.find(dim.name);
  return known == symbols.end() ? std::nullopt : std::optional(known->second);
}

RankedTensorType Importer::getType(ArrayRef<Size> shape, Type element) {
  SmallVector<int64_t> dims;
  for (const Size &size : shape)
    dims.push_back(size.getConstant().value_or(ShapedType::kDynamic));
  return RankedTensorType::get(dims, getStorageType(element));
}

Value Importer::getValue(Tensor &tensor) {
  if (tensor.value)
    return tensor.value;
  RankedTensorType type = getType(tensor.shape, tensor.element);
  if (tensor.constant) {
    tensor.value = arith::ConstantOp::create(builder, tensor.constant);
    return tensor.value;
  }
  if (tensor.weights) {
    tensor.value = arith::ConstantOp::create(
        builder, tensor.hasTransposedWeights
                     ? transposeWeights(tensor.weights, type, {1, 0})
                     : tensor.weights);
    return tensor.value;
  }
  // The elements are sizes.
  SmallVector<Value> elements;
  SmallVector<APInt> constants;
  unsigned width = tensor.element.getIntOrFloatBitWidth();
  for (const Size &size : *tensor.elements)
    if (std::optional<int64_t> constant = size.getConstant())
      constants.emplace_back(64, *constant, /*isSigned=*/true);
  if (constants.size() == tensor.elements->size()) {
    for (APInt &constant : constants)
      constant = constant.trunc(width);
    tensor.value = arith::ConstantOp::create(
        builder, DenseElementsAttr::get(type, constants));
    return tensor.value;
  }
  for (const Size &size : *tensor.elements)
    elements.push_back(arith::IndexCastOp::create(
        builder, tensor.element, sizes.materialize(builder, size)));
  tensor.value = tensor::FromElementsOp::create(builder, type, elements);
  return tensor.value;
}

/// Returns the elements of a constant as sizes, if it is a small integer or
/// bool tensor of rank 0 or 1.
static std::optional<SmallVector<Size>> getElements(DenseElementsAttr attr,
                                                    Type element) {
  RankedTensorType type = cast<RankedTensorType>(attr.getType());
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer || isCode(element) || type.getRank() > 1 ||
      type.getNumElements() > kMaxKnownElements)
    return std::nullopt;
  SmallVector<Size> elements;
  for (const APInt &value : attr.getValues<APInt>())
    elements.push_back(integer.getWidth() == 1 ? value.getZExtValue()
                                               : value.getSExtValue());
  return elements;
}

/// Returns a tensor of a static type, without its elements.
static Tensor createTyped(ShapedType type) {
  Tensor tensor;
  tensor.element = type.getElementType();
  tensor.shape = llvm::map_to_vector(type.getShape(),
                                     [](int64_t size) { return Size(size); });
  return tensor;
}

Tensor onnx::createWeights(DenseResourceElementsAttr attr, Type element) {
  Tensor tensor = createTyped(attr.getType());
  if (element)
    tensor.element = element;
  tensor.weights = attr;
  return tensor;
}

Tensor onnx::createConstant(DenseElementsAttr attr, Type element) {
  Tensor tensor = createTyped(attr.getType());
  if (element)
    tensor.element = element;
  tensor.constant = attr;
  tensor.elements = getElements(attr, tensor.element);
  return tensor;
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

/// Returns a name in C for a size, which several inputs may have.
static std::string createSizeName(StringRef name) {
  llvm::StringSet<> none;
  return createArgumentName(shorten(name), "size", none);
}

StringAttr Importer::createName(StringRef name, StringRef fallback) {
  return builder.getStringAttr(
      createArgumentName(shorten(name), fallback, names));
}

LogicalResult Importer::addInputs(func::FuncOp function) {
  llvm::StringSet<> initialized;
  for (const TensorProto &proto : model.graph.initializers)
    initialized.insert(proto.name);
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);
  SmallVector<Type> types;
  for (const ValueInfo &input : model.graph.inputs) {
    // Models of IR version 3 list initializers among the inputs.
    if (initialized.contains(input.name))
      continue;
    auto fail = [&](const Twine &reason) {
      return mlir::emitError(fileLoc)
             << "input '" << shorten(input.name) << "': " << reason;
    };
    if (find(input.name))
      return fail("there are two inputs of this name");
    if (!input.isTensor)
      return fail("only tensors are supported");
    Type element = getElementType(builder.getContext(), input.type);
    if (!element || (isCode(element) && !element.isUnsignedInteger(8)))
      return fail("element type " + describeDataType(input.type) +
                  " is not supported");
    if (!input.hasShape)
      return fail("its rank is unknown: export the model with shapes");
    if (input.dims.size() > kMaxRank)
      return fail("it has more than " + Twine(kMaxRank) + " dimensions");
    SmallVector<int64_t> dims;
    for (const DimensionProto &dim : input.dims) {
      if (dim.size && *dim.size < 0)
        return fail("size " + Twine(*dim.size) + " is negative");
      dims.push_back(dim.size.value_or(ShapedType::kDynamic));
    }
    auto type = RankedTensorType::get(dims, getStorageType(element));
    BlockArgument argument = block->addArgument(type, fileLoc);
    types.push_back(type);
    Tensor tensor;
    tensor.element = element;
    tensor.value = argument;
    for (auto [number, dim] : llvm::enumerate(input.dims)) {
      if (dim.size) {
        tensor.shape.push_back(*dim.size);
        continue;
      }
      auto known = dim.name.empty() ? symbols.end() : symbols.find(dim.name);
      Value value = tensor::DimOp::create(builder, argument, number);
      if (known != symbols.end()) {
        // Entry points check that sizes of one name are equal.
        Value same =
            arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, value,
                                  sizes.materialize(builder, known->second));
        cf::AssertOp::create(builder, same, "sizes of one name differ");
        tensor.shape.push_back(known->second);
        continue;
      }
      tensor.shape.push_back(sizes.createSymbol(value, /*isNonNegative=*/true));
      if (!dim.name.empty())
        symbols[dim.name] = tensor.shape.back();
    }
    define(input.name, std::move(tensor));
  }
  function.setFunctionType(builder.getFunctionType(types, {}));
  unsigned number = 0;
  for (const ValueInfo &input : model.graph.inputs)
    if (!initialized.contains(input.name)) {
      StringAttr name = createName(input.name, "in");
      function.setArgAttr(number, PosencDialect::kNameAttrName, name);
      if (find(input.name)->element.isUnsignedInteger(8))
        function.setArgAttr(number, kUnsignedAttrName, builder.getUnitAttr());
      SmallVector<mlir::Attribute> sizeNames;
      for (auto [dim, size] : llvm::enumerate(input.dims))
        if (!size.size)
          sizeNames.push_back(builder.getStringAttr(
              size.name.empty() ? name.getValue() + "_dim" + Twine(dim)
                                : Twine(createSizeName(size.name))));
      if (!sizeNames.empty())
        function.setArgAttr(number, PosencDialect::kSizesAttrName,
                            builder.getArrayAttr(sizeNames));
      ++number;
    }
  return success();
}

LogicalResult Importer::addInitializers(const Graph &graph) {
  for (const TensorProto &proto : graph.initializers) {
    auto emitError = [&] { return mlir::emitError(fileLoc); };
    if (&graph != &model.graph && find(proto.name))
      return mlir::emitError(builder.getLoc())
             << "a branch and a graph around it have a tensor '"
             << shorten(proto.name) << "'";
    auto mapped = mappedNames.find(proto.name);
    if (mapped != mappedNames.end()) {
      FailureOr<DenseResourceElementsAttr> weights =
          reader.map(proto, mapped->second, emitError);
      if (failed(weights))
        return failure();
      if (*weights) {
        if (codeNames.contains(proto.name))
          codeKeys.insert(weights->getRawHandle().getKey());
        define(proto.name,
               createWeights(*weights,
                             getElementType(builder.getContext(), proto.type)));
        continue;
      }
    }
    DenseElementsAttr attr = reader.read(proto, emitError);
    if (!attr)
      return failure();
    Type element = getElementType(builder.getContext(), proto.type);
    define(proto.name, createConstant(attr, element));
  }
  return success();
}

LogicalResult Importer::addOutputs(func::FuncOp function) {
  builder.setLoc(fileLoc);
  if (model.graph.outputs.empty())
    return mlir::emitError(fileLoc) << "the graph has no outputs";
  SmallVector<Value> results;
  for (const ValueInfo &output : model.graph.outputs) {
    Tensor *tensor = find(output.name);
    if (!tensor)
      return mlir::emitError(fileLoc)
             << "no node computes output '" << shorten(output.name) << "'";
    if (isCode(tensor->element) && !tensor->element.isUnsignedInteger(8))
      return mlir::emitError(fileLoc)
             << "output '" << shorten(output.name) << "' has elements of type "
             << tensor->element << ", which is not supported";
    Type declared = getElementType(builder.getContext(), output.type);
    if (output.isTensor && declared && declared != tensor->element)
      return mlir::emitError(fileLoc)
             << "output '" << shorten(output.name) << "' is declared as "
             << declared << ", but its elements are of type "
             << tensor->element;
    results.push_back(getValue(*tensor));
  }
  func::ReturnOp::create(builder, results);
  function.setFunctionType(builder.getFunctionType(
      function.getArgumentTypes(), ValueRange(results).getTypes()));
  for (auto [number, output] : llvm::enumerate(model.graph.outputs)) {
    function.setResultAttr(number, PosencDialect::kNameAttrName,
                           createName(output.name, "out"));
    if (find(output.name)->element.isUnsignedInteger(8))
      function.setResultAttr(number, kUnsignedAttrName, builder.getUnitAttr());
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void onnx::setFirstOpsets(
    OperatorTable &table,
    std::initializer_list<std::pair<StringRef, int64_t>> opsets) {
  for (auto [op, opset] : opsets) {
    assert(table.contains(op) && "an operator of the same table");
    table[op].firstOpset = opset;
  }
}

LogicalResult Importer::checkOpsets() {
  for (const auto &[domain, newest] :
       {std::pair<StringRef, int64_t>("", kNewestOpset),
        {"com.microsoft", 1}}) {
    auto it = model.opsets.find(domain);
    if (it == model.opsets.end() || (it->second >= 1 && it->second <= newest))
      continue;
    InFlightDiagnostic error = mlir::emitError(fileLoc);
    error << "opset " << it->second;
    if (!domain.empty())
      error << " of " << domain;
    return error << " is not known: expected "
                 << (newest == 1 ? "" : "an opset from 1 to ") << newest;
  }
  return success();
}

LogicalResult Importer::importNode(const Node &node) {
  std::string title = shorten(node.op).str();
  if (!node.domain.empty())
    title = (shorten(node.domain) + "." + title).str();
  // Nodes without a name are identified by their first output.
  StringRef name = node.name;
  for (StringRef output : node.outputs)
    if (name.empty())
      name = output;
  title += (" '" + shorten(name) + "'").str();
  Location loc = NameLoc::get(builder.getStringAttr(title), fileLoc);
  builder.setLoc(loc);
  auto fail = [&](const Twine &reason) {
    return mlir::emitError(loc) << reason;
  };
  std::string key =
      node.domain.empty() ? node.op.str() : (node.domain + "/" + node.op).str();
  auto it = table.find(key);
  if (it == table.end()) {
    bool isFunction = llvm::is_contained(model.functions, node.op);
    bool isKnownDomain =
        node.domain.empty() || llvm::any_of(table.keys(), [&](StringRef known) {
          return known.starts_with((node.domain + "/").str());
        });
    return fail(isFunction ? "functions of the model are not supported: inline "
                             "them when exporting"
                : isKnownDomain
                    ? Twine("this operator is not supported")
                    : "operators of the domain '" + shorten(node.domain) +
                          "' are not supported");
  }
  int64_t opset = model.opsets.lookup("");
  const Operator &entry = it->second;
  if (node.domain.empty() && opset < entry.firstOpset)
    return fail("this operator is supported from opset " +
                Twine(entry.firstOpset) + ", and the model has opset " +
                Twine(opset));
  if (node.inputs.size() < entry.minInputs ||
      node.inputs.size() > entry.maxInputs)
    return fail("expected " + Twine(entry.minInputs) +
                (entry.minInputs == entry.maxInputs
                     ? Twine(" inputs")
                     : " to " + Twine(entry.maxInputs) + " inputs") +
                ", found " + Twine(node.inputs.size()));
  for (auto [number, input] : llvm::enumerate(node.inputs)) {
    if (input.empty() && number < entry.minInputs)
      return fail("input " + Twine(number) + " is missing");
    if (input.empty())
      continue;
    Tensor *tensor = find(input);
    if (!tensor)
      return fail("no earlier node computes input '" + shorten(input) + "'");
    bool isRefused = entry.codeUse == CodeUse::Refused ||
                     (entry.codeUse == CodeUse::Moved && number > 0);
    if (isCode(tensor->element) && isRefused)
      return mlir::emitError(loc)
             << "input " << number << " has elements of type "
             << tensor->element << ", which this operator does not support";
  }
  for (auto [number, output] : llvm::enumerate(node.outputs)) {
    if (isRead(output) && number >= entry.maxOutputs)
      return fail("output " + Twine(number) + " is not supported");
    if (!output.empty() && find(output))
      return fail("a second node computes '" + shorten(output) + "'");
  }
  bool isMoved =
      entry.codeUse == CodeUse::Moved || entry.codeUse == CodeUse::Joined;
  Type moved = isMoved && !node.inputs.empty() && !node.inputs[0].empty()
                   ? find(node.inputs[0])->element
                   : Type();
  NodeImporter importer(*this, node);
  if (failed(entry.import(importer)) || failed(importer.checkAttributes()))
    return failure();
  if (isCode(moved))
    for (auto [number, output] : llvm::enumerate(node.outputs))
      if (importer.hasOutput(number))
        find(output)->element = moved;
  for (StringRef output : node.outputs) {
    if (!isRead(output))
      continue;
    Tensor *tensor = find(output);
    if (!tensor)
      return fail("output '" + shorten(output) + "' is not supported");
    if (tensor->shape.size() > kMaxRank)
      return fail("the result has more than " + Twine(kMaxRank) +
                  " dimensions");
    for (const Size &size : tensor->shape) {
      if (!size.isValid())
        return fail("a size of the result overflows or has no simple form");
      if (size.getConstant() && *size.getConstant() < 0)
        return fail("a size of the result is negative");
    }
    // Elements that are no polynomials would have no value.
    if (tensor->elements && !llvm::all_of(*tensor->elements, [](const Size &s) {
          return s.isValid();
        })) {
      if (!tensor->value && !tensor->constant)
        return fail("an element of the result overflows");
      tensor->elements.reset();
    }
  }
  return success();
}

FailureOr<std::vector<Tensor>> Importer::importBranch(const Graph &branch) {
  Location loc = builder.getLoc();
  llvm::scope_exit reset([&] { builder.setLoc(loc); });
  size_t numOuter = definedNames.size();
  if (failed(addInitializers(branch)))
    return failure();
  for (const Node &node : branch.nodes)
    if (failed(importNode(node)))
      return failure();
  std::vector<Tensor> results;
  for (const ValueInfo &output : branch.outputs) {
    Tensor *tensor = find(output.name);
    if (!tensor)
      return mlir::emitError(loc)
             << "no node of a branch computes '" << shorten(output.name) << "'";
    results.push_back(*tensor);
  }
  for (StringRef name : ArrayRef(definedNames).drop_front(numOuter))
    tensors.erase(name);
  definedNames.resize(numOuter);
  return results;
}

OwningOpRef<ModuleOp> Importer::run() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(fileLoc);
  builder.setInsertionPointToEnd(module->getBody());
  // The function is called as the graph, if that is a name in C.
  StringRef name = model.graph.name;
  bool isName = isArgumentName(name) && name.size() <= 64;
  auto function = func::FuncOp::create(builder, fileLoc, isName ? name : "main",
                                       builder.getFunctionType({}, {}));
  if (failed(checkOpsets()) || failed(addInputs(function)) ||
      failed(addInitializers(model.graph)))
    return nullptr;
  for (const Node &node : model.graph.nodes)
    if (failed(importNode(node)))
      return nullptr;
  if (failed(addOutputs(function)) || failed(verify(*module)))
    return nullptr;
  return module;
}

OwningOpRef<ModuleOp>
mlir::posenc::importOnnx(MLIRContext &context, StringRef bytes, StringRef name,
                         const OnnxImportOptions &options) {
  context
      .loadDialect<arith::ArithDialect, cf::ControlFlowDialect,
                   func::FuncDialect, linalg::LinalgDialect, math::MathDialect,
                   scf::SCFDialect, tensor::TensorDialect, PosencDialect>();
  Location loc = FileLineColLoc::get(&context, name, 0, 0);
  if (bytes.size() > kMaxOnnxBytes) {
    emitError(loc) << "larger than " << (kMaxOnnxBytes >> 30) << " GiB";
    return nullptr;
  }
  llvm::Expected<Model> model = parseModel(bytes);
  if (!model) {
    emitError(loc) << llvm::toString(model.takeError());
    return nullptr;
  }
  return Importer(context, *model, name, options).run();
}
