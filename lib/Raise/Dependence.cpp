//===- Dependence.cpp - which tensors are computed from others ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dependence.h"

#include "Elements.h"

using namespace mlir;
using namespace mlir::posenc::raise;

Dependence::Answers &Dependence::getAnswers(Value x) {
  std::unique_ptr<Answers> &of = answers[x];
  if (of)
    return *of;
  of = std::make_unique<Answers>();
  of->known[x] = true;
  Block *block = x.getParentBlock();
  for (Operation *user : x.getUsers()) {
    Operation *reader = block->findAncestorOpInBlock(*user);
    if (!reader)
      of->isReadElsewhere = true;
    else if (!of->firstReader || reader->isBeforeInBlock(of->firstReader))
      of->firstReader = reader;
  }
  return *of;
}

bool Dependence::depends(Value value, Value x) {
  Answers &of = getAnswers(x);
  // A chain of operations may be longer than the stack allows recursion.
  struct Frame {
    Value value;
    SmallVector<Value, 4> reads;
  };
  SmallVector<Frame, 0> stack;
  // Returns the answer if it is known; looks at what the value reads otherwise.
  auto enter = [&](Value next) -> std::optional<bool> {
    if (auto it = of.known.find(next); it != of.known.end())
      return it->second;
    Operation *op = next.getDefiningOp();
    if (!op || of.isBeforeReaders(op))
      return false;
    of.known[next] = false;
    SmallVector<Value> reads = getReadTensors(op);
    stack.push_back({next, {reads.rbegin(), reads.rend()}});
    return std::nullopt;
  };
  std::optional<bool> answer = enter(value);
  while (!stack.empty()) {
    if (answer == true) {
      // All values on the stack read this one.
      for (const Frame &frame : stack)
        of.known[frame.value] = true;
      return true;
    }
    Frame &top = stack.back();
    if (top.reads.empty()) {
      answer = false;
      stack.pop_back();
    } else {
      answer = enter(top.reads.pop_back_val());
    }
  }
  return *answer;
}

void Dependence::forgetBehind(Operation *op) {
  if (answers.size() < limit)
    return;
  llvm::DenseMap<Value, std::unique_ptr<Answers>> kept;
  for (auto &[x, of] : answers) {
    Operation *definition = x.getDefiningOp();
    if (!definition || definition->getBlock() != op->getBlock() ||
        definition->isBeforeInBlock(op))
      kept[x] = std::move(of);
  }
  answers = std::move(kept);
  limit = 2 * answers.size() + 256;
}
