//===- OnnxMutator.cpp - mutations of decoded ONNX models -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The schema is that of onnx.proto: which fields of a message are messages.
//
//===----------------------------------------------------------------------===//

#include "Doors.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <memory>
#include <optional>

using namespace posenc::fuzz;
using llvm::ArrayRef;
using llvm::StringRef;

namespace {
enum class Kind {
  Model,
  Operators, // OperatorSetIdProto
  Graph,
  Node,
  Attribute,
  Tensor,
  Value, // ValueInfoProto
  Type,
  TensorType,
  Shape,
  Dimension,
  Entry // StringStringEntryProto
};

/// A field of a message that is a message.
struct Nested {
  Kind in;
  unsigned number;
  Kind kind;
};

enum Wire : unsigned { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

struct Message;

struct Field {
  unsigned number = 0;
  Wire wire = Varint;
  uint64_t value = 0; // of Varint
  std::string bytes;  // of the others
  std::shared_ptr<Message> message;
};

struct Message {
  Kind kind;
  std::vector<Field> fields;
};
} // namespace

static constexpr Nested kNested[] = {
    {Kind::Model, 7, Kind::Graph},      {Kind::Model, 8, Kind::Operators},
    {Kind::Model, 14, Kind::Entry},     {Kind::Graph, 1, Kind::Node},
    {Kind::Graph, 5, Kind::Tensor},     {Kind::Graph, 11, Kind::Value},
    {Kind::Graph, 12, Kind::Value},     {Kind::Graph, 13, Kind::Value},
    {Kind::Node, 5, Kind::Attribute},   {Kind::Attribute, 5, Kind::Tensor},
    {Kind::Attribute, 6, Kind::Graph},  {Kind::Tensor, 13, Kind::Entry},
    {Kind::Value, 2, Kind::Type},       {Kind::Type, 1, Kind::TensorType},
    {Kind::TensorType, 2, Kind::Shape}, {Kind::Shape, 1, Kind::Dimension},
};

//===----------------------------------------------------------------------===//
// Decoding and encoding
//===----------------------------------------------------------------------===//

static std::optional<uint64_t> readVarint(StringRef &bytes) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    auto byte = static_cast<uint8_t>(bytes.front());
    bytes = bytes.drop_front();
    value |= uint64_t(byte & 127) << shift;
    if (byte < 128)
      return value;
  }
  return std::nullopt;
}

/// Decodes the fields up to the first that is malformed.
static Message decode(StringRef bytes, Kind kind, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 32;
  Message message{kind, {}};
  while (!bytes.empty()) {
    std::optional<uint64_t> tag = readVarint(bytes);
    if (!tag)
      break;
    Field field;
    field.number = static_cast<unsigned>(*tag >> 3);
    field.wire = static_cast<Wire>(*tag & 7);
    size_t size = field.wire == Fixed64 ? 8 : field.wire == Fixed32 ? 4 : 0;
    if (field.wire == Varint || field.wire == Bytes) {
      std::optional<uint64_t> value = readVarint(bytes);
      if (!value)
        break;
      (field.wire == Varint ? field.value : size) = *value;
    } else if (size == 0) {
      break;
    }
    if (size > bytes.size())
      break;
    field.bytes = bytes.take_front(size).str();
    bytes = bytes.drop_front(size);
    const Nested *nested = llvm::find_if(kNested, [&](const Nested &nested) {
      return nested.in == kind && nested.number == field.number;
    });
    if (field.wire == Bytes && nested != std::end(kNested) && depth < kMaxDepth)
      field.message = std::make_shared<Message>(
          decode(field.bytes, nested->kind, depth + 1));
    message.fields.push_back(std::move(field));
  }
  return message;
}

static void writeVarint(uint64_t value, std::string &bytes) {
  for (; value >= 128; value >>= 7)
    bytes += static_cast<char>(value | 128);
  bytes += static_cast<char>(value);
}

