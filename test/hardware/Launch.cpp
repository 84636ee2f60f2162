//===- Launch.cpp - calls a function on device memory ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launch.h"

#include "Dispatch.h"
#include "DlTensor.h"
#include "Signature.h"

using namespace posenc;
using namespace posenc::hardware;

uint64_t hardware::getWorkspaceBytes(const posenc_function &function,
                                     const std::vector<int64_t> &sizes) {
  if (!function.cudaWorkspace)
    return 0;
  int64_t bytes = runtime::dispatch<int64_t>(function.cudaWorkspace,
                                             sizes.data(), sizes.size());
  if (bytes < 0)
    throw Failure(function.name + ": the workspace is too large");
  return bytes;
}

void hardware::launchFunction(const Device &device,
                              const posenc_function &function,
                              const std::vector<DeviceTensor> &tensors,
                              uint64_t workspace) {
  PosencDlTensor structs[POSENC_MAX_ARGUMENTS];
  int64_t arguments[POSENC_MAX_ARGUMENTS];
  size_t count = 0, numInputs = function.inputs.size();
  if (tensors.size() != numInputs + function.outputs.size() ||
      tensors.size() + 4 > POSENC_MAX_ARGUMENTS)
    throw Failure(function.name + ": unexpected number of arguments");
  for (const DeviceTensor &tensor : tensors) {
    const posenc_argument &argument = count < numInputs
                                          ? function.inputs[count]
                                          : function.outputs[count - numInputs];
    posenc_tensor plain = {reinterpret_cast<void *>(tensor.address),
                           tensor.dtype, int32_t(tensor.shape->size()),
                           tensor.shape->data()};
    structs[count] = runtime::toDlTensor(argument, plain);
    structs[count].deviceType = kDLCUDA;
    structs[count].deviceId = device.index;
    structs[count].strides = tensor.strides->data();
    arguments[count] = runtime::toWord(&structs[count]);
    ++count;
  }
  char message[512] = "";
  if (function.cudaWorkspace)
    arguments[count++] = static_cast<int64_t>(workspace);
  arguments[count++] = runtime::toWord(device.stream);
  arguments[count++] = runtime::toWord(message);
  arguments[count++] = sizeof(message);
  int32_t code =
      runtime::dispatch<int32_t>(function.cudaEntry, arguments, count);
  if (code != 0)
    throw Failure(function.name + " returns " + std::to_string(code) + ": " +
                  message);
}
