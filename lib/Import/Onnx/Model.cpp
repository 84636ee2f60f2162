//===- Model.cpp - parsing of an ONNX file --------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The field numbers are those of onnx.proto. A message of which any field is
// malformed is an error; parse functions return false then.
//
//===----------------------------------------------------------------------===//

#include "Model.h"
#include "Wire.h"

using namespace mlir::posenc::onnx;

/// Calls `handle` with each field; false if a field is malformed.
template <typename Handler>
static bool readFields(StringRef bytes, Handler handle) {
  WireReader reader(bytes);
  WireField field;
  while (reader.next(field))
    if (!handle(field))
      return false;
  return !reader.hasFailed();
}

/// Parses a StringStringEntryProto.
static bool parseEntry(StringRef bytes, StringRef &key, StringRef &value) {
  return readFields(bytes, [&](const WireField &field) {
    if (field.isBytes(1))
      key = field.bytes;
    if (field.isBytes(2))
      value = field.bytes;
    return true;
  });
}

static bool parseTensor(StringRef bytes, TensorProto &tensor) {
  return readFields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return appendInts(field, tensor.dims);
    case 2:
      tensor.type = field.getInt();
      return field.type == WireField::Type::Varint;
    case 4:
      return appendFloats(field, tensor.floats);
    case 5:
    case 7:
    case 11:
      return appendInts(field, tensor.ints);
    case 8:
      tensor.name = field.bytes;
      return field.type == WireField::Type::Bytes;
    case 9:
      tensor.raw = field.bytes;
      return field.type == WireField::Type::Bytes;
    case 10:
      return appendDoubles(field, tensor.doubles);
    case 13: {
      StringRef key, value;
      if (field.type != WireField::Type::Bytes ||
          !parseEntry(field.bytes, key, value))
        return false;
      if (key == "location")
        tensor.location = value;
      if (key == "offset")
        tensor.offset = value;
      if (key == "length")
        tensor.length = value;
      return true;
    }
    case 14:
      tensor.isExternal = field.getInt() == 1;
      return field.type == WireField::Type::Varint;
    default:
      return true;
    }
  });
}

/// How deeply graphs may be nested in attributes. Deeper ones are not read.
static constexpr unsigned kMaxDepth = 8;

static bool parseGraph(StringRef bytes, Graph &graph, unsigned depth);

static bool parseAttribute(StringRef bytes, AttributeProto &attribute,
                           unsigned depth) {
  return readFields(bytes, [&](const WireField &field) {
    bool isBytes = field.type == WireField::Type::Bytes;
    switch (field.number) {
    case 1:
      attribute.name = field.bytes;
      return isBytes;
    case 2:
      attribute.f = field.getFloat();
      return field.type == WireField::Type::Fixed32;
    case 3:
      attribute.i = field.getInt();
      return field.type == WireField::Type::Varint;
    case 4:
      attribute.s = field.bytes;
      return isBytes;
    case 5:
      attribute.tensor.emplace();
      return isBytes && parseTensor(field.bytes, *attribute.tensor);
    case 7:
      return appendFloats(field, attribute.floats);
    case 8:
      return appendInts(field, attribute.ints);
    case 9:
      attribute.strings.push_back(field.bytes);
      return isBytes;
    case 6:
      attribute.isUnsupported = true;
      if (depth == kMaxDepth)
        return isBytes;
      attribute.graph = std::make_shared<Graph>();
      return isBytes && parseGraph(field.bytes, *attribute.graph, depth + 1);
    case 10:
    case 11:
    case 14:
    case 21:
    case 22:
    case 23:
      attribute.isUnsupported = true;
      return true;
    default:
      return true;
    }
  });
}

