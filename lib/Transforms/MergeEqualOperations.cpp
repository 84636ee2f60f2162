//===- MergeEqualOperations.cpp - one operation for equal ones ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's pass hashes the operands of an operation, but not its regions. The
// loops of a function often have equal operands, so that it compares each loop
// with all others. The hash here includes the operations of regions, and the
// values from outside that they use.
//
//===----------------------------------------------------------------------===//

#include "posenc/Transforms/Passes.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/ScopedHashTable.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCMERGEEQUALOPERATIONSPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;

namespace {
/// An operation and its hash, which is computed once.
struct HashedOperation {
  Operation *op;
  unsigned hash;
};

/// Operations are equal that compute the same results from the same values.
struct HashedOperationInfo {
  using Pointers = llvm::DenseMapInfo<Operation *>;

  static HashedOperation getEmptyKey() { return {Pointers::getEmptyKey(), 0}; }
  static HashedOperation getTombstoneKey() {
    return {Pointers::getTombstoneKey(), 0};
  }
  static unsigned getHashValue(const HashedOperation &key) { return key.hash; }
  static bool isEqual(const HashedOperation &a, const HashedOperation &b) {
    if (a.op == b.op)
      return true;
    if (a.hash != b.hash || isReserved(a.op) || isReserved(b.op))
      return false;
    return OperationEquivalence::isEquivalentTo(
        a.op, b.op, OperationEquivalence::IgnoreLocations);
  }

private:
  static bool isReserved(Operation *op) {
    return op == Pointers::getEmptyKey() || op == Pointers::getTombstoneKey();
  }
};

/// Merges the operations of one function.
class EqualOperations {
public:
  void merge(Region &region);
  /// Erases the operations that have been merged, and those without uses.
  void eraseDead() const;

private:
  using Table =
      llvm::ScopedHashTable<HashedOperation, Operation *, HashedOperationInfo>;

  void merge(Operation *op);

  Table table;
  SmallVector<Operation *> dead;
};
} // namespace

/// Returns a hash of the operation with its regions. Values that are defined in
/// the regions count by their users alone, since they differ between equal
/// operations.
static unsigned computeHash(Operation *op) {
  auto hashOne = [&](Operation *nested) -> llvm::hash_code {
    return OperationEquivalence::computeHash(
        nested,
        [&](Value value) -> llvm::hash_code {
          Region *region = value.getParentRegion();
          bool isInner = llvm::any_of(op->getRegions(), [&](Region &outer) {
            return outer.isAncestor(region);
          });
          return isInner ? llvm::hash_code(0) : hash_value(value);
        },
        OperationEquivalence::ignoreHashValue,
        OperationEquivalence::IgnoreLocations);
  };
  llvm::hash_code hash = hashOne(op);
  for (Region &region : op->getRegions())
    region.walk([&](Operation *nested) {
      hash = llvm::hash_combine(hash, hashOne(nested));
    });
  return static_cast<unsigned>(size_t(hash));
}

/// Whether an equal operation before it may replace the operation.
static bool isMergeable(Operation *op) {
  return !op->hasTrait<OpTrait::IsTerminator>() && isMemoryEffectFree(op) &&
         llvm::all_of(op->getRegions(), [](Region &region) {
           return region.empty() || region.hasOneBlock();
         });
}

void EqualOperations::merge(Operation *op) {
  if (isOpTriviallyDead(op)) {
    dead.push_back(op);
    return;
  }
  if (!isMergeable(op))
    return;
  HashedOperation key{op, computeHash(op)};
  Operation *known = table.lookup(key);
  if (!known) {
    table.insert(key, op);
    return;
  }
  if (isa<UnknownLoc>(known->getLoc()))
    known->setLoc(op->getLoc());
  op->replaceAllUsesWith(known->getResults());
  dead.push_back(op);
}

void EqualOperations::merge(Region &region) {
  for (Block &block : region) {
    // A block sees what precedes the operation around it, but not the other
    // blocks of its region, which may not dominate it.
    Table::ScopeTy scope(table);
    for (Operation &op : block) {
      if (op.hasTrait<OpTrait::IsIsolatedFromAbove>()) {
        EqualOperations isolated;
        for (Region &nested : op.getRegions())
          isolated.merge(nested);
        isolated.eraseDead();
      } else {
        for (Region &nested : op.getRegions())
          merge(nested);
      }
      merge(&op);
    }
  }
}

void EqualOperations::eraseDead() const {
  // Nested operations precede those around them.
  for (Operation *op : dead)
    op->erase();
}

namespace {
struct MergeEqualOperations final
    : mlir::posenc::impl::PosencMergeEqualOperationsPassBase<
          MergeEqualOperations> {
  using Base::Base;

  void runOnOperation() override {
    EqualOperations operations;
    operations.merge(getOperation().getFunctionBody());
    operations.eraseDead();
  }
};
} // namespace
