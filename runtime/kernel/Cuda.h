//===- Cuda.h - calls on NVIDIA GPUs ------------------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_CUDA_H
#define POSENC_KERNEL_CUDA_H

#include "CudaTensorMap.h"

/* The kernels of a library, compiled for one architecture. */
struct CudaImage {
  const void *data;
  int64_t arch;  /* ten times the compute capability */
  int64_t flags; /* see below */
};

enum {
  kImageIsPtx = 1,  /* PTX, which also runs on newer architectures */
  kImageIsExact = 2 /* runs on this architecture only, such as sm_90a */
};

/* The state of a device after its first use. */
struct CudaDevice {
  int32_t exactArch; /* of the image, if it runs on no other one; else 0 */
  int32_t multiprocessors;
  int32_t isUsed;    /* the driver has loaded a kernel of the library */
  int32_t rejection; /* the driver's error for the last image that it refused */
  int64_t rank;      /* of the image; 0 before the first one */
  void *context;     /* the primary context, for callers without a context */
  void *library;
};

static struct CudaDevice cudaDevices[kMaxCudaDevices];

/* A call in progress. */
struct CudaCall {
  struct GpuCall gpu;
  void *stream;
  int32_t device;
  int32_t isRejected; /* the driver has refused the image of the library */
  void *library;
};

/* Sets and returns the status of a call after an error of the driver. */
static int32_t failOnce(struct CudaCall *cuda, const char *what, int error) {
  cuda->gpu.code = failCuda(cuda->gpu.call, kEntryGpuFailed, what, NULL, error);
  return cuda->gpu.code;
}

/* Ranks an image for an architecture: machine code before PTX, newer before
 * older architectures. Returns 0 if the image does not run on it. */
static int64_t rankImage(const struct CudaImage *image, int64_t arch) {
  int isPtx = image->flags & kImageIsPtx;
  int isExact = image->flags & kImageIsExact;
  int runs =
      image->arch <= arch &&
      (isExact ? image->arch == arch : isPtx || image->arch / 10 == arch / 10);
  enum { kIsCode = 1 << 20 };
  return runs ? 2 * image->arch + (isExact ? 1 : 0) + (isPtx ? 0 : kIsCode) : 0;
}

/* Returns the best image with a rank below *rank, and sets *rank to its rank.
 * NULL if there is none. */
static const struct CudaImage *chooseImage(const struct CudaImage *images,
                                           int64_t numImages, int64_t arch,
                                           int64_t *rank) {
  const struct CudaImage *best = NULL;
  int64_t bestRank = 0;
  for (int64_t i = 0; i < numImages; ++i) {
    int64_t mine = rankImage(&images[i], arch);
    if (mine > bestRank && mine < *rank) {
      best = &images[i];
      bestRank = mine;
    }
  }
  *rank = bestRank;
  return best;
}

/* Sets the library of the call: loads the best image for the device, whose
 * context is current, unless one is loaded. */
