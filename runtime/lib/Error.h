//===- Error.h - Error texts and status codes -------------------*- C++ -*-===//
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

/// Sets the error text of this thread and returns `status`. Does not allocate,
/// so that it works after an allocation has failed.
posenc_status fail(posenc_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// What the entry points of kernel libraries return. The C header of a library
/// documents the codes; its kernel support library (Description.h) defines the
/// same ones.
enum EntryCode : int32_t {
  kEntryOk = 0,
  kEntryNull = 1,    ///< a NULL pointer
  kEntrySize = 2,    ///< a negative size, or a product beyond 63 bits
  kEntryOverlap = 3, ///< an output overlaps another argument
  kEntryCpu = 4,     ///< this CPU lacks a feature
  kEntryDevice = 5,  ///< a tensor on another device
  kEntryType = 6,    ///< element type
  kEntryRank = 7,    ///< rank
  kEntryShape = 8,   ///< sizes that do not match
  kEntryStride = 9,  ///< the last dimension is not contiguous
  kEntryAlignment = 10,
  kEntryArguments = 11, ///< arguments of the TVM FFI entry point
  kEntryIndex = 12,     ///< a value that is used as an index is out of range
  kEntryNoGpu = 13,     ///< no GPU, or no code for it
};

/// The status of an entry point that returned `code`; KERNEL_FAILED for codes
/// other than these.
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
