//===- Error.cpp - Error texts and status codes ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"

#include "posenc/kernel/Text.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

const char *posenc_status_name(posenc_status status) {
  static const char *const names[] = {"ok",
                                      "invalid argument",
                                      "not found",
                                      "input/output error",
                                      "bad library",
                                      "shape mismatch",
                                      "dtype mismatch",
                                      "kernel failed",
                                      "out of memory",
                                      "unsupported"};
  constexpr posenc_status count = sizeof(names) / sizeof(names[0]);
  static_assert(count == POSENC_UNSUPPORTED + 1, "one name per status");
  return status >= 0 && status < count ? names[status] : "unknown status";
}

namespace posenc::runtime {

// A fixed buffer, since a string may fail to grow, and its destructor may run
// before the last use when a thread ends.
static thread_local char lastError[4096];

/// Sets the error to a text with control characters escaped.
static void setError(const char *text, size_t size) {
  char *out = lastError, *end = lastError + sizeof(lastError) - 1;
  while (size > 0) {
    size_t length = posencGetPrintable(text, size);
    if (end - out < 4)
      break;
    if (length > 0)
      out = std::copy(text, text + length, out);
    else
      out +=
          std::snprintf(out, 5, "\\x%02X", static_cast<unsigned char>(*text));
    length = std::max<size_t>(length, 1);
    text += length;
    size -= length;
  }
  *out = '\0';
}

posenc_status fail(posenc_status status, const char *format, ...) {
  // The text may contain a part of the last error.
  char text[sizeof(lastError)];
  va_list arguments;
  va_start(arguments, format);
  int size = std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  setError(text, std::clamp<int>(size, 0, sizeof(text) - 1));
  return status;
}

posenc_status toStatus(int32_t code) {
  switch (code) {
  case kEntryOk:
    return POSENC_OK;
  case kEntryNull:
  case kEntryOverlap:
  case kEntryDevice:
  case kEntryStride:
  case kEntryAlignment:
  case kEntryArguments:
  case kEntryIndex:
  case kEntryUnknown:
    return POSENC_INVALID_ARGUMENT;
  case kEntrySize:
  case kEntryRank:
  case kEntryShape:
    return POSENC_SHAPE_MISMATCH;
  case kEntryType:
    return POSENC_DTYPE_MISMATCH;
  case kEntryWeights:
    return POSENC_BAD_LIBRARY;
  case kEntryCpu:
  case kEntryNoGpu:
    return POSENC_UNSUPPORTED;
  default:
    return POSENC_KERNEL_FAILED;
  }
}

} // namespace posenc::runtime

extern "C" const char *posenc_last_error(void) {
  return posenc::runtime::lastError;
}
