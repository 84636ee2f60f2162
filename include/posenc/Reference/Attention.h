//===- Attention.h - attention and KV cache updates -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Computes softmax(scale * rope(Q) rope(K)^T + bias, mask) V in double
// precision, one query row at a time. Intermediate results are not rounded to
// the type of the inputs, and the angles of rotations are exact.

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

/// The rotation of every row of an operand.
struct Rotation {
  FrequencySpec frequencies;
  AxesSpec axes;
  bool interleaved = false;
  int64_t windowOffset = 0;
  bool inverse = false;
  /// The positions of axis 0, then those of axis 1, and so on. Each axis has
  /// one position per token, either of every sequence or shared by all
  /// sequences; a ragged operand has one per row. If empty, a key has its token
  /// index and a query its position within the sequence (see AttentionSpec).
  Positions positions;
};

/// The RMS norm x * weight / sqrt(mean(x^2) + epsilon). The mean is over the
/// last dimension if there are as many weights. With heads x channels weights,
/// it is over all heads of a token (attention() only).
struct RmsNorm {
  std::vector<double> weight;
  double epsilon = 0;
};

/// The block table of a paged KV cache. Token t of sequence b is in row
/// t mod pageSize of page pages[b * blocks + t / pageSize]. Elements beyond the
/// length of a sequence are not read.
struct BlockTable {
  std::vector<int64_t> pages;
  int64_t blocks = 0; ///< Blocks per sequence.
};

/// A mask of the scores with the dimensions sequence, query head, query, key.
/// Leading dimensions may be missing, and any may be 1 (broadcast).
struct AttentionMask {
  Array array;
  /// If true, nonzero elements keep the key. Otherwise the mask is added to the
  /// score, and minus infinity removes the key, even if its score is NaN.
  bool isBoolean = false;
};

/// Returns the new score (score_mod, as in FlexAttention) from the scaled
/// score, the sequence, the query head, the query position and the key. Called
/// from several threads.
using ScoreFunction =
    std::function<double(double, int64_t, int64_t, int64_t, int64_t)>;
/// Returns whether a key is kept (mask_mod, as in FlexAttention) from the
/// sequence, the query head, the query position and the key. Called from
/// several threads.
using MaskFunction = std::function<bool(int64_t, int64_t, int64_t, int64_t)>;

/// All parameters of an attention except its operands. The steps per head are
/// norm, rotation, scores * scale, score function, mask, softmax. The position
/// of query i is i + keys - queries - trailingQueries, counted per sequence, so
/// by default the last query is at the position of the last key.
struct AttentionSpec {
  TokenLayout queryLayout = TokenLayout::TokenMajor; ///< Also of the output.
  TokenLayout keyLayout = TokenLayout::TokenMajor;   ///< Also of the values.
  std::optional<double> scale; ///< 1/sqrt(head dimension) if absent.

  /// Causal attention hides the keys after the query position. The window hides
  /// keys more than `left` positions before it or more than `right` after it.
  bool causal = false;
  std::optional<int64_t> left;
  std::optional<int64_t> right;

  std::optional<RmsNorm> queryNorm;
  std::optional<RmsNorm> keyNorm;
  std::optional<Rotation> queryRotation;
  std::optional<Rotation> keyRotation;

  /// The number of valid keys of every sequence. If empty, all keys are valid.
  /// Required for paged keys.
  std::vector<int64_t> keyLengths;
  /// Number of query positions after the given queries, at the end of each
  /// sequence.
  int64_t trailingQueries = 0;
  /// Start rows of ragged sequences (cu_seqlens). Ragged operands have rank 3;
  /// sequence b has the rows [starts[b], starts[b+1]).
  std::vector<int64_t> queryStarts;
  std::vector<int64_t> keyStarts;
  /// If present, keys and values are pages: the sequence dimension of their
  /// layout is the page.
  std::optional<BlockTable> blockTable;

  std::optional<AttentionMask> mask;
  ScoreFunction score;
  MaskFunction sees;
  /// One logit per query head that is added to the softmax denominator only.
  std::vector<double> sinks;
};

struct AttentionResult {
  /// The output in the layout of the queries. Rows without visible keys are
  /// exactly 0 and have the magnitude -1; that of all others is sum p|v|.
  Array output;
  /// The logarithm of the softmax denominator, in the shape of the output
  /// without its last dimension; -infinity if the denominator is 0.
  Array logSumExp;
  /// The largest finite |v| of the sequence and head, for every row of
  /// logSumExp.
  std::vector<double> largestValue;
};

AttentionResult attention(const Array &queries, const Array &keys,
                          const Array &values, const AttentionSpec &spec);
/// Returns an empty string if attention() may be called, otherwise the reason
/// why not.
std::string checkAttention(const Array &queries, const Array &keys,
                           const Array &values, const AttentionSpec &spec);

/// The parameters of append().
struct AppendSpec {
  TokenLayout rowLayout = TokenLayout::TokenMajor;
  TokenLayout cacheLayout = TokenLayout::TokenMajor;
  std::optional<RmsNorm> keyNorm;
  /// Its positions, one per new row of a head, must not be empty.
  std::optional<Rotation> keyRotation;
  /// One slot per new row of a head, sequence by sequence: n * capacity + c for
  /// row c of sequence or page n. Rows with negative slots are dropped.
  std::vector<int64_t> slots;
  /// The element type of quantized caches; absent if caches are not quantized.
  std::optional<DType> quantized;
  /// Whether new keys and values are inexact because they were computed. Normed
  /// or rotated keys are always inexact.
  bool hasInexactKeys = false, hasInexactValues = false;
  /// The scales that quantized caches are given: one per head, or one. If they
  /// are empty, each row gets its own.
  std::vector<long double> givenKeyScales, givenValueScales;
};

struct Caches {
  Array keys;
  Array values;
  /// Scales of quantized caches: (sequence or page) x head x token.
  Array keyScales = {};
  Array valueScales = {};
};

/// Returns \p caches with the new rows in their slots. Keys are normed, then
/// rotated. New rows have rank 4, or rank 3 without sequences. The magnitude of
/// a rotated element is that of rotate(), that of a normed element its absolute
/// value, and that of all others -1. In quantized caches, inexact rows are not
/// rounded, and their magnitudes are their absolute values.
Caches append(const Caches &caches, const Array &newKeys,
              const Array &newValues, const AppendSpec &spec);
/// Returns an empty string if append() may be called, otherwise the reason why
/// not.
std::string checkAppend(const Caches &caches, const Array &newKeys,
                        const Array &newValues, const AppendSpec &spec);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_ATTENTION_H
