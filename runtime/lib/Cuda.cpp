//===- Cuda.cpp - Runs kernel libraries on NVIDIA GPUs --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/runtime/cuda.h"

#include "posenc/kernel/CudaLibrary.h"

#include "Binding.h"
#include "CudaDriver.h"
#include "Dispatch.h"
#include "DlTensor.h"
#include "Error.h"
#include "Types.h"

using namespace posenc::runtime;

posenc_status posenc_cuda_count_devices(int32_t *count) {
  if (!count)
    return fail(POSENC_INVALID_ARGUMENT,
                "posenc_cuda_count_devices: NULL argument");
  const CudaDriver *driver;
  if (posenc_status status = getCudaDriver(driver))
    return status;
  int result = 0;
  if (int error = driver->getDeviceCount(&result))
    return failCuda(*driver, error, "cannot count the devices");
  *count = result;
  return POSENC_OK;
}

posenc_status posenc_cuda_query_device(int32_t index,
                                       posenc_cuda_facts *facts) {
  if (!facts)
    return fail(POSENC_INVALID_ARGUMENT,
                "posenc_cuda_query_device: NULL argument");
  const CudaDriver *driver;
  int device;
  if (posenc_status status = findCudaDevice(index, driver, device))
    return status;
  int major = 0, minor = 0;
  size_t bytes = 0;
  int error = driver->getDeviceName(facts->name, sizeof(facts->name), device);
  if (!error)
    error = driver->getDeviceAttribute(&major, kCudaMajorAttribute, device);
  if (!error)
    error = driver->getDeviceAttribute(&minor, kCudaMinorAttribute, device);
  if (!error)
    error = driver->getDeviceMemory(&bytes, device);
  if (error)
    return failCuda(*driver, error, "cannot query the device");
  facts->arch = 10 * major + minor;
  facts->memory_bytes = bytes;
  return POSENC_OK;
}

namespace {

/// The memory of the tensors of a call, which the destructor releases.
class DeviceCall {
public:
  explicit DeviceCall(const CudaDriver &driver) : driver(driver) {}
  ~DeviceCall() {
    for (size_t i = 0; i < numTensors; ++i)
      if (tensors[i].owns)
        driver.release(tensors[i].address);
    if (workspace)
      driver.release(workspace);
  }

  /// Sets `address` to device memory of `bytes` bytes for a tensor. An output
  /// in place of an input gets the memory of that input; Binding has checked
  /// that tensors with the same data are in place.
  posenc_status add(const posenc_tensor &tensor, uint64_t bytes,
                    uint64_t &address) {
    Tensor added = {tensor.data, 0, bytes, false};
    for (size_t i = 0; i < numTensors && bytes > 0; ++i)
      if (tensors[i].data == tensor.data && tensors[i].bytes == bytes)
        added.address = tensors[i].address;
    if (bytes > 0 && added.address == 0) {
      if (int error = driver.allocate(&added.address, bytes))
        return failCuda(driver, error, "cannot allocate device memory");
      added.owns = true;
    }
    tensors[numTensors++] = added;
    address = added.address;
    return POSENC_OK;
  }

  /// Sets `address` to memory for the workspace.
  posenc_status addWorkspace(int64_t bytes, uint64_t &address) {
    address = 0;
    if (bytes > 0)
      if (int error = driver.allocate(&workspace, static_cast<size_t>(bytes)))
        return failCuda(driver, error,
                        "cannot allocate a workspace on the device");
    address = workspace;
    return POSENC_OK;
  }

private:
  struct Tensor {
    const void *data;
    uint64_t address, bytes;
    bool owns;
  };
  const CudaDriver &driver;
  Tensor tensors[POSENC_MAX_ARGUMENTS];
  size_t numTensors = 0;
  uint64_t workspace = 0;
};

} // namespace

