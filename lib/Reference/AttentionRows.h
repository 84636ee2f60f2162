//===- AttentionRows.h - Rows of an attention's operands --------*- C++ -*-===//
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

/// Where the rows of queries, keys or values lie: by sequence, ragged or paged.
struct RowMap {
  int64_t heads = 0;
  int64_t tokens = 0; ///< Of one sequence or page; ragged: of all sequences.
  int64_t width = 0;
  bool tokenMajor = false;
  const std::vector<int64_t> *starts = nullptr;
  const BlockTable *blocks = nullptr;

  /// Wants an array of rank 3 or 4; rank 3 stands for one sequence.
  RowMap(const Array &array, TokenLayout layout);

  int64_t row(int64_t sequence, int64_t token, int64_t head) const;
};

/// The shape of one attention.
struct Sequences {
  RowMap queries, keys, values;
  int64_t count;
  std::vector<int64_t> queryLengths, keyLengths;

  Sequences(const Array &queries, const Array &keys, const Array &values,
            const AttentionSpec &spec);
};

/// Cosines and sines for the tokens of all sequences, one after the other.
struct RotationTable {
  CosSinTable table;
  RotateOptions options;
  std::vector<int64_t> firstRow; ///< Of every sequence.

  /// \p positions as \p rotation has them, but one for every token.
  RotationTable(const Rotation &rotation, const std::vector<int64_t> &positions,
                const std::vector<int64_t> &lengths);
};

/// The positions of all valid tokens: \p rotation's, or their indices, counted
/// from \p first[b] in sequence b.
std::vector<int64_t> tokenPositions(const Rotation &rotation,
                                    const RowMap &rows,
                                    const std::vector<int64_t> &lengths,
                                    const std::vector<int64_t> &first);

void normalize(Array &rows, const RmsNorm &norm);

/// Norms \p result, the gathered rows of one head of \p x, by the mean square
/// of all heads of each token, with that head's part of the weights.
void normalizeHeads(Array &result, const Array &x, const RowMap &rows,
                    int64_t sequence, int64_t head, const RmsNorm &norm);

/// Turns the rows of \p x, which has rank 2, by the table's rows of one
/// sequence.
Array rotateRows(const Array &x, const RotationTable &table, int64_t sequence);

/// The first \p length rows of one head of one sequence, as rank 2.
Array gatherRows(const Array &x, const RowMap &rows, int64_t sequence,
                 int64_t head, int64_t length);

/// Empty, or why the rows of \p heads heads of \p width channels cannot be
/// normed or rotated so.
std::string checkRows(int64_t width, int64_t heads,
                      const std::optional<RmsNorm> &norm,
                      const std::optional<Rotation> &rotation);

} // namespace posenc::reference

#endif // POSENC_LIB_REFERENCE_ATTENTIONROWS_H
