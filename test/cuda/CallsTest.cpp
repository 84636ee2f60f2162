//===- CallsTest.cpp - streams, graphs, contexts and errors of CUDA calls -===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"

#include "posenc/runtime/cuda.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

using namespace posenc;
using namespace posenc::test;

// The functions of TVM FFI that kernel libraries call.
static void *ffiStream;
static std::vector<std::pair<int32_t, int32_t>> ffiDevices;
static std::string ffiError;
extern "C" {
__attribute__((visibility("default"))) void *
TVMFFIEnvGetStream(int32_t deviceType, int32_t deviceId) {
  ffiDevices.push_back({deviceType, deviceId});
  return ffiStream;
}
__attribute__((visibility("default"))) void
TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) {
  ffiError = std::string(kind) + ": " + message;
}
}

namespace {

class CudaCalls : public CudaTest {
protected:
  // Returns the addresses of the tensors on the device, or on the host.
  std::vector<uint64_t> pass(std::vector<Buffer *> buffers,
                             bool isHost = false) {
    std::vector<uint64_t> words;
    for (Buffer *buffer : buffers)
      words.push_back(reinterpret_cast<uintptr_t>(isHost ? &buffer->host
                                                         : &buffer->device));
    return words;
  }
  std::mt19937_64 random{3};
};

} // namespace

TEST_F(CudaCalls, GraphCapture) {
  Buffer x(POSENC_F32, {2, 3, 3, 6}), p(POSENC_I64, {2, 3});
  x.fill(random);
  p.fill(random);
  x.upload();
  p.upload();
  void *stream = nullptr, *graph = nullptr, *executable = nullptr;
  cuda("cuStreamCreate", &stream, 1u);
  // The first call on a device loads the kernels, even during a capture.
  cuda("cuStreamBeginCapture_v2", stream, 0);
  EXPECT_EQ(call("odd", "_cuda", pass({&x, &p, &x}), stream), 0) << message;
  cuda("cuStreamEndCapture", stream, &graph);
  cuda("cuGraphInstantiateWithFlags", &executable, graph, 0ull);
  // Nothing has run yet.
  x.compare("before");
  for (int i = 0; i < 3; ++i) {
    cuda("cuGraphLaunch", executable, stream);
    cuda("cuStreamSynchronize", stream);
    EXPECT_EQ(call("odd", "_dl", pass({&x, &p, &x}, /*isHost=*/true)), 0);
    x.compare("launch");
  }
  cuda("cuGraphExecDestroy", executable);
  cuda("cuGraphDestroy", graph);
  cuda("cuStreamDestroy_v2", stream);
}

// Intermediate tensors are in the workspace. A call and the launches of a graph
// that captured it allocate nothing and wait for nothing.
TEST_F(CudaCalls, Workspace) {
  Buffer x(POSENC_BF16, {7, 4, 16}), p(POSENC_I64, {7}),
      o(POSENC_BF16, {7, 4, 16});
  for (Buffer *buffer : {&x, &p}) {
    buffer->fill(random);
    buffer->upload();
  }
  EXPECT_EQ(call("between", "_dl", pass({&x, &p, &o}, /*isHost=*/true)), 0);
  // One tensor of 896 bytes, and padding for an address with any alignment.
  EXPECT_EQ(getWorkspace("between", {7}), 1024 + 255);
  Buffer memory(POSENC_I8, {1024 + 255 + 3});
  auto expectNoMemory = [&] {
    for (const std::string &line : readLog(""))
      EXPECT_TRUE(line.rfind("allocate", 0) && line.rfind("release", 0))
          << line;
  };
  readLog("");
  for (uint64_t misalignment : {0, 1, 3}) {
    workspace = memory.getAddress() + misalignment;
    cuda("cuMemsetD8_v2", o.getAddress(), (unsigned char)0, o.bytes.size());
    EXPECT_EQ(call("between", "_cuda", pass({&x, &p, &o})), 0) << message;
    expectNoMemory();
    o.compare("called");
  }

  void *stream = nullptr, *graph = nullptr, *executable = nullptr;
  size_t numNodes = 0;
  cuda("cuStreamCreate", &stream, 1u);
  cuda("cuStreamBeginCapture_v2", stream, 0);
  EXPECT_EQ(call("between", "_cuda", pass({&x, &p, &o}), stream), 0) << message;
  cuda("cuStreamEndCapture", stream, &graph);
  // The launches of both rotations, and nothing else.
  cuda("cuGraphGetNodes", graph, (void **)nullptr, &numNodes);
  EXPECT_EQ(numNodes, 2u);
  cuda("cuGraphInstantiateWithFlags", &executable, graph, 0ull);
  for (int i = 0; i < 2; ++i) {
    x.fill(random);
    x.upload();
    EXPECT_EQ(call("between", "_dl", pass({&x, &p, &o}, /*isHost=*/true)), 0);
    cuda("cuGraphLaunch", executable, stream);
    cuda("cuStreamSynchronize", stream);
    expectNoMemory();
    o.compare("graph");
  }
  cuda("cuGraphExecDestroy", executable);
  cuda("cuGraphDestroy", graph);
  cuda("cuStreamDestroy_v2", stream);
}

