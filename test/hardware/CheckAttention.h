//===- CheckAttention.h - checks attention on the GPU -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_CHECKATTENTION_H
#define POSENC_TEST_HARDWARE_CHECKATTENTION_H

#include <string>

namespace posenc::hardware {

/// Runs the calls of `module` (see readCalls) that the library has on the CPU,
/// and twice on the GPU. The GPU's results must have the same bits, and be
/// close to the CPU's. Prints the differences and a summary, and returns
/// whether all are right. Throws Failure if the files cannot be read.
bool checkForms(const std::string &library, const std::string &module,
                int device);

/// Checks functions of the library that attend from queries to keys and values
/// [sequence, token, head, channel]: the GPU's results of long sequences are
/// close to the CPU's; a row has the same bits in each call, alone or in a
/// batch, for all queries or in chunks. Prints and returns as checkForms.
/// `tokens` is the length of a sequence. Ignores other functions.
bool checkRows(const std::string &library, int device, int64_t tokens);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_CHECKATTENTION_H
