//===- CudaCode.h - kernels for NVIDIA GPUs ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_CUDACODE_H
#define POSENC_TARGET_CUDACODE_H

#include "posenc/Target/CudaTarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <vector>

namespace mlir::posenc {

/// The kernels of a module for one architecture: PTX, which the driver
/// compiles, or a cubin, which it loads.
struct CudaImage {
  CudaTarget target;
  bool isPtx;
  std::string bytes;
};

/// What a library has of a module for CUDA.
struct CudaCode {
  /// The functions that launch the kernels, in the LLVM dialect, and with the
  /// signatures that their CPU code has.
  OwningOpRef<ModuleOp> host;
  std::vector<CudaImage> images;
};

/// Compiles what a module at any stage before `vector` has for GPUs; the module
/// stays as it is. Functions without kernels are left out with a warning;
/// nothing after an error diagnostic, as when none is left. With each target's
/// PTX comes its cubin, if it is wanted and there is an assembler.
std::optional<CudaCode> generateCudaCode(ModuleOp module,
                                         llvm::ArrayRef<CudaTarget> targets,
                                         bool withCubins);

/// The assembler of the CUDA toolkit: of CUDA_HOME or CUDA_PATH, or else
/// `ptxas` on PATH; empty if there is none.
std::string findPtxas();

/// Assembles PTX. The assembler's own words are the error.
llvm::Expected<std::string> assemblePtx(llvm::StringRef ptx,
                                        const CudaTarget &target);

} // namespace mlir::posenc

#endif // POSENC_TARGET_CUDACODE_H
