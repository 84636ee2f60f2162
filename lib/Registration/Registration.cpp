//===- Registration.cpp - registration of dialects and passes -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Registration/Registration.h"

#include "posenc/ABI/Passes.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/Conversion/Passes.h"
#include "posenc/Conversion/PosencToLinalg.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Pipelines/Pipelines.h"
#include "posenc/Raise/Passes.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

using namespace mlir;

// Only here, because each use costs the compiler several milliseconds per pass.
namespace mlir::posenc {
#define GEN_PASS_REGISTRATION
#include "posenc/ABI/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "posenc/Codegen/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "posenc/Conversion/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "posenc/Raise/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

void mlir::posenc::registerPosencDialect(DialectRegistry &registry) {
  registry.insert<PosencDialect>();
  registerBufferizableOpInterfaceExternalModels(registry);
  registerAttentionDecomposition(registry);
}

void mlir::posenc::registerPosencPasses() {
  registerPosencTransformsPasses();
  registerPosencRaisePasses();
  registerPosencConversionPasses();
  registerPosencCodegenPasses();
  registerPosencABIPasses();
  registerPipelines();
}

void mlir::posenc::registerAllDialects(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  registerPosencDialect(registry);
}
