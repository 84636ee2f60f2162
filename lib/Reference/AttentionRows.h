//===- AttentionRows.h - rows of attention operands -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_REFERENCE_ATTENTIONROWS_H
#define POSENC_LIB_REFERENCE_ATTENTIONROWS_H

#include "posenc/Reference/Attention.h"

namespace posenc::reference {

/// The row numbers of queries, keys or values, which are padded, ragged or
/// paged. Does not own the starts and blocks.
struct RowMap {
  int64_t heads = 0;
  int64_t tokens = 0; ///< Per sequence or page; ragged: of all sequences.
  int64_t width = 0;
  bool tokenMajor = false;
  const std::vector<int64_t> *starts = nullptr;
  const BlockTable *blocks = nullptr;

  /// The rank of the array must be 3 (one sequence) or 4.
  RowMap(const Array &array, TokenLayout layout);

  /// Returns the row-major number of a row of `width` channels.
  int64_t row(int64_t sequence, int64_t token, int64_t head) const;
};

/// The row numbers and sequence lengths of one attention.
struct Sequences {
  RowMap queries, keys, values;
  int64_t count;
  std::vector<int64_t> queryLengths, keyLengths;

  Sequences(const Array &queries, const Array &keys, const Array &values,
            const AttentionSpec &spec);
};

/// Cosines and sines for the tokens of all sequences, concatenated.
struct RotationTable {
  CosSinTable table;
  RotateOptions options;
  std::vector<int64_t> firstRow; ///< The first table row of each sequence.

  /// \p positions has one position per token and axis; those of \p rotation are
  /// ignored.
  RotationTable(const Rotation &rotation, const Positions &positions,
                const std::vector<int64_t> &lengths);
};

/// Returns the positions of all valid tokens: those of \p rotation or, if it
/// has none, first[b], first[b] + 1, ... for sequence b.
Positions tokenPositions(const Rotation &rotation, const RowMap &rows,
                         const std::vector<int64_t> &lengths,
                         const std::vector<int64_t> &first);

/// Applies an RMS norm to each row of as many channels as there are weights.
void normalize(Array &rows, const RmsNorm &norm);

/// Applies an RMS norm over all heads of each token of \p x to \p result, the
/// gathered rows of one head, with the weights of that head.
void normalizeHeads(Array &result, const Array &x, const RowMap &rows,
                    int64_t sequence, int64_t head, const RmsNorm &norm);

/// Rotates the rows of \p x, an array of rank 2, by the table rows of a
/// sequence.
Array rotateRows(const Array &x, const RotationTable &table, int64_t sequence);

/// Returns the first \p length rows of a head of a sequence, length x width.
Array gatherRows(const Array &x, const RowMap &rows, int64_t sequence,
                 int64_t head, int64_t length);

/// Returns an empty string if rows of \p heads heads of \p width channels can
/// be normed and rotated, otherwise the reason why not.
std::string checkRows(int64_t width, int64_t heads,
                      const std::optional<RmsNorm> &norm,
                      const std::optional<Rotation> &rotation);

} // namespace posenc::reference

#endif // POSENC_LIB_REFERENCE_ATTENTIONROWS_H
