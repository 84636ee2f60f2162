//===- AttentionNestParts.cpp - the parts of an attention nest ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionNestParts.h"

#include "GPU/Threads/TileReader.h"

using namespace mlir;
using namespace mlir::posenc;

/// Finds the branches around a tile, from the inside.
static bool findBranches(AttentionNestParts &parts,
                         ArrayRef<OnlineAttentionOp> tiles) {
  parts.tile = tiles.front();
  Operation *inner = parts.tile;
  if (tiles.size() == 2) {
    // One of the two evaluates `where`.
    parts.isFull = dyn_cast<scf::IfOp>(inner->getParentOp());
    if (!parts.isFull || tiles[1]->getParentOp() != parts.isFull)
      return false;
    if (parts.tile.getWhere().empty())
      parts.tile = tiles[1];
    if (parts.tile->getBlock() != parts.isFull.elseBlock())
      return false;
    inner = parts.isFull;
  }
  if (auto branch = dyn_cast<scf::IfOp>(inner->getParentOp())) {
    parts.isVisible = branch;
    if (inner->getBlock() != branch.thenBlock())
      return false;
    inner = branch;
  }
  return inner->getParentOp() == parts.keys;
}

/// Finds the state's part of which the tensor is a slice.
static std::optional<int64_t> findPart(Value tensor, scf::ForOp keys) {
  while (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>())
    tensor = slice.getSource();
  auto result = dyn_cast<OpResult>(tensor);
  if (!result || result.getOwner() != keys)
    return std::nullopt;
  return result.getResultNumber();
}

static bool findOutput(AttentionNestParts &parts,
                       tensor::ParallelInsertSliceOp insert) {
  Value source = insert.getSource();
  if (auto whole = source.getDefiningOp<tensor::InsertSliceOp>())
    source = whole.getSource();
  auto compute = source.getDefiningOp<linalg::GenericOp>();
  if (!compute || compute.getNumReductionLoops() ||
      compute.getNumDpsInits() != 1 || !insert.hasUnitStride())
    return false;
  AttentionNestParts::Output output{compute, insert, {}};
  for (Value input : compute.getDpsInputs()) {
    std::optional<int64_t> part = findPart(input, parts.keys);
    if (!part)
      return false;
    output.parts.push_back(*part);
  }
  parts.outputs.push_back(output);
  return true;
}

std::optional<AttentionNestParts>
AttentionNestParts::find(scf::ForallOp loops) {
  AttentionNestParts parts;
  parts.loops = loops;
  SmallVector<OnlineAttentionOp> tiles;
  loops.walk([&](OnlineAttentionOp tile) { tiles.push_back(tile); });
  if (tiles.empty() || tiles.size() > 2)
    return std::nullopt;
  parts.keys = tiles.front()->getParentOfType<scf::ForOp>();
  if (!parts.keys || parts.keys->getParentOp() != loops ||
      parts.keys.getNumResults() != 3 || !findBranches(parts, tiles))
    return std::nullopt;
  for (Operation &op : loops.getTerminator().getRegion().front()) {
    auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(op);
    if (!insert || !findOutput(parts, insert))
      return std::nullopt;
  }
  auto isInside = [&](Operation *op) { return loops->isAncestor(op); };
  OnlineAttentionOp tile = parts.tile;
  SmallVector<Value> read{tile.getQuery(), tile.getKey(), tile.getValue(),
                          parts.keys.getInits()[1], parts.keys.getInits()[2]};
  if (tile.getMask())
    read.push_back(tile.getMask());
  for (Value tensor : read)
    if (!isReadable(tensor, isInside))
      return std::nullopt;
  return parts;
}
