//===- HeadShape.cpp - number and sizes of the heads of a model -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadShape.h"

using namespace posenc::frontend;
using llvm::StringRef;
using llvm::Twine;

llvm::SmallVector<KeyRef, 4>
posenc::frontend::keyRefs(const json::Value &object, const Names &names) {
  llvm::SmallVector<KeyRef, 4> result;
  for (StringRef name : names)
    result.push_back({&object, name});
  return result;
}

namespace {

/// Reads the number of heads and their size. A number that is unknown because
/// of an error is 0 in the result.
class ShapeReader {
public:
  ShapeReader(ConfigReader &reader, const json::Value &config,
              const ModelRow &row)
      : reader(reader), config(config), row(row), keys(*row.keys) {}

  const json::Value &read(ModelConfig &result) {
    heads = reader.count(keyRefs(config, keys.heads));
    numHeads = heads.given() ? heads.value.value_or(0) : row.defaultHeads;
    if (!heads.given() && numHeads == 0)
      reader.missing(config, keys.heads[0]);
    hidden = reader.count(keyRefs(config, keys.hidden));
    headDim = reader.count(keyRefs(config, keys.headDim));
    result.numHeads = numHeads;
    result.numKeyValueHeads = readKeyHeads();
    result.headDim = readHeadDim();
    return getHeadDimSource();
  }

private:
  int64_t readKeyHeads();
  int64_t readGivenKeyHeads();
  int64_t readHeadDim();
  int64_t readDefaultHeadDim();
  const json::Value &getHeadDimSource() const;

  ConfigReader &reader;
  const json::Value &config;
  const ModelRow &row;
  const KeyNames &keys;
  Field<int64_t> heads, hidden, headDim;
  int64_t numHeads = 0;
};

int64_t ShapeReader::readGivenKeyHeads() {
  Field<int64_t> given = reader.count(keyRefs(config, keys.keyHeads));
  if (!given.given()) {
    if (row.defaultKeyHeads == 0)
      return numHeads;
    if (numHeads % row.defaultKeyHeads != 0)
      reader.missing(config, keys.keyHeads[0]);
    return row.defaultKeyHeads;
  }
  if (given.value && numHeads % *given.value != 0)
    reader.error(given.at(),
                 "'" + given.name() + "' (" + Twine(*given.value) +
                     ") does not divide '" +
                     (heads.given() ? heads.name() : StringRef(keys.heads[0])) +
                     "' (" + Twine(numHeads) + ")");
  return given.value.value_or(0);
}

int64_t ShapeReader::readKeyHeads() {
  switch (keys.keyHeadRule) {
  case KeyHeads::Given:
    return readGivenKeyHeads();
  case KeyHeads::AsQueries:
    return numHeads;
  case KeyHeads::One:
    return 1;
  case KeyHeads::Falcon: {
    Field<bool> newer = reader.boolean(config, "new_decoder_architecture");
    Field<bool> multiQuery = reader.boolean(config, "multi_query");
    if (!newer.value.value_or(false) && multiQuery.value.value_or(true))
      return 1;
    return readGivenKeyHeads();
  }
  }
  return 0;
}

int64_t ShapeReader::readHeadDim() {
  if (headDim.given())
    return headDim.value.value_or(0);
  if (row.defaultHeadDim)
    return row.defaultHeadDim;
  StringRef required =
      keys.headDimFromHidden ? keys.hidden[0] : keys.headDim[0];
  if (!keys.headDimFromHidden || (!hidden.given() && !row.defaultHidden)) {
    reader.missing(config, required);
    return 0;
  }
  if (row.defaultHidden && !hidden.bad() && !(heads.given() && hidden.given()))
    return readDefaultHeadDim();
  if (!hidden.value || !heads.value)
    return 0;
  if (*hidden.value % *heads.value != 0) {
    reader.error(heads.at(), "'" + heads.name() + "' (" + Twine(*heads.value) +
                                 ") does not divide '" + hidden.name() + "' (" +
                                 Twine(*hidden.value) + "), and there is no '" +
                                 keys.headDim[0] + "'");
    return 0;
  }
  return *hidden.value / *heads.value;
}

/// Derives the size of a head from the hidden size and the number of heads, at
/// least one of which is the default of the model.
int64_t ShapeReader::readDefaultHeadDim() {
  int64_t hiddenSize = hidden.value.value_or(row.defaultHidden);
  if (numHeads == 0)
    return 0;
  if (hiddenSize % numHeads == 0)
    return hiddenSize / numHeads;
  reader.error(getHeadDimSource(),
               "'" + StringRef(keys.heads[0]) + "' (" + Twine(numHeads) +
                   ") does not divide '" + keys.hidden[0] + "' (" +
                   Twine(hiddenSize) + "), and there is no '" +
                   keys.headDim[0] + "'");
  return 0;
}

const json::Value &ShapeReader::getHeadDimSource() const {
  if (headDim.given())
    return headDim.at();
  return hidden.given() && !row.defaultHeadDim ? hidden.at() : config;
}

} // namespace

