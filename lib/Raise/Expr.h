//===- Expr.h - values of tensor elements as expressions --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An expression says how an element of a tensor is computed from elements of
// other tensors. Equal expressions of one ExprContext are one object.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_EXPR_H
#define POSENC_RAISE_EXPR_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/FoldingSet.h"
#include "llvm/Support/Allocator.h"

#include <optional>

namespace mlir::posenc::raise {

struct Expr : llvm::FoldingSetNode {
  enum class Kind {
    /// An affine function of the loops' indices, of index or integer type.
    Index,
    /// A number.
    Constant,
    /// An element of a tensor, by the operands as indices.
    Element,
    /// A scalar operation without regions and with one result.
    Operation
  };
  Kind kind;
  Type type;
  AffineExpr index;
  TypedAttr constant;
  Value tensor;
  std::optional<OperationName> name;
  /// The operation's properties, as a dictionary.
  Attribute properties;
  ArrayRef<const Expr *> operands;
  /// Counts expressions in the order of their creation.
  unsigned id = 0;

  /// Whether it is one of the operations.
  template <typename... Ops> bool is() const {
    return name && isAnyOf<Ops...>(*name);
  }
  template <typename... Ops> static bool isAnyOf(OperationName name) {
    return ((name.getTypeID() == TypeID::get<Ops>()) || ...);
  }
  /// Whether a condition holds for the expression or for one that it is
  /// computed from.
  bool hasPart(llvm::function_ref<bool(const Expr *)> holds) const;
  /// Returns the number if it is a constant index.
  std::optional<int64_t> getIndexConstant() const;
  /// Returns the number if it is a constant float.
  std::optional<double> getFloatConstant() const;
  /// Returns the number if it is a constant of type i1.
  std::optional<bool> getBoolConstant() const;

  void Profile(llvm::FoldingSetNodeID &id) const;
};

/// Numbers from `min` to `max`. Both are absent if unknown.
struct IndexRange {
  std::optional<int64_t> min, max;
};

/// Where a dynamic size comes from: a dimension of a tensor that no operation
/// copies it from, or another value with the dimension -1. Equal origins are
/// equal sizes.
using SizeOrigin = std::pair<Value, int64_t>;

/// Creates expressions of the indices of a nest of loops.
class ExprContext {
public:
  /// `sizes` has the loops' sizes, or ShapedType::kDynamic.
  ExprContext(MLIRContext *context, ArrayRef<int64_t> sizes)
      : context(context), sizes(sizes) {}

  MLIRContext *getContext() const { return context; }

