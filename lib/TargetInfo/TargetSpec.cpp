//===- TargetSpec.cpp - features of a CPU target --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/TargetInfo/TargetSpec.h"

#include "posenc/kernel/CpuFeatures.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace mlir;
using namespace mlir::posenc;

static void initializeTargets() {
  static bool once = [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    llvm::InitializeAllAsmParsers();
    return true;
  }();
  (void)once;
}

template <typename... Args>
static llvm::Error makeError(const char *format, Args &&...args) {
  return llvm::createStringError(
      llvm::formatv(format, std::forward<Args>(args)...).str());
}

//===----------------------------------------------------------------------===//
// Levels
//
// Code is generated for a level: exactly those CPU features that an entry point
// checks for (findCpuFeatures in runtime/kernel/Cpu.h). The backend may use any
// feature that it is told of, such as gfni or vbmi, so only this guarantees
// that the code runs wherever the check passes, including virtual machines that
// hide some features. The CPU's name only selects the tuning.
//===----------------------------------------------------------------------===//

namespace {
struct Level {
  StringRef cpu, features;
  /// The LLVM features that a CPU must have for this level.
  ArrayRef<StringRef> required;
  uint64_t cpuFeatures;
  unsigned vectorBytes;
  bool hasVnni, hasBF16, hasAMX;
};
} // namespace

static constexpr StringRef kV3Features[] = {
    "avx2", "bmi",   "bmi2",  "crc32",  "cx16", "f16c",
    "fma",  "lzcnt", "movbe", "popcnt", "sahf", "sse4.2"};
static constexpr StringRef kV4Features[] = {"avx512bw", "avx512cd", "avx512dq",
                                            "avx512f", "avx512vl"};
static constexpr StringRef kVnniFeatures[] = {"avx512vnni"};
static constexpr StringRef kBF16Features[] = {"avx512bf16"};

static constexpr StringRef kAMXFeatures[] = {"amx-bf16", "amx-int8",
                                             "amx-tile"};

static constexpr StringRef kPrefer256 = "prefer-256-bit";

/// Each level includes those before it.
static const Level kX86Levels[] = {
    {"x86-64-v3", "", kV3Features, kCpuFeatureX86V3, 32, false, false, false},
    {"x86-64-v4", "", kV4Features, kCpuFeatureX86V4, 64, false, false, false},
    {"x86-64-v4", "+avx512vnni", kVnniFeatures, kCpuFeatureAvx512Vnni, 64, true,
     false, false},
    {"x86-64-v4", "+avx512bf16,+avx512vnni", kBF16Features,
     kCpuFeatureAvx512Bf16, 64, true, true, false},
    {"x86-64-v4", "+avx512bf16,+avx512vnni,+amx-bf16,+amx-int8,+amx-tile",
     kAMXFeatures, kCpuFeatureAmxBf16, 64, true, true, true}};

/// The features that every CPU with another one has, so that a target need not
/// name both.
static constexpr std::pair<StringRef, StringRef> kImpliedFeatures[] = {
    {"avx512vnni", "avx512bf16"}, {"amx-int8", "amx-bf16"}};

/// Sets the highest level whose features the CPU has; false if there is none.
static bool setX86Level(TargetSpec &spec,
                        llvm::function_ref<bool(StringRef)> has) {
  spec.cpuFeatures = 0;
  for (const Level &level : kX86Levels) {
    auto isKnown = [&](StringRef feature) {
      return has(feature) || llvm::any_of(kImpliedFeatures, [&](auto implied) {
               return implied.first == feature && has(implied.second);
             });
    };
    if (!llvm::all_of(level.required, isKnown))
      break;
    spec.cpu = level.cpu.str();
    spec.features = level.features.str();
    spec.cpuFeatures |= level.cpuFeatures;
    spec.vectorBytes = level.vectorBytes;
    spec.hasBF16Conversion = spec.hasBF16Dots = level.hasBF16;
    spec.hasAMXBF16 = spec.hasAMXInt8 = level.hasAMX;
    spec.hasInt8Dots = level.hasVnni;
  }
  return spec.cpuFeatures != 0;
}

/// Returns the names of the CPUs that code can be generated for.
static SmallVector<StringRef> listCpus(const llvm::Target &target,
                                       const llvm::Triple &triple,
                                       const llvm::MCSubtargetInfo &names) {
  SmallVector<StringRef> cpus;
  for (const llvm::SubtargetSubTypeKV &known :
       names.getAllProcessorDescriptions()) {
    std::unique_ptr<llvm::MCSubtargetInfo> cpu(
        target.createMCSubtargetInfo(triple, known.Key, ""));
    if (!triple.isX86() || llvm::all_of(kV3Features, [&](StringRef feature) {
          return cpu->checkFeatures(("+" + feature).str());
        }))
      cpus.push_back(known.Key);
  }
  return cpus;
}

