//===- ModuleBuilder.h - a model's kernels as a module ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_FRONTEND_MODULEBUILDER_H
#define POSENC_FRONTEND_MODULEBUILDER_H

#include "posenc/Frontend/ModelConfig.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::posenc {

struct ModuleBuilderOptions {
  /// The element type of queries and keys; the config's own if absent.
  std::optional<::posenc::frontend::DType> dtype;
  /// Where diagnostics point: the config, as a module has no text of its own.
  std::optional<Location> location;
};

/// Builds the functions of a model:
///   @sincos(positions) -> (cos, sin), tables of f32 whatever the model's type
///   @rope(q, k, positions) -> (q_out, k_out), over batch, sequence, head, dim
/// Null after an error diagnostic.
OwningOpRef<ModuleOp> buildModule(MLIRContext &context,
                                  const ::posenc::frontend::ModelConfig &config,
                                  const ModuleBuilderOptions &options = {});

} // namespace mlir::posenc

#endif // POSENC_FRONTEND_MODULEBUILDER_H