TEST_F(CudaCalls, WorkspaceIsChecked) {
  Buffer x(POSENC_BF16, {7, 4, 16}), p(POSENC_I64, {7}),
      o(POSENC_BF16, {7, 4, 16});
  readLog("");
  auto refuse = [&](uint64_t address, int32_t code, const char *text) {
    workspace = address;
    EXPECT_EQ(call("between", "_cuda", pass({&x, &p, &o})), code);
    EXPECT_EQ(message, text);
    EXPECT_TRUE(readLog("launch").empty());
  };
  refuse(0, 1, "between: the workspace is NULL, expected 1279 bytes");
  refuse(x.getAddress() + 895, 3, "between: the workspace overlaps x");
  refuse(~uint64_t{0} - 1000, 2,
         "between: the size of the workspace exceeds the address space");
  // Calls without elements need none, and sizes that overflow have none.
  EXPECT_EQ(getWorkspace("between", {0}), 0);
  EXPECT_EQ(getWorkspace("between", {-1}), -1);
  EXPECT_EQ(getWorkspace("between", {int64_t{1} << 57}), -1);
  EXPECT_EQ(getWorkspace("between", {int64_t{1} << 54}),
            (int64_t{1} << 61) + 255);
  // Without intermediate tensors there is no such function.
  EXPECT_EQ(getWorkspace("odd", {2, 3}), std::nullopt);
}