/// Lists the features that entry points check for, besides those of every CPU.
static std::string describeFeatures(const llvm::Triple &triple) {
  if (!triple.isX86())
    return ": expected a CPU alone";
  SmallVector<StringRef> features;
  for (ArrayRef<StringRef> level :
       {ArrayRef(kV4Features), ArrayRef(kVnniFeatures), ArrayRef(kBF16Features),
        ArrayRef(kAMXFeatures), ArrayRef(kPrefer256)})
    features.append(level.begin(), level.end());
  return ": expected one of " + llvm::join(features, ", ");
}

/// Returns the backend's description of a CPU with features. Unknown names are
/// an error; the backend would print a warning and use another CPU.
static llvm::Expected<std::unique_ptr<llvm::MCSubtargetInfo>>
findCpu(const llvm::Target &target, const llvm::Triple &triple, StringRef cpu,
        ArrayRef<StringRef> features, StringRef name) {
  // Created without a CPU, so that the backend prints nothing about an unknown
  // one.
  std::unique_ptr<llvm::MCSubtargetInfo> names(
      target.createMCSubtargetInfo(triple, "", ""));
  if (!names->isCPUStringValid(cpu))
    return makeError("unknown CPU '{0}' in target '{1}': expected host, "
                     "cuda:sm_NN, vulkan or one of {2}",
                     cpu, name,
                     llvm::join(listCpus(target, triple, *names), ", "));
  std::string joined;
  for (StringRef feature : features) {
    if (llvm::none_of(names->getAllProcessorFeatures(),
                      [&](const llvm::SubtargetFeatureKV &known) {
                        return known.Key == feature;
                      }))
      return makeError("unknown feature '{0}' in target '{1}'{2}", feature,
                       name, describeFeatures(triple));
    joined += (joined.empty() ? "+" : ",+") + feature.str();
  }
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      target.createMCSubtargetInfo(triple, cpu, joined));
}

/// Whether a feature of x86 is one of those that entry points check for.
static bool isCheckedX86(const llvm::Target &target, const llvm::Triple &triple,
                         StringRef feature) {
  if (llvm::is_contained(kV4Features, feature) ||
      llvm::is_contained(kVnniFeatures, feature) ||
      llvm::is_contained(kBF16Features, feature) ||
      llvm::is_contained(kAMXFeatures, feature))
    return true;
  std::unique_ptr<llvm::MCSubtargetInfo> floor(
      target.createMCSubtargetInfo(triple, kX86Levels[0].cpu, ""));
  return floor->checkFeatures(("+" + feature).str());
}

static llvm::Error makeFloorError(StringRef name) {
  return makeError("target '{0}' is below x86-64-v3: it lacks AVX2, FMA, F16C "
                   "or BMI2",
                   name);
}

/// Returns this machine's architecture as it is spelled in a target.
static StringRef getHostArch() {
  llvm::Triple host(llvm::sys::getDefaultTargetTriple());
  return host.getArch() == llvm::Triple::x86_64 ? "x86-64" : host.getArchName();
}

/// Asks for the tile registers of AMX as a library does (runtime/kernel/Cpu.h).
static bool mayUseAMX() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long requestPermission = 0x1023, tileData = 18;
  static const bool isAllowed =
      syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
  return isAllowed;
#else
  return false;
#endif
}

/// Returns the target of this machine, which gives the same code on any other
/// machine.
static llvm::Expected<std::string> nameHost() {
  std::string cpu = llvm::sys::getHostCPUName().str();
  if (getHostArch() != "x86-64")
    return (getHostArch() + ":" + cpu).str();
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  TargetSpec host;
  // A virtual machine may hide a feature that another one implies.
  auto isHidden = [&](StringRef name) {
    return llvm::any_of(kImpliedFeatures, [&](auto implied) {
      return implied.second == name && !features.lookup(implied.first);
    });
  };
  if (!setX86Level(host, [&](StringRef name) {
        return features.lookup(name) && !isHidden(name) &&
               ((name != "amx-bf16" && name != "amx-int8") || mayUseAMX());
      }))
    return makeFloorError("host");
  // A virtual machine may hide the CPU's name, or features of the CPU that it
  // names. Intel's CPUs with AMX, or without it if it is hidden, have a name
  // that selects their tuning.
  bool hasAMX = features.lookup("amx-bf16");
  for (std::string name : {cpu, std::string("sapphirerapids"),
                           std::string("icelake-server+avx512bf16")}) {
    if (name != cpu && !hasAMX)
      break;
    llvm::Expected<TargetSpec> named = TargetSpec::parse("x86-64:" + name);
    if (named && named->cpuFeatures == host.cpuFeatures)
      return named->name;
    if (named)
      hasAMX |= named->hasAMXBF16;
    else
      llvm::consumeError(named.takeError());
  }
  StringRef feature = host.hasBF16Conversion ? "+avx512bf16"
                      : host.hasInt8Dots     ? "+avx512vnni"
                                             : "";
  return "x86-64:" + host.cpu + feature.str();
}