static int32_t prepareDevice(struct CudaCall *cuda,
                             const struct CudaImage *images,
                             int64_t numImages) {
  struct CudaDevice *device = &cudaDevices[cuda->device];
  if (__atomic_load_n(&device->isUsed, __ATOMIC_ACQUIRE)) {
    cuda->library = device->library;
    cuda->gpu.exactArch = device->exactArch;
    cuda->gpu.multiprocessors = device->multiprocessors;
    return kEntryOk;
  }
  int major = 0, minor = 0, multiprocessors = 0, handle = 0;
  int error = CUDA(kCuDeviceGet, int *, int)(&handle, cuda->device);
  if (!error)
    error = CUDA(kCuDeviceGetAttribute, int *, int,
                 int)(&major, kCudaMajorAttribute, handle);
  if (!error)
    error = CUDA(kCuDeviceGetAttribute, int *, int,
                 int)(&minor, kCudaMinorAttribute, handle);
  if (!error)
    error = CUDA(kCuDeviceGetAttribute, int *, int,
                 int)(&multiprocessors, kCudaMultiprocessorsAttribute, handle);
  if (error)
    return failOnce(cuda, "the device is unknown to the driver", error);
  /* If the driver rejects machine code, it may still compile the PTX. */
  int64_t arch = 10 * major + minor;
  const struct CudaImage *image;
  lockCuda();
  int64_t rank = device->rank ? device->rank : INT64_MAX;
  error = device->rejection;
  /* Another thread may have loaded it meanwhile. */
  void *library = device->library;
  while (!library &&
         (image = chooseImage(images, numImages, arch, &rank)) != NULL) {
    int refusal = CUDA(kCuLibraryLoadData, void **, const void *, void *,
                       void *, unsigned, void *, void *, unsigned)(
        &library, image->data, NULL, NULL, 0, NULL, NULL, 0);
    if (refusal) {
      library = NULL;
      error = refusal;
      continue;
    }
    device->library = library;
    device->rank = rank;
    device->exactArch = image->flags & kImageIsExact ? (int32_t)image->arch : 0;
    device->multiprocessors = multiprocessors;
  }
  cuda->library = library;
  cuda->gpu.exactArch = device->exactArch;
  cuda->gpu.multiprocessors = device->multiprocessors;
  unlockCuda();
  if (library)
    return kEntryOk;
  if (error)
    return failOnce(cuda, "the kernels cannot be loaded", error);
  return cuda->gpu.code = fail(cuda->gpu.call, kEntryNoGpu,
                               "there are no kernels for this GPU, of compute "
                               "capability %d.%d",
                               VALUES(major, minor));
}

/* Whether an error of the driver means that it does not take an image: machine
 * code or PTX of a newer toolkit, or PTX without a compiler for it. */
static int isRejection(int error) {
  enum { /* CUresult */
         kInvalidImage = 200,
         kNoBinaryForGpu = 209,
         kInvalidPtx = 218,
         kJitCompilerNotFound = 221,
         kUnsupportedPtxVersion = 222,
         kJitCompilationDisabled = 223,
         kInvalidSource = 300
  };
  return error == kInvalidImage || error == kNoBinaryForGpu ||
         error == kInvalidPtx || error == kJitCompilerNotFound ||
         error == kUnsupportedPtxVersion || error == kJitCompilationDisabled ||
         error == kInvalidSource;
}

/* Notes that the device needs another image than that of the call's library,
 * which stays loaded, as other threads may use it. */
static void rejectImage(struct CudaCall *cuda, int error) {
  struct CudaDevice *device = &cudaDevices[cuda->device];
  cuda->isRejected = 1;
  cuda->gpu.code = kEntryGpuFailed;
  lockCuda();
  if (device->library == cuda->library) {
    device->library = NULL;
    device->rejection = error;
  }
  unlockCuda();
}

/* Notes that the driver has loaded a kernel, so that the device has its image
 * from now on. */
static void keepImage(struct CudaCall *cuda) {
  struct CudaDevice *device = &cudaDevices[cuda->device];
  if (__atomic_load_n(&device->isUsed, __ATOMIC_RELAXED))
    return;
  lockCuda();
  if (device->library == cuda->library)
    __atomic_store_n(&device->isUsed, 1, __ATOMIC_RELEASE);
  unlockCuda();
}

/* Permits a kernel all of its dynamic shared memory on the device; by default
 * the driver permits the first 48 KiB. Threads may do so at the same time,
 * since they set the same value before any of them launches the kernel. */
static int32_t permitSharedMemory(struct CudaCall *cuda,
                                  const struct GpuKernel *kernel,
                                  void *handle) {
  enum { kMaxDynamicSharedBytes = 8 }; /* a CUfunction_attribute */
  int64_t bytes = kernel->maxSharedBytes;
  if (bytes == 0)
    return kEntryOk;
  int device = 0, limit = 0;
  int error = CUDA(kCuDeviceGet, int *, int)(&device, cuda->device);
  if (!error)
    error = CUDA(kCuKernelSetAttribute, int, int, void *,
                 int)(kMaxDynamicSharedBytes, (int)bytes, handle, device);
  if (!error)
    return kEntryOk;
  CUDA(kCuDeviceGetAttribute, int *, int, int)(&limit, kCudaSharedAttribute,
                                               device);
  cuda->gpu.code = failCuda(
      cuda->gpu.call, kEntryGpuFailed,
      "a kernel needs %d bytes of dynamic shared memory in each block, "
      "of which this GPU has at most %d",
      VALUES(bytes, limit), error);
  return cuda->gpu.code;
}