// The entry point of TVM FFI runs where the first tensor is, in the stream that
// TVM FFI has for that device.
TEST_F(CudaCalls, TvmFfi) {
  // TVMFFIAny; type 7 is a pointer to a DLTensor, and 0 is None.
  struct Any {
    int32_t type = 0, padding = 0;
    void *value = nullptr;
  };
  auto callFfi = [](const std::string &name, std::vector<Tensor *> tensors) {
    void *library = dlopen(POSENC_CUDA_FORMS, RTLD_NOW | RTLD_LOCAL);
    using Entry = int32_t (*)(void *, const Any *, int32_t, Any *);
    auto entry =
        reinterpret_cast<Entry>(dlsym(library, ("__tvm_ffi_" + name).c_str()));
    std::vector<Any> arguments;
    for (Tensor *tensor : tensors)
      arguments.push_back(tensor ? Any{7, 0, tensor} : Any());
    Any result{5, 0, nullptr};
    ffiError.clear();
    int32_t code = entry(nullptr, arguments.data(), arguments.size(), &result);
    EXPECT_EQ(result.type, code ? 5 : 0);
    return code;
  };
  Buffer x(POSENC_BF16, {7, 4, 16}), p(POSENC_I64, {7}),
      o(POSENC_BF16, {7, 4, 16}), memory(POSENC_I8, {1024 + 255});
  for (Buffer *buffer : {&x, &p}) {
    buffer->fill(random);
    buffer->upload();
  }
  for (Tensor *tensor : {&memory.host, &memory.device})
    tensor->code = 1; // an unsigned integer
  EXPECT_EQ(callFfi("forms_between", {&x.host, &p.host, &o.host}), 0)
      << ffiError;
  EXPECT_TRUE(ffiDevices.empty());

  void *graph = nullptr, *executable = nullptr;
  cuda("cuStreamCreate", &ffiStream, 1u);
  cuda("cuStreamBeginCapture_v2", ffiStream, 0);
  EXPECT_EQ(callFfi("forms_between",
                    {&x.device, &p.device, &o.device, &memory.device}),
            0)
      << ffiError;
  EXPECT_EQ(ffiDevices,
            (std::vector<std::pair<int32_t, int32_t>>{{/*kDLCUDA=*/2, 0}}));
  cuda("cuStreamEndCapture", ffiStream, &graph);
  cuda("cuGraphInstantiateWithFlags", &executable, graph, 0ull);
  cuda("cuGraphLaunch", executable, ffiStream);
  o.compare("graph");
  cuda("cuGraphExecDestroy", executable);
  cuda("cuGraphDestroy", graph);
  cuda("cuStreamDestroy_v2", std::exchange(ffiStream, nullptr));

  auto refuse = [&](std::vector<Tensor *> tensors, const char *text) {
    EXPECT_EQ(callFfi("forms_between", std::move(tensors)), -1);
    EXPECT_EQ(ffiError, text);
  };
  refuse({&x.device, &p.host, &o.device, &memory.device},
         "ValueError: between: p is on a device of type 1, expected CUDA, type "
         "2");
  refuse({&x.host, &p.device, &o.host},
         "ValueError: between: p is on a device of type 2, expected the CPU, "
         "type 1");
  refuse({&x.device, &p.device, &o.device},
         "TypeError: between: 3 arguments, expected 4");
  refuse({&x.device, &p.device, &o.device, nullptr},
         "ValueError: between: the workspace has 0 bytes, expected 1279");
  refuse(
      {&x.device, &p.device, &o.device, &memory.host},
      "ValueError: between: the workspace is on a device of type 1, expected "
      "CUDA, type 2");
  --*memory.device.shape;
  refuse({&x.device, &p.device, &o.device, &memory.device},
         "ValueError: between: the workspace has 1278 bytes, expected 1279");
}

static int32_t refusal;

static int32_t refuse(const void *, const void *, void *, char *message,
                      size_t size) {
  std::snprintf(message, size, "f: refused");
  return refusal;
}

// posenc_cuda_call() maps the status codes of entry points to posenc_status.
TEST_F(CudaCalls, StatusCodes) {
  std::string error, tensor = R"("kind":"tensor","dtype":"f32","shape":[2]})";
  posenc_symbol_lookup lookup = [](void *, const char *symbol) -> void * {
    return symbol == std::string("m_f_cuda") ? reinterpret_cast<void *>(refuse)
                                             : nullptr;
  };
  runtime::Library made = runtime::Library::fromSymbols(
      R"({"posenc":"0.1.0","abi":1,"prefix":"m","llvm":"22","targets":[],)"
      R"("functions":[{"name":"f","cuda":"m_f_cuda","inputs":[{"name":"x",)" +
          tensor + R"(],"outputs":[{"name":"y",)" + tensor +
          R"(],"sizes":[]}]})",
      lookup, nullptr, error);
  ASSERT_TRUE(made) << error;
  float x[2] = {}, y[2] = {};
  int64_t shape[] = {2};
  posenc_value in = runtime::tensor({x, POSENC_F32, 1, shape}),
               out = runtime::tensor({y, POSENC_F32, 1, shape});
  const posenc_function *function = made.function(0).get();
  auto callIt = [&](int32_t code) {
    refusal = code;
    return posenc_cuda_call(function, 0, &in, 1, &out, 1);
  };
  for (int32_t code : {2, 7, 8})
    EXPECT_EQ(callIt(code), POSENC_SHAPE_MISMATCH) << code;
  EXPECT_STREQ(posenc_last_error(), "f: refused");
  for (int32_t code : {1, 3, 5, 9, 10, 12, 16})
    EXPECT_EQ(callIt(code), POSENC_INVALID_ARGUMENT) << code;
  EXPECT_EQ(callIt(6), POSENC_DTYPE_MISMATCH);
  for (int32_t code : {4, 13})
    EXPECT_EQ(callIt(code), POSENC_UNSUPPORTED) << code;
  EXPECT_EQ(callIt(15), POSENC_BAD_LIBRARY);
  for (int32_t code : {14, 17, -1})
    EXPECT_EQ(callIt(code), POSENC_KERNEL_FAILED) << code;
  EXPECT_EQ(callIt(0), POSENC_OK) << posenc_last_error();
}

