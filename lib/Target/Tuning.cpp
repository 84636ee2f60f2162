//===- Tuning.cpp - choices that depend on the machine ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/Tuning.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir::posenc;
using llvm::ArrayRef;
using llvm::StringRef;

static constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;
/// No tensor is larger.
static constexpr uint64_t kMost = uint64_t(1) << 47;

static constexpr uint64_t kDistances[] = {0,        kKiB,     2 * kKiB,
                                          4 * kKiB, 8 * kKiB, 16 * kKiB};
static constexpr uint64_t kPrefetchFrom[] = {0, kMiB, 4 * kMiB, 16 * kMiB,
                                             64 * kMiB};
static constexpr uint64_t kStreamFrom[] = {0, 4 * kMiB, 16 * kMiB, 32 * kMiB,
                                           64 * kMiB};
static constexpr uint64_t kBlockPositions[] = {1, 4, 8, 16, 32};
static constexpr uint64_t kBlockBelow[] = {0, 4 * kKiB, 16 * kKiB, 64 * kKiB};

static constexpr TuningChoice kChoices[] = {
    {"prefetch_distance", &Tuning::prefetchDistance, 0, 64 * kKiB, 64,
     kDistances},
    {"block_positions", &Tuning::blockPositions, 1, 32, 1, kBlockPositions},
    {"stream_from", &Tuning::streamFrom, 0, kMost, 1, kStreamFrom},
    {"stream_tables_from", &Tuning::streamTablesFrom, 0, kMost, 1, kStreamFrom},
    {"prefetch_from", &Tuning::prefetchFrom, 0, kMost, 1, kPrefetchFrom},
    {"block_below", &Tuning::blockBelow, 0, 64 * kKiB, 1, kBlockBelow}};

ArrayRef<TuningChoice> mlir::posenc::getTuningChoices() { return kChoices; }

bool Tuning::operator==(const Tuning &other) const {
  return llvm::all_of(kChoices, [&](const TuningChoice &choice) {
    return this->*choice.value == other.*choice.value;
  });
}

//===----------------------------------------------------------------------===//
// Defaults
//===----------------------------------------------------------------------===//

namespace {
struct Family {
  llvm::Triple::ArchType arch;
  /// What the names of the CPUs begin with; empty is all others.
  StringRef cpus;
  Tuning tuning;
};
} // namespace

static constexpr Tuning kInStreams = {8 * kKiB,  4 * kMiB, 16 * kMiB,
                                      16 * kMiB, 32,       64 * kKiB};

/// In the order of Tuning. The first that fits is taken.
static const Family kFamilies[] = {
    // Measured on EPYC 7003. Blocks of 64 KiB and more are taken in streams,
    // which is faster than what any prefetch makes of one; else from 2 KiB to
    // 16 KiB ahead is the same. Streaming stores pay from half of the last
    // cache,
    // as inputs want the other half; for tables as soon: plain stores read each
    // line first.
    {llvm::Triple::x86_64, "znver3", kInStreams},
    {llvm::Triple::x86_64, "x86-64-v3", kInStreams},
    {llvm::Triple::x86_64,
     "",
     {8 * kKiB, 4 * kMiB, 16 * kMiB, 16 * kMiB, 8, 4 * kKiB}},
    // There are no streaming stores: `stnp` is a hint that few heed.
    {llvm::Triple::aarch64, "", {8 * kKiB, 4 * kMiB, 0, 0, 8, 4 * kKiB}}};

Tuning mlir::posenc::getDefaultTuning(StringRef triple, StringRef cpu) {
  for (const Family &family : kFamilies)
    if (family.arch == llvm::Triple(triple).getArch() &&
        cpu.starts_with(family.cpus))
      return family.tuning;
  return {};
}
