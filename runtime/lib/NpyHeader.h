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

struct NpyHeader {
  posenc_dtype dtype = POSENC_DTYPE_INVALID;
  bool bigEndian = false;
  bool fortranOrder = false;
  std::vector<int64_t> shape;
  uint64_t payload = 0; ///< bytes of data that must follow
};

/// Bytes in front of the text: magic, version and the length of the text.
constexpr size_t npyPreambleSize = 12;

/// Real headers of plain arrays have about a hundred bytes.
constexpr size_t maxNpyText = size_t(1) << 16;

/// Reads the preamble from the first bytes of a file (fewer than
/// npyPreambleSize if the file is shorter): where the text begins and its
/// length, which is bounded.
bool parseNpyPreamble(const char *bytes, size_t size, size_t &begin,
                      size_t &length, std::string &error);

/// Reads the text, a literal of a Python dictionary.
bool parseNpyText(const std::string &text, NpyHeader &out, std::string &error);

/// The preamble and text for an array, padded so that data is aligned.
std::string formatNpyHeader(posenc_dtype dtype, const int64_t *shape,
                            int32_t rank);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_NPYHEADER_H
