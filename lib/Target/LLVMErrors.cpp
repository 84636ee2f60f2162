//===- LLVMErrors.cpp - LLVM errors as MLIR diagnostics -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/LLVMErrors.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {
struct Handler final : llvm::DiagnosticHandler {
  explicit Handler(Location loc) : loc(loc) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (auto *frame = dyn_cast<llvm::DiagnosticInfoStackSize>(&info)) {
      frames[&frame->getFunction()] = frame->getStackSize();
      return true;
    }
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::DiagnosticPrinterRawOStream printer(os);
    info.print(printer);
    if (info.getSeverity() == llvm::DS_Error)
      emitError(loc) << text;
    else if (info.getSeverity() == llvm::DS_Warning)
      emitWarning(loc) << text;
    return true;
  }

  Location loc;
  Frames frames;
};
} // namespace

LLVMErrors::LLVMErrors(llvm::LLVMContext &context, Location loc)
    : context(context), previous(context.getDiagnosticHandler()) {
  context.setDiagnosticHandler(std::make_unique<Handler>(loc));
}

LLVMErrors::~LLVMErrors() { context.setDiagnosticHandler(std::move(previous)); }

const Frames &LLVMErrors::getFrames() const {
  return static_cast<const Handler *>(context.getDiagHandlerPtr())->frames;
}

bool LLVMErrors::any() const { return context.getDiagHandlerPtr()->HasErrors; }