// The fake driver detects uses of freed memory and graphs that leak.
TEST_F(CudaCalls, LifetimeOfStreamOrderedMemory) {
  unsigned long long address = 0;
  void *stream = nullptr;
  uint32_t word = 7;
  cuda("cuStreamCreate", &stream, 1u);
  cuda("cuMemAllocAsync", &address, sizeof(word), stream);
  cuda("cuMemcpyHtoD_v2", address, (const void *)&word, sizeof(word));
  cuda("cuMemFreeAsync", address, stream);
  EXPECT_EQ(tryCuda("cuMemcpyDtoH_v2", (void *)&word, address, sizeof(word)),
            1);
  EXPECT_EQ(tryCuda("cuMemFreeAsync", address, stream), 1);
  EXPECT_EQ(tryCuda("cuMemAllocAsync", &address, size_t(1) << 40, stream), 2);

  // A graph that does not free its memory can be launched only once.
  void *graph = nullptr, *executable = nullptr;
  cuda("cuStreamBeginCapture_v2", stream, 0);
  cuda("cuMemAllocAsync", &address, sizeof(word), stream);
  cuda("cuStreamEndCapture", stream, &graph);
  cuda("cuGraphInstantiateWithFlags", &executable, graph, 0ull);
  EXPECT_EQ(
      tryCuda("cuMemcpyHtoD_v2", address, (const void *)&word, sizeof(word)),
      1);
  EXPECT_EQ(tryCuda("cuGraphLaunch", executable, stream), 0);
  EXPECT_EQ(tryCuda("cuGraphLaunch", executable, stream), 1);
  cuda("cuMemFreeAsync", address, stream);
  cuda("cuGraphExecDestroy", executable);
  cuda("cuGraphDestroy", graph);
  cuda("cuStreamDestroy_v2", stream);
}

TEST_F(CudaCalls, MemoryOfTheRuntime) {
  void *address = this;
  EXPECT_EQ(posenc_cuda_allocate(0, 0, &address), POSENC_OK);
  EXPECT_EQ(address, nullptr);
  // No context needs to be current, and none is afterwards.
  void *context = nullptr, *now = this;
  cuda("cuCtxGetCurrent", &context);
  cuda("cuCtxSetCurrent", (void *)nullptr);
  ASSERT_EQ(posenc_cuda_allocate(0, sizeof(uint64_t), &address), POSENC_OK);
  uint64_t word = 7, copy = 0;
  EXPECT_EQ(posenc_cuda_copy_to_device(0, address, &word, sizeof(word)),
            POSENC_OK);
  EXPECT_EQ(posenc_cuda_copy_to_host(0, &copy, address, sizeof(copy)),
            POSENC_OK);
  EXPECT_EQ(copy, word);
  cuda("cuCtxGetCurrent", &now);
  EXPECT_EQ(now, nullptr);
  cuda("cuCtxSetCurrent", context);

  EXPECT_EQ(posenc_cuda_copy_to_host(0, &copy, nullptr, 8),
            POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_cuda_copy_to_device(7, address, &word, 8), POSENC_NOT_FOUND);
  EXPECT_STREQ(posenc_last_error(),
               "there is no CUDA device 7: there are 2 devices");
  uint64_t words[2] = {};
  EXPECT_EQ(posenc_cuda_copy_to_host(0, words, address, sizeof(words)),
            POSENC_KERNEL_FAILED);
  EXPECT_EQ(posenc_cuda_allocate(0, size_t(1) << 40, &now),
            POSENC_OUT_OF_MEMORY);
  EXPECT_EQ(now, nullptr);
  EXPECT_EQ(posenc_cuda_allocate(0, 8, nullptr), POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_cuda_free(0, address), POSENC_OK);
  EXPECT_EQ(posenc_cuda_free(0, nullptr), POSENC_OK);
  EXPECT_EQ(posenc_cuda_free(0, address), POSENC_KERNEL_FAILED);
  EXPECT_EQ(posenc_cuda_copy_to_host(0, &copy, address, 8),
            POSENC_KERNEL_FAILED);
}