const json::Value &posenc::frontend::readHeadShape(ConfigReader &reader,
                                                   const json::Value &config,
                                                   const ModelRow &row,
                                                   ModelConfig &result) {
  return ShapeReader(reader, config, row).read(result);
}

//===----------------------------------------------------------------------===//
// Rotary dimension
//===----------------------------------------------------------------------===//

/// The maximum dimension of #posenc.frequencies (frequencies_c1).
static constexpr int64_t kMaxRotaryDim = 65536;

static int64_t fromFraction(ConfigReader &reader, const ModelRow &row,
                            HeadSize head, const Field<double> &partial) {
  if (partial.bad())
    return 0;
  int64_t size = head.size;
  double fraction = partial.value.value_or(row.defaultPartial);
  if (!(fraction > 0 && fraction <= 1)) {
    reader.error(partial.at(), "'" + partial.name() +
                                   "' must be greater than 0 and at most 1, "
                                   "not " +
                                   spelled(fraction));
    return 0;
  }
  // Truncates the product of doubles, as Python's int() does.
  int64_t dim = int64_t(double(size) * fraction);
  bool isTooLarge = dim > kMaxRotaryDim;
  if (size && (dim < 2 || dim % 2 != 0 || isTooLarge)) {
    StringRef name =
        partial.given() ? partial.name() : StringRef(row.keys->partial[0]);
    reader.error(partial.given() ? partial.at() : *head.at,
                 "the rotary dimension must be " +
                     (isTooLarge ? "at most " + std::to_string(kMaxRotaryDim)
                                 : "even and not 0") +
                     ", but '" + name + "' " + spelled(fraction) +
                     " of a head of " + Twine(size) + " is " + Twine(dim));
    return 0;
  }
  return dim;
}

int64_t
posenc::frontend::readRotaryDim(ConfigReader &reader, const json::Value &config,
                                llvm::ArrayRef<const json::Value *> dicts,
                                const ModelRow &row, HeadSize head) {
  const KeyNames &keys = *row.keys;
  int64_t size = head.size;
  llvm::SmallVector<KeyRef, 4> fractionKeys = keyRefs(config, keys.partial);
  for (const json::Value *dict : dicts)
    fractionKeys.push_back({dict, "partial_rotary_factor"});
  Field<double> partial = reader.number(fractionKeys);
  Field<int64_t> direct = reader.count(keyRefs(config, keys.rotaryDim));
  if (direct.bad())
    return 0;
  if (!direct.given() && !row.defaultRotaryDim)
    return fromFraction(reader, row, head, partial);

  // In these models, null means frequencies over the whole embedding, which has
  // more channels than a head.
  StringRef key = keys.rotaryDim[0];
  if (const json::Member *member = config.find(key);
      member && member->value.isNull()) {
    reader.error(member->value, "'" + key + "' must be an integer, not null");
    return 0;
  }
  int64_t dim = direct.value.value_or(row.defaultRotaryDim);
  const json::Value &at = direct.given() ? direct.at() : *head.at;
  if (dim % 2 != 0 || dim > kMaxRotaryDim) {
    reader.error(at, "'" + key + "' must be even and at most " +
                         Twine(kMaxRotaryDim) + ", not " + Twine(dim));
    return 0;
  }
  if (size && dim > size) {
    reader.error(at, "'" + key + "' (" + Twine(dim) +
                         ") is larger than the head (" + Twine(size) + ")");
    return 0;
  }
  if (size && partial.value && fromFraction(reader, row, head, partial) != dim)
    reader.error(partial.at(), "'" + partial.name() + "' and '" + key +
                                   "' give different rotary dimensions");
  return dim;
}
