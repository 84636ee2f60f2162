//===- Check.h - the same bits on the GPU as on the CPU ---------*- C++ -*-===//
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

/// Runs every function of a library on the CPU and on a device, with several
/// sizes each, and compares the bytes of the results. Says what differs, and
/// returns whether nothing does.
bool checkLibrary(const std::string &path, int device, bool isSmall);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_CHECK_H