TEST_F(CudaCalls, NeedNoCurrentContext) {
  Buffer x(POSENC_F32, {2, 3, 3, 6}), p(POSENC_I64, {2, 3});
  x.fill(random);
  p.fill(random);
  x.upload();
  p.upload();
  void *context = nullptr, *now = this;
  cuda("cuCtxGetCurrent", &context);
  cuda("cuCtxSetCurrent", (void *)nullptr);
  EXPECT_EQ(call("odd", "_cuda", pass({&x, &p, &x})), 0) << message;
  // The call leaves no context current.
  cuda("cuCtxGetCurrent", &now);
  EXPECT_EQ(now, nullptr);
  cuda("cuCtxSetCurrent", context);
  EXPECT_EQ(call("odd", "_dl", pass({&x, &p, &x}, /*isHost=*/true)), 0);
  x.compare("x");
}

TEST_F(CudaCalls, TensorsAreChecked) {
  Buffer x(POSENC_F32, {2, 3, 3, 6}), p(POSENC_I64, {2, 3}),
      o(POSENC_F32, {2, 3, 3, 6}), wrong(POSENC_F32, {2, 4, 3, 6});
  for (Buffer *buffer : {&x, &p, &o})
    buffer->upload();
  EXPECT_EQ(call("odd", "_cuda", pass({&x, &p, &o}, /*isHost=*/true)), 5);
  EXPECT_NE(message.find("CUDA"), std::string::npos) << message;
  EXPECT_EQ(call("odd", "_dl", pass({&x, &p, &o})), 5);
  EXPECT_EQ(call("odd", "_cuda", pass({&x, &p, &wrong})), 8);
  for (Buffer *buffer : {&x, &p, &o})
    buffer->device.deviceId = 2;
  EXPECT_EQ(call("odd", "_cuda", pass({&x, &p, &o})), 14);
  EXPECT_NE(message.find("invalid device ordinal"), std::string::npos)
      << message;
}

// A kernel fault is reported by the next call. It is sticky, so the test runs
// in its own process.
TEST_F(CudaCalls, DeviceFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto fail = [&] {
    Buffer x(POSENC_F32, {2, 3, 3, 6}), p(POSENC_I64, {2, 3}),
        o(POSENC_F32, {2, 3, 3, 6});
    p.upload();
    x.upload();
    // The view is shifted by a row, so that its last row is out of bounds.
    x.device.byteOffset = 4 * 18;
    bool isGood = call("odd", "_cuda", pass({&x, &p, &o})) == 0 &&
                  tryCuda("cuCtxSynchronize") == 700 &&
                  call("odd", "_cuda", pass({&x, &p, &o})) == 14;
    std::fprintf(stderr, "%s\n", message.c_str());
    _exit(isGood ? 7 : 8);
  };
  EXPECT_EXIT(fail(), testing::ExitedWithCode(7),
              "byte 432 of 'device memory', which has 432(.|\n)*an illegal "
              "memory access");
}
