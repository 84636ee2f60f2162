//===- Linker.h - linking of shared libraries and archives ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_LINKER_H
#define POSENC_LIB_DRIVER_LINKER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlir::posenc {

/// Links the object file at path `object` into a shared library at path
/// `output`, with the lld beside the program, or else LLVM's. It is linked
/// against libc and, if `openmp`, libgomp, which need not be installed.
llvm::Error linkShared(llvm::StringRef object, llvm::StringRef output,
                       llvm::StringRef soname, llvm::StringRef triple,
                       bool openmp);

/// Returns the bytes of a static library with one object, whose bytes are
/// `object`. The result is deterministic.
llvm::Expected<std::string> createArchive(llvm::StringRef object,
                                          llvm::StringRef memberName);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_LINKER_H
