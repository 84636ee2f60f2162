//===- Importer.h - building of a function from a graph ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nodes are imported in the order of the file, which ONNX requires to be
// topological. Each operator has a function in a table. Types of values follow
// from those of the inputs; declared types of intermediate values are not read.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IMPORT_ONNX_IMPORTER_H
#define POSENC_LIB_IMPORT_ONNX_IMPORTER_H

#include "../Sizes.h"
#include "Model.h"
#include "posenc/Import/Onnx.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

#include <initializer_list>
#include <memory>
#include <set>

namespace mlir::posenc::onnx {

/// How DequantizeLinear computed a constant matrix, of which products read the
/// codes instead.
struct CodesOrigin {
  /// Codes of a storage type, whose meaning `element` has.
  DenseElementsAttr codes, scales, zeroPoints;
  Type element;
  /// The dimension that scales and zero points belong to, or in which they
  /// belong to blocks of `blockSize`, if that is not 0. -1 if there is only
  /// one.
  int64_t axis, blockSize;
  /// Whether the matrix is the transpose of the codes.
  bool isTransposed = false;
};

/// A value of the graph.
struct Tensor {
  /// Codes (integers that are unsigned or have 4 or 16 bits) are in memory as
  /// getStorageType() says.
  Type element;
  SmallVector<Size> shape;
  /// Null until getValue() creates it, if `constant`, `weights` or `elements`
  /// is known.
  Value value;
  /// The elements of a constant.
  DenseElementsAttr constant;
  /// Those of a large constant that is read by products only: they are in the
  /// memory of the model's files.
  DenseResourceElementsAttr weights;
  /// Whether the tensor is the transpose of the matrix `weights`, which
  /// products read as it is.
  bool hasTransposedWeights = false;
  /// The elements of an integer or bool tensor of rank 0 or 1, if they follow
  /// from sizes.
  std::optional<SmallVector<Size>> elements;
  /// The smallest and the largest number that integer elements may be, if
  /// known: of all, or of each column of the last dimension.
  std::optional<std::pair<Size, Size>> range;
  SmallVector<std::pair<Size, Size>> columnRanges;
  /// The codes of a constant that is dequantized, for each matrix of the last
  /// two dimensions; null for others.
  std::shared_ptr<const std::vector<CodesOrigin>> codes;

  int64_t getRank() const { return shape.size(); }
  bool isFloat() const { return isa<FloatType>(element); }
  bool isBool() const { return element.isInteger(1); }
};

/// Maximum number of elements that are known one by one.
constexpr int64_t kMaxKnownElements = 256;

/// Newest version of the default domain whose changes the import knows.
constexpr int64_t kNewestOpset = 28;

class NodeImporter;

/// The use that an operator makes of inputs that are codes. Their type is not
/// that of their values in the function, so most operators would compute wrong
/// results.
enum class CodeUse {
  Refused,
  /// The results have the elements of the first input, as they are in memory.
  /// Other inputs are refused.
  Moved,
  /// The results have elements of all inputs, whose types the operator
  /// compares.
  Joined,
  Read
};

/// How an operator is imported.
struct Operator {
  /// The first `minInputs` inputs are required.
  unsigned minInputs, maxInputs, maxOutputs;
  LogicalResult (*import)(NodeImporter &node);
  CodeUse codeUse = CodeUse::Refused;
  /// The first opset of the default domain that has the operator in the form
  /// that is imported: older forms had other attributes or defaults, or
  /// broadcast by attributes.
  int64_t firstOpset = 1;
};

/// Operators by name; those of another domain than the default one have the
/// domain and a slash before their name.
using OperatorTable = llvm::StringMap<Operator>;
/// Sets `firstOpset` of operators of the table.
void setFirstOpsets(
    OperatorTable &table,
    std::initializer_list<std::pair<StringRef, int64_t>> opsets);
void addAttentionOperators(OperatorTable &table);
void addControlOperators(OperatorTable &table);
void addConvolutionOperators(OperatorTable &table);
void addEinsumOperators(OperatorTable &table);
void addElementwiseOperators(OperatorTable &table);
void addGatherOperators(OperatorTable &table);
void addGroupQueryOperators(OperatorTable &table);
void addMicrosoftOperators(OperatorTable &table);
void addMoveOperators(OperatorTable &table);
void addNormOperators(OperatorTable &table);
void addProductOperators(OperatorTable &table);
void addQuantizeLinearOperators(OperatorTable &table);
void addQuantizedOperators(OperatorTable &table);
void addReductionOperators(OperatorTable &table);
void addRotaryOperators(OperatorTable &table);
void addBinaryOperators(OperatorTable &table);
void addShapeOperators(OperatorTable &table);
void addSliceOperators(OperatorTable &table);

/// Reads the elements of tensors, inline or external.
class TensorReader {
public:
  TensorReader(MLIRContext *context, const OnnxImportOptions &options)
      : context(context),
        folders(options.folders.begin(), options.folders.end()),
        model(options.memory), onExternalData(options.onExternalData) {}

