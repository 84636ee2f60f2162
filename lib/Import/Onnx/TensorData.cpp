//===- TensorData.cpp - elements of constant tensors ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Importer.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

Type onnx::getElementType(MLIRContext *context, int64_t type) {
  Builder builder(context);
  switch (static_cast<DataType>(type)) {
  case DataType::Float:
    return builder.getF32Type();
  case DataType::Double:
    return builder.getF64Type();
  case DataType::Float16:
    return builder.getF16Type();
  case DataType::BFloat16:
    return builder.getBF16Type();
  case DataType::Int64:
    return builder.getI64Type();
  case DataType::Int32:
    return builder.getI32Type();
  case DataType::Int8:
    return builder.getI8Type();
  case DataType::Bool:
    return builder.getI1Type();
  default:
    return Type();
  }
}

std::string onnx::describeDataType(int64_t type) {
  static constexpr StringLiteral names[] = {
      "undefined", "float",  "uint8",     "int8",       "uint16",  "int16",
      "int32",     "int64",  "string",    "bool",       "float16", "double",
      "uint32",    "uint64", "complex64", "complex128", "bfloat16"};
  if (type >= 0 && type < static_cast<int64_t>(std::size(names)))
    return names[type].str();
  return "number " + std::to_string(type);
}

/// Opens a file of external data, in the first folder that has it. It must be
/// inside of one of them after symbolic links are resolved.
static std::unique_ptr<llvm::MemoryBuffer>
openInside(ArrayRef<std::string> folders, StringRef location,
           llvm::function_ref<InFlightDiagnostic()> emitError) {
  namespace path = llvm::sys::path;
  auto fail = [&](const Twine &reason) {
    emitError() << "cannot read external data '" << location.take_front(256)
                << "': " << reason;
    return nullptr;
  };
  if (location.empty() || location.contains('\0'))
    return fail("expected a file name");
  if (path::is_absolute(location) || location.contains('\\'))
    return fail("expected a path relative to the model's folder");
  for (StringRef part :
       llvm::make_range(path::begin(location), path::end(location)))
    if (part == "..")
      return fail("it is outside of the model's folder");
  SmallString<256> real;
  std::error_code code;
  for (StringRef folder : folders) {
    SmallString<256> full(folder);
    path::append(full, location);
    if (!(code = llvm::sys::fs::real_path(full, real)))
      break;
  }
  if (code)
    return fail(code.message());
  bool isInside = llvm::any_of(folders, [&](StringRef folder) {
    SmallString<256> root;
    if (llvm::sys::fs::real_path(folder, root))
      return false;
    if (!root.ends_with("/"))
      root += '/';
    return real.starts_with(root);
  });
  if (!isInside)
    return fail("it is outside of the model's folder");
  if (!llvm::sys::fs::is_regular_file(real))
    return fail("it is not a regular file");
  auto buffer = llvm::MemoryBuffer::getFile(real, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fail(buffer.getError().message());
  return std::move(*buffer);
}

std::optional<StringRef>
TensorReader::readExternal(const TensorProto &proto,
                           llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (folders.empty()) {
    emitError() << "external data needs a model that is read from a file";
    return std::nullopt;
  }
  std::unique_ptr<llvm::MemoryBuffer> &file = files[proto.location];
  if (!file && !(file = openInside(folders, proto.location, emitError)))
    return std::nullopt;
  uint64_t size = file->getBufferSize(), offset = 0, length = 0;
  if (!proto.offset.empty() && proto.offset.getAsInteger(10, offset)) {
    emitError() << "offset of external data is not a number";
    return std::nullopt;
  }
  if (offset > size) {
    emitError() << "external data begins beyond the end of '" << proto.location
                << "', which has " << size << " bytes";
    return std::nullopt;
  }
  length = size - offset;
  if (!proto.length.empty() && proto.length.getAsInteger(10, length)) {
    emitError() << "length of external data is not a number";
    return std::nullopt;
  }
  if (length > size - offset) {
    emitError() << "external data ends beyond the end of '" << proto.location
                << "', which has " << size << " bytes";
    return std::nullopt;
  }
  return file->getBuffer().substr(offset, length);
}

/// Returns the attribute of elements that are numbers of type T.
template <typename T, typename Source>
static DenseElementsAttr convert(RankedTensorType type, ArrayRef<Source> from) {
  SmallVector<T> values;
  values.reserve(from.size());
  for (Source value : from)
    values.push_back(static_cast<T>(value));
  return DenseElementsAttr::getFromRawBuffer(
      type, ArrayRef<char>(reinterpret_cast<const char *>(values.data()),
                           values.size() * sizeof(T)));
}

/// Returns the attribute of elements in typed fields; null if a field does not
/// have as many elements as the tensor.
static DenseElementsAttr convertFields(RankedTensorType type,
                                       const TensorProto &proto) {
  Type element = type.getElementType();
  size_t count = type.getNumElements();
  ArrayRef<int64_t> ints(proto.ints);
  if (element.isF32())
    return proto.floats.size() == count
               ? convert<float>(type, ArrayRef<float>(proto.floats))
               : nullptr;
  if (element.isF64())
    return proto.doubles.size() == count
               ? convert<double>(type, ArrayRef<double>(proto.doubles))
               : nullptr;
  if (ints.size() != count)
    return nullptr;
  if (element.isInteger(1)) {
    SmallVector<bool> values;
    for (int64_t value : ints)
      values.push_back(value != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  switch (element.getIntOrFloatBitWidth()) {
  case 8:
    return convert<int8_t>(type, ints);
  case 16:
    return convert<uint16_t>(type, ints);
  case 32:
    return convert<int32_t>(type, ints);
  default:
    return convert<int64_t>(type, ints);
  }
}

DenseElementsAttr
TensorReader::read(const TensorProto &proto,
                   llvm::function_ref<InFlightDiagnostic()> emitError) {
  auto fail = [&](const Twine &reason) -> DenseElementsAttr {
    InFlightDiagnostic error = emitError();
    error << "tensor";
    if (!proto.name.empty())
      error << " '" << proto.name.take_front(256) << "'";
    error << ": " << reason;
    return nullptr;
  };
  Type element = getElementType(context, proto.type);
  if (!element)
    return fail("element type " + describeDataType(proto.type) +
                " is not supported");
  if (proto.dims.size() > kMaxRank)
    return fail("it has more than " + Twine(kMaxRank) + " dimensions");
  int64_t bytes =
      element.isInteger(1) ? 1 : element.getIntOrFloatBitWidth() / 8;
  for (int64_t size : proto.dims) {
    if (size < 0)
      return fail("size " + Twine(size) + " is negative");
    if (llvm::MulOverflow(bytes, size, bytes) ||
        bytes > static_cast<int64_t>(kMaxOnnxBytes))
      return fail("it is larger than " + Twine(kMaxOnnxBytes >> 30) + " GiB");
  }
  numBytes += bytes;
  if (numBytes > kMaxOnnxBytes)
    return fail("constants are larger than " + Twine(kMaxOnnxBytes >> 30) +
                " GiB");
  auto type = RankedTensorType::get(proto.dims, element);
  if (bytes == 0)
    return DenseElementsAttr::get(type, ArrayRef<mlir::Attribute>());
  std::optional<StringRef> raw = proto.raw;
  if (proto.isExternal && !(raw = readExternal(proto, emitError)))
    return nullptr;
  if (!raw) {
    if (DenseElementsAttr attr = convertFields(type, proto))
      return attr;
    return fail("expected " + Twine(type.getNumElements()) +
                " elements of type " + describeDataType(proto.type));
  }
  if (raw->size() != static_cast<uint64_t>(bytes))
    return fail("expected " + Twine(bytes) + " bytes, found " +
                Twine(raw->size()));
  if (element.isInteger(1)) {
    SmallVector<bool> values;
    for (char byte : *raw)
      values.push_back(byte != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  // Raw data may have any alignment; the attribute copies it.
  return DenseElementsAttr::getFromRawBuffer(
      type, ArrayRef<char>(raw->data(), raw->size()));
}
