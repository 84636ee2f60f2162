//===- PositionKeys.h - keys that change rotations and masks ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The keys by which a model of transformers or vLLM, or one that is published
// with its own code, changes a rotation, a position, a mask or the scores. A
// key that a known model type has and that the readers ignore is an error,
// since the functions would compute something else without notice.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_POSITIONKEYS_H
#define POSENC_LIB_FRONTEND_POSITIONKEYS_H

#include "ModelTable.h"
#include "RopeDictionary.h"

namespace posenc::frontend {

/// Values by which a key says that it changes nothing. Null always does.
enum Neutral : unsigned {
  kNoNeutral = 0,
  kFalse = 1 << 0,
  kTrue = 1 << 1,
  kZero = 1 << 2,
  kOne = 1 << 3,
  kNegative = 1 << 4,
  kEmpty = 1 << 5, // an empty list, object or string
};

/// A row of the table. Types are those of `model_type`.
struct PositionKey {
  llvm::StringLiteral name;
  /// A verb phrase that says what the key does.
  llvm::StringLiteral effect;
  unsigned neutral = kNoNeutral;
  /// The key of the same quantity, whose value changes nothing either; empty if
  /// there is none.
  llvm::StringLiteral sameAs = "";
  /// Whether the key belongs into the dictionary of the rotation.
  bool isOfDictionary = false;
  /// Whether the key is read for all types.
  bool isRead = false;
  /// The types for which the key is read, besides those whose row names it.
  llvm::ArrayRef<llvm::StringLiteral> readTypes;
  /// If not empty, the types whose own code reads a key that is read for all
  /// types. It is a warning for other known types.
  llvm::ArrayRef<llvm::StringLiteral> knownTypes;
  /// The types whose own code does not read a key that is read for all types,
  /// or for these. It is a warning for them.
  llvm::ArrayRef<llvm::StringLiteral> ignoringTypes;
  /// The same for configs without a dictionary of the rotation: the code of
  /// these types has a default dictionary.
  llvm::ArrayRef<llvm::StringLiteral> ignoringAloneTypes;
  /// The same for a dictionary of all layers: the code of these types reads
  /// only one for each layer type.
  llvm::ArrayRef<llvm::StringLiteral> ignoringFlatTypes;
  /// Whether it is an error for all other known types. If not, only for
  /// `refusedTypes`: the code of other types ignores the key, which occurs in
  /// their configs nevertheless.
  bool isRefused = true;
  llvm::ArrayRef<llvm::StringLiteral> refusedTypes;
  /// Whether it is an error for unknown types as well, instead of a warning.
  bool needsType = false;
  /// Whether the key is read for unknown types.
  bool isReadForUnknown = false;
  /// Advice about the error, a sentence without its end; empty for the
  /// usual advice.
  llvm::StringLiteral advice = "";

  constexpr PositionKey(llvm::StringLiteral name, llvm::StringLiteral effect)
      : name(name), effect(effect) {}
  // Each function returns a copy of the row with one property changed.
  template <typename T>
  constexpr PositionKey with(T PositionKey::*property, T value) const {
    PositionKey copy = *this;
    copy.*property = value;
    return copy;
  }
  constexpr PositionKey unless(unsigned values) const {
    return with(&PositionKey::neutral, values);
  }
  constexpr PositionKey unlessSameAs(llvm::StringLiteral key) const {
    return with(&PositionKey::sameAs, key);
  }
  constexpr PositionKey inDictionary() const {
    return with(&PositionKey::isOfDictionary, true);
  }
  constexpr PositionKey read() const {
    return with(&PositionKey::isRead, true);
  }
  constexpr PositionKey
  readFor(llvm::ArrayRef<llvm::StringLiteral> types) const {
    return with(&PositionKey::readTypes, types);
  }
  constexpr PositionKey
  knownFor(llvm::ArrayRef<llvm::StringLiteral> types) const {
    return with(&PositionKey::knownTypes, types);
  }
  constexpr PositionKey
  ignoredBy(llvm::ArrayRef<llvm::StringLiteral> types) const {
    return with(&PositionKey::ignoringTypes, types);
  }
  constexpr PositionKey
  ignoredAloneBy(llvm::ArrayRef<llvm::StringLiteral> types) const {
    return with(&PositionKey::ignoringAloneTypes, types);
  }
  constexpr PositionKey
  ignoredFlatBy(llvm::ArrayRef<llvm::StringLiteral> types) const {
    return with(&PositionKey::ignoringFlatTypes, types);
  }
  constexpr PositionKey readForUnknown() const {
    return with(&PositionKey::isReadForUnknown, true);
  }
  /// Other types than those for which the key is read ignore it.
  constexpr PositionKey otherwiseIgnored() const {
    return with(&PositionKey::isRefused, false);
  }
  constexpr PositionKey
  refusedFor(llvm::ArrayRef<llvm::StringLiteral> types) const {
    return otherwiseIgnored().with(&PositionKey::refusedTypes, types);
  }
  constexpr PositionKey needingType() const {
    return with(&PositionKey::needsType, true);
  }
  constexpr PositionKey advising(llvm::StringLiteral text) const {
    return with(&PositionKey::advice, text);
  }

  /// Whether a model type reads the key. `row` is that of the type; its name
  /// is empty for an unknown one.
  bool isReadBy(const ModelRow &row) const;
  /// Whether the model's own code is known to read the key of a config as it is
  /// read here.
  bool isReadByModel(const ModelRow &row, const json::Value &config) const;
  /// Whether the key changes nothing by its value, in an object that has it.
  bool isNeutral(const json::Value &object, const json::Value &value) const;
};

/// Returns the table, which has no keys of scalings (getRopeKeys).
llvm::ArrayRef<PositionKey> getPositionKeyRows();

/// Whether a key of a config, outside of the dictionaries, is in the table.
bool isPositionKey(llvm::StringRef name);

/// Whether reportPositionKeys() reports the key in a dictionary of the
/// rotation, which therefore is not an unknown key of the rope type.
bool isUnreadDictionaryKey(llvm::StringRef name);

/// Warns of the keys of a config that are read, although the own code of the
/// model type is not known to read them.
void reportUnreadKeys(ConfigReader &reader, const json::Value &config,
                      const ModelRow &row);

/// Reports the keys of a config, and of its dictionaries, that change what the
/// functions compute and that are not read: as errors for a known type, as
/// warnings for an unknown one. `row` is unknownModel() for an unknown type.
/// Returns false, after an error, if a key needs a known type.
bool reportPositionKeys(ConfigReader &reader, const json::Value &config,
                        const ModelRow &row, const RopeDictionaries &dicts);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_POSITIONKEYS_H