  /// Returns the elements, of the storage type, or null after an error.
  DenseElementsAttr read(const TensorProto &proto,
                         llvm::function_ref<InFlightDiagnostic()> emitError);
  /// Returns the elements where they are in the model's files, if they have
  /// that many bytes. Null if read() must copy them, or reports an error.
  FailureOr<DenseResourceElementsAttr>
  map(const TensorProto &proto, uint64_t minBytes,
      llvm::function_ref<InFlightDiagnostic()> emitError);

private:
  std::optional<StringRef>
  readExternal(const TensorProto &proto,
               llvm::function_ref<InFlightDiagnostic()> emitError);

  MLIRContext *context;
  SmallVector<std::string> folders;
  std::shared_ptr<llvm::MemoryBuffer> model;
  decltype(OnnxImportOptions::onExternalData) onExternalData;
  llvm::StringMap<std::shared_ptr<llvm::MemoryBuffer>> files;
  /// By paths without links.
  llvm::StringMap<std::shared_ptr<llvm::MemoryBuffer>> filesByPath;
  uint64_t numBytes = 0;
};

/// Returns the type of elements, or null if it is not supported.
Type getElementType(MLIRContext *context, int64_t type);
/// Extends an integer in memory of a type, signed or not, to 32 bits; one of 32
/// bits is returned.
Value extendCode(OpBuilder &builder, Location loc, Value code, Type type);
/// Returns the type that elements have in memory: integers are signless, and
/// those of 4 bits have a byte each. For other types, it is the type itself.
Type getStorageType(Type element);
/// Whether elements are codes: their storage type does not say what they mean,
/// or only quantization uses them. False for null.
bool isCode(Type element);
/// Describes a number of TensorProto.DataType.
std::string describeDataType(int64_t type);

/// Imports the graph of a model into a function.
class Importer {
public:
  Importer(MLIRContext &context, const Model &model, StringRef file,
           const OnnxImportOptions &options);

  OwningOpRef<ModuleOp> run();

  /// Has the location of the current node.
  ImplicitLocOpBuilder builder;
  SizeTable sizes;
  /// A relation between two sizes that the function asserts. Broadcast: the
  /// left size is the right one or 1.
  enum class SizeCheck { Equal, AtMost, Broadcast };
  /// The assertions that exist.
  std::set<std::tuple<SizeCheck, Size, Size>> checkedSizes;
  TensorReader reader;
  const Model &model;

  Tensor *find(StringRef name);
  void define(StringRef name, Tensor tensor);
  /// Returns the declaration of a graph output, or null.
  const ValueInfo *findOutput(StringRef name) const;
  /// Returns a declared size that is a constant or has the name of a size of an
  /// input.
  std::optional<Size> findSize(const DimensionProto &dim) const;
  /// Whether a node or an output of the graph reads the value of this name.
  bool isRead(StringRef name) const { return readNames.contains(name); }

  /// Whether MatMulNBits reads the elements under a key as codes.
  bool areCodesOfProduct(StringRef key) const { return codeKeys.contains(key); }

  /// Imports the nodes of a branch here, and returns its results. Other names
  /// of the branch are unknown afterwards.
  FailureOr<std::vector<Tensor>> importBranch(const Graph &branch);

