//===- CallLayout.cpp - words of a kernel call ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallLayout.h"

using namespace mlir;
using namespace mlir::posenc;

CallLayout::CallLayout(AbiAttr abi, const KernelConfig &config)
    : abi(abi), config(config), arguments(abi.getInputs()) {
  llvm::append_range(arguments, abi.getOutputs());
  numWords = getTermWord(abi.getTerms().size());
  for (unsigned i = 0; i < arguments.size(); ++i) {
    strideWords.push_back(numWords);
    if (RankedTensorType tensor = getTensor(i))
      numWords += std::max<int64_t>(tensor.getRank() - 1, 0);
  }
  numWords += config.assertions ? 5 : 4;
}

SmallVector<int64_t> CallLayout::getDimWords(unsigned argument) const {
  SmallVector<int64_t> words;
  ArrayRef<int64_t> sizes = arguments[argument].getSizes();
  for (int64_t size : getTensor(argument).getShape()) {
    if (!ShapedType::isDynamic(size)) {
      words.push_back(-1);
      continue;
    }
    words.push_back(getSizeWord(sizes.front()));
    sizes = sizes.drop_front();
  }
  return words;
}

int64_t CallLayout::getSymbolWord(int64_t symbol) const {
  int64_t numSizes = abi.getSizes().size(), numInputs = abi.getInputs().size();
  if (symbol < numSizes)
    return getSizeWord(symbol);
  symbol -= numSizes;
  return symbol < numInputs ? symbol : getTermWord(symbol - numInputs);
}
