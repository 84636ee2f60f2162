//===- AttentionMeaning.cpp - what an attention computes --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Meaning.h"

#include "posenc/IR/Posenc.h"

using namespace mlir;
using namespace mlir::posenc;

/// What the name adds for whatever is not plain.
static std::string getForm(AttentionOp op, bool isDecode) {
  std::string form;
  auto add = [&](bool holds, StringRef word) {
    if (holds)
      form += ("-" + word).str();
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
  return form;
}

static std::optional<size_t> getArgument(Value value) {
  auto argument = dyn_cast_or_null<BlockArgument>(value);
  return argument ? std::optional<size_t>(argument.getArgNumber())
                  : std::nullopt;
}

void mlir::posenc::readAttention(AttentionOp op, Meaning &meaning) {
  auto query = cast<ShapedType>(op.getQuery().getType());
  bool isDecode = op.getLengths() && !op.hasRaggedQueries() &&
                  query.getDimSize(op.getQueryTokenDim()) == 1;
  meaning.family = isDecode ? "decode" : "attention";
  meaning.variant = isDecode         ? op.getKeyRotation() ? "raw" : "rotated"
                    : op.getCausal() ? "causal"
                                     : "full";
  meaning.variant += getForm(op, isDecode);

  AttentionMeaning read;
  bool areArguments = true;
  auto find = [&](Value value) {
    std::optional<size_t> argument = getArgument(value);
    areArguments &= argument.has_value();
    return argument.value_or(0);
  };
  read.query = find(op.getQuery());
  read.key = find(op.getKey());
  read.value = find(op.getValue());
  if (op.getLengths())
    read.lengths = find(op.getLengths());
  for (Value starts : op.getCuSeqlens())
    read.starts.push_back(find(starts));
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
  meaning.attention = std::move(read);
}
