//===- SharedTable.h - cos and sin in shared memory -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ROTATION_SHAREDTABLE_H
#define POSENC_LIB_CODEGEN_GPU_ROTATION_SHAREDTABLE_H

#include "GPU/Launch/GpuKernel.h"
#include "posenc/Numerics/AngleAddition.h"

namespace mlir::posenc {

/// Emits the cos and sin of the vector of pairs from index `first` on, with a
/// branch between the fast phase computation for small positions and the
/// general one.
AngleAddition::CosSin emitElement(OpBuilder &builder, Location loc,
                                  const AngleAddition &steps,
                                  const AngleAddition::Position &position,
                                  Value first, int64_t lanes);
/// Emits the base position's cos and sin for `AngleAddition::rotate`.
AngleAddition::CosSin emitBase(OpBuilder &builder, Location loc,
                               const AngleAddition &steps,
                               const AngleAddition::Position &base, Value first,
                               int64_t lanes);

/// The cos and sin of a block's positions, in shared memory.
class SharedTable {
public:
  SharedTable(GpuKernel &kernel, int64_t positions, int64_t numPairs,
              Type compute);

  /// Fills the table, with neighbouring threads on neighbouring elements, and
  /// waits for all threads of the block.
  using Emit = function_ref<AngleAddition::CosSin(OpBuilder &, Location,
                                                  Value position, Value pair)>;
  void fill(OpBuilder &builder, Location loc, Value thread, int64_t threads,
            Emit emit) const;

  /// Returns views of the cos and sin of `count` pairs.
  std::pair<Value, Value> getLanes(OpBuilder &builder, Location loc,
                                   Value position, Value pair,
                                   int64_t count) const;

private:
  int64_t positions, numPairs;
  Type compute;
  Value cos, sin;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ROTATION_SHAREDTABLE_H
