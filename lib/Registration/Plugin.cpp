//===- Plugin.cpp - libPosenc.so as a plugin of mlir-opt ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mlir-opt --load-dialect-plugin=libPosenc.so registers the dialect and the
// passes, so --load-pass-plugin is not needed.
//
//===----------------------------------------------------------------------===//

#include "posenc/Registration/Registration.h"

#include "mlir/Config/mlir-config.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

static void registerPassesOnce() {
  static bool once = (mlir::posenc::registerPosencPasses(), true);
  (void)once;
}

extern "C" __attribute__((visibility("default"))) DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "posenc", POSENC_VERSION,
          [](DialectRegistry *registry) {
            mlir::posenc::registerPosencDialect(*registry);
            registerPassesOnce();
          }};
}

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "posenc", POSENC_VERSION,
          registerPassesOnce};
}
