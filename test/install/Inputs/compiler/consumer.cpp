//===- consumer.cpp - lowers a rope with an installed Posenc --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"
#include "posenc/Registration/Registration.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/raw_ostream.h"

static const char *const kSource = R"mlir(
func.func @rope(%x: tensor<?x4x64xf32>, %p: tensor<?xi64>)
    -> tensor<?x4x64xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4x64xf32>
  %e = tensor.empty(%n) : tensor<?x4x64xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 64, base = 10000.0>
    ins(%x : tensor<?x4x64xf32>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%e : tensor<?x4x64xf32>)
  return %r : tensor<?x4x64xf32>
}
)mlir";

int main() {
  mlir::DialectRegistry registry;
  mlir::posenc::registerAllDialects(registry);
  mlir::posenc::registerPosencPasses();
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kSource, &context);
  if (!module)
    return 1;
  module->walk([](mlir::posenc::RopeOp rope) {
    llvm::outs() << "a rope on " << rope->getResultTypes().front() << "\n";
  });
  mlir::PassManager manager(&context);
  if (mlir::failed(mlir::parsePassPipeline("posenc-to-cpu", manager)) ||
      mlir::failed(manager.run(*module)))
    return 1;
  unsigned ropes = 0;
  module->walk([&](mlir::posenc::RopeOp) { ++ropes; });
  llvm::outs() << "then " << ropes << " ropes\n";
  module->print(llvm::outs());
}
