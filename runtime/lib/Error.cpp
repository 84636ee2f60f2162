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

posenc_status toStatus(int32_t code) {
  switch (code) {
  case 0:
    return POSENC_OK;
  case 1:  // NULL
  case 3:  // an overlap
  case 5:  // the device
  case 9:  // strides
  case 10: // alignment
  case 11: // arguments of TVM FFI
  case 12: // an index
    return POSENC_INVALID_ARGUMENT;
  case 2: // negative, or beyond any memory
  case 7: // the rank
  case 8:
    return POSENC_SHAPE_MISMATCH;
  case 6:
    return POSENC_DTYPE_MISMATCH;
  case 4:  // the CPU
  case 13: // the GPU
    return POSENC_UNSUPPORTED;
  default:
    return POSENC_KERNEL_FAILED;
  }
}

} // namespace posenc::runtime

extern "C" const char *posenc_last_error(void) {
  return posenc::runtime::lastError;
}
