//===- Fatal.h - abort on a violated precondition ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The library is built without exceptions, and wrong results of the oracle
// would hide errors. So a call with invalid arguments aborts in every build
// type.

#ifndef POSENC_LIB_REFERENCE_FATAL_H
#define POSENC_LIB_REFERENCE_FATAL_H

#include <cstdio>
#include <cstdlib>
#include <string>

namespace posenc::reference {

/// Aborts with the reason unless it is empty.
inline void requireEmpty(const std::string &reason) {
  if (reason.empty())
    return;
  std::fprintf(stderr, "posenc reference: %s\n", reason.c_str());
  std::abort();
}

} // namespace posenc::reference

#endif // POSENC_LIB_REFERENCE_FATAL_H
