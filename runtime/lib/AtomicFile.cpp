//===- AtomicFile.cpp - Writes a file completely or not at all ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AtomicFile.h"
#include "Error.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace posenc::runtime;

bool AtomicFile::fail(std::string &error) const {
  return posenc::runtime::fail(error, name + ": " + std::strerror(errno));
}

bool AtomicFile::open(const std::string &path, std::string &error) {
  name = target = path;
  if (path.empty() || path.find('\0') != std::string::npos)
    return posenc::runtime::fail(error, "not a file name: '" +
                                            std::string(path.c_str()) + "'");
  if (char *real = ::realpath(path.c_str(), nullptr)) {
    target = real;
    std::free(real);
  }
  struct stat info;
  bool exists = ::stat(target.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return fail(error);
  }
  // rename() would replace a device or a pipe by a regular file.
  if (exists && !S_ISREG(info.st_mode)) {
    descriptor = ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
    return descriptor >= 0 || fail(error);
  }

  // Unlike mkstemp(), open() applies the umask of the user to 0666.
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; attempt < 1000; ++attempt) {
    temporary = target + ".tmp" + std::to_string(::getpid()) + "-" +
                std::to_string(counter++);
    descriptor = ::open(temporary.c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0)
      return true;
    if (errno != EEXIST)
      break;
  }
  temporary.clear();
  return fail(error);
}

bool AtomicFile::write(const void *data, size_t size, std::string &error) {
  const char *next = static_cast<const char *>(data);
  while (size) {
    // Linux writes at most 2 GiB in one call; other systems fail for more.
    size_t chunk = size < (size_t(1) << 30) ? size : size_t(1) << 30;
    ssize_t count = ::write(descriptor, next, chunk);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail(error);
    next += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

bool AtomicFile::commit(std::string &error) {
  // Some file systems report a full disk in close() only.
  int result = ::close(descriptor);
  descriptor = -1;
  if (result)
    return fail(error);
  if (temporary.empty())
    return true;
  if (::rename(temporary.c_str(), target.c_str()))
    return fail(error);
  temporary.clear();
  return true;
}

void AtomicFile::discard() {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
  if (!temporary.empty())
    ::unlink(temporary.c_str());
  temporary.clear();
}
