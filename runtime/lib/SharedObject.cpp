//===- SharedObject.cpp - A loaded shared library -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedObject.h"
#include "Error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace posenc::runtime;

/// The largest library that is read, 4 GiB. Kernel libraries are far smaller.
static constexpr off_t maxFileSize = off_t(4) << 30;

namespace {
struct FileCloser {
  int descriptor;
  ~FileCloser() { ::close(descriptor); }
};
} // namespace

static posenc_status readWhole(const char *path, std::vector<char> &bytes,
                               FileId &id) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  int descriptor = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return fail(errno == ENOENT || errno == ENOTDIR ? POSENC_NOT_FOUND
                                                    : POSENC_IO_ERROR,
                "%s: %s", path, std::strerror(errno));
  FileCloser closer{descriptor};
  struct stat info;
  if (::fstat(descriptor, &info))
    return fail(POSENC_IO_ERROR, "%s: %s", path, std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail(POSENC_BAD_LIBRARY, "%s: not a regular file", path);
  if (info.st_size > maxFileSize)
    return fail(POSENC_BAD_LIBRARY, "%s: too large for a kernel library", path);
  bytes.resize(static_cast<size_t>(info.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t count =
        ::read(descriptor, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail(POSENC_IO_ERROR, "%s: %s", path, std::strerror(errno));
    if (count == 0)
      return fail(POSENC_IO_ERROR, "%s: became shorter while it was read",
                  path);
    done += static_cast<size_t>(count);
  }
  id = {info.st_dev, info.st_ino};
  return POSENC_OK;
}

posenc_status SharedObject::open(const char *path, ElfSummary &summary) {
  std::unique_ptr<char, void (*)(void *)> absolute(::realpath(path, nullptr),
                                                   std::free);
  if (!absolute)
    return fail(errno == ENOENT || errno == ENOTDIR ? POSENC_NOT_FOUND
                                                    : POSENC_IO_ERROR,
                "%s: %s", path, std::strerror(errno));
  std::vector<char> bytes;
  if (posenc_status status = readWhole(absolute.get(), bytes, file))
    return status;
  std::string error;
  if (!checkElf(bytes.data(), bytes.size(), summary, error))
    return fail(POSENC_BAD_LIBRARY, "%s: %s", path, error.c_str());

  handle = LoadedNames::get().load(absolute.get(), file, inside);
  if (!handle) {
    const char *reason = ::dlerror();
    return fail(POSENC_BAD_LIBRARY, "%s: cannot be loaded: %s", path,
                reason ? reason : "unknown reason");
  }
  return POSENC_OK;
}

SharedObject::~SharedObject() {
  if (handle)
    LoadedNames::get().unload(handle, file, inside);
}

void *SharedObject::symbol(const char *name) const {
  return ::dlsym(handle, name);
}
