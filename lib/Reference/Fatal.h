//===- Fatal.h - Ends the program on a broken contract ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The library is built without exceptions and a wrong oracle is worse than
// none, so a caller that skips the check functions is stopped in every build.

#ifndef POSENC_LIB_REFERENCE_FATAL_H
#define POSENC_LIB_REFERENCE_FATAL_H

#include <cstdio>
#include <cstdlib>
#include <string>

namespace posenc::reference {

inline void requireEmpty(const std::string &reason) {
  if (reason.empty())
    return;
  std::fprintf(stderr, "posenc reference: %s\n", reason.c_str());
  std::abort();
}

} // namespace posenc::reference

#endif // POSENC_LIB_REFERENCE_FATAL_H
