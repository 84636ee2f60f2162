//===- TensorData.cpp - elements of constant tensors ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Importer.h"

#include "posenc/IR/Weights.h"

#include "mlir/IR/DialectResourceBlobManager.h"
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
  case DataType::Int4:
    return builder.getIntegerType(4);
  case DataType::Int16:
    return builder.getI16Type();
  case DataType::Uint4:
    return builder.getIntegerType(4, /*isSigned=*/false);
  case DataType::Uint8:
    return builder.getIntegerType(8, /*isSigned=*/false);
  case DataType::Uint16:
    return builder.getIntegerType(16, /*isSigned=*/false);
  default:
    return Type();
  }
}

bool onnx::isCode(Type element) {
  auto integer = dyn_cast_or_null<IntegerType>(element);
  return integer && (integer.isUnsigned() || integer.getWidth() == 4 ||
                     integer.getWidth() == 16);
}

Type onnx::getStorageType(Type element) {
  if (!isCode(element))
    return element;
  return IntegerType::get(element.getContext(),
                          std::max(element.getIntOrFloatBitWidth(), 8u));
}

std::string onnx::describeDataType(int64_t type) {
  static constexpr StringLiteral names[] = {
      "undefined",      "float",      "uint8",
      "int8",           "uint16",     "int16",
      "int32",          "int64",      "string",
      "bool",           "float16",    "double",
      "uint32",         "uint64",     "complex64",
      "complex128",     "bfloat16",   "float8e4m3fn",
      "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "uint4",          "int4",       "float4e2m1",
      "float8e8m0",     "uint2",      "int2"};
  if (type >= 0 && type < static_cast<int64_t>(std::size(names)))
    return names[type].str();
  return "number " + std::to_string(type);
}

/// Opens a file of external data, in the first folder that has it. It must be
/// inside of one of them after symbolic links are resolved. Sets `realPath` to
/// its path without links.
static std::shared_ptr<llvm::MemoryBuffer>
openInside(ArrayRef<std::string> folders, StringRef location,
           SmallVectorImpl<char> &realPath,
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
  realPath.assign(real.begin(), real.end());
  return std::move(*buffer);
}

std::optional<StringRef>
TensorReader::readExternal(const TensorProto &proto,
                           llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (folders.empty()) {
    emitError() << "external data needs a model that is read from a file";
    return std::nullopt;
  }
  std::shared_ptr<llvm::MemoryBuffer> &file = files[proto.location];
  if (!file) {
    SmallString<256> path;
    std::shared_ptr<llvm::MemoryBuffer> opened =
        openInside(folders, proto.location, path, emitError);
    if (!opened)
      return std::nullopt;
    // Several locations may name one file.
    std::shared_ptr<llvm::MemoryBuffer> &known = filesByPath[path];
    if (!known) {
      known = std::move(opened);
      if (onExternalData)
        onExternalData(path, known);
    }
    file = known;
  }
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

/// Returns the elements of 4 bits of packed bytes, a byte each: the lower half
/// of a byte first.
static DenseElementsAttr unpackHalves(RankedTensorType type, bool isSigned,
                                      StringRef bytes) {
  SmallVector<char> values;
  int64_t count = type.getNumElements();
  values.reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    int value = (bytes[i / 2] >> (i % 2 * 4)) & 15;
    values.push_back(isSigned && value > 7 ? value - 16 : value);
  }
  return DenseElementsAttr::getFromRawBuffer(type, values);
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

FailureOr<DenseResourceElementsAttr>
TensorReader::map(const TensorProto &proto, uint64_t minBytes,
                  llvm::function_ref<InFlightDiagnostic()> emitError) {
  Type element = getElementType(context, proto.type);
  bool isMapped = proto.isExternal || (proto.raw && model);
  bool isMappedType =
      element && (isa<FloatType>(element) || element.isUnsignedInteger(8));
  if (!isMapped || !isMappedType || proto.dims.size() > kMaxRank ||
      llvm::any_of(proto.dims, [](int64_t size) { return size <= 0; }))
    return DenseResourceElementsAttr();
  auto type = RankedTensorType::get(proto.dims, getStorageType(element));
  std::optional<int64_t> bytes = getNumBytes(type);
  if (!bytes || static_cast<uint64_t>(*bytes) < minBytes)
    return DenseResourceElementsAttr();
  std::optional<StringRef> raw = proto.raw;
  std::shared_ptr<llvm::MemoryBuffer> memory = model;
  if (proto.isExternal) {
    raw = readExternal(proto, emitError);
    if (!raw)
      return failure();
    memory = files[proto.location];
  }
  // read() reports the error.
  if (raw->size() != static_cast<uint64_t>(*bytes))
    return DenseResourceElementsAttr();
  // The memory is that of a file, which has any alignment.
  AsmResourceBlob blob(
      ArrayRef<char>(raw->data(), raw->size()), /*dataAlignment=*/1,
      [memory](void *, size_t, size_t) {}, /*dataIsMutable=*/false);
  return DenseResourceElementsAttr::get(type, getWeightsKey(proto.name),
                                        std::move(blob));
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
  Type storage = getStorageType(element);
  bool isHalf = storage.getIntOrFloatBitWidth() == 8 &&
                element.getIntOrFloatBitWidth() == 4;
  int64_t bytes =
      element.isInteger(1) ? 1 : storage.getIntOrFloatBitWidth() / 8;
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
  auto type = RankedTensorType::get(proto.dims, storage);
  if (isHalf)
    bytes = (bytes + 1) / 2;
  if (bytes == 0)
    return DenseElementsAttr::get(type, ArrayRef<mlir::Attribute>());
  std::optional<StringRef> raw = proto.raw;
  if (proto.isExternal && !(raw = readExternal(proto, emitError)))
    return nullptr;
  std::string packed;
  if (!raw && isHalf && proto.ints.size() == static_cast<uint64_t>(bytes)) {
    packed.assign(proto.ints.begin(), proto.ints.end());
    raw = packed;
  }
  if (!raw) {
    DenseElementsAttr attr = isHalf ? nullptr : convertFields(type, proto);
    if (attr)
      return attr;
    return fail("expected " + Twine(type.getNumElements()) +
                " elements of type " + describeDataType(proto.type));
  }
  if (raw->size() != static_cast<uint64_t>(bytes))
    return fail("expected " + Twine(bytes) + " bytes, found " +
                Twine(raw->size()));
  if (isHalf)
    return unpackHalves(type, !element.isUnsignedInteger(), *raw);
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
