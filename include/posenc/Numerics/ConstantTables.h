//===- ConstantTables.h - constant globals of kernels -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_CONSTANTTABLES_H
#define POSENC_NUMERICS_CONSTANTTABLES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace mlir::posenc {

/// Creates a constant global of these values in the nearest module around `op`
/// and returns its name. Equal globals are shared.
template <typename Number>
std::string createConstants(OpBuilder &builder, Operation *op, StringRef prefix,
                            ArrayRef<Number> values, int64_t alignment = 64);

/// Creates a constant global of the elements of `values`, in row-major order.
std::string createConstants(OpBuilder &builder, Operation *op, StringRef prefix,
                            DenseElementsAttr values, int64_t alignment = 64);

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_CONSTANTTABLES_H
