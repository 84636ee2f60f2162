//===- HeadShape.cpp - number and sizes of the heads of a model -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadShape.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

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

llvm::SmallVector<KeyRef, 4>
posenc::frontend::nestedKeyRefs(const json::Value &object, const KeyNames &keys,
                                const Names &names) {
  llvm::SmallVector<KeyRef, 4> result = keyRefs(object, names);
  if (keys.nested.empty())
    return result;
  const json::Member *nested = ConfigReader::given(object, keys.nested);
  if (nested && nested->value.isObject())
    result.append(keyRefs(nested->value, names));
  return result;
}

namespace {

/// Reads the number of heads and their size. A number that is unknown because
/// of an error is 0 in the result.
class ShapeReader {
public:
  ShapeReader(ConfigReader &reader, const json::Value &config,
              const ModelRow &row, bool isNested)
      : reader(reader), config(config), row(row), keys(*row.keys),
        isNested(isNested) {}

  const json::Value &read(ModelConfig &result) {
    // The number of key heads may be in a nested object.
    if (!keys.nested.empty())
      reader.object(config, keys.nested);
    heads = reader.count(keyRefs(config, keys.heads));
    hidden = reader.count(keyRefs(config, keys.hidden));
    headDim = reader.count(keyRefs(config, keys.headDim));
    numHeads = heads.given() ? heads.value.value_or(0) : getDefaultHeads();
    if (!heads.given() && numHeads == 0 && !(isNested && hidden.bad()))
      reader.missing(config, keys.heads[0]);
    result.numHeads = numHeads;
    result.numKeyValueHeads = readKeyHeads();
    result.headDim = readHeadDim();
    return getHeadDimSource();
  }

private:
  int64_t readKeyHeads();
  int64_t readGivenKeyHeads();
  int64_t readHeadDim();
  int64_t getDefaultHeads() const;
  int64_t getDefaultHidden() const;
  const json::Value &getHeadDimSource() const;

