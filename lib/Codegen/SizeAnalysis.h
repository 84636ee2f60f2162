//===- SizeAnalysis.h - dynamic sizes that are equal ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_SIZEANALYSIS_H
#define POSENC_LIB_CODEGEN_SIZEANALYSIS_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::posenc {

/// Finds the classes of tensor dimensions of a function that its operations
/// require to be equal, and the sizes that scalar arguments give.
class SizeAnalysis {
public:
  explicit SizeAnalysis(FunctionOpInterface function);

  /// A representative of the class of a tensor's dimension.
  int64_t getClass(Value tensor, int64_t dim);
  /// The static size that some dimension of the class has, or nothing.
  std::optional<int64_t> getStaticSize(int64_t sizeClass) const;
  /// The number of the scalar argument that is the size of the class, or
  /// nothing.
  std::optional<unsigned> getScalarArgument(int64_t sizeClass) const;

private:
  int64_t getId(Value tensor, int64_t dim);
  void unite(Value a, int64_t dimA, Value b, int64_t dimB);
  void uniteAll(Value a, Value b);
  void uniteSize(Value tensor, int64_t dim, OpFoldResult size);
  void visit(Operation *op);

  /// In order: of two static sizes of a class the first is taken.
  llvm::MapVector<std::pair<Value, int64_t>, int64_t> ids;
  llvm::EquivalenceClasses<int64_t> classes;
  SmallVector<std::pair<int64_t, unsigned>> scalars;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_SIZEANALYSIS_H
