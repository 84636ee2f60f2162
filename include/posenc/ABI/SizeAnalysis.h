//===- SizeAnalysis.h - requirements of operations on sizes -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every size in a function is a polynomial of symbols: the sizes of the inputs,
// scalar inputs, elements of inputs that have one, and terms such as quotients
// of these. Operations require that
// one size is equal to another, or not larger. Two input sizes that must be
// equal are unified. All other requirements become relations, which entry
// points check before the kernel runs.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_ABI_SIZEANALYSIS_H
#define POSENC_ABI_SIZEANALYSIS_H

#include "posenc/ABI/SizeSymbols.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"

#include <set>

namespace mlir::posenc {

/// A requirement that entry points check.
struct SizeRelation {
  RelationKind kind;
  SizeExpr left, right;
};

/// A bound on the elements of an input that are used as indices; see
/// `#posenc.bound`.
struct IndexBound {
  BoundKind kind;
  unsigned input;
  SmallVector<SizeExpr> limit;
  std::optional<SizeExpr> each;
  int64_t lengths = -1; // an input
};

class SizeAnalysis {
public:
  explicit SizeAnalysis(FunctionOpInterface function);

  /// Visits all operations. Emits an error at an operation whose requirement
  /// can never hold, or does not depend on the arguments.
  LogicalResult run();

  /// As `run`, but keeps what could not be analyzed, without errors. Returns
  /// failure if an operation has no rule, so that shapes are incomplete.
  LogicalResult runPartially();

  SizeSymbols &getSymbols() { return symbols; }
  /// Returns the sizes of a tensor; after `run`, those of the last visit.
  SmallVector<SizeExpr> getShape(Value tensor);
  /// Returns a size in the form of signatures: by the first of all equal sizes.
  SizeExpr getSize(Value tensor, int64_t dim);
  /// The relations that are not always true.
  ArrayRef<SizeRelation> getRelations() const { return relations; }
  ArrayRef<IndexBound> getBounds() const { return bounds; }
  /// Reads of non-empty tensors at indices that depend on tensor elements, so
  /// that they are not known to be in bounds.
  ArrayRef<tensor::ExtractOp> getUnprovenReads() const {
    return unprovenReads.getArrayRef();
  }

  /// Whether an assertion adds nothing to the checks of entry points: it is
  /// always true, or says that an index is in bounds which they check anyway.
  /// After `runPartially`.
  bool isRedundant(cf::AssertOp assertion) const {
    return !needed.contains(assertion);
  }
  /// Assertions that depend on elements of tensors. After `runPartially`.
  ArrayRef<cf::AssertOp> getUnprovenAssertions() const {
    return unprovenAssertions.getArrayRef();
  }
  /// Returns the truth of a condition if it is known.
  std::optional<bool> getTruth(Value condition);
  /// Returns a size or integer in the form of signatures.
  SizeExpr resolve(const SizeExpr &expr) {
    return symbols.resolve(expr, /*useConstants=*/false);
  }

  //===--------------------------------------------------------------------===//
  // Interface for the rules of operations
  //===--------------------------------------------------------------------===//

  /// Returns the value of an integer or index.
  SizeExpr getInteger(OpFoldResult value);
  SmallVector<SizeExpr> getIntegers(ArrayRef<OpFoldResult> values);
  void setInteger(Value value, SizeExpr integer) {
    integers[value] = std::move(integer);
  }
  /// Returns the only element of an integer tensor if it follows from the
  /// elements of inputs.
  std::optional<SizeExpr> getElement(Value tensor) const;
  void setElement(Value tensor, SizeExpr element);
  /// Records that the only element of `from`, if it is known, is that of `to`.
  void shareElement(Value from, Value to);
  /// Sets the shape of a tensor, and requires that it agrees with the static
  /// sizes of its type.
  void setShape(Value tensor, ArrayRef<SizeExpr> shape, Operation *op);
  void requireEqual(const SizeExpr &a, const SizeExpr &b, Operation *op);
  void requireEqual(Value a, Value b, Operation *op);
  void requireAtMost(const SizeExpr &a, const SizeExpr &b, Operation *op);
  /// Requires a bound of the elements of an input. Emits an error if entry
  /// points cannot compute it.
  LogicalResult requireBound(IndexBound bound, Operation *op);
  void addUnprovenRead(tensor::ExtractOp op) { unprovenReads.insert(op); }
  /// Records that entry points check that an element of an input is at least
  /// `low` and less than `size`.
  void addCheckedElement(Value element, SizeExpr low, SizeExpr size) {
    checkedElements.push_back({element, std::move(low), std::move(size)});
  }
  /// Whether entry points can determine if the current operation runs.
  bool isCertain() { return isCertain(guards); }
  /// Returns the input whose elements a tensor has, or nullopt.
  std::optional<unsigned> getInput(Value tensor) const;
  Type getInputType(unsigned input) {
    return function.getArgumentTypes()[input];
  }
  /// Records that `to` has the elements of the same input as `from`.
  void shareInput(Value from, Value to);
  /// Creates a symbol of a loop variable with the range [min, max].
  SizeExpr createLoop(SizeExpr min, SizeExpr max) {
    return symbols.createLoop(std::move(min), std::move(max));
  }

