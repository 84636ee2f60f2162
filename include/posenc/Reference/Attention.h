//===- Attention.h - Attention on plain tensors -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// softmax(scale * rope(Q) rope(K)^T + bias, mask) V in double precision, one
// query row at a time. Inputs are taken as stored; nothing is rounded to their
// type on the way, and the angles of the rotations are exact.

#ifndef POSENC_REFERENCE_ATTENTION_H
#define POSENC_REFERENCE_ATTENTION_H

#include "posenc/Reference/Ops.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace posenc::reference {

/// The order of the dimensions before the last one.
enum class TokenLayout {
  HeadMajor,  ///< sequence, head, token; ragged: head, token.
  TokenMajor, ///< sequence, token, head; ragged: token, head.
};

/// A rotation of every row of an operand.
struct Rotation {
  FrequencySpec frequencies;
  AxesSpec axes;
  bool interleaved = false;
  int64_t windowOffset = 0;
  bool inverse = false;
  /// Those of axis 0, then those of axis 1, and so on; on each axis one per
  /// token, either for every sequence or for all of them alike. Ragged: one per
  /// row. Empty stands for the index of a key and the place of a query.
  std::vector<int64_t> positions;
};

/// x * weight / sqrt(mean(x^2) + epsilon) over the last dimension, or over all
/// heads of a token together where there is a weight for each of their
/// channels, head after head (attention() only).
struct RmsNorm {
  std::vector<double> weight;
  double epsilon = 0;
};

/// Token t of sequence b lies on page pages[b * blocks + t / pageSize], in its
/// row t mod pageSize. Elements beyond a sequence's length are not read.
struct BlockTable {
  std::vector<int64_t> pages;
  int64_t blocks = 0; ///< Per sequence.
};

/// Added to, or left out of, the scores. The dimensions are sequence, query
/// head, query, key; leading ones may be missing and any may be 1.
struct AttentionMask {
  Array array;
  /// Nonzero: the key is seen. Else it is a summand, and minus infinity leaves
  /// the key out, whatever it is.
  bool isBoolean = false;
};

/// The new score, from the score after scaling, sequence, query head, place of
/// the query and key. Called from several threads.
using ScoreFunction =
    std::function<double(double, int64_t, int64_t, int64_t, int64_t)>;
/// Whether the key is seen, from sequence, query head, place and key.
using MaskFunction = std::function<bool(int64_t, int64_t, int64_t, int64_t)>;

/// Everything about an attention except its operands. Per head: norm, rotation,
/// scores * scale, score function, mask, softmax. The place of query i is i +
/// keys - queries of its sequence, so that the last query is beside the last
/// key.
struct AttentionSpec {
  TokenLayout queryLayout = TokenLayout::TokenMajor; ///< Of the output too.
  TokenLayout keyLayout = TokenLayout::TokenMajor;   ///< Of the values too.
  std::optional<double> scale; ///< Else 1/sqrt(head dimension).

  /// Causal hides the keys after the query's place; the window those more than
  /// left before or right after it.
  bool causal = false;
  std::optional<int64_t> left;
  std::optional<int64_t> right;

  std::optional<RmsNorm> queryNorm;
  std::optional<RmsNorm> keyNorm;
  std::optional<Rotation> queryRotation;
  std::optional<Rotation> keyRotation;

  /// The valid keys of every sequence; empty: all. Paged keys want it.
  std::vector<int64_t> keyLengths;
  /// How many queries follow those there are, which then stand before the end.
  int64_t trailingQueries = 0;
  /// Ragged operands have rank 3; sequence b is [starts[b], starts[b+1]).
  std::vector<int64_t> queryStarts;
  std::vector<int64_t> keyStarts;
  /// Keys and values are pages; the layout's sequence stands for the page.
  std::optional<BlockTable> blockTable;

  std::optional<AttentionMask> mask;
  ScoreFunction score;
  MaskFunction sees;
  /// One logit per query head that takes part in the denominator only.
  std::vector<double> sinks;
};

struct AttentionResult {
  /// Laid out as the queries. A row that sees no key is 0. The magnitude is
  /// sum p|v|, or -1 in rows that see no key, which are 0 exactly.
  Array output;
  /// The output's shape without its last dimension; -infinity where nothing is
  /// in the denominator.
  Array logSumExp;
  /// For every row of logSumExp the largest finite |v| of its sequence's head.
  std::vector<double> largestValue;
};

AttentionResult attention(const Array &queries, const Array &keys,
                          const Array &values, const AttentionSpec &spec);
/// Empty if attention() may be called, else the reason why not.
std::string checkAttention(const Array &queries, const Array &keys,
                           const Array &values, const AttentionSpec &spec);

/// How new rows enter a cache.
struct AppendSpec {
  TokenLayout rowLayout = TokenLayout::TokenMajor;
  TokenLayout cacheLayout = TokenLayout::TokenMajor;
  std::optional<RmsNorm> keyNorm;
  /// Its positions, one per new row of a head, may not be left empty.
  std::optional<Rotation> keyRotation;
  /// One per new row of a head, sequence by sequence: n * capacity + c for row
  /// c of sequence or page n. Negative: the row is dropped.
  std::vector<int64_t> slots;
  /// The type of quantized caches.
  std::optional<DType> quantized;
  /// Whether new keys and values are known only roughly, as others computed
  /// them. Keys that are normed or rotated are anyway.
  bool hasRoughKeys = false, hasRoughValues = false;
};

struct Caches {
  Array keys;
  Array values;
  /// Those of quantized caches: (sequence or page, head, token).
  Array keyScales = {};
  Array valueScales = {};
};

/// \p caches with the new rows in their slots, keys normed, then rotated. New
/// rows have rank 4, or rank 3 without sequences. The magnitude of a rotated
/// lane is as rotate()'s, of a normed one its size, and -1 of all others. In
/// quantized caches rows that are known roughly are not rounded and have their
/// sizes as magnitudes.
Caches append(const Caches &caches, const Array &newKeys,
              const Array &newValues, const AppendSpec &spec);
std::string checkAppend(const Caches &caches, const Array &newKeys,
                        const Array &newValues, const AppendSpec &spec);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_ATTENTION_H
