//===- ReadBandwidth.h - how fast threads read memory -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_EXAMPLES_GENERATE_READBANDWIDTH_H
#define POSENC_EXAMPLES_GENERATE_READBANDWIDTH_H

/// Returns the bytes per second that this many threads read together, in order
/// and each in memory of its own: the most of several runs.
double measureReadBandwidth(unsigned numThreads);

#endif // POSENC_EXAMPLES_GENERATE_READBANDWIDTH_H
