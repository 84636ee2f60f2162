//===- CallLayout.h - the words of a kernel's call --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_CALLLAYOUT_H
#define POSENC_LIB_CODEGEN_CPU_CALLLAYOUT_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// Where a call's 64-bit words hold what: the inputs and outputs (an address or
/// a scalar each), then the sizes, then for each tensor its strides in elements
/// for all dimensions but the last, whose stride is 1; the last word is that of
/// the memory that chunks share, if they do.
class CallLayout {
public:
  CallLayout(AbiAttr abi, int64_t sharedBytes);

  AbiAttr getAbi() const { return abi; }
  /// The inputs, then the outputs.
  ArrayRef<ArgAttr> getArguments() const { return arguments; }
  /// The tensor type of an argument, or null for a scalar.
  RankedTensorType getTensor(unsigned argument) const {
    return dyn_cast<RankedTensorType>(arguments[argument].getType());
  }
  int64_t getSizeWord(int64_t number) const {
    return arguments.size() + number;
  }
  /// The word of the first stride of a tensor.
  int64_t getStridesWord(unsigned argument) const {
    return strideWords[argument];
  }
  int64_t getNumWords() const { return numWords; }
  /// 0 if chunks share nothing.
  int64_t getSharedBytes() const { return sharedBytes; }
  /// For each dimension of a tensor the word that holds its size, or -1 if the
  /// size is static.
  SmallVector<int64_t> getDimWords(unsigned argument) const;

private:
  AbiAttr abi;
  SmallVector<ArgAttr> arguments;
  SmallVector<int64_t> strideWords;
  int64_t numWords, sharedBytes;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_CALLLAYOUT_H
