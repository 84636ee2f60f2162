//===- npy.h - Reads and writes NumPy's .npy files --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_NPY_H
#define POSENC_RUNTIME_NPY_H

#include "posenc/runtime/Array.h"

#include <string>

namespace posenc::runtime {

/// Reads the `.npy` file (format 1, 2 or 3) at `path` into `out`.
///
/// NumPy types f2, f4, f8, i1, u1, i4, i8 and b1 have the obvious element
/// types. NumPy has no bf16 and f8 types: u2 and V2 become bf16, V1 becomes
/// f8E4M3FN. Calls take u8 where f8 or booleans are expected. Fortran order and
/// big-endian numbers are converted.
///
/// Returns false and sets `error` for any other file, also for one that is
/// shorter or longer than its header says; `out` is then unchanged. Allocates
/// at most a small multiple of the size of the file, whatever its header says.
POSENC_RUNTIME_API bool readNpy(const std::string &path, Array &out,
                                std::string &error);

/// Writes `tensor` to `path` in `.npy` format 1, little-endian, C order: bf16
/// as u2, f8 and u8 as u1, index as i8. A regular file is replaced atomically:
/// on failure no new file remains, and an existing one keeps its contents. A
/// device or pipe is written to directly. Returns false and sets `error` on
/// failure.
POSENC_RUNTIME_API bool writeNpy(const std::string &path,
                                 const posenc_tensor &tensor,
                                 std::string &error);

/// Sets `header` to the bytes that precede the data of `tensor` in such a file,
/// for callers who write the file themselves. Returns false and sets `error` if
/// the tensor has an unknown type, no shape or sizes that overflow.
POSENC_RUNTIME_API bool makeNpyHeader(const posenc_tensor &tensor,
                                      std::string &header, std::string &error);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_NPY_H
