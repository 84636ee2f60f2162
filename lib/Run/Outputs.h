//===- Outputs.h - results to files, all or none ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_RUN_OUTPUTS_H
#define POSENC_LIB_RUN_OUTPUTS_H

#include "posenc/runtime/types.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir::posenc {

/// `.npy` files that appear together, when all of them are written. A device
/// or a pipe is written to directly.
class Outputs {
public:
  ~Outputs();

  llvm::Error add(llvm::StringRef path, const posenc_tensor &tensor);
  llvm::Error commit();

private:
  struct File {
    std::string temporary, path;
  };
  llvm::SmallVector<File> files;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_RUN_OUTPUTS_H
