//===- JitLibrary.cpp - in-memory compilation -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/JitLibrary.h"

#include "posenc/kernel/Forks.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <dlfcn.h>
#include <pthread.h>

using namespace mlir;
using namespace mlir::posenc;

//===----------------------------------------------------------------------===//
// Forked processes
//
// A library in a file watches forks from when it is loaded on. Code in memory
// shares the watch of this library, which exists before any of it and remains
// when it is freed, and asks here for the number of threads.
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral kMaxThreads = "omp_get_max_threads";

/// The function of the process's OpenMP library; null if it has none.
static std::atomic<int (*)()> maxThreads;

__attribute__((constructor)) static void watchForks() {
  pthread_atfork(posencBeforeFork, nullptr, posencAfterForkInChild);
}

static int getMaxThreads() {
  return posencLacksThreads ? 1 : maxThreads.load()();
}

/// Makes the code call the function above.
static llvm::Error defineMaxThreads(llvm::orc::LLJIT &jit) {
  auto *function =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, kMaxThreads.data()));
  if (!function)
    return llvm::Error::success();
  maxThreads = function;
  return jit.getMainJITDylib().define(llvm::orc::absoluteSymbols(
      {{jit.mangleAndIntern(kMaxThreads),
        {llvm::orc::ExecutorAddr::fromPtr(&getMaxThreads),
         llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable}}}));
}

struct JitLibrary::Impl {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

JitLibrary::JitLibrary(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
JitLibrary::~JitLibrary() = default;

std::unique_ptr<JitLibrary> JitLibrary::create(ModuleOp module,
                                               const CodeCache &cache,
                                               const JitOptions &options) {
  auto fail = [&](llvm::Error error) {
    module.emitError() << llvm::toString(std::move(error));
    return nullptr;
  };
  llvm::Expected<TargetSpec> target =
      options.target ? llvm::Expected<TargetSpec>(*options.target)
                     : TargetSpec::parse("host");
  if (!target)
    return fail(target.takeError());
  target->tuning = options.tuning.value_or(target->tuning);
  CodeOptions codeOptions;
  codeOptions.targets = {std::move(*target)};
  codeOptions.threads = options.threads;
  codeOptions.optLevel = options.optLevel;
  codeOptions.hasCpuCode = options.hasCpuCode;
  codeOptions.gpus = options.gpus;
  std::optional<KernelCode> code =
      generateKernelCode(module, codeOptions, CodeKind::Object, cache);
  if (!code)
    return nullptr;
  llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> jit =
      llvm::orc::LLJITBuilder().create();
  if (!jit)
    return fail(jit.takeError());
  // Provides memcpy and memset, which LLVM may generate from loops.
  llvm::Expected<std::unique_ptr<llvm::orc::DynamicLibrarySearchGenerator>>
      process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
          (*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return fail(process.takeError());
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  if (llvm::Error error = defineMaxThreads(**jit))
    return fail(std::move(error));
  if (llvm::Error error = (*jit)->addObjectFile(
          llvm::MemoryBuffer::getMemBufferCopy(code->code, "kernels")))
    return fail(std::move(error));
  return std::unique_ptr<JitLibrary>(
      new JitLibrary(std::make_unique<Impl>(Impl{std::move(*jit)})));
}

void *JitLibrary::lookup(StringRef symbol) {
  llvm::Expected<llvm::orc::ExecutorAddr> address = impl->jit->lookup(symbol);
  if (!address) {
    llvm::consumeError(address.takeError());
    return nullptr;
  }
  return address->toPtr<void *>();
}

const char *JitLibrary::getMetadata() {
  auto *function =
      reinterpret_cast<const char *(*)()>(lookup("posenc_metadata"));
  return function ? function() : nullptr;
}
