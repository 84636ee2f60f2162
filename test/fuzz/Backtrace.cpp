//===- Backtrace.cpp - attributes faults to a library ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backtrace.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>
#include <execinfo.h>

using namespace posenc::fuzz;
using llvm::StringRef;

int posenc::fuzz::captureFrames(void *(&frames)[maxFrames]) {
  return backtrace(frames, maxFrames);
}

namespace {
enum class Owner { Ours, Upstream, System };
} // namespace

static Owner getOwner(const Dl_info &info) {
  StringRef file = llvm::sys::path::filename(info.dli_fname);
  if (file.starts_with("libMLIR") || file.starts_with("libLLVM"))
    return Owner::Upstream;
  if (file.starts_with("libPosenc"))
    return Owner::Ours;
#if !LLVM_ADDRESS_SANITIZER_BUILD // ASan's runtime is in the test executable.
  if (file.starts_with("Posenc"))
    return Owner::Ours;
#endif
  return Owner::System;
}

static bool isLibc(const Dl_info &info) {
  return llvm::sys::path::filename(info.dli_fname).starts_with("libc.so");
}

static bool isAllocator(const Dl_info &info) {
  StringRef name = info.dli_sname ? info.dli_sname : "";
  // libc has several names for a function.
  name.consume_front("__libc_");
  return llvm::is_contained({"malloc", "calloc", "realloc", "free", "cfree",
                             "memalign", "posix_memalign", "aligned_alloc"},
                            name);
}

Backtrace posenc::fuzz::explainFrames(llvm::ArrayRef<void *> frames) {
  Backtrace result;
  bool isInnermost = true;
  bool isWhole = frames.size() < size_t(maxFrames);
  llvm::SmallVector<Owner> owners;
  unsigned locationFrames = 0;
  for (void *frame : frames) {
    Dl_info info = {};
    // A return address may lie past the last instruction of its function.
    char *address = static_cast<char *>(frame) - 1;
    bool known = dladdr(address, &info) && info.dli_fname;
    owners.push_back(known ? getOwner(info) : Owner::System);
    // The handler itself is the first frame.
    if (owners.size() > 1 && isInnermost) {
      result.isInUpstreamOrAllocator |=
          owners.back() == Owner::Upstream ||
          (known && isLibc(info) && isAllocator(info));
      isInnermost = known && isLibc(info);
    }
    if (!known || owners.size() > 40)
      continue;
    std::string name =
        info.dli_sname ? llvm::demangle(info.dli_sname) : std::string("?");
    std::string line = llvm::formatv(
        "  {0}+{1:x} {2}\n", llvm::sys::path::filename(info.dli_fname),
        static_cast<uint64_t>(address - static_cast<char *>(info.dli_fbase)),
        StringRef(name).take_front(160));
    result.text += line;
    // Skips the handler, and the functions of libc that lead to it.
    if (owners.size() > 1 && owners.back() != Owner::System &&
        locationFrames++ < 4)
      result.location += line;
  }
  // Drops the frame of the handler.
  llvm::ArrayRef<Owner> rest(owners);
  if (!rest.empty() && rest.front() == Owner::Ours)
    rest = rest.drop_front();
  // Drops the outermost frames: the test and the project's functions that call
  // MLIR.
  if (isWhole)
    while (!rest.empty() && rest.back() != Owner::Upstream)
      rest = rest.drop_back();
  result.isUpstream = llvm::is_contained(rest, Owner::Upstream) &&
                      !llvm::is_contained(rest, Owner::Ours);
  return result;
}
