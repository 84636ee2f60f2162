//===- CpuTest.cpp - choice of a variant by CPU ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/CInterface.h"
#include "posenc/TargetInfo/TargetSpec.h"

#include "gtest/gtest.h"

#if defined(__x86_64__)

namespace {
/// The results of CPUID on a CPU, and the registers that its operating system
/// saves.
struct FakeCpu {
  const char *vendor; ///< 12 characters
  unsigned signature; ///< leaf 1, EAX
  bool hasAvx512, hasBF16;
  unsigned savedState; ///< XCR0
  unsigned highestLeaf = 0xd;
  bool hidesVnni = false;
  bool hasAMX = false;
};
const FakeCpu *cpu;
/// Whether the operating system gives tile registers to the process, and how
/// often it was asked.
bool givesTiles;
int numRequests;
} // namespace

static int readFakeCpu(unsigned leaf, unsigned subleaf, unsigned *a,
                       unsigned *b, unsigned *c, unsigned *d);
#define POSENC_CPUID readFakeCpu
#define POSENC_XCR0() cpu->savedState
#define POSENC_REQUEST_TILES() (++numRequests, givesTiles)
extern "C" {
#include "kernel/Cpu.h"
}

static int readFakeCpu(unsigned leaf, unsigned subleaf, unsigned *a,
                       unsigned *b, unsigned *c, unsigned *d) {
  *a = *b = *c = *d = 0;
  if (leaf < 0x80000000 && leaf > cpu->highestLeaf)
    return 0;
  if (leaf == 0) {
    *a = cpu->highestLeaf;
    std::memcpy(b, cpu->vendor, 4);
    std::memcpy(d, cpu->vendor + 4, 4);
    std::memcpy(c, cpu->vendor + 8, 4);
  } else if (leaf == 1) {
    *a = cpu->signature;
    *c = ~0u;
  } else if (leaf == 7 && subleaf == 0) {
    *a = 1;
    *b = bit_AVX2 | bit_BMI | bit_BMI2;
    if (cpu->hasAvx512)
      *b |= bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ |
            bit_AVX512VL;
    *c = cpu->hasBF16 && !cpu->hidesVnni ? bit_AVX512VNNI : 0;
    *d = cpu->hasAMX ? 1u << 22 | 1u << 24 | 1u << 25 : 0;
  } else if (leaf == 7) {
    *a = cpu->hasBF16 ? bit_AVX512BF16 : 0;
  } else if (leaf == 0x80000001) {
    *c = bit_LAHF_LM | bit_LZCNT;
  }
  return 1;
}

using namespace mlir::posenc;

