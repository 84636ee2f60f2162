//===- posenc-opt.cpp - mlir-opt with posenc passes -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/Guard.h"
#include "posenc/Import/Hlo.h"
#include "posenc/Import/Passes.h"
#include "posenc/Registration/Registration.h"

#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

namespace mlir::posenc {
#define GEN_PASS_REGISTRATION
#include "posenc/Import/Passes.h.inc"
} // namespace mlir::posenc

/// Hides the options of LLVM's targets and optimizations, which libLLVM.so
/// registers when it is loaded, from --help. --help-hidden shows them.
static void hideLibraryOptions() {
  for (auto &option : llvm::cl::getRegisteredOptions())
    if (!option.first.starts_with("help") && option.first != "version")
      option.second->setHiddenFlag(llvm::cl::Hidden);
}

int main(int argc, char **argv) {
  // Comes before runGuarded(), which replaces the signal handlers that this
  // installs.
  llvm::InitLLVM initialization(argc, argv);
  hideLibraryOptions();
  mlir::registerAllPasses();
  mlir::posenc::registerPosencPasses();
  mlir::posenc::registerPosencImportPasses();
  mlir::DialectRegistry registry;
  mlir::posenc::registerAllDialects(registry);
  mlir::posenc::registerHloSyntax(registry);
  return mlir::posenc::runGuarded([&] {
    return mlir::asMainReturnCode(
        mlir::MlirOptMain(argc, argv, "Posenc optimizer driver\n", registry));
  });
}
