//===- TuningFile.cpp - reading and writing of tuning files ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/TuningFile.h"

#include "ReadFile.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/Frontend/Diagnostic.h"
#include "posenc/Frontend/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::posenc;
using llvm::StringRef;
using llvm::Twine;
namespace frontend = ::posenc::frontend;
namespace json = ::posenc::frontend::json;

static constexpr int64_t kVersion = 1;

namespace {
/// Reads a tuning file. Stops at the first error and prints it.
class TuningReader {
public:
  TuningReader(StringRef path, StringRef text) : path(path), text(text) {}
  bool read(llvm::MutableArrayRef<TargetSpec> targets);

private:
  bool fail(json::Position at, const Twine &message) const;
  bool fail(const json::Value &at, const Twine &message) const {
    return fail(json::Document::positionOf(text, at.offset()), message);
  }
  bool checkKeys(const json::Value &object,
                 llvm::ArrayRef<StringRef> known) const;
  /// Returns the value of a key; null after an error if it is missing or is not
  /// of the kind `kind`, which `wanted` describes.
  const json::Value *find(const json::Value &object, StringRef key,
                          json::Value::Kind kind, StringRef wanted) const;
  bool readChoice(const TuningChoice &choice, const json::Value &value,
                  Tuning &tuning) const;

  StringRef path, text;
};
} // namespace

bool TuningReader::fail(json::Position at, const Twine &message) const {
  getErrorStream() << frontend::Diagnostic{
      frontend::Severity::Error, path.str(), at.line, at.col, message.str()};
  return false;
}

/// Quotes text of a file for a diagnostic: at most 80 characters, escaped.
static std::string quote(StringRef text) {
  std::string quoted;
  llvm::raw_string_ostream os(quoted);
  os << '\'';
  llvm::printEscapedString(text.take_front(80), os);
  os << '\'';
  return quoted;
}

bool TuningReader::checkKeys(const json::Value &object,
                             llvm::ArrayRef<StringRef> known) const {
  llvm::SmallVector<StringRef> seen;
  for (const json::Member &member : object.members()) {
    if (!llvm::is_contained(known, member.name()))
      return fail(member.key, "unknown key " + quote(member.name()) +
                                  ": expected " + llvm::join(known, ", "));
    if (llvm::is_contained(seen, member.name()))
      return fail(member.key, quote(member.name()) + " is given twice");
    seen.push_back(member.name());
  }
  return true;
}

const json::Value *TuningReader::find(const json::Value &object, StringRef key,
                                      json::Value::Kind kind,
                                      StringRef wanted) const {
  const json::Member *member = object.find(key);
  if (!member)
    return fail(object, "missing key '" + key + "'"), nullptr;
  if (member->value.kind() != kind)
    return fail(member->value, "'" + key + "' is " +
                                   json::describeKind(member->value) +
                                   ": expected " + wanted),
           nullptr;
  return &member->value;
}

bool TuningReader::readChoice(const TuningChoice &choice,
                              const json::Value &value, Tuning &tuning) const {
  std::optional<int64_t> number = value.integer();
  bool isRight = number && *number >= 0 && uint64_t(*number) >= choice.min &&
                 uint64_t(*number) <= choice.max &&
                 uint64_t(*number) % choice.multiple == 0;
  if (!isRight)
    return fail(value, "'" + choice.name + "' must be " +
                           (choice.multiple == 1
                                ? "an integer"
                                : "a multiple of " + Twine(choice.multiple)) +
                           " from " + Twine(choice.min) + " to " +
                           Twine(choice.max));
  tuning.*choice.value = *number;
  return true;
}

bool TuningReader::read(llvm::MutableArrayRef<TargetSpec> targets) {
  json::ParseError error;
  std::unique_ptr<json::Document> document = json::Document::parse(text, error);
  if (!document)
    return fail(error.position, error.message);
  const json::Value &root = document->root();
  if (!root.isObject())
    return fail(root, "expected an object with the parameters for a CPU, got " +
                          json::describeKind(root));
  // Checked before the keys, as another version may have other keys.
  const json::Value *version =
      find(root, "version", json::Value::Kind::Number, "a number");
  if (!version)
    return false;
  if (version->integer() != kVersion)
    return fail(*version, "unknown version of the tuning file: expected " +
                              Twine(kVersion));
  if (!checkKeys(root, {"version", "cpu", "choices"}))
    return false;
  const json::Value *cpu =
      find(root, "cpu", json::Value::Kind::String, "a string");
  const json::Value *choices =
      cpu ? find(root, "choices", json::Value::Kind::Object, "an object")
          : nullptr;
  if (!choices)
    return false;

  auto names =
      llvm::map_to_vector(getTuningChoices(), [](const TuningChoice &choice) {
        return choice.name;
      });
  if (!checkKeys(*choices, names))
    return false;
  bool isUsed = false;
  for (TargetSpec &target : targets) {
    Tuning tuning = target.tuning;
    for (const TuningChoice &choice : getTuningChoices())
      if (const json::Member *member = choices->find(choice.name))
        if (!readChoice(choice, member->value, tuning))
          return false;
    // In files written before these fields existed, one value applied to both.
    auto inherit = [&](StringRef name, StringRef from, uint64_t Tuning::*to,
                       uint64_t Tuning::*value) {
      if (!choices->find(name) && choices->find(from))
        tuning.*to = tuning.*value;
    };
    inherit("prefetch_in_order", "prefetch_distance", &Tuning::prefetchInOrder,
            &Tuning::prefetchDistance);
    inherit("small_block_positions", "block_positions",
            &Tuning::smallBlockPositions, &Tuning::blockPositions);
    if (target.tuneCpu != cpu->string())
      continue;
    target.tuning = tuning;
    isUsed = true;
  }
  if (isUsed)
    return true;
  auto targetNames = llvm::map_to_vector(
      targets, [](const TargetSpec &target) { return target.name; });
  return fail(*cpu, "the file is for CPU " + quote(cpu->string()) +
                        ", which is not the CPU of " +
                        llvm::join(targetNames, ", "));
}

llvm::LogicalResult
mlir::posenc::applyTuningFile(StringRef path,
                              llvm::MutableArrayRef<TargetSpec> targets) {
  constexpr uint64_t limit = 1 << 20;
  std::unique_ptr<llvm::MemoryBuffer> buffer = readFile(path, limit);
  return llvm::success(buffer &&
                       TuningReader(path, buffer->getBuffer()).read(targets));
}

std::string mlir::posenc::formatTuningFile(const TargetSpec &target) {
  std::string text;
  llvm::raw_string_ostream os(text);
  // CPU names of LLVM contain no character that JSON must escape.
  os << "{\n  \"version\": " << kVersion << ",\n  \"cpu\": \"" << target.tuneCpu
     << "\",\n  \"choices\": {";
  llvm::interleave(
      getTuningChoices(), os,
      [&](const TuningChoice &choice) {
        os << "\n    \"" << choice.name
           << "\": " << target.tuning.*choice.value;
      },
      ",");
  os << "\n  }\n}\n";
  return text;
}