/* Returns the handle of a kernel, which is loaded into the current context;
 * NULL after an error. */
static void *getKernel(struct CudaCall *cuda, struct GpuKernel *kernel) {
  void **slot = &kernel->handles[cuda->device];
  void *handle = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (handle)
    return handle;
  void *function;
  int error = CUDA(kCuLibraryGetKernel, void **, void *,
                   const char *)(&handle, cuda->library, kernel->name);
  /* Loads the kernel now: the first launch, which would load it otherwise, may
   * be part of a capture. */
  if (!error)
    error = CUDA(kCuKernelGetFunction, void **, void *)(&function, handle);
  /* Libraries are loaded lazily, so the driver may look at the image only now.
   * The call has launched no kernel then. */
  if (isRejection(error) &&
      !__atomic_load_n(&cudaDevices[cuda->device].isUsed, __ATOMIC_ACQUIRE)) {
    rejectImage(cuda, error);
    return NULL;
  }
  /* Code for old GPUs lacks the kernels of attention. */
  enum { kNotFound = 500 }; /* a CUresult */
  if (error == kNotFound) {
    cuda->gpu.code =
        failCuda(cuda->gpu.call, kEntryNoGpu,
                 "the function has a kernel that needs a newer GPU: attention "
                 "needs compute capability 8.0",
                 NULL, error);
    return NULL;
  }
  if (error) {
    failOnce(cuda, "a kernel cannot be loaded", error);
    return NULL;
  }
  keepImage(cuda);
  if (permitSharedMemory(cuda, kernel, handle))
    return NULL;
  __atomic_store_n(slot, handle, __ATOMIC_RELEASE);
  return handle;
}

static void launchOnCuda(struct GpuCall *gpu, struct GpuKernel *kernel,
                         const struct GpuLaunch *shape, void **parameters) {
  struct CudaCall *cuda = (struct CudaCall *)gpu;
  void *handle = getKernel(cuda, kernel);
  if (!handle)
    return;
  int error =
      CUDA(kCuLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned,
           unsigned, unsigned, unsigned, void *, void **, void **)(
          handle, (unsigned)shape->blocks, 1, 1, (unsigned)shape->threads, 1, 1,
          (unsigned)shape->sharedBytes, cuda->stream, parameters, NULL);
  if (error)
    failOnce(cuda, "a kernel cannot be launched", error);
}

static void encodeMap(struct GpuCall *gpu, struct GpuTensorMap *map,
                      const struct TensorMapWords *words) {
  const char *reason = NULL;
  int error = encodeOnCuda(map, words, &reason);
  if (reason)
    gpu->code = fail(gpu->call, kEntryGpuFailed, reason, NULL);
  else if (error)
    failOnce((struct CudaCall *)gpu,
             "a tensor cannot be copied in tiles: its address and strides must "
             "be multiples of 16 bytes",
             error);
}

/* Makes a context of the device current, unless one is. *isPushed tells whether
 * the caller has to pop it. */
static int32_t enterContext(struct CudaCall *cuda, int *isPushed) {
  void *current = NULL;
  int device = -1;
  int error = CUDA(kCuCtxGetCurrent, void **)(&current);
  if (!error && current)
    error = CUDA(kCuCtxGetDevice, int *)(&device);
  *isPushed = 0;
  int handle = 0;
  if (!error)
    error = CUDA(kCuDeviceGet, int *, int)(&handle, cuda->device);
  enum { kNotInitialized = 3 }; /* a CUresult */
  if (error == kNotInitialized)
    return failOnce(cuda,
                    "this process was forked from one that had used CUDA, so "
                    "that it cannot: start processes by 'spawn'",
                    error);
  if (error)
    return failOnce(cuda, "the device is unknown to the driver", error);
  if (current && device == handle)
    return kEntryOk;
  lockCuda();
  struct CudaDevice *it = &cudaDevices[cuda->device];
  if (!it->context)
    error = CUDA(kCuDevicePrimaryCtxRetain, void **, int)(&it->context, handle);
  unlockCuda();
  if (!error)
    error = CUDA(kCuCtxPushCurrent, void *)(it->context);
  if (error)
    return failOnce(cuda, "the device has no context", error);
  *isPushed = 1;
  return kEntryOk;
}