static bool parseNode(StringRef bytes, Node &node, unsigned depth) {
  return readFields(bytes, [&](const WireField &field) {
    bool isBytes = field.type == WireField::Type::Bytes;
    switch (field.number) {
    case 1:
      node.inputs.push_back(field.bytes);
      return isBytes;
    case 2:
      node.outputs.push_back(field.bytes);
      return isBytes;
    case 3:
      node.name = field.bytes;
      return isBytes;
    case 4:
      node.op = field.bytes;
      return isBytes;
    case 5:
      node.attributes.emplace_back();
      return isBytes &&
             parseAttribute(field.bytes, node.attributes.back(), depth);
    case 7:
      // 'ai.onnx' is another name of the default domain.
      node.domain = field.bytes == "ai.onnx" ? "" : field.bytes;
      return isBytes;
    default:
      return true;
    }
  });
}

/// Parses a TensorShapeProto.
static bool parseShape(StringRef bytes, ValueInfo &value) {
  value.hasShape = true;
  return readFields(bytes, [&](const WireField &field) {
    if (!field.isBytes(1))
      return true;
    DimensionProto &dim = value.dims.emplace_back();
    return readFields(field.bytes, [&](const WireField &part) {
      if (part.isVarint(1))
        dim.size = part.getInt();
      if (part.isBytes(2))
        dim.name = part.bytes;
      return true;
    });
  });
}

static bool parseValueInfo(StringRef bytes, ValueInfo &value) {
  return readFields(bytes, [&](const WireField &field) {
    if (field.isBytes(1))
      value.name = field.bytes;
    if (!field.isBytes(2))
      return true;
    return readFields(field.bytes, [&](const WireField &kind) {
      if (!kind.isBytes(1))
        return true;
      value.isTensor = true;
      return readFields(kind.bytes, [&](const WireField &part) {
        if (part.isVarint(1))
          value.type = part.getInt();
        return !part.isBytes(2) || parseShape(part.bytes, value);
      });
    });
  });
}

static bool parseGraph(StringRef bytes, Graph &graph, unsigned depth) {
  return readFields(bytes, [&](const WireField &field) {
    bool isBytes = field.type == WireField::Type::Bytes;
    switch (field.number) {
    case 1:
      graph.nodes.emplace_back();
      return isBytes && parseNode(field.bytes, graph.nodes.back(), depth);
    case 2:
      graph.name = field.bytes;
      return isBytes;
    case 5:
      graph.initializers.emplace_back();
      return isBytes && parseTensor(field.bytes, graph.initializers.back());
    case 11:
      graph.inputs.emplace_back();
      return isBytes && parseValueInfo(field.bytes, graph.inputs.back());
    case 12:
      graph.outputs.emplace_back();
      return isBytes && parseValueInfo(field.bytes, graph.outputs.back());
    case 15:
      graph.hasSparse = true;
      return true;
    default:
      return true;
    }
  });
}

llvm::Expected<Model> mlir::posenc::onnx::parseModel(StringRef bytes) {
  Model model;
  bool isRead = readFields(bytes, [&](const WireField &field) {
    if (field.isBytes(7)) {
      model.hasGraph = true;
      return parseGraph(field.bytes, model.graph, /*depth=*/0);
    }
    if (field.isBytes(8)) {
      StringRef domain;
      int64_t version = 0;
      bool isParsed = readFields(field.bytes, [&](const WireField &part) {
        if (part.isBytes(1))
          domain = part.bytes == "ai.onnx" ? "" : part.bytes;
        if (part.isVarint(2))
          version = part.getInt();
        return true;
      });
      // Nodes have the meaning of the highest version.
      auto [it, isNew] = model.opsets.try_emplace(domain, version);
      it->second = std::max(it->second, version);
      return isParsed;
    }
    if (field.isBytes(25)) {
      StringRef name;
      bool isParsed = readFields(field.bytes, [&](const WireField &part) {
        if (part.isBytes(1))
          name = part.bytes;
        return true;
      });
      model.functions.push_back(name);
      return isParsed;
    }
    return true;
  });
  if (!isRead)
    return llvm::createStringError(
        "expected an ONNX model: the file is damaged, truncated, or no "
        "protobuf message");
  if (!model.hasGraph)
    return llvm::createStringError("expected an ONNX model, found no graph");
  if (model.graph.hasSparse)
    return llvm::createStringError("sparse initializers are not supported");
  if (!model.opsets.count(""))
    model.opsets[""] = 1;
  return model;
}
