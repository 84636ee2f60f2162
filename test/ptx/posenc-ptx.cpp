//===- posenc-ptx.cpp - parses PTX and lists its kernels ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace posenc;

static cl::opt<std::string> input(cl::Positional, cl::init("-"),
                                  cl::desc("<PTX>"));
static cl::opt<bool> allowContraction(
    "allow-contraction",
    cl::desc(
        "Accept additions and multiplications without a rounding modifier, "
        "which ptxas may fuse"));
static cl::opt<bool>
    allowApproximate("allow-approximate",
                     cl::desc("Accept functions that hardware approximates"));

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(
      argc, argv,
      "Parses PTX with the interpreter of the tests and lists its kernels\n");
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFileOrSTDIN(input);
  if (!buffer) {
    errs() << input << ": " << buffer.getError().message() << "\n";
    return 1;
  }
  ptx::ParseOptions options;
  options.allowContraction = allowContraction;
  options.allowApproximate = allowApproximate;
  Expected<ptx::Module> module =
      ptx::Module::parse((*buffer)->getBuffer(), options);
  if (!module) {
    errs() << input << ": " << toString(module.takeError()) << "\n";
    return 1;
  }
  outs() << "version " << module->getVersion() << " target "
         << module->getTarget() << "\n";
  for (const std::string &name : module->getKernels()) {
    const ptx::Function &kernel = *module->getKernel(name);
    outs() << "kernel " << name << ": " << kernel.params.size()
           << " parameters, " << kernel.end - kernel.begin << " instructions, "
           << module->getStaticShared(kernel) << " bytes shared, "
           << kernel.laneBytes << " bytes local\n";
  }
  return 0;
}
