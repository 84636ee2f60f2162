//===- KernelAttrs.cpp - how a kernel is divided and called ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/KernelConfig.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::posenc;

LogicalResult KernelAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 TasksBy, bool tasks, DenseBoolArrayAttr phases,
                                 bool measured, int64_t sharedBytes,
                                 DenseI64ArrayAttr scratchBytes, bool workspace,
                                 bool launches, ArrayAttr assertions) {
  if (phases && phases.empty())
    return emitError() << "expected a phase or no 'phases' (kernel_c1)";
  if (phases && !tasks)
    return emitError() << "expected 'tasks' with 'phases' (kernel_c1)";
  if (sharedBytes < 0 || (sharedBytes > 0 && !phases))
    return emitError() << "expected 'shared_bytes' with 'phases', and not "
                          "negative, got "
                       << sharedBytes << " (kernel_c2)";
  if (scratchBytes && llvm::any_of(scratchBytes.asArrayRef(),
                                   [](int64_t bytes) { return bytes <= 0; }))
    return emitError() << "expected positive 'scratch_bytes' (kernel_c3)";
  if ((scratchBytes || measured) && !workspace)
    return emitError() << "expected 'workspace' with 'scratch_bytes' or "
                          "'measured' (kernel_c3)";
  if (tasks && launches)
    return emitError() << "'tasks' and 'launches' exclude each other "
                          "(kernel_c4)";
  if (assertions && !llvm::all_of(assertions, llvm::IsaPred<StringAttr>))
    return emitError() << "expected 'assertions' to be strings, got "
                       << assertions << " (kernel_c5)";
  return success();
}

LogicalResult ChipAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               StringRef name) {
  StringRef number = name;
  bool isArch = number.consume_front("sm_");
  if (!number.empty() && (number.back() == 'a' || number.back() == 'f'))
    number = number.drop_back();
  if (!isArch || number.empty() || !llvm::all_of(number, llvm::isDigit))
    return emitError() << "expected an architecture such as \"sm_90a\", got \""
                       << name << "\" (chip_c1)";
  return success();
}

AbiAttr mlir::posenc::getAbi(Operation *function) {
  return function->getAttrOfType<AbiAttr>(PosencDialect::kAbiAttrName);
}

KernelConfig mlir::posenc::getKernelConfig(Operation *function) {
  auto attr =
      function->getAttrOfType<KernelAttr>(PosencDialect::kKernelAttrName);
  if (!attr)
    return {};
  auto toList = [](auto list) {
    return list ? list.asArrayRef() : decltype(list.asArrayRef())();
  };
  return {attr.getTasksBy(),        attr.getTasks(),
          toList(attr.getPhases()), attr.getMeasured(),
          attr.getSharedBytes(),    toList(attr.getScratchBytes()),
          attr.getWorkspace(),      attr.getLaunches(),
          attr.getAssertions()};
}

void mlir::posenc::updateKernelConfig(
    Operation *function, function_ref<void(KernelConfig &)> update) {
  KernelConfig config = getKernelConfig(function);
  update(config);
  Builder builder(function->getContext());
  function->setAttr(
      PosencDialect::kKernelAttrName,
      KernelAttr::get(
          builder.getContext(), config.tasksBy, config.hasTasks,
          config.phases.empty() ? DenseBoolArrayAttr()
                                : builder.getDenseBoolArrayAttr(config.phases),
          config.isMeasured, config.sharedBytes,
          config.scratchBytes.empty()
              ? DenseI64ArrayAttr()
              : builder.getDenseI64ArrayAttr(config.scratchBytes),
          config.hasWorkspace, config.hasLaunches, config.assertions));
}

GpuAttr mlir::posenc::getGpu(Operation *module) {
  auto gpu = module->getAttrOfType<GpuAttr>(PosencDialect::kGpuAttrName);
  return gpu ? gpu
             : GpuAttr::get(module->getContext(), /*functions=*/false,
                            /*attention=*/false, /*warpgroups=*/false,
                            /*small_shared_memory=*/false);
}

std::optional<int64_t> mlir::posenc::getStackLimit(Operation *module) {
  auto limit =
      module->getAttrOfType<IntegerAttr>(PosencDialect::kStackLimitAttrName);
  return limit ? std::optional(limit.getInt()) : std::nullopt;
}
