//===- IndexBounds.h - numbers that kernels use as indices ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_INDEXBOUNDS_H
#define POSENC_LIB_CODEGEN_INDEXBOUNDS_H

#include "SizeAnalysis.h"

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// What must hold of the arguments of a function that operations of its body
/// use as indices, where the tensors that they are indices of have sizes that
/// are known: `sizes` has the number of each class of them.
SmallVector<BoundAttr> findIndexBounds(FunctionOpInterface function,
                                       SizeAnalysis &analysis,
                                       const DenseMap<int64_t, int64_t> &sizes);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_INDEXBOUNDS_H
