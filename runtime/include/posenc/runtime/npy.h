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

/// Reads the `.npy` file (format 1, 2 or 3) at `path` into `out`: f2, f4, f8,
/// i4, i8, i1 and b1; u2 and V2 are taken for bf16, u1 and V1 for f8E4M3FN,
/// which NumPy does not know; the caller knows if they are f8E5M2.
/// Fortran order and big-endian numbers are converted. False with a text for
/// anything else, also for a file that is shorter or longer than its header
/// says; `out` is then unchanged. Memory in use stays within a few times the
/// size of the file, whatever its header says.
POSENC_RUNTIME_API bool readNpy(const std::string &path, Array &out,
                                std::string &error);

/// Writes `tensor` to `path` as `.npy` format 1, little-endian, C order; bf16
/// as u2, f8 as u1, index as i8. A regular file appears whole or not at all: on
/// failure nothing is left behind and an older file is as it was. A device or
/// pipe is written to directly. False with a text on failure.
POSENC_RUNTIME_API bool writeNpy(const std::string &path,
                                 const posenc_tensor &tensor,
                                 std::string &error);

/// Sets `header` to what stands before the bytes of `tensor` in such a file,
/// for who writes them elsewhere. False with a text for what is no tensor.
POSENC_RUNTIME_API bool makeNpyHeader(const posenc_tensor &tensor,
                                      std::string &header, std::string &error);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_NPY_H
