//===- CudaTarget.cpp - architecture of an NVIDIA GPU ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/TargetInfo/CudaTarget.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir::posenc;

/// The oldest supported architecture, sm_75.
static constexpr int64_t kMinArch = 75;

/// Whether LLVM supports the architecture.
static bool isKnown(llvm::StringRef chip) {
  static bool once = [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargetMCs();
    return true;
  }();
  (void)once;
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return false;
  std::unique_ptr<llvm::MCSubtargetInfo> names(
      target->createMCSubtargetInfo(triple, "", ""));
  return names->isCPUStringValid(chip);
}

bool CudaTarget::runs(llvm::StringRef code) const {
  if (code == chip)
    return true;
  // sm_90a runs code for sm_80, and no other target code for sm_90a.
  int64_t minArch = 0;
  return code.consume_front("sm_") && !code.getAsInteger(10, minArch) &&
         minArch <= arch;
}

llvm::Expected<CudaTarget> CudaTarget::parse(llvm::StringRef text) {
  CudaTarget target;
  target.name = text.str();
  llvm::StringRef chip = text;
  chip.consume_front("cuda:");
  target.chip = chip.str();
  auto fail = [&](const char *format) {
    return llvm::createStringError(
        llvm::formatv(format, chip, target.name).str());
  };
  llvm::StringRef number = chip;
  bool hasNumber = number.consume_front("sm_") &&
                   !number.consumeInteger(10, target.arch) &&
                   (number.empty() || number == "a" || number == "f");
  if (!hasNumber || !isKnown(chip))
    return fail("unknown architecture '{0}' in target '{1}': expected e.g. "
                "sm_90");
  if (target.arch < kMinArch)
    return fail("architecture '{0}' in target '{1}' is older than sm_75, the "
                "oldest supported one");
  target.isExact = !number.empty();
  return target;
}