/// Copies the inputs, calls the function and copies the outputs back. Binding
/// has checked the arguments and determined the dynamic sizes.
static posenc_status runOnDevice(const posenc_function &function,
                                 const CudaDriver &driver, int32_t index,
                                 int device, const int64_t *sizes,
                                 const posenc_value *inputs,
                                 const posenc_value *outputs) {
  CudaContext context(driver, device);
  if (posenc_status status = context.enter())
    return status;
  DeviceCall call(driver);
  PosencDlTensor tensors[POSENC_MAX_ARGUMENTS];
  uint64_t bytes[POSENC_MAX_ARGUMENTS];
  CallArguments arguments;
  size_t numInputs = function.inputs.size();
  size_t count = numInputs + function.outputs.size();
  for (size_t i = 0; i < count; ++i) {
    bool isInput = i < numInputs;
    const posenc_argument &argument =
        isInput ? function.inputs[i] : function.outputs[i - numInputs];
    const posenc_value &value = isInput ? inputs[i] : outputs[i - numInputs];
    if (argument.kind == POSENC_SCALAR) {
      arguments.addScalar(argument, value.scalar, value.real);
      continue;
    }
    tensorBytes(argument.dtype, value.tensor.shape, value.tensor.rank,
                bytes[i]);
    if (argument.isShapeOnly)
      bytes[i] = 0;
    uint64_t address;
    if (posenc_status status = call.add(value.tensor, bytes[i], address))
      return status;
    if (isInput && bytes[i] > 0)
      if (int error = driver.copyToDevice(address, value.tensor.data, bytes[i]))
        return failCuda(driver, error, "cannot copy an input to the device");
    tensors[i] = toDlTensor(argument, value.tensor);
    tensors[i].data = reinterpret_cast<void *>(address);
    tensors[i].deviceType = kDLCUDA;
    tensors[i].deviceId = index;
    arguments.add(toWord(&tensors[i]));
  }
  char message[512] = "";
  if (function.cudaWorkspace) {
    int64_t size =
        dispatch<int64_t>(function.cudaWorkspace, sizes, function.sizes.size());
    if (size < 0)
      return fail(POSENC_SHAPE_MISMATCH,
                  "%s: these sizes need a workspace that is too large",
                  function.name.c_str());
    uint64_t address;
    if (posenc_status status = call.addWorkspace(size, address))
      return status;
    arguments.add(static_cast<int64_t>(address));
  }
  arguments.add(0); // the default stream
  arguments.add(toWord(message));
  arguments.add(sizeof(message));
  int32_t code = dispatch<int32_t>(function.cudaEntry, arguments);
  if (code != 0)
    return fail(toStatus(code), "%s",
                *message ? message : function.name.c_str());
  if (int error = driver.synchronizeContext())
    return failCuda(driver, error, "the kernel failed");
  for (size_t i = numInputs; i < count; ++i)
    if (bytes[i] > 0)
      if (int error = driver.copyFromDevice(
              outputs[i - numInputs].tensor.data,
              reinterpret_cast<uintptr_t>(tensors[i].data), bytes[i]))
        return failCuda(driver, error, "cannot copy an output from the device");
  return POSENC_OK;
}

posenc_status posenc_cuda_call(const posenc_function *function, int32_t index,
                               const posenc_value *inputs, size_t num_inputs,
                               const posenc_value *outputs,
                               size_t num_outputs) {
  if (!function)
    return fail(POSENC_INVALID_ARGUMENT, "posenc_cuda_call: no function");
  Binding binding(*function);
  if (posenc_status status =
          binding.bindAll(inputs, num_inputs, outputs, num_outputs))
    return status;
  if (!function->cudaEntry)
    return fail(POSENC_UNSUPPORTED, "%s: the library has no code for CUDA",
                function->name.c_str());
  if (num_inputs + num_outputs + 4 > POSENC_MAX_ARGUMENTS)
    return fail(POSENC_UNSUPPORTED, "%s: too many arguments for this runtime",
                function->name.c_str());
  const CudaDriver *driver;
  int device;
  if (posenc_status status = findCudaDevice(index, driver, device))
    return status;
  return runOnDevice(*function, *driver, index, device, binding.sizeValues(),
                     inputs, outputs);
}
