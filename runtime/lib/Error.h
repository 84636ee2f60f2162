//===- Error.h - The error text of a thread ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_ERROR_H
#define POSENC_RUNTIME_LIB_ERROR_H

#include "posenc/runtime/types.h"

#include <cstdint>
#include <new>

namespace posenc::runtime {

/// Sets the error text of this thread and returns `status`. Allocates nothing,
/// so that it works when memory is short.
posenc_status fail(posenc_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// The status of a code that an entry of a kernel library has returned, as each
/// library's header lists them.
posenc_status toStatus(int32_t code);

/// Runs `body`, which returns a status, and lets no exception out of the
/// C interface.
template <typename Body> posenc_status guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fail(POSENC_OUT_OF_MEMORY, "out of memory");
  } catch (...) {
    // What is our own throws only bad_alloc.
    return fail(POSENC_INVALID_ARGUMENT, "a callback threw an exception");
  }
}

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_ERROR_H