llvm::Expected<TargetSpec> TargetSpec::parse(StringRef text) {
  initializeTargets();
  TargetSpec spec;
  spec.name = text.str();
  if (text == "host") {
    llvm::Expected<std::string> name = nameHost();
    if (!name)
      return name.takeError();
    spec.name = *name;
    text = spec.name;
  }
  StringRef arch = getHostArch();
  if (text.contains(':'))
    std::tie(arch, text) = text.split(':');
  // The triple does not depend on this machine.
  if (arch == "x86-64")
    spec.triple = "x86_64-unknown-linux-gnu";
  else if (arch == "aarch64")
    spec.triple = "aarch64-unknown-linux-gnu";
  else
    return makeError("unknown architecture '{0}' in target '{1}': expected "
                     "x86-64 or aarch64, or the target host, cuda:sm_NN or "
                     "vulkan",
                     arch, spec.name);
  llvm::Triple triple(spec.triple);
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return makeError("target '{0}': {1}", spec.name, message);

  SmallVector<StringRef> features;
  text.split(features, '+');
  if (llvm::any_of(features, [](StringRef part) { return part.empty(); }))
    return makeError("expected CPU[+feature...] in target '{0}'", spec.name);
  spec.tuneCpu = features.front().str();
  features.erase(features.begin());
  llvm::Expected<std::unique_ptr<llvm::MCSubtargetInfo>> info =
      findCpu(*target, triple, spec.tuneCpu, features, spec.name);
  if (!info)
    return info.takeError();
  spec.tuning = getDefaultTuning(spec.triple, spec.tuneCpu);
  spec.family = getCpuFamily(spec.triple, spec.tuneCpu);

  auto isChecked = [&](StringRef feature) {
    return triple.isX86() ? isCheckedX86(*target, triple, feature)
                          : feature == "neon" || feature == "fp-armv8";
  };
  // LLVM's feature for AVX-512 instructions on 256-bit vectors.
  bool isNarrow = triple.isX86() && llvm::is_contained(features, kPrefer256);
  llvm::erase(features, kPrefer256);
  for (StringRef feature : features)
    if (!isChecked(feature))
      return makeError("feature '{0}' in target '{1}' cannot be checked at "
                       "load time",
                       feature, spec.name);
  if (triple.isX86()) {
    if (!setX86Level(spec, [&](StringRef feature) {
          return (*info)->checkFeatures(("+" + feature).str());
        }))
      return makeFloorError(spec.name);
    if (isNarrow) {
      spec.vectorBytes = std::min(spec.vectorBytes, 32u);
      // Dot products are generated only for vectors of 64 bytes.
      spec.hasBF16Dots = spec.hasAMXBF16 = false;
      spec.hasInt8Dots = spec.hasAMXInt8 = false;
    }
    return spec;
  }
  // Every CPU has NEON. For other features an entry point would have to query
  // the operating system.
  spec.cpu = "generic";
  spec.vectorBytes = 16;
  return spec;
}

/// Whether a CPU that no variant is tuned for prefers `a` to `b`. Each level
/// includes those below it, so its feature bits are the larger number.
static bool isBetter(const TargetSpec &a, const TargetSpec &b) {
  if (a.cpuFeatures != b.cpuFeatures)
    return a.cpuFeatures > b.cpuFeatures;
  return a.family == CpuFamily::Other && b.family != CpuFamily::Other;
}

llvm::Expected<std::vector<TargetSpec>>
TargetSpec::parseAll(ArrayRef<std::string> texts,
                     std::vector<TargetSpec> &unused) {
  std::vector<TargetSpec> specs;
  for (StringRef text :
       texts.empty() ? SmallVector<StringRef>{"host"}
                     : SmallVector<StringRef>(texts.begin(), texts.end())) {
    llvm::Expected<TargetSpec> spec = parse(text);
    if (!spec)
      return spec.takeError();
    if (!specs.empty() && specs.front().triple != spec->triple)
      return makeError("targets '{0}' and '{1}' are of different "
                       "architectures, which cannot share a library",
                       specs.front().name, spec->name);
    bool isUsed = llvm::none_of(specs, [&](const TargetSpec &other) {
      return other.cpuFeatures == spec->cpuFeatures &&
             other.family == spec->family;
    });
    if (isUsed)
      specs.insert(llvm::upper_bound(specs, *spec, isBetter), std::move(*spec));
    else
      unused.push_back(std::move(*spec));
  }
  return specs;
}

std::unique_ptr<llvm::TargetMachine>
TargetSpec::createTargetMachine(llvm::CodeGenOptLevel level) const {
  llvm::Triple target(triple);
  std::string message;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(target, message);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  // Fusing a multiply and an add would change the bits from target to target.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  // Loaders run the functions of .init_array, and none of .ctors.
  options.UseInitArray = true;
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(target, /*CPU=*/"", /*Features=*/"", options,
                                   llvm::Reloc::PIC_, std::nullopt, level));
}
