//===- Error.h - Error texts and status codes -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_ERROR_H
#define POSENC_RUNTIME_LIB_ERROR_H

#include "posenc/kernel/EntryStatus.h"
#include "posenc/runtime/types.h"

#include <cstdint>
#include <new>
#include <string>
#include <utility>

namespace posenc::runtime {

/// Sets the error text of this thread and returns `status`. Does not allocate,
/// so that it works after an allocation has failed.
posenc_status fail(posenc_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// Sets `error`; returns false.
inline bool fail(std::string &error, std::string what) {
  error = std::move(what);
  return false;
}

/// The status of an entry point that returned `code`, a PosencEntryStatus;
/// KERNEL_FAILED for other codes.
posenc_status toStatus(int32_t code);

/// Runs `body`, which returns a status, and turns exceptions into a status, so
/// that none leaves the C interface.
template <typename Body> posenc_status guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fail(POSENC_OUT_OF_MEMORY, "out of memory");
  } catch (...) {
    // The runtime itself throws nothing but bad_alloc.
    return fail(POSENC_INVALID_ARGUMENT, "a callback threw an exception");
  }
}

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_ERROR_H
