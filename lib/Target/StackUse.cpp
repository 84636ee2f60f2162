//===- StackUse.cpp - stack use of entry points ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StackUse.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;

/// Bytes of a frame besides its size: the return address, the frame pointer,
/// and the alignment to the widest vectors.
static constexpr int64_t kFrameOverhead = 16 + 64;

/// On a thread's stack there are also its thread-local data (4 to 5 KiB in a
/// program that links libc and libgomp) and the frames of libc and libgomp.
static constexpr int64_t kSystemBytes = 8 << 10;

void mlir::posenc::requestFrames(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      function.addFnAttr("warn-stack-size", "0");
}

namespace {

using FunctionSet = llvm::SmallSetVector<const llvm::Function *, 8>;

/// The call graph below one entry point.
class CallGraph {
public:
  CallGraph(const llvm::Function &entry, const Frames &frames);

  /// Returns the maximum stack use of a call of the function.
  std::optional<int64_t> getDepth(const llvm::Function &function);

private:
  struct Node {
    FunctionSet callees;
    bool callsPointer = false, hasBound = true;
    /// nullopt while it is being computed, which detects recursion.
    std::optional<std::optional<int64_t>> depth;
    bool isVisited = false;
  };
  Node &getNode(const llvm::Function &function);
  bool reaches(const llvm::Function &from, const llvm::Function &to);

  const Frames &frames;
  /// The functions that a pointer may refer to.
  FunctionSet pointees;
  llvm::DenseMap<const llvm::Function *, std::unique_ptr<Node>> nodes;
};

} // namespace

/// Adds the functions that a constant refers to.
static void addFunctions(const llvm::Constant &constant, FunctionSet &functions,
                         llvm::SmallPtrSetImpl<const llvm::Constant *> &seen) {
  if (!seen.insert(&constant).second)
    return;
  if (auto *function = dyn_cast<llvm::Function>(&constant)) {
    if (!function->isDeclaration())
      functions.insert(function);
    return;
  }
  for (const llvm::Use &use : constant.operands())
    addFunctions(*cast<llvm::Constant>(use), functions, seen);
}

CallGraph::CallGraph(const llvm::Function &entry, const Frames &frames)
    : frames(frames) {
  llvm::SmallPtrSet<const llvm::Constant *, 16> seen;
  for (const llvm::Instruction &instruction : llvm::instructions(entry))
    for (const llvm::Use &use : instruction.operands())
      if (auto *constant = dyn_cast<llvm::Constant>(use);
          constant && !isa<llvm::Function>(constant))
        addFunctions(*constant, pointees, seen);
}

CallGraph::Node &CallGraph::getNode(const llvm::Function &function) {
  std::unique_ptr<Node> &node = nodes[&function];
  if (node)
    return *node;
  node = std::make_unique<Node>();
  for (const llvm::Instruction &instruction : llvm::instructions(function)) {
    if (auto *alloca = dyn_cast<llvm::AllocaInst>(&instruction))
      node->hasBound &= alloca->isStaticAlloca();
    // A function that is passed as an argument may be called by the callee.
    if (auto *call = dyn_cast<llvm::CallBase>(&instruction)) {
      node->callsPointer |= call->isIndirectCall();
      llvm::SmallPtrSet<const llvm::Constant *, 4> seen;
      for (const llvm::Use &use : call->operands())
        if (auto *callee = dyn_cast<llvm::Function>(use))
          addFunctions(*callee, node->callees, seen);
    }
  }
  return *node;
}

bool CallGraph::reaches(const llvm::Function &from, const llvm::Function &to) {
  FunctionSet reached;
  reached.insert(&from);
  for (size_t i = 0; i < reached.size(); ++i)
    for (const llvm::Function *callee : getNode(*reached[i]).callees)
      reached.insert(callee);
  return reached.contains(&to);
}

std::optional<int64_t> CallGraph::getDepth(const llvm::Function &function) {
  Node &node = getNode(function);
  if (node.depth)
    return *node.depth;
  if (node.isVisited || !node.hasBound)
    return std::nullopt;
  node.isVisited = true;
  FunctionSet callees = node.callees;
  if (node.callsPointer)
    for (const llvm::Function *pointee : pointees)
      if (!reaches(*pointee, function))
        callees.insert(pointee);
  int64_t below = 0;
  for (const llvm::Function *callee : callees) {
    std::optional<int64_t> depth = getDepth(*callee);
    if (!depth)
      return std::nullopt;
    below = std::max(below, *depth);
  }
  node.depth = frames.lookup(&function) + kFrameOverhead + below;
  return *node.depth;
}

std::optional<int64_t> mlir::posenc::getStackBytes(const llvm::Module &module,
                                                   StringRef entry,
                                                   const Frames &frames) {
  const llvm::Function *function = module.getFunction(entry);
  if (!function || function->isDeclaration())
    return std::nullopt;
  std::optional<int64_t> depth =
      CallGraph(*function, frames).getDepth(*function);
  if (!depth)
    return std::nullopt;
  return llvm::alignTo(*depth + kSystemBytes, 1024);
}