static std::string encode(const Message &message) {
  std::string bytes;
  for (const Field &field : message.fields) {
    writeVarint(uint64_t(field.number) << 3 | field.wire, bytes);
    if (field.wire == Varint) {
      writeVarint(field.value, bytes);
      continue;
    }
    const std::string &content =
        field.message ? encode(*field.message) : field.bytes;
    if (field.wire == Bytes)
      writeVarint(content.size(), bytes);
    bytes += content;
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

/// Adds the messages below one, itself included.
static void collect(Message &message, std::vector<Message *> &messages) {
  messages.push_back(&message);
  for (Field &field : message.fields)
    if (field.message)
      collect(*field.message, messages);
}

/// Returns a copy that shares nothing with the field.
static Field copyField(const Field &field) {
  Field copy = field;
  if (field.message) {
    Message message = decode(encode(*field.message), field.message->kind);
    copy.message = std::make_shared<Message>(std::move(message));
  }
  return copy;
}

/// A field with this number of some message of this kind; null if there is
/// none.
static const Field *pickAlike(Random &random, ArrayRef<Message *> messages,
                              Kind kind, unsigned number) {
  std::vector<const Field *> fields;
  for (const Message *message : messages)
    for (const Field &field : message->fields)
      if (message->kind == kind && field.number == number)
        fields.push_back(&field);
  return fields.empty() ? nullptr : random.pick(ArrayRef(fields));
}

static void mutateVarint(Random &random, uint64_t &value) {
  static constexpr uint64_t kValues[] = {
      0,          1,     2,       3,          7,
      16,         255,   1 << 16, 1ull << 31, ~0ull >> 1,
      1ull << 63, ~0ull, ~1ull,   1ull << 32, 13,
      21,         24,    100,     1u << 20,   1ull << 40};
  switch (random.below(4)) {
  case 0:
    ++value;
    break;
  case 1:
    --value;
    break;
  case 2:
    value = random.below(32);
    break;
  default:
    value = random.pick(ArrayRef(kValues));
    break;
  }
}

/// Changes a field of a message. `messages` are those of this model and of
/// another one.
static void mutateField(Random &random, Message &message,
                        ArrayRef<Message *> messages) {
  std::vector<Field> &fields = message.fields;
  size_t at = random.below(fields.size());
  switch (random.below(8)) {
  case 0:
    fields.erase(fields.begin() + at);
    return;
  case 1: {
    Field copy = copyField(fields[at]);
    fields.insert(fields.begin() + random.below(fields.size() + 1),
                  std::move(copy));
    return;
  }
  case 2:
    std::swap(fields[at], fields[random.below(fields.size())]);
    return;
  default:
    break;
  }
  Field &field = fields[at];
  const Field *alike = pickAlike(random, messages, message.kind, field.number);
  if (field.wire == Varint && random.chance(2))
    mutateVarint(random, field.value);
  else if (field.wire != Varint && !field.message && random.chance(4))
    field.bytes = mutateBytes(random, {field.bytes});
  else if (alike)
    field = copyField(*alike);
}

std::string posenc::fuzz::mutateOnnx(Random &random,
                                     ArrayRef<std::string> texts) {
  Message model = decode(texts.front(), Kind::Model);
  Message other = decode(texts.back(), Kind::Model);
  for (bool more = true; more; more = random.chance(2)) {
    std::vector<Message *> messages;
    collect(model, messages);
    size_t numOwn = messages.size();
    collect(other, messages);
    // Short messages are as likely as long ones.
    Message &message = *messages[random.below(numOwn)];
    if (message.fields.empty()) {
      const Message *alike = random.pick(ArrayRef(messages));
      if (alike->kind == message.kind)
        for (const Field &field : alike->fields)
          message.fields.push_back(copyField(field));
    } else {
      mutateField(random, message, messages);
    }
  }
  return encode(model);
}
