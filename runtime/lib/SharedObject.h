//===- SharedObject.h - A loaded shared library -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_SHAREDOBJECT_H
#define POSENC_RUNTIME_LIB_SHAREDOBJECT_H

#include "ElfCheck.h"
#include "LoadedNames.h"
#include "posenc/runtime/types.h"

namespace posenc::runtime {

/// A shared library that was checked and loaded; the destructor unloads it.
class SharedObject {
public:
  SharedObject() = default;
  ~SharedObject();
  SharedObject(const SharedObject &) = delete;
  SharedObject &operator=(const SharedObject &) = delete;

  /// Checks the file at `path` (ElfCheck.h), then loads it. Errors: NOT_FOUND,
  /// IO_ERROR, BAD_LIBRARY.
  posenc_status open(const char *path, ElfSummary &summary);
  /// The address of a symbol of this library or of one that it needs; null if
  /// there is none.
  void *symbol(const char *name) const;

private:
  void *handle = nullptr;
  FileId file;
  const void *inside = nullptr; ///< an address in the loaded file
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_SHAREDOBJECT_H
