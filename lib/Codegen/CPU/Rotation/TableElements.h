//===- TableElements.h - rows of cos and sin in memory ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ROTATION_TABLEELEMENTS_H
#define POSENC_LIB_CODEGEN_CPU_ROTATION_TABLEELEMENTS_H

#include "CPU/VectorTarget.h"
#include "PositionTable.h"

namespace mlir::posenc {

/// Writes the cos and sin of positions as rows of a table.
class TableElements {
public:
  /// `zipped`: sin and cos of a pair are neighbours in a row; otherwise a row
  /// has all of one before all of the other.
  TableElements(OpBuilder &builder, PositionalOpInterface op,
                const Angles &angles, Type elementType, bool zipped,
                const VectorTarget &target);

  /// The destination of elements: the rows of a memref, from a lane on.
  struct Destination {
    Value memref;
    int64_t firstLane;
  };

  /// Writes the rows of all positions, sin before cos.
  void writeZipped(OpBuilder &builder, Value positions,
                   Destination destination) const;

  /// Writes the rows of all positions, cosines and sines to destinations of
  /// their own.
  void writeApart(OpBuilder &builder, Value positions, Destination cos,
                  Destination sin) const;

private:
  /// Rounds and stores a vector of pairs.
  struct VectorWriter {
    function_ref<SmallVector<Value>(OpBuilder &, Location,
                                    const PositionTable::CosSin &)>
        finish;
    function_ref<void(OpBuilder &, Location, ValueRange finished,
                      ValueRange loops, Value pair, Access)>
        write;
  };
  void prefetchPages(OpBuilder &builder, Location loc, Value memref,
                     ValueRange loops, PositionTable::Pairs pairs) const;
  void prefetchAheadOfRow(OpBuilder &builder, Location loc, ValueRange outputs,
                          ValueRange loops, PositionTable::Pairs pairs) const;
  void prefetchAheadOfRun(OpBuilder &builder, Location loc, ValueRange outputs,
                          ValueRange loops, PositionTable::Pairs pairs) const;
  void writeRow(OpBuilder &builder, Location loc,
                const PositionTable::Position &position, ValueRange outputs,
                ValueRange loops, PositionTable::Pairs pairs, Access access,
                VectorWriter writer) const;
  void writeRuns(OpBuilder &builder, Location loc, Value positions,
                 ValueRange outputs, ArrayRef<Value> sizes,
                 PositionTable::Pairs pairs, Access access,
                 VectorWriter writer) const;
  void writeRows(OpBuilder &builder, Value positions, ValueRange outputs,
                 bool mayStream, VectorWriter writer) const;
  bool isAligned(Destination destination) const;
  Value round(OpBuilder &builder, Location loc, Value elements) const;
  Value zip(OpBuilder &builder, Location loc, Value even, Value odd) const;

  PositionalOpInterface op;
  int64_t numPairs;
  Type element, compute;
  VectorTarget target;
  bool isSplit;
  int64_t lanes;
  PositionTable table;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ROTATION_TABLEELEMENTS_H
