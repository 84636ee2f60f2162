//===- Ptxas.h - assembling of PTX with ptxas -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_PTXAS_H
#define POSENC_TARGET_PTXAS_H

#include "posenc/TargetInfo/CudaTarget.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// The assembler of the CUDA toolkit.
struct Ptxas {
  std::string path;
  /// How it was found: by a variable of the environment, or in a Python
  /// package.
  std::string origin;

  /// Returns its version, its path and what it was found by.
  std::string describe() const;
};

/// Returns the file that POSENC_PTXAS names; otherwise the first ptxas of: the
/// toolkits CUDA_HOME and CUDA_PATH, PATH, and the Python packages
/// nvidia-cuda-nvcc and triton in the folders of setPackageFolders(), or else
/// of VIRTUAL_ENV or of the `python3` on PATH. nullopt if there is none, or if
/// POSENC_PTXAS is "off".
std::optional<Ptxas> findPtxas();

/// Sets the folders of Python packages that findPtxas() searches, for the whole
/// process. Without a call, Python is started to ask for them.
void setPackageFolders(std::vector<std::string> folders);

/// Machine code, and the text that ptxas printed: for each kernel its
/// registers, shared memory and spills.
struct AssembledPtx {
  std::string cubin, log;
};

/// Assembles PTX. The assembler's own words are the error.
llvm::Expected<AssembledPtx>
assemblePtx(const Ptxas &ptxas, llvm::StringRef ptx, const CudaTarget &target);

} // namespace mlir::posenc

#endif // POSENC_TARGET_PTXAS_H
