//===- Model.h - the messages of an ONNX file -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of onnx.proto that the import reads. Strings and raw data are
// ranges of the file's bytes. Unknown fields are skipped, as protobuf does, so
// files of later versions can be read.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IMPORT_ONNX_MODEL_H
#define POSENC_LIB_IMPORT_ONNX_MODEL_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <vector>

namespace mlir::posenc::onnx {

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

/// Numbers of TensorProto.DataType.
enum class DataType : int64_t {
  Undefined = 0,
  Float = 1,
  Uint8 = 2,
  Int8 = 3,
  Uint16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  Uint32 = 12,
  Uint64 = 13,
  BFloat16 = 16,
  Uint4 = 21,
  Int4 = 22,
};

/// A TensorProto.
struct TensorProto {
  StringRef name;
  int64_t type = 0;
  SmallVector<int64_t> dims;
  std::optional<StringRef> raw;
  SmallVector<float> floats;
  SmallVector<double> doubles;
  /// int32_data or int64_data.
  SmallVector<int64_t> ints;
  bool isExternal = false;
  /// Path, relative to the model's folder, of external data.
  StringRef location;
  StringRef offset, length;
};

/// A dimension of a declared shape: a size, a name, or unknown.
struct DimensionProto {
  std::optional<int64_t> size;
  StringRef name;
};

/// A ValueInfoProto of a tensor.
struct ValueInfo {
  StringRef name;
  /// Whether the type is that of a dense tensor.
  bool isTensor = false;
  int64_t type = 0;
  bool hasShape = false;
  SmallVector<DimensionProto> dims;
};

struct Graph;

/// A named value of a node.
struct AttributeProto {
  StringRef name;
  std::optional<float> f;
  std::optional<int64_t> i;
  std::optional<StringRef> s;
  std::optional<TensorProto> tensor;
  SmallVector<int64_t> ints;
  SmallVector<float> floats;
  SmallVector<StringRef> strings;
  /// A branch of If, or the body of a loop; null for other attributes and for
  /// graphs that are nested too deeply.
  std::shared_ptr<Graph> graph;
  /// Whether it has a graph, a type or a sparse tensor, or refers to an
  /// attribute of a function.
  bool isUnsupported = false;
};

struct Node {
  StringRef name, op, domain;
  SmallVector<StringRef> inputs, outputs;
  std::vector<AttributeProto> attributes;
};

struct Graph {
  StringRef name;
  std::vector<Node> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfo> inputs, outputs;
  bool hasSparse = false;
};

struct Model {
  bool hasGraph = false;
  Graph graph;
  /// Versions of the operator sets; the default domain is ''.
  llvm::StringMap<int64_t> opsets;
  /// Names of functions of the model.
  SmallVector<StringRef> functions;
};

/// Parses the bytes of a file, which must outlive the model.
llvm::Expected<Model> parseModel(StringRef bytes);

/// Maximum rank of a tensor.
constexpr unsigned kMaxRank = 16;

} // namespace mlir::posenc::onnx

#endif // POSENC_LIB_IMPORT_ONNX_MODEL_H
