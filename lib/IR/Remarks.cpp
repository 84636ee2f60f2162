//===- Remarks.cpp - remarks on the choices of passes ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Remarks.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/DebugLog.h"

using namespace mlir;
using namespace mlir::posenc;

static remark::RemarkOpts getOptions(Operation *op, StringRef pass) {
  auto options = remark::RemarkOpts::name(pass).category("posenc");
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    function = op->getParentOfType<FunctionOpInterface>();
  return function ? options.function(function.getName()) : options;
}

void mlir::posenc::reportChoice(Operation *op, StringRef pass,
                                const Twine &choice) {
  LDBG(pass.data(), 1) << op->getName() << ": " << choice.str();
  if (op->getContext()->getRemarkEngine())
    remark::passed(op->getLoc(), getOptions(op, pass))
        << remark::add("{0}", choice.str());
}

void mlir::posenc::reportMissed(Operation *op, StringRef pass,
                                const Twine &reason) {
  LDBG(pass.data(), 1) << op->getName() << ": not done, " << reason.str();
  if (op->getContext()->getRemarkEngine())
    remark::missed(op->getLoc(), getOptions(op, pass))
        << remark::reason("{0}", reason.str());
}
