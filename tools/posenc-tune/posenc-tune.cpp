//===- posenc-tune.cpp - measures tuning parameters -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-tune/Tune.h"

int main(int argc, char **argv) { return mlir::posenc::tuneMain(argc, argv); }
