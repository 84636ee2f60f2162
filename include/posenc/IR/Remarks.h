//===- Remarks.h - remarks on the choices of passes -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pass that chooses between ways to lower or to fuse an operation reports
// the choice here. `posenc-opt --remarks-filter=posenc` and `posenc-compile
// --remarks` print the reports as optimization remarks of the category
// `posenc`, named after the pass; builds with assertions also log them with
// `--debug-only=<pass argument>`.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_REMARKS_H
#define POSENC_IR_REMARKS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::posenc {

/// Reports how `pass` lowers or fuses `op`. The text is formatted only if
/// somebody listens. Must be called before `op` is erased.
void reportChoice(Operation *op, StringRef pass, const Twine &choice);

/// Reports why `pass` leaves `op` as it is, or does not use a faster way.
void reportMissed(Operation *op, StringRef pass, const Twine &reason);

} // namespace mlir::posenc

#endif // POSENC_IR_REMARKS_H
