//===- Sections.cpp - multimodal rotations --------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sections.h"

using namespace posenc::frontend;
using llvm::StringRef;
using llvm::Twine;

Sections posenc::frontend::readSections(ConfigReader &reader,
                                        const json::Value &dict,
                                        int64_t rotaryDim) {
  Sections result;
  Field<bool> interleaved = reader.boolean(dict, "mrope_interleaved");
  result.interleaved = interleaved.value.value_or(false);
  StringRef key = "mrope_section";
  const json::Member *member = ConfigReader::given(dict, key);
  if (!member) {
    if (result.interleaved)
      reader.missing(dict, key);
    return result;
  }
  if (!member->value.isArray()) {
    reader.error(member->value, "'" + key +
                                    "' must be a list of integers, not " +
                                    json::describeKind(member->value));
    return result;
  }
  constexpr size_t maxAxes = 8;
  size_t axes = member->value.elements().size();
  if (axes < 2 || axes > maxAxes) {
    reader.error(member->value, "'" + key +
                                    "' must have 2 to 8 numbers, one for "
                                    "each position axis, not " +
                                    Twine(axes));
    return result;
  }
  int64_t pairs = 0;
  for (const json::Value &element : member->value.elements()) {
    double number = element.isNumber() ? element.number() : 0;
    if (!(number >= 1 && number <= 32768 &&
          number == double(int64_t(number)))) {
      reader.error(element, "'" + key + "' must hold integers from 1 to 32768");
      return Sections();
    }
    result.pairs.push_back(int64_t(number));
    pairs += int64_t(number);
  }
  if (rotaryDim && pairs != rotaryDim / 2)
    reader.error(member->value, "'" + key + "' adds up to " + Twine(pairs) +
                                    ", but a head has " + Twine(rotaryDim / 2) +
                                    " pairs of channels that rotate");
  return result;
}
