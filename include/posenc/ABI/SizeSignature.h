//===- SizeSignature.h - the sizes of a C signature -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_ABI_SIZESIGNATURE_H
#define POSENC_ABI_SIZESIGNATURE_H

#include "posenc/ABI/SizeAnalysis.h"

namespace mlir::posenc {

/// Numbers the sizes of a signature and expresses derived sizes and
/// requirements by these numbers.
class SizeSignature {
public:
  SizeSignature(SizeAnalysis &analysis, MLIRContext *context)
      : analysis(analysis), context(context) {}

  /// Returns the number of an input's dynamic size. All inputs must be added
  /// before results.
  int64_t addInputSize(Value tensor, int64_t dim);
  /// Returns the number of a result's dynamic size; nullopt if it does not
  /// follow from the inputs.
  std::optional<int64_t> addResultSize(Value tensor, int64_t dim);
  /// Numbers the terms, relations and bounds of the analysis. All sizes must
  /// have been added.
  void finish(int64_t numInputs);

  ArrayRef<int64_t> getSizes() const { return sizes; }
  ArrayRef<BoundAttr> getBounds() const { return bounds; }
  ArrayRef<TermAttr> getTerms() const { return terms; }
  ArrayRef<RelationAttr> getRelations() const { return relations; }

private:
  int64_t getSymbol(unsigned symbol);
  int64_t addTerm(TermKind kind, ArrayRef<SizeExpr> operands);
  AffineExpr convert(const SizeExpr &expr);
  AffineMap convertAll(ArrayRef<SizeExpr> exprs);
  int64_t getFactor(const SizeExpr &expr);
  std::optional<int64_t> findSize(const SizeExpr &expr);

  SizeAnalysis &analysis;
  MLIRContext *context;
  int64_t numInputs = 0;
  SmallVector<int64_t> sizes;
  SmallVector<BoundAttr> bounds;
  SmallVector<TermAttr> terms;
  SmallVector<RelationAttr> relations;
  DenseMap<unsigned, int64_t> sizeOfSymbol;
  DenseMap<unsigned, int64_t> termOfSymbol;
  /// The numbers of result sizes that are terms.
  std::map<SizeExpr, int64_t> sizeOfExpr;
};

} // namespace mlir::posenc

#endif // POSENC_ABI_SIZESIGNATURE_H
