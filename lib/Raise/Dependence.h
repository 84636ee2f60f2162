//===- Dependence.h - which tensors are computed from others ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_DEPENDENCE_H
#define POSENC_RAISE_DEPENDENCE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

#include <memory>

namespace mlir::posenc::raise {

/// Tells which tensors are computed from others. Searches with one tensor x ask
/// about the same values, so answers are kept, as long as x may be asked for:
/// roots are searched from the last operation to the first, and x is before its
/// root.
class Dependence {
public:
  /// Whether the value is x or is computed from it.
  bool depends(Value value, Value x);
  /// Forgets the answers for tensors that are not before the operation.
  void forgetBehind(Operation *op);

private:
  struct Answers {
    /// The first operation of x's block that reads x. No value before it
    /// depends on x.
    Operation *firstReader = nullptr;
    /// Whether other blocks read x, too.
    bool isReadElsewhere = false;
    llvm::DenseMap<Value, bool> known;

    bool isBeforeReaders(Operation *op) const {
      return !isReadElsewhere &&
             (!firstReader || (op->getBlock() == firstReader->getBlock() &&
                               op->isBeforeInBlock(firstReader)));
    }
  };
  Answers &getAnswers(Value x);

  llvm::DenseMap<Value, std::unique_ptr<Answers>> answers;
  /// The number of tensors from which on answers are forgotten.
  size_t limit = 256;
};

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_DEPENDENCE_H
