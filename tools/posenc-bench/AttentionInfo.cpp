//===- AttentionInfo.cpp - analysis of posenc.attention -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionInfo.h"

#include "posenc/IR/Posenc.h"

using namespace mlir;
using namespace mlir::posenc;

/// Returns the suffix of the variant in a case's name: a word for each feature
/// that the plain variant lacks.
static std::string getVariantSuffix(AttentionOp op, bool isDecode) {
  std::string suffix;
  auto add = [&](bool holds, StringRef word) {
    if (holds)
      suffix += ("-" + word).str();
  };
  bool isHeadMajor = op.getKeyLayout() == HeadLayout::HeadMajor;
  add(isDecode && !isHeadMajor, "token-major");
  add(!isDecode && isHeadMajor, "head-major");
  add(op.hasRaggedQueries(), "packed");
  add(!isDecode && op.getLengths(), "lengths");
  add(static_cast<bool>(op.getBlockTable()), "paged");
  add(op.getWindowLeft() || op.getWindowRight(), "window");
  add(!op.getScore().empty(), "score");
  add(op.getMask() || !op.getWhere().empty(), "mask");
  add(static_cast<bool>(op.getSinks()), "sinks");
  return suffix;
}

/// Returns the argument number of `value`, or nullopt if it is null or not a
/// block argument.
static std::optional<size_t> getArgumentNumber(Value value) {
  auto argument = dyn_cast_or_null<BlockArgument>(value);
  return argument ? std::optional<size_t>(argument.getArgNumber())
                  : std::nullopt;
}

void mlir::posenc::readAttentionInfo(AttentionOp op, FunctionInfo &info) {
  auto query = cast<ShapedType>(op.getQuery().getType());
  bool isDecode = op.getLengths() && !op.hasRaggedQueries() &&
                  query.getDimSize(op.getQueryTokenDim()) == 1;
  info.family = isDecode ? "decode" : "attention";
  info.variant = isDecode         ? op.getKeyRotation() ? "raw" : "rotated"
                 : op.getCausal() ? "causal"
                                  : "full";
  info.variant += getVariantSuffix(op, isDecode);

  AttentionInfo read;
  bool areArguments = true;
  auto find = [&](Value value) {
    std::optional<size_t> argument = getArgumentNumber(value);
    areArguments &= argument.has_value();
    return argument.value_or(0);
  };
  read.query = find(op.getQuery());
  read.key = find(op.getKey());
  read.value = find(op.getValue());
  if (op.getLengths())
    read.lengths = find(op.getLengths());
  for (Value starts : op.getCuSeqlens())
    read.cuSeqlens.push_back(find(starts));
  if (op.getBlockTable())
    read.blockTable = find(op.getBlockTable());
  if (!areArguments)
    return;
  read.queryHeadDim = op.getQueryHeadDim();
  read.queryTokenDim = op.getQueryTokenDim();
  read.keyTokenDim = op.getKeyTokenDim();
  read.isDecode = isDecode;
  read.isCausal = op.getCausal();
  read.windowLeft = op.getWindowLeft();
  read.windowRight = op.getWindowRight();
  info.attention = std::move(read);
}
