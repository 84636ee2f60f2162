//===- NpyHeader.h - The header of an .npy file -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_NPYHEADER_H
#define POSENC_RUNTIME_LIB_NPYHEADER_H

#include "posenc/runtime/types.h"

#include <string>
#include <vector>

namespace posenc::runtime {

/// The contents of the header.
struct NpyHeader {
  posenc_dtype dtype = POSENC_DTYPE_INVALID;
  bool bigEndian = false;
  bool fortranOrder = false;
  std::vector<int64_t> shape; ///< in elements
  uint64_t payload = 0;       ///< bytes of data that must follow the header
};

/// The maximum number of bytes before the text: magic number, version, length
/// of the text.
constexpr size_t npyPreambleSize = 12;

/// The longest text, in bytes. Headers of plain arrays have about 100.
constexpr size_t maxNpyText = size_t(1) << 16;

/// Reads the preamble. `bytes` are the first npyPreambleSize bytes of a file,
/// or all of a shorter file. Sets `begin` to the offset of the text and
/// `length` to its length, at most maxNpyText, both in bytes. Returns false and
/// sets `error` if this is not an .npy file.
bool parseNpyPreamble(const char *bytes, size_t size, size_t &begin,
                      size_t &length, std::string &error);

/// Parses the text, a literal of a Python dictionary. Returns false and sets
/// `error` if it is malformed or the type is not supported.
bool parseNpyText(const std::string &text, NpyHeader &out, std::string &error);

/// The preamble and text for an array of a known type and rank, padded to a
/// multiple of 64 bytes to align the data.
std::string formatNpyHeader(posenc_dtype dtype, const int64_t *shape,
                            int32_t rank);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_NPYHEADER_H
