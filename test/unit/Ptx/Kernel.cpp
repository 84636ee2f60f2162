//===- Kernel.cpp - small PTX kernels for tests ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

using namespace posenc;
using namespace posenc::test;

std::string posenc::test::makeModule(const std::string &params,
                                     const std::string &body,
                                     const std::string &tuning,
                                     const std::string &variables) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n" + variables +
         "\n.visible .entry k(" + params + ")\n" + tuning +
         "\n{\n.reg .pred %p<16>;\n.reg .b16 %h<32>;\n.reg .b32 %r<64>;\n"
         ".reg .b64 %d<64>;\n" +
         body + "\nret;\n}\n";
}

uint64_t posenc::test::evaluate(const std::string &body,
                                const std::string &result,
                                const ptx::ParseOptions &options) {
  std::string store;
  if (result[1] == 'p')
    store = "selp.b32 %r63, 1, 0, " + result + ";\nst.global.b32 [%d63], %r63;";
  else if (result[1] == 'h')
    store = "st.global.b16 [%d63], " + result + ";";
  else if (result[1] == 'r')
    store = "st.global.b32 [%d63], " + result + ";";
  else
    store = "st.global.b64 [%d63], " + result + ";";
  Kernel kernel(makeModule(".param .u64 out",
                           body + "\nld.param.b64 %d63, [out];\n" + store),
                options);
  std::vector<uint64_t> out(1);
  kernel.run({kernel.memory.add(out, ptx::Access::ReadWrite, "out")});
  return out[0];
}

Kernel::Kernel(const std::string &text, const ptx::ParseOptions &options) {
  llvm::Expected<ptx::Module> parsed = ptx::Module::parse(text, options);
  if (!parsed) {
    ADD_FAILURE() << llvm::toString(parsed.takeError()) << "\n" << text;
    return;
  }
  module.emplace(std::move(*parsed));
}

void Kernel::run(const std::vector<ptx::Argument> &arguments) {
  if (!module)
    return;
  if (llvm::Error error =
          module->launch("k", shape, arguments, memory, options, &statistics))
    ADD_FAILURE() << llvm::toString(std::move(error));
}

void Kernel::expectFault(ptx::FaultKind kind,
                         const std::vector<ptx::Argument> &arguments,
                         const std::vector<std::string> &parts) {
  if (!module)
    return;
  llvm::Error error =
      module->launch("k", shape, arguments, memory, options, &statistics);
  if (!error) {
    ADD_FAILURE() << "no fault";
    return;
  }
  llvm::handleAllErrors(std::move(error), [&](const ptx::Fault &fault) {
    std::string text = llvm::toString(llvm::make_error<ptx::Fault>(fault));
    EXPECT_EQ(int(fault.kind), int(kind)) << text;
    for (const std::string &part : parts)
      EXPECT_NE(text.find(part), std::string::npos) << text;
  });
}

std::optional<ptx::FaultKind>
Kernel::getFault(const std::vector<ptx::Argument> &arguments) {
  std::optional<ptx::FaultKind> kind;
  if (module)
    llvm::handleAllErrors(
        module->launch("k", shape, arguments, memory, options, &statistics),
        [&](const ptx::Fault &fault) { kind = fault.kind; });
  return kind;
}

std::string posenc::test::getError(const std::string &text,
                                   const ptx::ParseOptions &options) {
  llvm::Expected<ptx::Module> parsed = ptx::Module::parse(text, options);
  return parsed ? "" : llvm::toString(parsed.takeError());
}

std::string posenc::test::getInstructionError(const std::string &instruction) {
  return getError(makeModule("", instruction));
}
