//===- posenc-bench.cpp - measures kernels --------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-bench/Bench.h"

int main(int argc, char **argv) { return mlir::posenc::benchMain(argc, argv); }
