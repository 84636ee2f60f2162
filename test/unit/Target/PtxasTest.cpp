//===- PtxasTest.cpp - the remark that names ptxas ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Registration/Registration.h"
#include "posenc/Target/CudaCode.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Remark/RemarkStreamer.h"
#include "llvm/Support/FileSystem.h"

#include "gtest/gtest.h"

#include <cstdlib>

using namespace mlir;
using namespace mlir::posenc;

namespace {

constexpr llvm::StringLiteral kKernel = R"(
  module attributes {gpu.container_module} {
    gpu.module @kernels {
      gpu.func @k() kernel {
        gpu.return
      }
    }
  })";

/// Compiles a kernel with the ptxas at `path`; returns the remarks.
std::string compile(const std::string &path, std::string &log) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  remark::RemarkCategories categories;
  categories.passed = "posenc";
  std::string remarks;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    remarks += diagnostic.str() + "\n";
    return success();
  });
  EXPECT_TRUE(succeeded(remark::enableOptimizationRemarks(
      context, nullptr, std::make_unique<remark::RemarkEmittingPolicyAll>(),
      categories, /*printAsEmitRemarks=*/true)));
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kKernel, &context);
  EXPECT_TRUE(module);
  setenv("POSENC_PTXAS", path.c_str(), 1);
  std::optional<std::vector<CudaImage>> images = generateCudaImages(
      *module, cantFail(CudaTarget::parse("cuda:sm_90a")), /*withCubins=*/true);
  unsetenv("POSENC_PTXAS");
  EXPECT_TRUE(images && images->size() == 2);
  if (images && images->size() == 2) {
    EXPECT_EQ(images->front().bytes, "code");
    log = images->front().log;
  }
  return remarks;
}

/// Creates a program that prints `version` for --version, and assembles
/// everything to "code".
std::string createAssembler(const std::string &version) {
  llvm::SmallString<128> path;
  int file = -1;
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("ptxas", "sh", file, path));
  llvm::raw_fd_ostream os(file, /*shouldClose=*/true);
  os << "#!/bin/sh\n"
        "for last; do :; done\n"
        "if [ $last = --version ]; then echo '"
     << version << "'; else echo said; printf code > $last; fi\n";
  os.close();
  EXPECT_FALSE(llvm::sys::fs::setPermissions(path, llvm::sys::fs::all_all));
  return std::string(path);
}

} // namespace

TEST(Ptxas, IsARemark) {
  for (auto [text, version] :
       {std::pair("Cuda compilation tools, release 13.5, V13.5.37", "13.5.37"),
        std::pair("no number", "unknown version")}) {
    std::string path = createAssembler(text), log;
    std::string remarks = compile(path, log);
    std::string expected = "ptxas " + std::string(version) + ", " + path +
                           ", found by POSENC_PTXAS";
    EXPECT_NE(remarks.find("cubins are assembled by " + expected),
              std::string::npos)
        << remarks;
    EXPECT_EQ(log, expected + "\nsaid\n");
    llvm::sys::fs::remove(path);
  }
}