  ConfigReader &reader;
  const json::Value &config;
  const ModelRow &row;
  const KeyNames &keys;
  bool isNested;
  Field<int64_t> heads, hidden, headDim;
  int64_t numHeads = 0;
};

/// Returns the number of heads of a config without the key; 0 if it has no
/// default. That of a nested config belongs to the default hidden size.
int64_t ShapeReader::getDefaultHeads() const {
  if (row.defaultHeads != 0 || !isNested)
    return row.defaultHeads;
  bool hasDefaultHidden = !hidden.given() || hidden.value == row.nestedHidden;
  return row.defaultHeadDim != 0 || headDim.given() || hasDefaultHidden
             ? row.nestedHeads
             : 0;
}

/// Returns the hidden size of a config without the key; 0 if it has no default.
int64_t ShapeReader::getDefaultHidden() const {
  if (row.defaultHidden != 0 || !isNested)
    return row.defaultHidden;
  return numHeads == row.nestedHeads ? row.nestedHidden : 0;
}

int64_t ShapeReader::readGivenKeyHeads() {
  llvm::SmallVector<KeyRef, 4> refs =
      nestedKeyRefs(config, keys, keys.keyHeads);
  Field<int64_t> given = reader.count(refs);
  if (!given.given()) {
    // A null asks for the number of query heads.
    bool isNull = llvm::any_of(refs, [](const KeyRef &ref) {
      return !ref.key.empty() && ref.object->find(ref.key);
    });
    if (row.defaultKeyHeads == 0 || isNull || numHeads == 0)
      return numHeads;
    if (numHeads % row.defaultKeyHeads == 0)
      return row.defaultKeyHeads;
    if (row.defaultHeads != 0) {
      reader.missing(config, keys.keyHeads[0]);
      return row.defaultKeyHeads;
    }
    reader.warning(config, "missing key '" + keys.keyHeads[0] +
                               "': its default, " + Twine(row.defaultKeyHeads) +
                               ", does not divide the " + Twine(numHeads) +
                               " heads; assuming as many key heads as heads");
    return numHeads;
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
  // A null asks for the quotient.
  bool isNull = !keys.headDim[0].empty() && config.find(keys.headDim[0]);
  if (row.defaultHeadDim != 0 && !(isNull && hidden.given()))
    return row.defaultHeadDim;
  if (!keys.headDimFromHidden) {
    reader.missing(config, keys.headDim[0]);
    return 0;
  }
  int64_t size = hidden.given() ? hidden.value.value_or(0) : getDefaultHidden();
  if (!hidden.given() && size == 0 && !(isNested && heads.bad()))
    reader.missing(config, keys.hidden[0]);
  if (size == 0 || numHeads == 0)
    return 0;
  if (size * row.hiddenFactor % numHeads == 0)
    return size * row.hiddenFactor / numHeads;
  reader.error(
      heads.given() ? heads.at() : getHeadDimSource(),
      "'" + (heads.given() ? heads.name() : StringRef(keys.heads[0])) + "' (" +
          Twine(numHeads) + ") does not divide '" +
          (hidden.given() ? hidden.name() : StringRef(keys.hidden[0])) + "' (" +
          Twine(size) + "), and there is no '" + keys.headDim[0] + "'");
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
                                                   bool isNested,
                                                   ModelConfig &result) {
  return ShapeReader(reader, config, row, isNested).read(result);
}

//===----------------------------------------------------------------------===//
// Rotary dimension
//===----------------------------------------------------------------------===//

/// The maximum dimension of #posenc.frequencies (frequencies_c1).
static constexpr int64_t kMaxRotaryDim = 65536;

/// Names the size of a head by its key, or by those that it follows from.
static std::string nameHeadSize(const json::Value &config, const ModelRow &row,
                                HeadSize head) {
  for (StringRef name : row.keys->headDim)
    if (const json::Member *member = config.find(name);
        member && &member->value == head.at)
      return "'" + name.str() + "'";
  return "'" + row.keys->hidden[0].str() + "' / '" + row.keys->heads[0].str() +
         "'";
}

static int64_t fromFraction(ConfigReader &reader, const json::Value &config,
                            const ModelRow &row, HeadSize head,
                            const Field<double> &partial, double absent) {
  if (partial.bad())
    return 0;
  int64_t size = head.size;
  double fraction = partial.value.value_or(absent);
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
    std::string bound = isTooLarge ? "at most " + std::to_string(kMaxRotaryDim)
                                   : "even and not 0";
    if (!partial.given() && fraction == 1) {
      reader.error(*head.at, nameHeadSize(config, row, head) + " must be " +
                                 bound + ", since whole heads rotate, not " +
                                 Twine(size));
      return 0;
    }
    std::string name =
        partial.given() ? "'" + partial.name().str() + "'" : "the model's part";
    reader.error(partial.given() ? partial.at() : *head.at,
                 "the rotary dimension must be " + bound + ", but " + name +
                     " " + spelled(fraction) + " of a head of " + Twine(size) +
                     " is " + Twine(dim));
    return 0;
  }
  return dim;
}

/// Reports a fraction that does not give the number of rotated channels of
/// latent heads, which a key of its own says. It is a fraction of whole heads,
/// whose size may also be given.
static void reportLatentFraction(ConfigReader &reader,
                                 const json::Value &config, const ModelRow &row,
                                 HeadSize head, const Field<double> &partial) {
  if (!partial.value || *partial.value == 1 || !head.size)
    return;
  auto read = [&](StringRef key, int64_t absent) {
    const json::Member *member = ConfigReader::given(config, key);
    return member ? member->value.integer().value_or(0) : absent;
  };
  int64_t whole =
      head.size + read("qk_nope_head_dim", row.attention.defaultNopeDim);
  for (int64_t size : {whole, read("head_dim", 0)})
    if (std::lround(*partial.value * double(size)) == head.size)
      return;
  reader.warning(partial.at(),
                 "'" + partial.name() + "' of " + spelled(*partial.value) +
                     " is not used: all channels of '" + row.keys->headDim[0] +
                     "' (" + Twine(head.size) + ") rotate");
}

/// Whether a dictionary has the rope type `proportional`, which is the same for
/// all model types.
static bool isProportional(const json::Value *dict) {
  if (!dict)
    return false;
  return llvm::any_of(
      llvm::ArrayRef<StringRef>{"rope_type", "type"}, [&](StringRef key) {
        const json::Member *type = ConfigReader::given(*dict, key);
        return type && type->value.isString() &&
               type->value.string() == "proportional";
      });
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
  if (row.isLatent()) {
    reportLatentFraction(reader, config, row, head, partial);
    if (!partial.bad())
      partial = {};
  } else if (!row.type.empty() && !row.readsPartial && partial.value &&
             *partial.value != 1 && !llvm::any_of(dicts, isProportional)) {
    reader.warning(partial.at(),
                   "'" + partial.name() + "' of " + spelled(*partial.value) +
                       " is used, but the rotary code of '" + row.type +
                       "' in transformers rotates whole heads");
  }
  bool hasDictionary = llvm::any_of(dicts, [](auto *dict) { return dict; });
  double absent = row.isPartialAlone && hasDictionary ? 1 : row.defaultPartial;
  Field<int64_t> direct = reader.count(keyRefs(config, keys.rotaryDim));
  if (direct.bad())
    return 0;
  if (!direct.given() && !row.defaultRotaryDim)
    return fromFraction(reader, config, row, head, partial, absent);

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
  if (size && partial.value &&
      fromFraction(reader, config, row, head, partial, absent) != dim)
    reader.error(partial.at(), "'" + partial.name() + "' and '" + key +
                                   "' give different rotary dimensions");
  return dim;
}
