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

class SharedObject {
public:
  SharedObject() = default;
  ~SharedObject();
  SharedObject(const SharedObject &) = delete;
  SharedObject &operator=(const SharedObject &) = delete;

  /// Checks the file, then loads it.
  posenc_status open(const char *path, ElfSummary &summary);
  void *symbol(const char *name) const;

private:
  void *handle = nullptr;
  FileId file;
  const void *inside = nullptr; ///< an address in the loaded file
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_SHAREDOBJECT_H
