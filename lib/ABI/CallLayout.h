//===- CallLayout.h - the words of a kernel's call --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_ABI_CALLLAYOUT_H
#define POSENC_LIB_ABI_CALLLAYOUT_H

#include "posenc/IR/Posenc.h"
#include "posenc/kernel/CallLayout.h"

namespace mlir::posenc {

/// The layout of a call's 64-bit words: the inputs and outputs (an address or a
/// scalar each; f32 and f64 by their bits), then the sizes, then the terms
/// derived from them, then for each tensor its strides in elements for all
/// dimensions but the last, whose stride is 1; then the number of the phase,
/// the address of the measured workspace, of the memory that tasks share, and
/// of the scratch memory of the first task, which some variants do not use.
class CallLayout {
public:
  /// `scratchBytes` has the bytes of each buffer in a task's scratch memory.
  CallLayout(AbiAttr abi, int64_t sharedBytes, ArrayRef<int64_t> scratchBytes);

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
  int64_t getTermWord(int64_t number) const {
    return getSizeWord(abi.getSizes().size()) + number;
  }
  /// The word of a symbol of the signature's terms, relations and bounds.
  int64_t getSymbolWord(int64_t symbol) const;
  /// The word of the first stride of a tensor.
  int64_t getStridesWord(unsigned argument) const {
    return strideWords[argument];
  }
  int64_t getPhaseWord() const { return numWords - kPhaseWord; }
  int64_t getMeasuredWord() const { return numWords - kMeasuredWord; }
  int64_t getSharedWord() const { return numWords - kSharedWord; }
  int64_t getScratchWord() const { return numWords - kScratchWord; }
  int64_t getNumWords() const { return numWords; }
  /// 0 if tasks share no memory.
  int64_t getSharedBytes() const { return sharedBytes; }
  ArrayRef<int64_t> getScratchBytes() const { return scratchBytes; }
  /// Returns for each dimension of a tensor the word that holds its size, or -1
  /// if the size is static.
  SmallVector<int64_t> getDimWords(unsigned argument) const;

private:
  AbiAttr abi;
  SmallVector<ArgAttr> arguments;
  SmallVector<int64_t> strideWords, scratchBytes;
  int64_t numWords, sharedBytes;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_ABI_CALLLAYOUT_H
