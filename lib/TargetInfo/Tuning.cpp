//===- Tuning.cpp - tuning parameters of a CPU ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/TargetInfo/Tuning.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir::posenc;
using llvm::ArrayRef;
using llvm::StringRef;

#define POSENC_TUNING(MEMBER, NAME, FLAG, INITIAL, MIN, MAX, MULTIPLE, HELP,   \
                      ...)                                                     \
  static constexpr uint64_t MEMBER##Candidates[] = {__VA_ARGS__};
#include "posenc/TargetInfo/Tuning.def"

static constexpr TuningChoice kChoices[] = {
#define POSENC_TUNING(MEMBER, NAME, FLAG, INITIAL, MIN, MAX, MULTIPLE, HELP,   \
                      ...)                                                     \
  {NAME, &Tuning::MEMBER, MIN, MAX, MULTIPLE, MEMBER##Candidates},
#include "posenc/TargetInfo/Tuning.def"
};

ArrayRef<TuningChoice> mlir::posenc::getTuningChoices() { return kChoices; }

bool Tuning::operator==(const Tuning &other) const {
  return llvm::all_of(kChoices, [&](const TuningChoice &choice) {
    return this->*choice.value == other.*choice.value;
  });
}

//===----------------------------------------------------------------------===//
// Defaults
//===----------------------------------------------------------------------===//

static constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;

/// EPYC 7003 (Zen 3). Four interleaved streams of rows are faster than one
/// stream with any prefetch; prefetch distances from 2 KiB to 16 KiB are equal.
/// Streaming stores pay from half of the last-level cache on, as inputs use the
/// other half; for tables at the same size, since plain stores read each line
/// first.
static constexpr Tuning kZen3 = {
    /*prefetchCache=*/1,
    /*prefetchInOrder=*/8 * kKiB,
    /*streamsInOrder=*/4,
    /*prefetchDistance=*/8 * kKiB,
    /*streams=*/4,
    /*streamAhead=*/512,
    /*narrowStreams=*/2,
    /*narrowAhead=*/3 * kKiB,
    /*blockPositions=*/32,
    /*smallBlockPositions=*/32,
    /*blockBelow=*/64 * kKiB,
    /*streamBlockBytes=*/64 * kKiB,
    /*streamFrom=*/16 * kMiB,
    /*streamTablesFrom=*/16 * kMiB,
    /*prefetchFrom=*/4 * kMiB,
    /*rowVectorBytes=*/64,
    /*decodePrefetches=*/1,
    /*decodeRowPrefetches=*/2,
    /*attentionQueries=*/384,
    /*attentionTileBytes=*/392 * kKiB,
    /*attentionTasks=*/64,
    /*attentionPrefetch=*/1,
    /*attentionTileRows=*/8,
    /*attentionNestRows=*/32,
    /*attentionNestTiles=*/8,
    /*productTileRows=*/8,
    /*productTileVectors=*/2,
    /*productRows=*/264,
    /*productPanelRows=*/264,
    /*productColumns=*/64,
    /*productPanelBytes=*/64 * kKiB,
    /*productPeel=*/0,
    /*productCopiedRows=*/0,
    /*productDotRows=*/256,
    /*productDotColumns=*/256,
    /*productDotDepth=*/512,
    /*productUnroll=*/1,
    /*productPrefetch=*/0,
    /*productPanelCache=*/1,
    /*codeTileRows=*/6,
    /*codeTileVectors=*/2,
    /*codeUnpackingRows=*/2,
    /*codeBufferRows=*/6,
    /*codeDotBufferRows=*/24,
    /*codeBufferBytes=*/16 * kKiB,
    /*codeRowBytes=*/256 * kKiB,
};

