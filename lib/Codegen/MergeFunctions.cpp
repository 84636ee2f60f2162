//===- MergeFunctions.cpp - one function for equal ones -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layers of a model are equal but for their weights. Their kernels could be
// merged earlier, but passes choose streams, prefetches and places of buffers
// by what surrounds a loop, so loops are compared after these choices.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "posenc/IR/KernelConfig.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCMERGEFUNCTIONSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// Equal functions. Each has as many reads of globals, in the same order.
struct Group {
  SmallVector<func::FuncOp> functions;
  /// The names of the globals that each function reads.
  SmallVector<SmallVector<FlatSymbolRefAttr>> globals;
};
} // namespace

using Calls = llvm::MapVector<func::FuncOp, SmallVector<func::CallOp>>;

/// Returns the calls of the private functions that may be merged: those with a
/// body that are used by calls only.
static Calls findCalls(ModuleOp module) {
  Calls calls;
  llvm::DenseMap<StringAttr, func::FuncOp> functions;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPrivate() && !function.isExternal() && !getAbi(function)) {
      functions[function.getSymNameAttr()] = function;
      (void)calls[function];
    }
  if (calls.empty())
    return calls;
  llvm::DenseSet<StringAttr> usedOtherwise;
  module.walk([&](Operation *op) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      if (func::FuncOp callee =
              functions.lookup(call.getCalleeAttr().getAttr()))
        calls[callee].push_back(call);
      return;
    }
    op->getAttrDictionary().walk([&](SymbolRefAttr use) {
      usedOtherwise.insert(use.getRootReference());
    });
  });
  calls.remove_if([&](const auto &entry) {
    func::FuncOp function = entry.first;
    return usedOtherwise.contains(function.getSymNameAttr());
  });
  return calls;
}

static SmallVector<memref::GetGlobalOp> getReads(func::FuncOp function) {
  SmallVector<memref::GetGlobalOp> reads;
  function.walk([&](memref::GetGlobalOp read) { reads.push_back(read); });
  return reads;
}

/// Returns a hash of the operations without operands.
static llvm::hash_code computeHash(func::FuncOp function) {
  llvm::hash_code hash = hash_value(Type(function.getFunctionType()));
  function.getBody().walk([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(
                                     op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

/// Returns the attributes other than the name.
static DictionaryAttr getOtherAttributes(func::FuncOp function) {
  NamedAttrList attributes(function->getAttrDictionary());
  attributes.erase(function.getSymNameAttrName());
  return attributes.getDictionary(function.getContext());
}

static bool areEqual(func::FuncOp a, func::FuncOp b) {
  return getOtherAttributes(a) == getOtherAttributes(b) &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

static bool callsOneOf(func::FuncOp function,
                       const llvm::DenseSet<StringAttr> &names) {
  return function
      .walk([&](func::CallOp call) {
        return names.contains(call.getCalleeAttr().getAttr())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns the groups of functions that are equal but for the globals that they
/// read. The names of these are removed from all reads.
static SmallVector<Group> findGroups(ArrayRef<func::FuncOp> functions) {
  SmallVector<Group> groups;
  llvm::DenseMap<size_t, SmallVector<unsigned, 1>> numbers;
  for (func::FuncOp function : functions) {
    SmallVector<FlatSymbolRefAttr> globals;
    for (memref::GetGlobalOp read : getReads(function)) {
      globals.push_back(read.getNameAttr());
      read.setNameAttr(FlatSymbolRefAttr::get(function.getContext(), ""));
    }
    SmallVector<unsigned, 1> &sameHash = numbers[computeHash(function)];
    auto *number = llvm::find_if(sameHash, [&](unsigned number) {
      return areEqual(groups[number].functions.front(), function);
    });
    if (number == sameHash.end()) {
      sameHash.push_back(groups.size());
      number = &sameHash.back();
      groups.emplace_back();
    }
    groups[*number].functions.push_back(function);
    groups[*number].globals.push_back(std::move(globals));
  }
  return groups;
}

/// Calls the first function of the group instead of the others, and erases
/// those. Globals that are not the same for all become operands of the calls.
static void merge(const Group &group, Calls &calls) {
  func::FuncOp first = group.functions.front();
  SmallVector<unsigned> differing;
  SmallVector<memref::GetGlobalOp> reads = getReads(first);
  for (unsigned number = 0; number < reads.size(); ++number) {
    FlatSymbolRefAttr name = group.globals.front()[number];
    reads[number].setNameAttr(name);
    if (llvm::any_of(group.globals, [&](ArrayRef<FlatSymbolRefAttr> globals) {
          return globals[number] != name;
        }))
      differing.push_back(number);
  }
  for (auto [function, globals] :
       llvm::zip_equal(group.functions, group.globals))
    for (func::CallOp call : calls[function]) {
      OpBuilder builder(call);
      call.setCalleeAttr(FlatSymbolRefAttr::get(first.getSymNameAttr()));
      for (unsigned number : differing)
        call.getOperandsMutable().append(
            memref::GetGlobalOp::create(builder, call.getLoc(),
                                        reads[number].getType(),
                                        globals[number].getValue())
                .getResult());
    }
  for (unsigned number : differing) {
    memref::GetGlobalOp read = reads[number];
    (void)first.insertArgument(first.getNumArguments(), read.getType(), {},
                               read.getLoc());
    read.replaceAllUsesWith(first.getArguments().back());
    read.erase();
  }
  for (func::FuncOp function : ArrayRef(group.functions).drop_front())
    function.erase();
}

namespace {
struct MergeFunctions final
    : mlir::posenc::impl::PosencMergeFunctionsPassBase<MergeFunctions> {
  using Base::Base;

  void runOnOperation() override {
    Calls calls = findCalls(getOperation());
    // Functions are merged before those that call them, since a merged function
    // may take globals from its callers.
    llvm::DenseSet<StringAttr> waiting;
    SmallVector<func::FuncOp> rest(llvm::make_first_range(calls));
    for (func::FuncOp function : rest)
      waiting.insert(function.getSymNameAttr());
    while (!rest.empty()) {
      SmallVector<func::FuncOp> ready, later;
      for (func::FuncOp function : rest)
        (callsOneOf(function, waiting) ? later : ready).push_back(function);
      if (ready.empty())
        return;
      for (func::FuncOp function : ready)
        waiting.erase(function.getSymNameAttr());
      for (const Group &group : findGroups(ready))
        merge(group, calls);
      rest = std::move(later);
    }
  }
};
} // namespace
