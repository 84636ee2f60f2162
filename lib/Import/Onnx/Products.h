//===- Products.h - products of matrices ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IMPORT_ONNX_PRODUCTS_H
#define POSENC_LIB_IMPORT_ONNX_PRODUCTS_H

#include "Ops.h"

namespace mlir::posenc::onnx {

/// Multiplies matrices as numpy.matmul does.
FailureOr<Tensor> multiply(NodeImporter &node, Tensor left, Tensor right);

} // namespace mlir::posenc::onnx

#endif // POSENC_LIB_IMPORT_ONNX_PRODUCTS_H
