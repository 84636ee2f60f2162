//===- Checks.cpp - checks of kernels on a GPU ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

#include "Device.h"
#include "Signature.h"

#include <cstdio>

using namespace posenc;
using namespace posenc::hardware;

const std::vector<CheckKind> &hardware::getCheckKinds() {
  static const std::vector<CheckKind> kinds = {
      {"bits", false, true, listBits, checkBits},
      {"calls", true, true, listCalls, checkCalls},
      {"rows", false, false, listRows, checkRows},
      {"strides", false, false, listStrides, checkStrides}};
  return kinds;
}

runtime::Library hardware::openLibrary(const std::string &path) {
  std::string error;
  runtime::Library library = runtime::Library::open(path, error);
  if (!library)
    throw Failure(error);
  return library;
}

runtime::Function hardware::findFunction(const runtime::Library &library,
                                         const std::string &name) {
  std::string error;
  runtime::Function function = library.find(name, error);
  if (!function)
    throw Failure(error);
  if (!function.get()->cudaEntry)
    throw Failure(name + " has no GPU kernel");
  return function;
}

void hardware::printProgress(const std::string &line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}