  /// The condition `left < right`.
  using Guard = std::pair<SizeExpr, SizeExpr>;
  /// Visits the operations of a region, which run only if all guards are true.
  /// In the region, `linalg.index` returns one of `loops`.
  LogicalResult visitRegion(Region &region, ArrayRef<Guard> guards,
                            ArrayRef<SizeExpr> loops = {});
  SizeExpr getLoop(uint64_t number) const { return currentLoops[number]; }
  void setCondition(Value value, arith::CmpIPredicate predicate, SizeExpr left,
                    SizeExpr right);
  /// Selects one of two expressions by a condition; nullopt if the condition is
  /// unknown.
  std::optional<SizeExpr> select(Value condition, const SizeExpr &yes,
                                 const SizeExpr &no);
  /// Returns the guards that hold if a condition has the value `isTrue`; empty
  /// if the condition is unknown.
  SmallVector<Guard> getGuards(Value condition, bool isTrue);
  /// Requires that a condition is true. Emits an error if it is unknown.
  LogicalResult requireCondition(Value condition, Operation *op);

private:
  struct Requirement {
    RelationKind kind;
    SizeExpr left, right;
    Operation *op;
    SmallVector<Guard> guards;
    /// Whether other proofs rely on this relation, so that it must be checked.
    bool isAssumed = false;
  };
  /// That two numbers are equal, or that the first is less.
  struct Condition {
    TermKind kind; // IfEqual or IfLess
    bool isNegated, isUnsigned;
    SizeExpr left, right;
  };

  void addGuard(const Guard &guard);
  /// Requires that the bytes of a tensor whose sizes depend on elements do not
  /// overflow: there is no argument with such sizes that callers have
  /// allocated.
  void limitBytes(Type element, ArrayRef<SizeExpr> shape, Operation *op);
  LogicalResult visit(Operation *op);
  LogicalResult visitBlock(Block &block);
  LogicalResult visitCall(Operation *op);
  /// Adds the relation that a requirement needs. With `usesElements`, it may
  /// depend on elements of inputs.
  LogicalResult finish(const Requirement &requirement,
                       bool usesElements = false);
  /// Returns `difference`, and `difference` plus the slack of each guard that
  /// varies within a call. It is at most 0 if one of these is.
  SmallVector<SizeExpr> getDifferences(const SizeExpr &difference,
                                       ArrayRef<Guard> guards);
  /// Whether `difference` is at most 0 wherever all guards hold; false if no
  /// short proof is found.
  bool isProven(const SizeExpr &difference, ArrayRef<Guard> guards);
  /// Whether entry points can evaluate the guards.
  bool isCertain(ArrayRef<Guard> guards);
  LogicalResult finishUnknown(const Requirement &requirement,
                              bool usesElements);
  /// Whether a condition says that an element is in bounds that entry points
  /// check.
  bool isCheckedElement(Value condition);
  /// Requires a bound of the only element of an input, or of what is computed
  /// from such elements, if the condition is that.
  bool requireElement(Value condition);

  FunctionOpInterface function;
  SizeSymbols symbols;
  DenseMap<Value, SmallVector<SizeExpr>> shapes;
  DenseMap<Value, SizeExpr> integers;
  DenseMap<Value, Condition> conditions;
  DenseMap<Value, unsigned> inputs;
  /// The only elements of tensors.
  DenseMap<Value, SizeExpr> elements;
  std::vector<Requirement> requirements;
  SmallVector<Guard> guards;
  /// The number of conditional regions around the current operation.
  unsigned conditional = 0;
  ArrayRef<SizeExpr> currentLoops;
  SmallVector<Operation *> callers;
  SymbolTableCollection symbolTables;
  std::set<std::tuple<RelationKind, SizeExpr, SizeExpr>> seen;
  std::vector<SizeRelation> relations;
  std::vector<IndexBound> bounds;
  llvm::SetVector<tensor::ExtractOp> unprovenReads;
  /// An element, the smallest number that it may be, and the one behind the
  /// greatest.
  SmallVector<std::tuple<Value, SizeExpr, SizeExpr>> checkedElements;
  /// Whether `runPartially` runs.
  bool isPartial = false;
  /// The assertions that are not redundant.
  llvm::SmallPtrSet<Operation *, 8> needed;
  llvm::SetVector<cf::AssertOp> unprovenAssertions;
};

// Each function sets the shapes of an operation's results, adds the
// requirements on its operands, and visits its regions. It returns nullopt if
// it does not handle the operation.

std::optional<LogicalResult> visitTensorOp(Operation *op,
                                           SizeAnalysis &analysis);
std::optional<LogicalResult> visitLinalgOp(Operation *op,
                                           SizeAnalysis &analysis);
std::optional<LogicalResult> visitPosencOp(Operation *op,
                                           SizeAnalysis &analysis);
std::optional<LogicalResult> visitLoopOp(Operation *op, SizeAnalysis &analysis);
// Each function sets the integer that an operation computes. It returns false
// if it does not handle the operation.

bool visitIntegerOp(Operation *op, SizeAnalysis &analysis);
bool visitAffineOp(Operation *op, SizeAnalysis &analysis);

} // namespace mlir::posenc

#endif // POSENC_ABI_SIZEANALYSIS_H
