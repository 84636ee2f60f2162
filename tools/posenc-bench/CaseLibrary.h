//===- CaseLibrary.h - the compiled library of a case -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_CASELIBRARY_H
#define POSENC_TOOLS_BENCH_CASELIBRARY_H

#include "Case.h"
#include "FunctionInfo.h"
#include "posenc/runtime/Library.h"

namespace mlir::posenc {

/// The kernel library of a case and its function. Sources are compiled to a
/// shared library with posenc-compile, not with the JIT, so that threads start
/// as in a program that links the library.
struct CaseLibrary {
  /// Opens the case's library, or compiles its source and opens the result.
  /// Returns nullopt after an error, which is printed.
  static std::optional<CaseLibrary> open(const Case &from);

  ::posenc::runtime::Library library;
  ::posenc::runtime::Function function;
  /// For a case that is a library: the name, and the attention if it is a
  /// decode function.
  FunctionInfo info;
  /// The C entry point, the entry point for DLPack tensors, and the function
  /// that returns the bytes of scratch memory. The last two are null if the
  /// library has none.
  void *entryPoint = nullptr, *tensorEntryPoint = nullptr,
       *workspaceFunction = nullptr;

private:
  void findEntryPoints(const std::string &path);
};

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_CASELIBRARY_H