/// EPYC 9004 (Zen 4). Prefetches into the L1 cache wait for its few miss
/// buffers, and are dropped beyond these. The hardware prefetcher reads
/// contiguous rows at about the limit. With 6 x 2 vectors of unpacked codes,
/// the sums of a block and those of all blocks are in registers; those of 6 x 4
/// are not, and take 10 to 17 % longer. In registers, 4 rows of codes of 8 bits
/// take three times as long as 3, but codes of 4 bits a quarter.
static constexpr Tuning kZen4 = {
    /*prefetchCache=*/2,
    /*prefetchInOrder=*/0,
    /*streamsInOrder=*/1,
    /*prefetchDistance=*/4 * kKiB,
    /*streams=*/4,
    /*streamAhead=*/2 * kKiB,
    /*narrowStreams=*/4,
    /*narrowAhead=*/2 * kKiB,
    /*blockPositions=*/32,
    /*smallBlockPositions=*/8,
    /*blockBelow=*/64 * kKiB,
    /*streamBlockBytes=*/64 * kKiB,
    /*streamFrom=*/4 * kMiB,
    /*streamTablesFrom=*/16 * kMiB,
    /*prefetchFrom=*/4 * kMiB,
    /*rowVectorBytes=*/64,
    /*decodePrefetches=*/1,
    /*decodeRowPrefetches=*/2,
    /*attentionQueries=*/384,
    /*attentionTileBytes=*/392 * kKiB,
    /*attentionTasks=*/64,
    /*attentionPrefetch=*/1,
    /*attentionTileRows=*/8,
    /*attentionNestRows=*/32,
    /*attentionNestTiles=*/8,
    /*productTileRows=*/8,
    /*productTileVectors=*/2,
    /*productRows=*/264,
    /*productPanelRows=*/264,
    /*productColumns=*/64,
    /*productPanelBytes=*/64 * kKiB,
    /*productPeel=*/0,
    /*productCopiedRows=*/0,
    /*productDotRows=*/256,
    /*productDotColumns=*/256,
    /*productDotDepth=*/512,
    /*productUnroll=*/1,
    /*productPrefetch=*/0,
    /*productPanelCache=*/2,
    /*codeTileRows=*/6,
    /*codeTileVectors=*/2,
    /*codeUnpackingRows=*/3,
    /*codeBufferRows=*/6,
    /*codeDotBufferRows=*/24,
    /*codeBufferBytes=*/64 * kKiB,
    /*codeRowBytes=*/1024 * kKiB,
};

/// EPYC 9005 (Zen 5). Prefetches into the L2 cache cost decode 6 to 10 % and
/// f32 rope up to 9 %; they gained 4 % for bf16 rope only. Contiguous rows are
/// slower in four streams (6 to 26 %) or in blocks of positions (3 to 11 %).
/// Decode's prefetches are dropped now and then: a second prefetch of each line
/// gained 7 to 14 % on one thread, four gain another 14 % for f32 and nothing
/// for 16-bit types.
static constexpr Tuning kZen5 = {
    /*prefetchCache=*/1,
    /*prefetchInOrder=*/8 * kKiB,
    /*streamsInOrder=*/1,
    /*prefetchDistance=*/8 * kKiB,
    /*streams=*/4,
    /*streamAhead=*/2 * kKiB,
    /*narrowStreams=*/2,
    /*narrowAhead=*/3 * kKiB,
    /*blockPositions=*/8,
    /*smallBlockPositions=*/8,
    /*blockBelow=*/4 * kKiB,
    /*streamBlockBytes=*/64 * kKiB,
    /*streamFrom=*/16 * kMiB,
    /*streamTablesFrom=*/16 * kMiB,
    /*prefetchFrom=*/4 * kMiB,
    /*rowVectorBytes=*/64,
    /*decodePrefetches=*/4,
    /*decodeRowPrefetches=*/2,
    /*attentionQueries=*/384,
    /*attentionTileBytes=*/392 * kKiB,
    /*attentionTasks=*/64,
    /*attentionPrefetch=*/1,
    /*attentionTileRows=*/8,
    /*attentionNestRows=*/32,
    /*attentionNestTiles=*/8,
    /*productTileRows=*/8,
    /*productTileVectors=*/2,
    /*productRows=*/264,
    /*productPanelRows=*/264,
    /*productColumns=*/64,
    /*productPanelBytes=*/64 * kKiB,
    /*productPeel=*/0,
    /*productCopiedRows=*/0,
    /*productDotRows=*/256,
    /*productDotColumns=*/256,
    /*productDotDepth=*/512,
    /*productUnroll=*/1,
    /*productPrefetch=*/0,
    /*productPanelCache=*/1,
    /*codeTileRows=*/6,
    /*codeTileVectors=*/4,
    /*codeUnpackingRows=*/4,
    /*codeBufferRows=*/6,
    /*codeDotBufferRows=*/24,
    /*codeBufferBytes=*/32 * kKiB,
    /*codeRowBytes=*/512 * kKiB,
};