namespace {

constexpr const char *kAmd = "AuthenticAMD", *kIntel = "GenuineIntel";
constexpr unsigned kAvxState = 0x7, kAvx512State = 0xe7, kTileState = 0x602e7;

const FakeCpu kMilan = {kAmd, 0x00a00f11, false, false, kAvxState};
const FakeCpu kVermeer = {kAmd, 0x00a20f12, false, false, kAvxState};
const FakeCpu kGenoa = {kAmd, 0x00a10f11, true, true, kAvx512State};
const FakeCpu kRaphael = {kAmd, 0x00a60f12, true, true, kAvx512State};
const FakeCpu kBergamo = {kAmd, 0x00aa0f02, true, true, kAvx512State};
const FakeCpu kTurin = {kAmd, 0x00b00f21, true, true, kAvx512State};
const FakeCpu kSkylake = {kIntel, 0x00050654, true, false, kAvx512State};
const FakeCpu kSapphireRapids = {kIntel,
                                 0x000806f8,
                                 true,
                                 true,
                                 kTileState,
                                 /*highestLeaf=*/0x20,
                                 /*hidesVnni=*/false,
                                 /*hasAMX=*/true};
/// A kernel of Linux that does not save tile registers.
const FakeCpu kSapphireRapidsWithoutState = {kIntel,
                                             0x000806f8,
                                             true,
                                             true,
                                             kAvx512State,
                                             /*highestLeaf=*/0x20,
                                             /*hidesVnni=*/false,
                                             /*hasAMX=*/true};
/// Virtual machines that hide features of the CPU.
const FakeCpu kTurinWithoutAvx512 = {kAmd, 0x00b00f21, false, false, kAvxState};
const FakeCpu kGenoaWithoutState = {kAmd, 0x00a10f11, true, true, kAvxState};
const FakeCpu kGenoaWithoutVnni = {kAmd,
                                   0x00a10f11,
                                   true,
                                   true,
                                   kAvx512State,
                                   /*highestLeaf=*/0xd,
                                   /*hidesVnni=*/true};
const FakeCpu kOld = {kIntel,           0x000206a7, false, false, kAvxState,
                      /*highestLeaf=*/1};

/// Returns the bits of findCpu() for a CPU. findCpu() itself caches the first
/// CPU.
int64_t findBits(const FakeCpu &which) {
  cpu = &which;
  return findCpuFeatures() | findCpuFamily() << kCpuFamilyShift;
}

/// Returns the target whose code a library for all targets runs on a CPU, or
/// "none".
std::string choose(std::vector<std::string> targets, const FakeCpu &which) {
  std::vector<TargetSpec> unused;
  std::vector<TargetSpec> specs =
      llvm::cantFail(TargetSpec::parseAll(targets, unused));
  std::vector<Variant> variants;
  for (const TargetSpec &spec : specs)
    variants.push_back({static_cast<int64_t>(spec.cpuFeatures |
                                             static_cast<uint64_t>(spec.family)
                                                 << kCpuFamilyShift),
                        nullptr});
  int64_t best =
      chooseVariant(variants.data(), variants.size(), findBits(which));
  return best < 0 ? "none" : specs[best].name;
}

TEST(CpuTest, Families) {
  const std::pair<const FakeCpu *, CpuFamily> known[] = {
      {&kMilan, CpuFamily::Zen3},
      {&kVermeer, CpuFamily::Zen3},
      {&kGenoa, CpuFamily::Zen4},
      {&kRaphael, CpuFamily::Zen4},
      {&kBergamo, CpuFamily::Zen4},
      {&kTurin, CpuFamily::Zen5},
      {&kSkylake, CpuFamily::Other},
      {&kSapphireRapids, CpuFamily::Other},
      {&kTurinWithoutAvx512, CpuFamily::Zen5},
      {&kOld, CpuFamily::Other}};
  for (auto [which, family] : known) {
    cpu = which;
    EXPECT_EQ(findCpuFamily(), static_cast<int64_t>(family))
        << std::hex << which->signature;
  }
  llvm::StringRef triple = "x86_64-unknown-linux-gnu";
  EXPECT_EQ(getCpuFamily(triple, "znver4"), CpuFamily::Zen4);
  EXPECT_EQ(getCpuFamily(triple, "x86-64-v3"), CpuFamily::Other);
  EXPECT_EQ(getCpuFamily("aarch64-unknown-linux-gnu", "znver4"),
            CpuFamily::Other);
}

TEST(CpuTest, Features) {
  cpu = &kMilan;
  EXPECT_EQ(findCpuFeatures(), int64_t{kCpuFeatureX86V3});
  cpu = &kTurin;
  EXPECT_EQ(findCpuFeatures(),
            int64_t{kCpuFeatureX86V3 | kCpuFeatureX86V4 |
                    kCpuFeatureAvx512Vnni | kCpuFeatureAvx512Bf16});
  cpu = &kSkylake;
  EXPECT_EQ(findCpuFeatures(), int64_t{kCpuFeatureX86V3 | kCpuFeatureX86V4});
  cpu = &kGenoaWithoutState;
  EXPECT_EQ(findCpuFeatures(), int64_t{kCpuFeatureX86V3});
  cpu = &kGenoaWithoutVnni;
  EXPECT_EQ(findCpuFeatures(), int64_t{kCpuFeatureX86V3 | kCpuFeatureX86V4});
  cpu = &kOld;
  EXPECT_EQ(findCpuFeatures(), 0);
  int64_t withoutTiles = kCpuFeatureX86V3 | kCpuFeatureX86V4 |
                         kCpuFeatureAvx512Vnni | kCpuFeatureAvx512Bf16;
  cpu = &kSapphireRapids;
  EXPECT_EQ(findCpuFeatures(), withoutTiles | kCpuFeatureAmxBf16);
  cpu = &kSapphireRapidsWithoutState;
  EXPECT_EQ(findCpuFeatures(), withoutTiles);
}

TEST(CpuTest, DetectsTheCpuOnce) {
  cpu = &kTurin;
  int64_t first = findCpu();
  EXPECT_EQ(first, findBits(kTurin));
  cpu = &kMilan;
  EXPECT_EQ(findCpu(), first);
}

TEST(CpuTest, PrefersTheVariantOfTheFamily) {
  std::vector<std::string> targets = {"x86-64:x86-64-v3", "x86-64:x86-64-v4",
                                      "x86-64:znver3", "x86-64:znver4",
                                      "x86-64:znver5"};
  EXPECT_EQ(choose(targets, kMilan), "x86-64:znver3");
  EXPECT_EQ(choose(targets, kGenoa), "x86-64:znver4");
  EXPECT_EQ(choose(targets, kTurin), "x86-64:znver5");
  EXPECT_EQ(choose(targets, kSkylake), "x86-64:x86-64-v4");
  // The code of its family needs the hidden AVX-512.
  EXPECT_EQ(choose(targets, kTurinWithoutAvx512), "x86-64:x86-64-v3");
  EXPECT_EQ(choose(targets, kOld), "none");
}

TEST(CpuTest, OtherwisePrefersTheMostFeatures) {
  std::vector<std::string> targets = {"x86-64:x86-64-v3", "x86-64:x86-64-v4"};
  EXPECT_EQ(choose(targets, kMilan), "x86-64:x86-64-v3");
  EXPECT_EQ(choose(targets, kTurin), "x86-64:x86-64-v4");
  EXPECT_EQ(choose(targets, kGenoaWithoutState), "x86-64:x86-64-v3");
  // Generic code is preferred to code tuned for another family.
  targets = {"x86-64:znver3", "x86-64:x86-64-v3"};
  EXPECT_EQ(choose(targets, kTurinWithoutAvx512), "x86-64:x86-64-v3");
  targets = {"x86-64:znver5", "x86-64:znver4"};
  EXPECT_EQ(choose(targets, kSapphireRapids), "x86-64:znver5");
  targets = {"x86-64:znver5", "x86-64:sapphirerapids"};
  EXPECT_EQ(choose(targets, kSapphireRapids), "x86-64:sapphirerapids");
  EXPECT_EQ(choose(targets, kSapphireRapidsWithoutState), "x86-64:znver5");
}

TEST(CpuTest, AsksForTilesIfTheCodeUsesThem) {
  int64_t bits = findBits(kSapphireRapids);
  const Variant both[] = {{kCpuFeatureAmxBf16, nullptr},
                          {kCpuFeatureX86V4, nullptr}};
  numRequests = 0;
  EXPECT_EQ(findVariant(both + 1, 1, bits), 0);
  EXPECT_EQ(findVariant(both, 2, findBits(kTurin)), 1);
  EXPECT_EQ(numRequests, 0);
  givesTiles = true;
  EXPECT_EQ(findVariant(both, 2, bits), 0);
  EXPECT_EQ(numRequests, 1);
  givesTiles = false;
  EXPECT_EQ(findVariant(both, 2, bits), 1);
  EXPECT_EQ(findVariant(both, 1, bits), -1);
  EXPECT_EQ(numRequests, 3);
}

TEST(CpuTest, UnreachableTargetsAreUnused) {
  std::vector<TargetSpec> unused;
  llvm::cantFail(TargetSpec::parseAll(
      {"x86-64:x86-64-v3", "x86-64:znver3", "x86-64:haswell", "x86-64:znver3"},
      unused));
  ASSERT_EQ(unused.size(), 2u);
  EXPECT_EQ(unused[0].name, "x86-64:haswell");
  EXPECT_EQ(unused[1].name, "x86-64:znver3");
}

} // namespace

#endif // __x86_64__