  /// Adds a loop and returns its number.
  unsigned addLoop(int64_t size) {
    sizes.push_back(size);
    return sizes.size() - 1;
  }
  /// Says where the dynamic size of a loop comes from.
  void addLoopOrigin(unsigned loop, SizeOrigin origin) {
    loopOrigins.push_back({loop, origin});
  }
  /// Whether the loop has the size.
  bool hasSize(unsigned loop, SizeOrigin origin) const {
    return llvm::is_contained(loopOrigins, std::pair(loop, origin));
  }
  /// Returns the number of the loop if the index is that of one.
  std::optional<unsigned> getLoopNumber(const Expr *index) const {
    auto dim = index->index ? dyn_cast<AffineDimExpr>(index->index) : nullptr;
    return dim ? std::optional(dim.getPosition()) : std::nullopt;
  }
  /// Adds a loop whose index is the size of another one, and returns its
  /// number.
  unsigned addEnd(unsigned of) {
    unsigned loop = addLoop(ShapedType::kDynamic);
    ends.push_back({loop, of});
    return loop;
  }
  /// Returns the loop whose size the index is.
  std::optional<unsigned> getEndedLoop(const Expr *index) const {
    for (auto [end, of] : ends)
      if (getLoopNumber(index) == end)
        return of;
    return std::nullopt;
  }
  /// A loop that indexes a part of a dimension of dynamic size is compared with
  /// other dynamic sizes by its origin.
  void setPartial(unsigned loop) { partialLoops.insert(loop); }
  bool isPartial(unsigned loop) const { return partialLoops.contains(loop); }
  /// Returns the index of a loop, which is 0 if its size is 1.
  const Expr *getLoop(unsigned dim) {
    return sizes[dim] == 1 ? getIndex(0)
                           : getIndex(getAffineDimExpr(dim, context));
  }
  const Expr *getIndex(AffineExpr index, Type type = {});
  const Expr *getIndex(int64_t constant) {
    return getIndex(getAffineConstantExpr(constant, context));
  }
  /// Returns the value of an index that is defined outside of the loops.
  const Expr *getSymbol(Value value);
  const Expr *getConstant(TypedAttr constant);
  const Expr *getElement(Value tensor, ArrayRef<const Expr *> indices);
  /// Returns the operation, folded where that changes no value.
  const Expr *getOperation(OperationName name, Attribute properties, Type type,
                           ArrayRef<const Expr *> operands);
  /// Returns `like` with other operands.
  const Expr *getOperation(Operation *like, ArrayRef<const Expr *> operands) {
    return getOperation(like->getName(), like->getPropertiesAsAttribute(),
                        getElementTypeOrSelf(like->getResult(0).getType()),
                        operands);
  }
  /// Returns an element or an operation with other operands.
  const Expr *getLike(const Expr *like, ArrayRef<const Expr *> operands) {
    return like->kind == Expr::Kind::Element
               ? getElement(like->tensor, operands)
               : getOperation(*like->name, like->properties, like->type,
                              operands);
  }
  /// Returns an operation of `arith` on floats.
  template <typename Op> const Expr *getArith(ArrayRef<const Expr *> operands) {
    return getOperation(OperationName(Op::getOperationName(), context),
                        getArithProperties(), operands[0]->type, operands);
  }

  /// Returns the expression with sizes of loops taken into account.
  AffineExpr simplify(AffineExpr expr);
  IndexRange getRange(AffineExpr expr);

  ArrayRef<Value> getSymbols() const { return symbols; }
  ArrayRef<int64_t> getSizes() const { return sizes; }

private:
  const Expr *unique(Expr &expr);
  Attribute getArithProperties();
  bool isBefore(const Expr *a, const Expr *b);
  const Expr *foldIndices(OperationName name, Attribute properties, Type type,
                          ArrayRef<const Expr *> operands);
  const Expr *foldConditions(OperationName name, Attribute properties,
                             ArrayRef<const Expr *> operands);
  const Expr *foldComplex(OperationName name, ArrayRef<const Expr *> operands);
  const Expr *computeComplexPart(const Expr *number, bool isReal);
  const Expr *foldFloats(OperationName name, Type type,
                         ArrayRef<const Expr *> operands);

  MLIRContext *context;
  SmallVector<int64_t> sizes;
  SmallVector<std::pair<unsigned, SizeOrigin>> loopOrigins;
  SmallVector<std::pair<unsigned, unsigned>> ends;
  llvm::SmallDenseSet<unsigned> partialLoops;
  SmallVector<Value> symbols;
  /// Counts tensors in the order of their first elements.
  llvm::DenseMap<Value, unsigned> tensors;
  llvm::FoldingSet<Expr> exprs;
  llvm::BumpPtrAllocator allocator;
  unsigned numExprs = 0;
  /// Real and imaginary parts by number and whether it is the real one, null if
  /// they are not folded. A product of numbers uses each part twice.
  llvm::DenseMap<std::pair<const Expr *, unsigned>, const Expr *> complexParts;
};

/// Returns one expression for several: `parts[k]`, with the value of `number`
/// for k. Returns null if the parts differ in more than the constants of
/// indices, or if these are not affine in k, in its remainder or in its
/// quotient.
const Expr *getCommonExpr(ExprContext &exprs, ArrayRef<const Expr *> parts,
                          AffineExpr number);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_EXPR_H
