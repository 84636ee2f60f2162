//===- NpyRead.cpp - Reads .npy files -------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "NpyHeader.h"
#include "posenc/runtime/npy.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

using namespace posenc::runtime;

namespace {
class File {
public:
  ~File() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  bool open(const std::string &path, std::string &error);
  /// Reads exactly `count` bytes; fails if the file has fewer left.
  bool read(void *out, uint64_t count, std::string &error);
  uint64_t size() const { return total; }

private:
  int descriptor = -1;
  uint64_t total = 0;
};
} // namespace

bool File::open(const std::string &path, std::string &error) {
  struct stat info;
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 || ::fstat(descriptor, &info))
    return fail(error, std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail(error, "not a regular file");
  total = static_cast<uint64_t>(info.st_size);
  return true;
}

bool File::read(void *out, uint64_t count, std::string &error) {
  char *next = static_cast<char *>(out);
  while (count) {
    size_t chunk = std::min<uint64_t>(count, uint64_t(1) << 30);
    ssize_t got = ::read(descriptor, next, chunk);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return fail(error, got ? std::strerror(errno) : "truncated");
    next += got;
    count -= static_cast<uint64_t>(got);
  }
  return true;
}

static void swapBytes(const Array &array) {
  size_t size = posenc_dtype_size(array.dtype());
  char *bytes = array.dataAs<char>();
  for (size_t i = 0; i < array.sizeInBytes(); i += size)
    std::reverse(bytes + i, bytes + i + size);
}

/// Copies column-major elements to row-major order.
template <typename T>
static void transpose(const Array &from, const Array &to) {
  const std::vector<int64_t> &shape = from.shape();
  size_t rank = shape.size();
  std::vector<int64_t> strides(rank, 1), index(rank, 0);
  for (size_t dim = 1; dim < rank; ++dim)
    strides[dim] = strides[dim - 1] * shape[dim - 1];
  int64_t source = 0;
  for (size_t i = 0, count = from.numElements(); i < count; ++i) {
    to.dataAs<T>()[i] = from.dataAs<T>()[source];
    for (size_t dim = rank; dim-- > 0;) {
      source += strides[dim];
      if (++index[dim] < shape[dim])
        break;
      source -= strides[dim] * shape[dim];
      index[dim] = 0;
    }
  }
}

static void transpose(const Array &from, const Array &to) {
  switch (posenc_dtype_size(from.dtype())) {
  case 1:
    return transpose<uint8_t>(from, to);
  case 2:
    return transpose<uint16_t>(from, to);
  case 4:
    return transpose<uint32_t>(from, to);
  default:
    return transpose<uint64_t>(from, to);
  }
}

static bool readFile(const std::string &path, Array &out, std::string &error) {
  File file;
  if (path.find('\0') != std::string::npos)
    return fail(error, "not a file name");
  if (!file.open(path, error))
    return false;
  char preamble[npyPreambleSize];
  size_t first = std::min<uint64_t>(npyPreambleSize, file.size());
  size_t begin, length;
  if (!file.read(preamble, first, error) ||
      !parseNpyPreamble(preamble, first, begin, length, error))
    return false;
  if (begin + length > file.size())
    return fail(error, "truncated .npy header");
  // In format 1 the preamble is shorter, and the rest of what was read already
  // is the beginning of the text.
  std::string text(preamble + begin, std::min(length, first - begin));
  size_t have = text.size();
  if (have < first - begin)
    return fail(error, "malformed .npy header: too short");
  text.resize(length);
  NpyHeader header;
  if (!file.read(&text[0] + have, length - have, error) ||
      !parseNpyText(text, header, error))
    return false;

  // Checked before the allocation, so that a damaged header cannot request more
  // memory than the file has bytes.
  uint64_t payload = file.size() - begin - length;
  if (payload != header.payload)
    return fail(error,
                (payload < header.payload ? "truncated: " : "trailing data: ") +
                    std::to_string(payload) +
                    " bytes of data, the header says " +
                    std::to_string(header.payload));
  Array array, ordered;
  if (!Array::allocate(header.dtype, header.shape, array, error) ||
      !file.read(array.data(), payload, error))
    return false;
  if (header.bigEndian)
    swapBytes(array);
  if (header.fortranOrder && header.shape.size() > 1) {
    if (!Array::allocate(header.dtype, header.shape, ordered, error))
      return false;
    transpose(array, ordered);
    array = std::move(ordered);
  }
  out = std::move(array);
  return true;
}

bool posenc::runtime::readNpy(const std::string &path, Array &out,
                              std::string &error) {
  if (readFile(path, out, error))
    return true;
  return fail(error, path + ": " + error);
}
