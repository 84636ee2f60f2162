//===- Wire.h - reader of protobuf's wire format ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A message is a sequence of fields: a key (number and wire type), then a
// varint, 4 or 8 bytes, or a length and as many bytes. The reader never copies
// and never recurses: a nested message is a range of bytes with a reader of its
// own.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IMPORT_ONNX_WIRE_H
#define POSENC_LIB_IMPORT_ONNX_WIRE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Endian.h"

#include <cstring>

namespace mlir::posenc::onnx {

/// A field of a message.
struct WireField {
  enum class Type { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };
  uint64_t number = 0;
  Type type = Type::Varint;
  /// The value, unless the type is Bytes.
  uint64_t bits = 0;
  llvm::StringRef bytes;

  bool isBytes(uint64_t field) const {
    return number == field && type == Type::Bytes;
  }
  bool isVarint(uint64_t field) const {
    return number == field && type == Type::Varint;
  }
  int64_t getInt() const { return static_cast<int64_t>(bits); }
  float getFloat() const {
    uint32_t low = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &low, sizeof(value));
    return value;
  }
};

/// Reads the fields of a message in order.
class WireReader {
public:
  explicit WireReader(llvm::StringRef bytes) : rest(bytes) {}

  /// Reads the next field; returns false at the end, and after an error.
  bool next(WireField &field) {
    uint64_t key;
    if (rest.empty() || !readVarint(key))
      return false;
    field.number = key >> 3;
    field.type = static_cast<WireField::Type>(key & 7);
    field.bytes = {};
    field.bits = 0;
    if (field.number == 0)
      return fail();
    switch (field.type) {
    case WireField::Type::Varint:
      return readVarint(field.bits);
    case WireField::Type::Fixed64:
      if (rest.size() < 8)
        return fail();
      field.bits = llvm::support::endian::read64le(rest.data());
      rest = rest.drop_front(8);
      return true;
    case WireField::Type::Fixed32:
      if (rest.size() < 4)
        return fail();
      field.bits = llvm::support::endian::read32le(rest.data());
      rest = rest.drop_front(4);
      return true;
    case WireField::Type::Bytes: {
      uint64_t size;
      if (!readVarint(size))
        return false;
      if (size > rest.size())
        return fail();
      field.bytes = rest.take_front(size);
      rest = rest.drop_front(size);
      return true;
    }
    }
    // Groups, which ONNX does not have.
    return fail();
  }

  bool hasFailed() const { return failed; }

  /// Reads a number of 1 to 10 bytes.
  bool readVarint(uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest.empty())
        return fail();
      uint8_t byte = rest.front();
      rest = rest.drop_front();
      value |= uint64_t(byte & 127) << shift;
      if (byte < 128)
        return true;
    }
    return fail();
  }
  bool isAtEnd() const { return rest.empty(); }

private:
  bool fail() {
    failed = true;
    return false;
  }

  llvm::StringRef rest;
  bool failed = false;
};

/// Appends the elements of a repeated integer, packed or not. Returns false if
/// they are malformed.
inline bool appendInts(const WireField &field,
                       llvm::SmallVectorImpl<int64_t> &values) {
  if (field.type == WireField::Type::Varint) {
    values.push_back(field.getInt());
    return true;
  }
  if (field.type != WireField::Type::Bytes)
    return false;
  WireReader reader(field.bytes);
  while (!reader.isAtEnd()) {
    uint64_t value;
    if (!reader.readVarint(value))
      return false;
    values.push_back(static_cast<int64_t>(value));
  }
  return true;
}

/// Appends the elements of a repeated float, packed or not.
inline bool appendFloats(const WireField &field,
                         llvm::SmallVectorImpl<float> &values) {
  if (field.type == WireField::Type::Fixed32) {
    values.push_back(field.getFloat());
    return true;
  }
  if (field.type != WireField::Type::Bytes || field.bytes.size() % 4)
    return false;
  for (size_t i = 0; i < field.bytes.size(); i += 4) {
    uint32_t bits = llvm::support::endian::read32le(field.bytes.data() + i);
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    values.push_back(value);
  }
  return true;
}

/// Appends the elements of a repeated double, packed or not.
inline bool appendDoubles(const WireField &field,
                          llvm::SmallVectorImpl<double> &values) {
  auto append = [&](uint64_t bits) {
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    values.push_back(value);
  };
  if (field.type == WireField::Type::Fixed64) {
    append(field.bits);
    return true;
  }
  if (field.type != WireField::Type::Bytes || field.bytes.size() % 8)
    return false;
  for (size_t i = 0; i < field.bytes.size(); i += 8)
    append(llvm::support::endian::read64le(field.bytes.data() + i));
  return true;
}

} // namespace mlir::posenc::onnx

#endif // POSENC_LIB_IMPORT_ONNX_WIRE_H
