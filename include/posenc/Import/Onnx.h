//===- Onnx.h - import of ONNX models ---------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IMPORT_ONNX_H
#define POSENC_IMPORT_ONNX_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <functional>
#include <memory>

namespace mlir::posenc {

struct OnnxImportOptions {
  /// Folders that external data is read from: that of the model's path, and
  /// that of the file, if the path is a symbolic link. Empty if the model has
  /// no file, so that external data is an error.
  SmallVector<std::string, 2> folders;
  /// The memory of the bytes, which large constants refer to. They are copied
  /// if it is null.
  std::shared_ptr<llvm::MemoryBuffer> memory;
  /// Takes each file of external data, by its path without links, and its
  /// memory, which large constants refer to. May be empty.
  std::function<void(StringRef path, std::shared_ptr<llvm::MemoryBuffer>)>
      onExternalData;
};

/// Maximum size of an ONNX file, and of its constants that are copied, in
/// bytes.
constexpr uint64_t kMaxOnnxBytes = uint64_t(8) << 30;

/// Builds a module with one function from the bytes of an ONNX model. `name`
/// stands for the file in diagnostics. Fused operators become posenc
/// operations, others become linalg, tensor, arith and math. On failure, emits
/// a diagnostic that names the node and its operator, and returns null.
OwningOpRef<ModuleOp> importOnnx(MLIRContext &context, StringRef bytes,
                                 StringRef name,
                                 const OnnxImportOptions &options);

} // namespace mlir::posenc

#endif // POSENC_IMPORT_ONNX_H