/* Loads the kernels if necessary and launches those of the call. */
static int32_t runCuda(struct CudaCall *cuda, const struct CudaImage *images,
                       int64_t numImages) {
  struct Call *call = cuda->gpu.call;
  int isPushed;
  int32_t code = openCuda(call);
  if (!code)
    code = enterContext(cuda, &isPushed);
  if (code)
    return code;
  /* CU_STREAM_CAPTURE_MODE_RELAXED allows loading kernels while a stream is
   * being captured. */
  int mode = 2;
  CUDA(kCuThreadExchangeStreamCaptureMode, int *)(&mode);
  do {
    cuda->isRejected = 0;
    cuda->gpu.code = kEntryOk;
    cuda->gpu.usedBytes = 0;
    if (!prepareDevice(cuda, images, numImages))
      runGpu(&cuda->gpu);
  } while (cuda->isRejected);
  CUDA(kCuThreadExchangeStreamCaptureMode, int *)(&mode);
  void *old;
  if (isPushed)
    CUDA(kCuCtxPopCurrent, void **)(&old);
  return cuda->gpu.code;
}

/* Sets *device to the device of the tensors. Fails if they are on several. */
static int32_t findDevice(struct Call *call, const int64_t *arguments,
                          int32_t *device) {
  const struct Description *description = call->description;
  *device = -1;
  for (int64_t i = 0; i < getNumArguments(description); ++i) {
    const struct PosencDlTensor *tensor =
        (const struct PosencDlTensor *)arguments[i];
    if (!hasElements(&description->arguments[i]))
      continue;
    if (*device < 0)
      *device = tensor->deviceId;
    if (tensor->deviceId != *device)
      return fail(call, kEntryDevice,
                  "%n is on device %d, another one on device %d",
                  VALUES(i, tensor->deviceId, *device));
  }
  if (*device < 0 || *device >= kMaxCudaDevices)
    return fail(call, kEntryDevice, "there is no CUDA device %d",
                VALUES(*device));
  return kEntryOk;
}

/* Runs a call whose arguments are DLTensor pointers and scalars. */
static int32_t callCuda(struct Call *call, const int64_t *arguments,
                        void *stream, const struct CudaImage *images,
                        int64_t numImages) {
  struct CudaCall cuda = {
      {call, kEntryOk, 0, 0, launchOnCuda, encodeMap, NULL, 0, 0},
      stream,
      0,
      0,
      NULL};
  int64_t outputBytes;
  int32_t code = bindArguments(call, arguments);
  if (!code)
    code = findDevice(call, arguments, &cuda.device);
  if (!code)
    code = checkMemory(call, &outputBytes);
  if (code || outputBytes == 0)
    return code;
  if (call->description->hasWorkspace)
    code = bindDeviceWorkspace(&cuda.gpu);
  return code ? code : runCuda(&cuda, images, numImages);
}

int32_t launchCuda(const struct Description *description,
                   const int64_t *arguments, int64_t *words, void *stream,
                   char *message, size_t size, const struct CudaImage *images,
                   int64_t numImages) __asm__("posenc.launch_cuda");

/* As launchTensors, for tensors on a GPU. Enqueues the kernels in the stream.
 */
int32_t launchCuda(const struct Description *description,
                   const int64_t *arguments, int64_t *words, void *stream,
                   char *message, size_t size, const struct CudaImage *images,
                   int64_t numImages) {
  struct Call call = {description, words,   message, size,
                      0,           kDLCUDA, NULL,    NULL};
  if (message && size > 0)
    *message = 0;
  return callCuda(&call, arguments, stream, images, numImages);
}

#endif