/// Servers of Intel since Ice Lake (1.25 MiB or more of L2 cache). On Emerald
/// Rapids no parameter of rows, tables and decode is faster than Zen 5's.
/// Matrix products are 4 to 5 % faster with the first block of the reduction
/// peeled; prefetches of results gain another 3 % at 1,024 x 1,024 x 1,024. On
/// Ice Lake, the loop over the reduction loads about one vector or element per
/// cycle: with all data in the L1 cache, a tile of 8 x 32 (10 loads for 16
/// multiply-adds) reaches .86 of the peak, 14 x 32 .94 and 8 x 48 .98. Four
/// steps in an iteration gain 7 to 12 % in products and 3 to 8 % in attention:
/// addresses and prefetches compete with the multiply-adds for their two ports.
/// With weights packed before, 128 rows of 2,048 floats stay in the L2 cache,
/// which gains 3 to 10 % of the time of 512 rows; their panels are prefetched
/// into L2, as a block of 48 KiB would displace the one in L1.
/// Codes have been measured here and on Zen 4: other rows follow from the sizes
/// of the caches.
static constexpr Tuning kIceLake = [] {
  Tuning tuning = kZen5;
  tuning.productTileVectors = 3;
  tuning.productColumns = 96;
  tuning.productPanelBytes = 96 * kKiB;
  tuning.productPanelRows = 128;
  tuning.productPeel = 1;
  tuning.productUnroll = 4;
  tuning.productPrefetch = 1;
  tuning.productPanelCache = 2;
  tuning.codeRowBytes = 768 * kKiB;
  return tuning;
}();

/// Servers of Intel with AMX. Its blocks are derived from counts of cycles:
/// rows of 32 KiB stay in the L1 cache, and 512 packed columns of that depth,
/// 512 KiB, are read from the L2 cache of 2 MiB. In attention 832 KiB hold 24
/// tiles of 32 queries of 128 channels, which share the packing of keys: 60 to
/// 120 cycles for a key, 80 to 160 for each step of about 650.
static constexpr Tuning kSapphireRapids = [] {
  Tuning tuning = kIceLake;
  tuning.attentionQueries = 1536;
  tuning.attentionTileBytes = 832 * kKiB;
  tuning.productDotColumns = 512;
  tuning.codeRowBytes = 1024 * kKiB;
  return tuning;
}();

/// Servers of Intel with Skylake's cores: 32 KiB of L1 and 1 MiB of L2 cache,
/// four instructions per cycle. Not measured, but derived from counts. With
/// rows of the left matrix copied, addresses are constants, so a step of 24
/// multiply-adds has 41 instructions; otherwise 16 take 37, with six `lea` that
/// compete for a port of the multiply-adds. 60 copied rows and 128 packed
/// columns, as deep as a partial sum, take 61 and 128 KiB of the stack, and 60
/// rows of 2,048 elements half of the L2 cache.
static constexpr Tuning kSkylake = [] {
  Tuning tuning = kIceLake;
  tuning.attentionTileRows = 12;
  tuning.productTileRows = 12;
  tuning.productTileVectors = 2;
  tuning.productColumns = 128;
  tuning.productPanelBytes = 64 * kKiB;
  tuning.productPanelRows = 60;
  tuning.productCopiedRows = 60;
  tuning.codeBufferBytes = 16 * kKiB;
  tuning.codeRowBytes = 512 * kKiB;
  return tuning;
}();

/// Processors without streaming stores: `stnp` is a hint that few implement.
static constexpr Tuning kArm = {
    /*prefetchCache=*/1,
    /*prefetchInOrder=*/8 * kKiB,
    /*streamsInOrder=*/4,
    /*prefetchDistance=*/8 * kKiB,
    /*streams=*/4,
    /*streamAhead=*/512,
    /*narrowStreams=*/2,
    /*narrowAhead=*/3 * kKiB,
    /*blockPositions=*/8,
    /*smallBlockPositions=*/8,
    /*blockBelow=*/4 * kKiB,
    /*streamBlockBytes=*/64 * kKiB,
    /*streamFrom=*/0,
    /*streamTablesFrom=*/0,
    /*prefetchFrom=*/4 * kMiB,
    /*rowVectorBytes=*/64,
    /*decodePrefetches=*/1,
    /*decodeRowPrefetches=*/2,
    /*attentionQueries=*/384,
    /*attentionTileBytes=*/392 * kKiB,
    /*attentionTasks=*/64,
    /*attentionPrefetch=*/1,
    /*attentionTileRows=*/8,
    /*attentionNestRows=*/32,
    /*attentionNestTiles=*/8,
    /*productTileRows=*/8,
    /*productTileVectors=*/2,
    /*productRows=*/264,
    /*productPanelRows=*/264,
    /*productColumns=*/64,
    /*productPanelBytes=*/64 * kKiB,
    /*productPeel=*/0,
    /*productCopiedRows=*/0,
    /*productDotRows=*/256,
    /*productDotColumns=*/256,
    /*productDotDepth=*/512,
    /*productUnroll=*/1,
    /*productPrefetch=*/0,
    /*productPanelCache=*/1,
    /*codeTileRows=*/6,
    /*codeTileVectors=*/4,
    /*codeUnpackingRows=*/2,
    /*codeBufferRows=*/6,
    /*codeDotBufferRows=*/24,
    /*codeBufferBytes=*/32 * kKiB,
    /*codeRowBytes=*/512 * kKiB,
};

