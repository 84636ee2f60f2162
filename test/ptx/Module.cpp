//===- Module.cpp - parses PTX modules and launches their kernels ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module.h"
#include "Lexer.h"
#include "Machine.h"

#include <atomic>

using namespace llvm;

namespace posenc::ptx {

Expected<Module> Module::parse(StringRef text, const ParseOptions &options) {
  Expected<ModuleSyntax> syntax = parseSyntax(text);
  if (!syntax)
    return syntax.takeError();
  static std::atomic<uint64_t> ids{0};
  auto program = std::make_shared<Program>();
  program->id = ++ids;
  program->version = syntax->version;
  program->target = syntax->target;
  FunctionDecoder decoder(*program, options);
  bool isGood = decoder.addModuleVariables(*syntax);
  for (const FunctionSyntax &function : syntax->functions)
    isGood = isGood && decoder.declare(function);
  // Kernels last: their registers follow those of the functions they call.
  for (bool isEntry : {false, true})
    for (const FunctionSyntax &function : syntax->functions)
      if (function.isDefined && function.isEntry == isEntry)
        isGood = isGood && decoder.decode(function);
  isGood = isGood && decoder.linkInitializers(*syntax);
  if (!isGood)
    return decoder.takeError();
  return Module(std::move(program));
}

std::vector<std::string> Module::getKernels() const {
  std::vector<std::string> names;
  for (const Function &function : program->functions)
    if (function.isEntry && function.isDefined)
      names.push_back(function.name);
  return names;
}

const Function *Module::getKernel(StringRef name) const {
  auto it = program->functionOf.find(name);
  if (it == program->functionOf.end())
    return nullptr;
  const Function &function = program->functions[it->second];
  return function.isEntry && function.isDefined ? &function : nullptr;
}

uint32_t Module::getStaticShared(const Function &kernel) const {
  std::vector<uint64_t> addresses(program->variables.size());
  return placeShared(*program, kernel, addresses);
}

uint64_t Module::getVariable(StringRef name, Memory &memory,
                             uint64_t *size) const {
  Expected<std::vector<uint64_t>> addresses = placeGlobals(*program, memory);
  if (!addresses) {
    consumeError(addresses.takeError());
    return 0;
  }
  for (auto [variable, address] : zip(program->variables, *addresses)) {
    if (variable.name != name || variable.space == Space::Shared)
      continue;
    if (size)
      *size = variable.size;
    return address;
  }
  return 0;
}

Error Module::launch(StringRef kernel, const LaunchShape &shape,
                     ArrayRef<Argument> arguments, Memory &memory,
                     const RunOptions &options, Statistics *statistics) const {
  const Function *function = getKernel(kernel);
  if (!function)
    return make_error<Fault>(FaultKind::Launch,
                             ("no kernel '" + kernel + "'").str());
  Statistics own;
  Execution execution(*program, *function, shape, memory, options,
                      statistics ? *statistics : own);
  return execution.run(arguments);
}

} // namespace posenc::ptx
