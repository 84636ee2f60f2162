//===- WithoutExceptions.cpp - Uses the runtime without exceptions --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/runtime/Library.h"
#include "posenc/runtime/npy.h"

bool posencTestWithoutExceptions(const char *path);

bool posencTestWithoutExceptions(const char *path) {
  using namespace posenc::runtime;
  std::string error;
  Library library = Library::open(path, error);
  std::vector<Array> results;
  return library &&
         library.find("fill", error)
             .call({scalar(2), scalar(3)}, results, error) &&
         results[0].dataAs<int32_t>()[15] == 3;
}
