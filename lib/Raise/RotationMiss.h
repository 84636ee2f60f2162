//===- RotationMiss.h - what resembles a rotation ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_ROTATIONMISS_H
#define POSENC_RAISE_ROTATIONMISS_H

#include "Expr.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::posenc::raise {

/// Whether the elements of the result may be sums of products, as far as the
/// operations show from which they are computed. Most operations of a graph are
/// told from rotations by this, before any element is expanded.
bool mayAddProducts(Operation *root);

/// Whether an operation through which the result depends on x may add elements.
/// If none does, the result has moved lanes of x, or other functions of them.
/// `depends` tells whether a tensor is computed from x, as the result is.
bool mayAddLanes(Operation *root, Value x,
                 llvm::function_ref<bool(Value)> depends);

/// Whether elements of the result may be sums of products with one or two
/// elements of an operand. False for functions such as a maximum, and for
/// sums that add more elements, such as those of contractions.
bool mayBeLinear(Operation *op);

/// Tells near misses of rotations from other sums of products, such as a
/// residual behind a norm. In a near miss, lanes are sums of products with
/// factors of a table, and two lanes of a tensor x are in the sums of the same
/// lanes; or a lane of x is added to one of a tensor that is computed from x by
/// another operation than a move, as by a matrix that exchanges the lanes.
class RotationMiss {
public:
  /// The last `numLaneDims` dimensions of x are its lanes. `getLane` returns
  /// the number of the lane that the element with the indices has, if it is
  /// constant. `depends` tells whether a tensor is computed from x.
  RotationMiss(
      Value x, unsigned numLaneDims,
      llvm::function_ref<std::optional<int64_t>(ArrayRef<const Expr *>)>
          getLane,
      llvm::function_ref<bool(Value)> depends)
      : x(x), numLaneDims(numLaneDims), getLane(getLane), depends(depends) {}

  /// Whether the lane is a sum of two or three products with factors of a
  /// table.
  bool isSumOfProducts(const Expr *lane);
  /// Whether the lanes resemble those of a rotation of x.
  bool resembles(ArrayRef<const Expr *> lanes);
  /// Returns the tensor with the lanes that are added, if these are none of x.
  Value getAdded() const { return added; }

private:
  /// A product in the sum of a lane.
  struct Term {
    /// Lanes of x in the product.
    llvm::SmallDenseSet<int64_t, 4> lanes;
    /// The other indices of these elements.
    llvm::SmallSetVector<ArrayRef<const Expr *>, 2> rows;
    /// A tensor that is computed from x, whose element is the only factor that
    /// depends on x.
    Value opaque;
    /// Whether there is an element that does not depend on x, and one that
    /// depends on the row, too.
    bool hasTable = false, hasRows = false;
    bool isProduct = false, hasOther = false;
  };

  bool addTerms(const Expr *expr, SmallVectorImpl<Term> &terms);
  void addFactors(const Expr *expr, Term &term);
  void addLanes(const Expr *expr, Term &term, bool &isDependent,
                llvm::SmallPtrSetImpl<const Expr *> &seen);

  Value x;
  unsigned numLaneDims;
  llvm::function_ref<std::optional<int64_t>(ArrayRef<const Expr *>)> getLane;
  llvm::function_ref<bool(Value)> depends;
  Value added;
};

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_ROTATIONMISS_H
