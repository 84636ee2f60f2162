//===- CallLayout.h - words of a kernel call --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_ABI_CALLLAYOUT_H
#define POSENC_LIB_ABI_CALLLAYOUT_H

#include "posenc/IR/KernelConfig.h"
#include "posenc/kernel/CallLayout.h"

namespace mlir::posenc {

/// The layout of the 64-bit words of a call, in this order:
/// - the inputs and outputs: an address or a scalar each (f32 and f64 as bits);
/// - the sizes;
/// - the terms derived from them;
/// - for each tensor, the strides in elements of all dimensions but the last,
///   whose stride is 1;
/// - the number of the first assertion that fails, if there are assertions;
/// - the number of the phase;
/// - the addresses of the measured workspace, of the memory that tasks share,
///   and of the scratch memory of the first task. Some variants do not use
///   these.
class CallLayout {
public:
  CallLayout(AbiAttr abi, const KernelConfig &config);

  AbiAttr getAbi() const { return abi; }
  const KernelConfig &getConfig() const { return config; }
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
  /// Returns the word of a symbol in terms, relations and bounds.
  int64_t getSymbolWord(int64_t symbol) const;
  /// Whether the word is the address of a tensor, whose symbol is its element.
  bool isTensorWord(int64_t word) const {
    return word < static_cast<int64_t>(arguments.size()) && getTensor(word);
  }
  /// Returns the word of the first stride of a tensor.
  int64_t getStridesWord(unsigned argument) const {
    return strideWords[argument];
  }
  int64_t getStatusWord() const { return numWords - kStatusWord; }
  int64_t getPhaseWord() const { return numWords - kPhaseWord; }
  int64_t getMeasuredWord() const { return numWords - kMeasuredWord; }
  int64_t getSharedWord() const { return numWords - kSharedWord; }
  int64_t getScratchWord() const { return numWords - kScratchWord; }
  int64_t getNumWords() const { return numWords; }
  /// Returns for each dimension of a tensor the word that holds its size, or -1
  /// if the size is static.
  SmallVector<int64_t> getDimWords(unsigned argument) const;

private:
  AbiAttr abi;
  KernelConfig config;
  SmallVector<ArgAttr> arguments;
  SmallVector<int64_t> strideWords;
  int64_t numWords;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_ABI_CALLLAYOUT_H