  /// Returns the value of a tensor, which is created unless it exists.
  Value getValue(Tensor &tensor);
  RankedTensorType getType(ArrayRef<Size> shape, Type element);

private:
  LogicalResult checkOpsets();
  LogicalResult addInputs(func::FuncOp function);
  LogicalResult addInitializers(const Graph &graph);
  void findWeights();
  /// Adds the names that products and moves of a graph and of its branches read
  /// to those of weights, and all that other nodes and results read to
  /// `others`.
  void findWeights(const Graph &graph, const llvm::StringSet<> &factors,
                   llvm::StringSet<> &others);
  LogicalResult importNode(const Node &node);
  LogicalResult addOutputs(func::FuncOp function);
  StringAttr createName(StringRef name, StringRef fallback);

  Location fileLoc;
  OperatorTable table;
  llvm::StringMap<Tensor> tensors;
  /// The names of the tensors in the order in which they were defined, so that
  /// those of a branch are the last ones.
  std::vector<StringRef> definedNames;
  llvm::StringSet<> names;
  /// Symbols of the names of dimensions.
  llvm::StringMap<Size> symbols;
  /// Names of the values that nodes and outputs of the graph read.
  llvm::StringSet<> readNames;
  /// Minimum bytes of initializers that need not be copied. Others, which are
  /// not there, are.
  llvm::StringMap<uint64_t> mappedNames;
  /// The names of the codes of MatMulNBits, and the keys of their elements.
  llvm::StringSet<> codeNames, codeKeys;
};

/// Access to a node for the function that imports it. It is also the builder of
/// the node's operations.
class NodeImporter : public ImplicitLocOpBuilder {
public:
  NodeImporter(Importer &graph, const Node &node)
      : ImplicitLocOpBuilder(graph.builder), graph(graph), node(node),
        sizes(graph.sizes) {}

  Importer &graph;
  const Node &node;
  SizeTable &sizes;

  /// Version of the operator's domain, 1 if it is unknown.
  int64_t getOpset() const;
  InFlightDiagnostic emitError() const { return mlir::emitError(getLoc()); }
  /// Returns a message about the node for calls of the function.
  std::string describe(StringRef reason) const {
    return (cast<NameLoc>(getLoc()).getName().getValue() + ": " + reason).str();
  }

  bool hasInput(unsigned number) const {
    return number < node.inputs.size() && !node.inputs[number].empty();
  }
  /// Whether an output has a name and is read.
  bool hasOutput(unsigned number) const {
    return number < node.outputs.size() && graph.isRead(node.outputs[number]);
  }
  Tensor &getInput(unsigned number);
  Value getValue(Tensor &tensor) { return graph.getValue(tensor); }
  /// Returns sizes as values of type index.
  Value materialize(const Size &size) { return sizes.materialize(*this, size); }
  SmallVector<OpFoldResult> getMixed(ArrayRef<Size> shape) {
    return sizes.getMixed(*this, shape);
  }
  void setOutput(unsigned number, Tensor tensor);
  /// Sets output 0, or fails if the result is a failure.
  LogicalResult setResult(FailureOr<Tensor> result);

  int64_t getInt(StringRef name, int64_t fallback);
  double getFloat(StringRef name, double fallback);
  StringRef getString(StringRef name, StringRef fallback);
  std::optional<SmallVector<int64_t>> getInts(StringRef name);
  const AttributeProto *getAttribute(StringRef name);
  /// Returns the graph of an attribute, or null.
  const Graph *getGraph(StringRef name);
  /// Accepts an attribute that does not affect results here.
  void ignore(StringRef name) { getAttribute(name); }
  /// Emits an error for the first attribute that was not read.
  LogicalResult checkAttributes();

  /// Returns an axis of a tensor of this rank, counted from the end if it is
  /// negative.
  FailureOr<int64_t> getAxis(int64_t axis, int64_t rank);
  /// Returns the integers of an input, or of the attribute that older versions
  /// have instead; nullopt in it if neither is present.
  FailureOr<std::optional<SmallVector<int64_t>>>
  getConstantInts(unsigned input, StringRef attribute);
  /// The same for sizes.
  FailureOr<std::optional<SmallVector<Size>>> getSizes(unsigned input,
                                                       StringRef attribute);

private:
  llvm::StringSet<> used, usedGraphs;
};

} // namespace mlir::posenc::onnx

#endif // POSENC_LIB_IMPORT_ONNX_IMPORTER_H
