//===- DefineGlobal.h - constants of the kernel support library -*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_TARGET_DEFINEGLOBAL_H
#define POSENC_LIB_TARGET_DEFINEGLOBAL_H

#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"

namespace mlir::posenc {

/// Gives the global that the module declares under this name a value, which may
/// have another type.
inline llvm::GlobalVariable *defineGlobal(llvm::Module &module,
                                          llvm::StringRef name,
                                          llvm::Constant *value,
                                          bool isConstant = true) {
  auto *global =
      new llvm::GlobalVariable(module, value->getType(), isConstant,
                               llvm::GlobalValue::InternalLinkage, value);
  llvm::GlobalVariable *declared = module.getNamedGlobal(name);
  global->takeName(declared);
  declared->replaceAllUsesWith(global);
  declared->eraseFromParent();
  return global;
}

} // namespace mlir::posenc

#endif // POSENC_LIB_TARGET_DEFINEGLOBAL_H
