//===- CudaCode.h - code for NVIDIA GPUs ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_CUDACODE_H
#define POSENC_TARGET_CUDACODE_H

#include "posenc/TargetInfo/CudaTarget.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <vector>

namespace mlir::posenc {

/// The kernels of a module for one architecture: PTX, which the driver
/// compiles, or a cubin, which it loads.
struct CudaImage {
  CudaTarget target;
  bool isPtx;
  std::string bytes;
  /// The program that assembled a cubin, and its output.
  std::string log;
};

/// Compiles a module of launches and kernels without changing it. Returns
/// nullopt after an error diagnostic. Each image has PTX, and a cubin if that
/// is requested and ptxas is found, which is reported as a remark.
std::optional<std::vector<CudaImage>>
generateCudaImages(ModuleOp module, llvm::ArrayRef<CudaTarget> targets,
                   bool withCubins);

} // namespace mlir::posenc

#endif // POSENC_TARGET_CUDACODE_H