namespace {
struct Family {
  llvm::Triple::ArchType arch;
  /// The prefix of the CPUs' names; empty for all others.
  StringRef cpus;
  Tuning tuning;
  CpuFamily family = CpuFamily::Other;
};
} // namespace

/// The first matching row is used.
///
/// CPUs that have not been measured get the row with the smallest worst-case
/// loss. The table has the speed of each row relative to the CPU's own row, for
/// the worst of the kernels that are bound by memory:
///
///   row of   on Zen 3   on Zen 4   on Zen 5   on Emerald Rapids   worst
///   Zen 3    1          .65*       .74        .93                 .65
///   Zen 4    .79*       1          .81        .62                 .62
///   Zen 5    .79*       .66*       1          1                   .66
///
/// The last two columns were measured, row against row, each in one run; on
/// Emerald Rapids no choice that posenc-tune found was faster than Zen 5's row,
/// which therefore is that of Intel's servers except for matrix products and
/// prefill.
/// Numbers with * were not measured but follow from single fields: on Zen 3,
/// rows in order in one stream instead of four cost a fifth, and the effect of
/// prefetches into the L2 cache is not known; on Zen 4, prefetches into the L1
/// cache cost decode a third, without a second prefetch.
static const Family kFamilies[] = {
    {llvm::Triple::x86_64, "znver3", kZen3, CpuFamily::Zen3},
    {llvm::Triple::x86_64, "x86-64-v3", kZen3},
    {llvm::Triple::x86_64, "znver4", kZen4, CpuFamily::Zen4},
    {llvm::Triple::x86_64, "znver5", kZen5, CpuFamily::Zen5},
    {llvm::Triple::x86_64, "skylake-avx512", kSkylake},
    {llvm::Triple::x86_64, "skx", kSkylake},
    {llvm::Triple::x86_64, "cascadelake", kSkylake},
    {llvm::Triple::x86_64, "cooperlake", kSkylake},
    {llvm::Triple::x86_64, "icelake-server", kIceLake},
    {llvm::Triple::x86_64, "sapphirerapids", kSapphireRapids},
    {llvm::Triple::x86_64, "emeraldrapids", kSapphireRapids},
    {llvm::Triple::x86_64, "graniterapids", kSapphireRapids},
    {llvm::Triple::x86_64, "", kZen5},
    {llvm::Triple::aarch64, "", kArm},
};

static const Family *findFamily(StringRef triple, StringRef cpu) {
  auto *family = llvm::find_if(kFamilies, [&](const Family &family) {
    return family.arch == llvm::Triple(triple).getArch() &&
           cpu.starts_with(family.cpus);
  });
  return family == std::end(kFamilies) ? nullptr : family;
}

Tuning mlir::posenc::getDefaultTuning(StringRef triple, StringRef cpu) {
  const Family *family = findFamily(triple, cpu);
  return family ? family->tuning : Tuning();
}

CpuFamily mlir::posenc::getCpuFamily(StringRef triple, StringRef cpu) {
  const Family *family = findFamily(triple, cpu);
  return family ? family->family : CpuFamily::Other;
}

ArrayRef<TuningPreset> mlir::posenc::getTuningPresets(StringRef triple) {
  static const TuningPreset x86[] = {{"znver3", kZen3},
                                     {"znver4", kZen4},
                                     {"znver5", kZen5},
                                     {"icelake-server", kIceLake},
                                     {"sapphirerapids", kSapphireRapids},
                                     {"skylake-avx512", kSkylake}};
  static const TuningPreset arm[] = {{"aarch64", kArm}};
  if (llvm::Triple(triple).isX86())
    return x86;
  return arm;
}
