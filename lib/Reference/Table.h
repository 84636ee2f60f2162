//===- Table.h - tables with a given scale ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_REFERENCE_TABLE_H
#define POSENC_LIB_REFERENCE_TABLE_H

#include "posenc/Reference/Ops.h"

namespace posenc::reference {

/// Returns scale * cos(p * f_i) and scale * sin(p * f_i). The attention factor
/// is not applied.
CosSinTable scaledTable(const PairTable &pairs, const Real &scale,
                        const Positions &positions,
                        const std::vector<int64_t> &positionsShape);

} // namespace posenc::reference

#endif // POSENC_LIB_REFERENCE_TABLE_H
