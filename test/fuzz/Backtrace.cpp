//===- Backtrace.cpp - whose code a fault is in -----------------*- C++ -*-===//
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
enum class Owner { Ours, Foreign, System };
} // namespace

static Owner getOwner(const Dl_info &info) {
  StringRef file = llvm::sys::path::filename(info.dli_fname);
  if (file.starts_with("libMLIR") || file.starts_with("libLLVM"))
    return Owner::Foreign;
  if (file.starts_with("libPosenc"))
    return Owner::Ours;
#if !LLVM_ADDRESS_SANITIZER_BUILD // whose runtime is in the test itself
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
  // A function of libc has several names.
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
  unsigned placeFrames = 0;
  for (void *frame : frames) {
    Dl_info info = {};
    // A return address may be behind the last instruction of its function.
    char *address = static_cast<char *>(frame) - 1;
    bool known = dladdr(address, &info) && info.dli_fname;
    owners.push_back(known ? getOwner(info) : Owner::System);
    // The handler itself is the first frame.
    if (owners.size() > 1 && isInnermost) {
      result.isElsewhere |= owners.back() == Owner::Foreign ||
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
    // Neither the handler nor what libc calls on the way to it.
    if (owners.size() > 1 && owners.back() != Owner::System &&
        placeFrames++ < 4)
      result.place += line;
  }
  // The handler and what called it.
  llvm::ArrayRef<Owner> rest(owners);
  if (!rest.empty() && rest.front() == Owner::Ours)
    rest = rest.drop_front();
  // Outermost is this test, which calls into the project, which calls MLIR.
  if (isWhole)
    while (!rest.empty() && rest.back() != Owner::Foreign)
      rest = rest.drop_back();
  result.isForeign = llvm::is_contained(rest, Owner::Foreign) &&
                     !llvm::is_contained(rest, Owner::Ours);
  return result;
}
