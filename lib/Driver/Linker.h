//===- Linker.h - objects to libraries --------------------------*- C++ -*-===//
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

/// Links one object into a shared library with lld, against libc and, if
/// `openmp`, libgomp. Neither needs to be there, for whatever architecture.
llvm::Error linkShared(llvm::StringRef object, llvm::StringRef output,
                       llvm::StringRef soname, llvm::StringRef triple,
                       bool openmp);

/// The bytes of a static library with one object; the same for the same input.
llvm::Expected<std::string> createArchive(llvm::StringRef object,
                                          llvm::StringRef memberName);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_LINKER_H
