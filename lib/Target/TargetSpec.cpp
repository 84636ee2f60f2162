//===- TargetSpec.cpp - what a CPU target offers ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/TargetSpec.h"

#include "posenc/Codegen/CInterface.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

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

/// LLVM prints a warning on an unknown CPU or feature and goes on with another.
static llvm::Error checkNames(const llvm::MCSubtargetInfo &info,
                              const TargetSpec &spec) {
  if (!info.isCPUStringValid(spec.cpu))
    return makeError("unknown CPU '{0}' in target '{1}'", spec.cpu, spec.name);
  SmallVector<StringRef> features;
  StringRef(spec.features).split(features, ',', -1, /*KeepEmpty=*/false);
  for (StringRef feature : features) {
    StringRef name = feature.drop_front();
    if (llvm::none_of(info.getAllProcessorFeatures(),
                      [&](const llvm::SubtargetFeatureKV &known) {
                        return known.Key == name;
                      }))
      return makeError("unknown feature '{0}' in target '{1}'", name,
                       spec.name);
  }
  return llvm::Error::success();
}

/// What the backend may use by itself, beyond what an entry can check for.
static constexpr StringRef kUncheckedX86[] = {"avx10.1",
                                              "avx10.2",
                                              "avx512bitalg",
                                              "avx512fp16",
                                              "avx512ifma",
                                              "avx512vbmi",
                                              "avx512vbmi2",
                                              "avx512vnni",
                                              "avx512vp2intersect",
                                              "avx512vpopcntdq",
                                              "avxifma",
                                              "avxneconvert",
                                              "avxvnni",
                                              "avxvnniint16",
                                              "avxvnniint8",
                                              "ccmp",
                                              "cf",
                                              "cmpccxadd",
                                              "egpr",
                                              "fma4",
                                              "gfni",
                                              "lwp",
                                              "ndd",
                                              "nf",
                                              "ppx",
                                              "push2pop2",
                                              "sse4a",
                                              "tbm",
                                              "xop",
                                              "zu"};

llvm::Expected<TargetSpec> TargetSpec::parse(StringRef text) {
  initializeTargets();
  TargetSpec spec;
  spec.name = text.str();
  spec.triple = llvm::sys::getDefaultTargetTriple();
  SmallVector<StringRef> parts;
  if (text == "host") {
    spec.cpu = llvm::sys::getHostCPUName().str();
    llvm::SubtargetFeatures features;
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      features.AddFeature(feature.first(), feature.second);
    // A virtual machine may hide features of the CPU that it names.
    spec.features = features.getString();
  } else {
    if (text.contains(':')) {
      auto [arch, rest] = text.split(':');
      if (arch == "x86-64")
        spec.triple = "x86_64-unknown-linux-gnu";
      else if (arch == "aarch64")
        spec.triple = "aarch64-unknown-linux-gnu";
      else
        return makeError("unknown architecture '{0}' in target '{1}': expected "
                         "x86-64 or aarch64",
                         arch, spec.name);
      text = rest;
    }
    text.split(parts, '+');
    spec.cpu = parts.front().str();
    for (StringRef feature : ArrayRef(parts).drop_front())
      spec.features += (spec.features.empty() ? "+" : ",+") + feature.str();
    if (llvm::any_of(parts, [](StringRef part) { return part.empty(); }))
      return makeError("target '{0}' lacks a CPU or a feature", spec.name);
  }

  llvm::Triple triple(spec.triple);
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return makeError("target '{0}': {1}", spec.name, message);
  // Named without a CPU, so that nothing is printed about a wrong one.
  std::unique_ptr<llvm::MCSubtargetInfo> names(
      target->createMCSubtargetInfo(triple, "", ""));
  if (llvm::Error error = checkNames(*names, spec))
    return std::move(error);
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      target->createMCSubtargetInfo(triple, spec.cpu, spec.features));
  auto has = [&](StringRef feature) {
    return info->checkFeatures(("+" + feature).str());
  };

  if (triple.isX86()) {
    // Reported by cpuid as one level; LLVM has no such level.
    if (!has("avx2") || !has("fma") || !has("f16c") || !has("bmi2"))
      return makeError("target '{0}' is below x86-64-v3: it lacks AVX2, FMA, "
                       "F16C or BMI2",
                       spec.name);
    spec.cpuFeatures = kCpuFeatureX86V3;
    if (has("avx512f") && has("avx512bw") && has("avx512dq") &&
        has("avx512vl")) {
      spec.cpuFeatures |= kCpuFeatureX86V4;
      spec.vectorBytes = 64;
      spec.hasBF16Conversion = has("avx512bf16");
      if (spec.hasBF16Conversion)
        spec.cpuFeatures |= kCpuFeatureAvx512Bf16;
    }
    // The code must run wherever the check passes.
    auto remove = [&](StringRef feature) {
      spec.features += (spec.features.empty() ? "-" : ",-") + feature.str();
    };
    for (StringRef feature : kUncheckedX86) {
      if (!has(feature))
        continue;
      if (llvm::is_contained(parts, feature))
        return makeError("feature '{0}' in target '{1}' is none that a library "
                         "can check for",
                         feature, spec.name);
      remove(feature);
    }
    if (has("avx512f") && !(spec.cpuFeatures & kCpuFeatureX86V4))
      remove("avx512f");
  } else {
    spec.vectorBytes = 16;
    spec.hasBF16Conversion = has("bf16");
  }
  return spec;
}

std::unique_ptr<llvm::TargetMachine> TargetSpec::createTargetMachine() const {
  llvm::Triple target(triple);
  std::string message;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(target, message);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  // Fusing a multiply and an add would change the bits from target to target.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      target, cpu, features, options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}
