//===- ThreadSoftmax.h - softmax of a GPU thread ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ATTENTION_THREADSOFTMAX_H
#define POSENC_LIB_CODEGEN_GPU_ATTENTION_THREADSOFTMAX_H

#include "GPU/Threads/ThreadBuilder.h"

#include "posenc/Numerics/Softmax.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

namespace mlir::posenc {

/// Softmax by instructions of a GPU thread, on scalars. The running max starts
/// at minus infinity.
class ThreadSoftmax : public SoftmaxBuilder {
public:
  /// `unit` is 1, or ln 2 if scores are exponents of base 2.
  ThreadSoftmax(ThreadBuilder &thread, FloatType type, double unit)
      : SoftmaxBuilder(thread, thread.getLoc(), type, unit,
                       -std::numeric_limits<double>::infinity()),
        thread(thread) {}

  Value max(Value x, Value y) override { return thread.max(x, y); }
  Value exp(Value x) override {
    return thread.exp2(isNatural() ? mul(x, number(llvm::numbers::log2e)) : x);
  }
  Value log(Value x) override { return math::LogOp::create(thread, x); }
  ThreadBuilder &getThread() { return thread; }

private:
  ThreadBuilder &thread;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_THREADSOFTMAX_H
