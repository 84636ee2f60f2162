//===- Decoder.h - a compiled decoder and its caches ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_EXAMPLES_GENERATE_DECODER_H
#define POSENC_EXAMPLES_GENERATE_DECODER_H

#include "posenc/runtime/Library.h"

#include <cstdint>
#include <string>
#include <vector>

/// A library compiled from an ONNX model with one sequence, as ONNX Runtime's
/// model builder exports it: inputs `input_ids`, `attention_mask` and past
/// caches, outputs `logits` (f32) and the present caches, which are declared
/// with the size of the past ones. Caches are buffers that calls extend in
/// place.
class Decoder {
public:
  /// Opens the library, whose weights are beside it or, unless it is null, at
  /// `weights`. Caches have `rows` rows. On failure, sets `error`.
  bool open(const std::string &path, const char *weights, int64_t rows,
            std::string &error);

  /// Appends tokens to the sequence. Returns the logits of the one after the
  /// last, one for each token of the vocabulary, which are valid until the next
  /// call; null and `error` on failure.
  const float *append(const std::vector<int64_t> &ids, std::string &error);

  int64_t getVocabulary() const { return vocabulary; }
  /// The number of tokens so far, and the maximum.
  int64_t getNumTokens() const { return numTokens; }
  int64_t getNumRows() const { return numRows; }
  /// The bytes of the caches' rows of all tokens so far.
  int64_t getCacheBytes() const { return rowBytes * numTokens; }

private:
  bool addCache(posenc::runtime::Argument argument, std::string &error);

  posenc::runtime::Library library;
  posenc::runtime::Function function;
  std::vector<posenc::runtime::Array> caches;
  /// For each input: the number of a cache, or one of these.
  enum : int { kIds = -1, kMask = -2 };
  std::vector<int> inputs;
  /// For each output: the number of a cache, or kLogits.
  enum : int { kLogits = -1 };
  std::vector<int> outputs;
  std::vector<int64_t> mask;
  std::vector<float> logits;
  int64_t vocabulary = 0, numTokens = 0, numRows = 0, rowBytes = 0;
};

#endif // POSENC_EXAMPLES_GENERATE_DECODER_H
