/*===- cuda.c - a CUDA driver that does nothing ------------------*- C -*-===*\
|*                                                                            *|
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.        *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* For tests of how libraries open the driver and load kernels. It has one    *|
|* device, of compute capability 8.0, and a current context.                  *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Takes time, as that of a real driver, so that several threads get here. */
int cuInit(unsigned flags) { return usleep(50 * 1000) || flags; }
int cuGetErrorString(int error, const char **text) {
  *text = "an error";
  return error == 0;
}
int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  enum { kMajor = 75 };
  *value = attribute == kMajor ? 8 : 0;
  return device;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = (void *)1;
  return device;
}
int cuCtxGetCurrent(void **context) {
  *context = (void *)1;
  return 0;
}
int cuCtxGetDevice(int *device) {
  *device = 0;
  return 0;
}
int cuCtxPushCurrent_v2(void *context) { return !context; }
int cuCtxPopCurrent_v2(void **context) { return cuCtxGetCurrent(context); }
int cuLibraryLoadData(void **library, const void *code, void *jitOptions,
                      void *jitValues, unsigned numJit, void *options,
                      void *values, unsigned num) {
  (void)jitOptions, (void)jitValues, (void)numJit;
  (void)options, (void)values, (void)num;
  *library = (void *)1;
  return !code;
}
int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  *kernel = (void *)1;
  return !library || !name;
}
int cuKernelGetFunction(void **function, void *kernel) {
  *function = kernel;
  return 0;
}
int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) {
  return attribute < 0 || value < 0 || !kernel || device;
}
int cuLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                   unsigned gridZ, unsigned blockX, unsigned blockY,
                   unsigned blockZ, unsigned shared, void *stream,
                   void **parameters, void **extra) {
  (void)gridX, (void)gridY, (void)gridZ, (void)blockX, (void)blockY;
  (void)blockZ, (void)shared, (void)stream, (void)extra;
  return !function || !parameters;
}
int cuThreadExchangeStreamCaptureMode(int *mode) {
  (void)mode;
  return 0;
}
