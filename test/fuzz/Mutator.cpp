//===- Mutator.cpp - mutations of texts and bytes -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutator.h"

#include "Tokens.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace posenc::fuzz;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

uint64_t Random::next() {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

static std::string mutateLine(Random &random, StringRef text, StringRef other) {
  SmallVector<StringRef> lines, others;
  text.split(lines, '\n');
  other.split(others, '\n');
  size_t at = random.below(lines.size());
  StringRef line = lines[at];
  switch (random.below(5)) {
  case 0:
    lines.erase(lines.begin() + at);
    break;
  case 1:
    lines.insert(lines.begin() + at, line);
    break;
  case 2:
    std::swap(lines[at], lines[random.below(lines.size())]);
    break;
  case 3:
    lines.erase(lines.begin() + at);
    lines.insert(lines.begin() + random.below(lines.size() + 1), line);
    break;
  case 4:
    lines.insert(lines.begin() + at, random.pick(ArrayRef<StringRef>(others)));
    break;
  }
  return llvm::join(lines, "\n");
}

static void mutateByte(Random &random, std::string &bytes) {
  if (bytes.empty())
    return;
  size_t at = random.below(bytes.size());
  switch (random.below(6)) {
  case 0:
    bytes[at] = static_cast<char>(random.next());
    break;
  case 1:
    bytes[at] ^= static_cast<char>(1u << random.below(8));
    break;
  case 2:
    bytes.erase(at, 1 + random.below(16));
    break;
  case 3:
    bytes.insert(
        at, bytes.substr(random.below(bytes.size()), 1 + random.below(32)));
    break;
  case 4:
    bytes.insert(at, 1, static_cast<char>(random.next()));
    break;
  case 5:
    // Truncates less often, since truncation leaves little of the file.
    if (random.chance(4))
      bytes.resize(at);
    else
      ++bytes[at];
    break;
  }
}

std::string posenc::fuzz::mutateText(Random &random,
                                     ArrayRef<std::string> texts,
                                     const Dictionary &dictionary) {
  std::string text = random.pick(texts);
  for (bool more = true; more; more = random.chance(3)) {
    const std::string &other = random.chance(2) ? text : random.pick(texts);
    switch (random.below(12)) {
    case 0:
      mutateByte(random, text);
      break;
    case 1:
    case 2:
      text = mutateLine(random, text, other);
      break;
    case 3:
    case 4:
    case 5:
      text = mutateToken(random, text, other, dictionary);
      break;
    case 6:
      // Concatenates two modules, whose names may clash.
      text = text + "\n" + other;
      break;
    default:
      text = mutateEverywhere(random, text);
      break;
    }
  }
  return text;
}

std::string posenc::fuzz::mutateGraph(Random &random,
                                      ArrayRef<std::string> texts,
                                      const Dictionary &dictionary) {
  if (random.chance(8))
    return mutateText(random, texts, dictionary);
  std::string text = random.pick(texts);
  if (random.chance(16))
    return repeatToken(random, text);
  for (bool more = true; more; more = random.chance(2))
    text = random.chance(2) ? mutateAlike(random, text)
                            : mutateEverywhere(random, text);
  return text;
}

std::string posenc::fuzz::mutateBytes(Random &random,
                                      ArrayRef<std::string> files) {
  std::string bytes = random.pick(files);
  for (bool more = true; more; more = random.chance(3))
    mutateByte(random, bytes);
  return bytes;
}
