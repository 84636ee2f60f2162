//===- Bench.cpp - main function of posenc-bench --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-bench/Bench.h"

#include "Session.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/Guard.h"
#include "posenc/Driver/Options.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir::posenc;

int mlir::posenc::benchMain(int argc, char **argv) {
  BenchRequest request;
  if (std::optional<int> code = parseBenchRequest(argc, argv, request))
    return *code;
  std::vector<char *> arguments = {argv[0]};
  for (std::string &argument : request.benchmarkArguments)
    arguments.push_back(argument.data());
  int count = static_cast<int>(arguments.size());
  ::benchmark::Initialize(&count, arguments.data());
  if (count > 1) {
    getErrorStream() << "posenc-bench: error: invalid option '" << arguments[1]
                     << "' (see posenc-bench --help)\n";
    return kExitUsage;
  }
  return runGuarded([&] { return Session(request).run(); });
}
