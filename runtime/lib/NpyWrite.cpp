//===- NpyWrite.cpp - Writes .npy files -----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AtomicFile.h"
#include "Error.h"
#include "NpyHeader.h"
#include "Types.h"
#include "posenc/runtime/npy.h"

using namespace posenc::runtime;

/// The reason why the tensor cannot be written, or null. Sets `bytes` to the
/// size of its data.
static const char *findProblem(const posenc_tensor &tensor, uint64_t &bytes) {
  if (!posenc_dtype_size(tensor.dtype))
    return "unknown element type";
  if (tensor.rank < 0 || tensor.rank > POSENC_MAX_RANK)
    return "the rank is negative or too large";
  if (tensor.rank && !tensor.shape)
    return "the shape is NULL";
  if (!tensorBytes(tensor.dtype, tensor.shape, tensor.rank, bytes))
    return "a size is negative, or the sizes are too large";
  if (bytes && !tensor.data)
    return "the data is NULL";
  return nullptr;
}

bool posenc::runtime::makeNpyHeader(const posenc_tensor &tensor,
                                    std::string &header, std::string &error) {
  uint64_t bytes = 0;
  if (const char *problem = findProblem(tensor, bytes))
    return fail(error, problem);
  header = formatNpyHeader(tensor.dtype, tensor.shape, tensor.rank);
  return true;
}

bool posenc::runtime::writeNpy(const std::string &path,
                               const posenc_tensor &tensor,
                               std::string &error) {
  uint64_t bytes = 0;
  if (const char *problem = findProblem(tensor, bytes))
    return fail(error, path + ": " + problem);
  std::string header = formatNpyHeader(tensor.dtype, tensor.shape, tensor.rank);
  AtomicFile file;
  return file.open(path, error) &&
         file.write(header.data(), header.size(), error) &&
         file.write(tensor.data, bytes, error) && file.commit(error);
}
