//===- Check.h - compares results of the GPU and the CPU --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_CHECK_H
#define POSENC_TEST_HARDWARE_CHECK_H

#include <string>

namespace posenc::hardware {

/// Runs every function of the library at `path` on the CPU and on a CUDA
/// device, with several sizes each, and compares the bytes of the results.
/// Prints the differences and returns whether there are none. Throws Failure if
/// the library cannot be opened.
bool checkLibrary(const std::string &path, int device, bool isSmall);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_CHECK_H
