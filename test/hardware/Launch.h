//===- Launch.h - calls a function on device memory -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_LAUNCH_H
#define POSENC_TEST_HARDWARE_LAUNCH_H

#include "Device.h"

#include "posenc/runtime/Library.h"

#include <vector>

namespace posenc::hardware {

/// A tensor in device memory. The sizes and strides, in elements, are others'.
struct DeviceTensor {
  uint64_t address;
  posenc_dtype dtype;
  const std::vector<int64_t> *shape, *strides;
};

/// Returns the bytes of the workspace of a function for the values of its
/// dynamic sizes, 0 if it has none. Throws Failure.
uint64_t getWorkspaceBytes(const posenc_function &function,
                           const std::vector<int64_t> &sizes);

/// Enqueues a call of a function in the stream of the device: inputs, then
/// outputs. Throws Failure.
void launchFunction(const Device &device, const posenc_function &function,
                    const std::vector<DeviceTensor> &tensors,
                    uint64_t workspace);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_LAUNCH_H
