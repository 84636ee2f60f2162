//===- LLVMErrors.h - LLVM errors as MLIR diagnostics -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_LLVMERRORS_H
#define POSENC_TARGET_LLVMERRORS_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/DiagnosticHandler.h"

#include <memory>

namespace llvm {
class Function;
class LLVMContext;
} // namespace llvm

namespace mlir::posenc {

/// The bytes of stack of functions; those without a frame are not there.
using Frames = llvm::DenseMap<const llvm::Function *, int64_t>;

/// During its lifetime, LLVM's errors about a module become diagnostics at a
/// location. By default LLVM would print an error and exit.
class LLVMErrors {
public:
  LLVMErrors(llvm::LLVMContext &context, Location loc);
  ~LLVMErrors();

  /// Whether there was an error.
  bool any() const;
  /// The frames that the backend has reported.
  const Frames &getFrames() const;

private:
  llvm::LLVMContext &context;
  std::unique_ptr<llvm::DiagnosticHandler> previous;
};

} // namespace mlir::posenc

#endif // POSENC_TARGET_LLVMERRORS_H
