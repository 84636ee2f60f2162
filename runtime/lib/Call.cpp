//===- Call.cpp - Calls a function of a kernel library --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Binding.h"
#include "Dispatch.h"
#include "DlTensor.h"
#include "Error.h"
#include "Types.h"

#include <cinttypes>
#include <cstdlib>
#include <memory>

using namespace posenc::runtime;

namespace {
using Memory = std::unique_ptr<void, void (*)(void *)>;
} // namespace

/// Allocates the workspace that the function needs for the dynamic sizes of
/// this call.
static posenc_status allocateWorkspace(const posenc_function &function,
                                       const Binding &binding, Memory &memory) {
  int64_t bytes = dispatch<int64_t>(function.workspace, binding.sizeValues(),
                                    function.sizes.size());
  if (bytes < 0)
    return fail(POSENC_KERNEL_FAILED,
                "%s: the kernel asks for a workspace of %" PRId64 " bytes",
                function.name.c_str(), bytes);
  memory.reset(allocateAligned(static_cast<uint64_t>(bytes)));
  if (!memory)
    return fail(POSENC_OUT_OF_MEMORY,
                "%s: no memory for a workspace of %" PRId64 " bytes",
                function.name.c_str(), bytes);
  return POSENC_OK;
}

/// Sets the error for a kernel that returned `code`. The plain C entry point
/// returns no message, so this calls the DLPack entry point, which makes the
/// same checks, to get one.
static posenc_status failKernel(const posenc_function &function, int32_t code,
                                const posenc_value *inputs,
                                const posenc_value *outputs,
                                const void *workspace) {
  PosencDlTensor tensors[POSENC_MAX_ARGUMENTS];
  CallArguments arguments;
  char message[256] = "";
  auto add = [&](const posenc_argument &argument, const posenc_value &value) {
    if (argument.kind == POSENC_SCALAR)
      return arguments.addScalar(argument, value.scalar, value.real);
    size_t number = arguments.numWords;
    tensors[number] = toDlTensor(argument, value.tensor);
    arguments.add(toWord(&tensors[number]));
  };
  size_t needed = function.inputs.size() + function.outputs.size() + 3;
  bool isRefusal =
      code == kEntrySize || code == kEntryShape || code == kEntryIndex;
  if (isRefusal && function.dlpackEntry && needed <= POSENC_MAX_ARGUMENTS) {
    for (size_t i = 0; i < function.inputs.size(); ++i)
      add(function.inputs[i], inputs[i]);
    for (size_t i = 0; i < function.outputs.size(); ++i)
      add(function.outputs[i], outputs[i]);
    if (function.workspace)
      arguments.add(toWord(workspace));
    arguments.add(toWord(message));
    arguments.add(sizeof(message));
    if (dispatch<int32_t>(function.dlpackEntry, arguments) == code)
      return fail(toStatus(code), "%s", message);
  }
  return fail(POSENC_KERNEL_FAILED, "%s: the kernel failed with code %" PRId32,
              function.name.c_str(), code);
}

posenc_status posenc_call(const posenc_function *function,
                          const posenc_value *inputs, size_t num_inputs,
                          const posenc_value *outputs, size_t num_outputs) {
  if (!function)
    return fail(POSENC_INVALID_ARGUMENT, "posenc_call: no function");
  Binding binding(*function);
  if (posenc_status status =
          binding.bindAll(inputs, num_inputs, outputs, num_outputs))
    return status;
  if (!function->address)
    return fail(POSENC_UNSUPPORTED, "%s: the library has code for GPUs only",
                function->name.c_str());
  if (!function->supported)
    return fail(POSENC_UNSUPPORTED,
                "%s: this processor lacks the features that the library was "
                "compiled for",
                function->name.c_str());

  CallArguments arguments;
  binding.addArguments(arguments);
  Memory workspace(nullptr, std::free);
  if (function->workspace) {
    if (posenc_status status = allocateWorkspace(*function, binding, workspace))
      return status;
    arguments.add(toWord(workspace.get()));
  }
  int32_t code = dispatch<int32_t>(function->address, arguments);
  return code == 0
             ? POSENC_OK
             : failKernel(*function, code, inputs, outputs, workspace.get());
}

posenc_status posenc_output_shape(const posenc_function *function,
                                  const posenc_value *inputs, size_t num_inputs,
                                  size_t index, int64_t *shape) {
  if (!function)
    return fail(POSENC_INVALID_ARGUMENT, "posenc_output_shape: no function");
  if (index >= function->outputs.size())
    return fail(POSENC_INVALID_ARGUMENT, "%s: there is no output #%zu",
                function->name.c_str(), index);
  const posenc_argument &output = function->outputs[index];
  if (!shape && !output.shape.empty())
    return fail(POSENC_INVALID_ARGUMENT, "%s: shape is NULL",
                function->name.c_str());
  Binding binding(*function);
  if (posenc_status status = binding.bindInputs(inputs, num_inputs, false))
    return status;
  int64_t sizes[POSENC_MAX_RANK];
  for (size_t dim = 0; dim < output.shape.size(); ++dim)
    if (posenc_status status = binding.resolve(output, dim, sizes[dim]))
      return status;
  uint64_t bytes;
  if (!tensorBytes(output.dtype, sizes,
                   static_cast<int32_t>(output.shape.size()), bytes))
    return fail(POSENC_SHAPE_MISMATCH,
                "%s: the sizes of output '%s' are too large: their product "
                "overflows",
                function->name.c_str(), output.name.c_str());
  for (size_t dim = 0; dim < output.shape.size(); ++dim)
    shape[dim] = sizes[dim];
  return POSENC_OK;
}
