//===- CaseLibrary.h - the code of a case -----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_CASELIBRARY_H
#define POSENC_LIB_DRIVER_BENCH_CASELIBRARY_H

#include "Case.h"
#include "Meaning.h"
#include "posenc/runtime/Library.h"

namespace mlir::posenc {

/// The kernel library of a case and its function: opened, or compiled with
/// posenc-compile and opened, so that threads start as in any other program.
struct CaseLibrary {
  /// Nothing after an error, which is printed.
  static std::optional<CaseLibrary> open(const Case &from);

  ::posenc::runtime::Library library;
  ::posenc::runtime::Function function;
  /// Of a library that was compiled before, nothing but the name.
  Meaning meaning;
  /// The C entry point, the one that takes DLPack tensors, and the one that
  /// says how much scratch memory the others take.
  void *entry = nullptr, *tensorEntry = nullptr, *workspaceEntry = nullptr;

private:
  void findEntries(const std::string &path);
};

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_CASELIBRARY_H
