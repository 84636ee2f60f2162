//===- Error.cpp - The error text of a thread -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"

#include <cstdarg>
#include <cstdio>

namespace posenc::runtime {

// A fixed buffer rather than a string: it can neither fail to grow nor outlive
// its own destructor when a thread ends.
static thread_local char lastError[4096];

posenc_status fail(posenc_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (std::vsnprintf(lastError, sizeof(lastError), format, arguments) < 0)
    lastError[0] = '\0';
  va_end(arguments);
  return status;
}

} // namespace posenc::runtime

extern "C" const char *posenc_last_error(void) {
  return posenc::runtime::lastError;
}
