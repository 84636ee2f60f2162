//===- CallsTest.cpp - streams, graphs, contexts and errors of CUDA calls -===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"

#include <algorithm>

using namespace posenc;
using namespace posenc::test;

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

// Each call and each launch of a graph allocates intermediate tensors in stream
// order and releases them.
TEST_F(CudaCalls, StreamOrderedAllocation) {
  Buffer x(POSENC_BF16, {7, 4, 16}), p(POSENC_I64, {7}),
      o(POSENC_BF16, {7, 4, 16});
  for (Buffer *buffer : {&x, &p}) {
    buffer->fill(random);
    buffer->upload();
  }
  EXPECT_EQ(call("between", "_dl", pass({&x, &p, &o}, /*isHost=*/true)), 0);
  void *stream = nullptr, *graph = nullptr, *executable = nullptr;
  cuda("cuStreamCreate", &stream, 1u);
  auto expectMemory = [&](size_t times) {
    std::vector<std::string> lines = readLog("");
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "allocate 896"), times);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "release"), times);
    if (times)
      EXPECT_EQ(lines.back(), "release");
  };
  readLog("");
  EXPECT_EQ(call("between", "_cuda", pass({&x, &p, &o}), stream), 0) << message;
  expectMemory(1);
  o.compare("called");

  cuda("cuStreamBeginCapture_v2", stream, 0);
  EXPECT_EQ(call("between", "_cuda", pass({&x, &p, &o}), stream), 0) << message;
  cuda("cuStreamEndCapture", stream, &graph);
  cuda("cuGraphInstantiateWithFlags", &executable, graph, 0ull);
  expectMemory(0);
  for (int i = 0; i < 2; ++i) {
    cuda("cuMemsetD8_v2", o.getAddress(), (unsigned char)0, o.bytes.size());
    cuda("cuGraphLaunch", executable, stream);
    cuda("cuStreamSynchronize", stream);
    expectMemory(1);
    o.compare("graph");
  }
  cuda("cuGraphExecDestroy", executable);
  cuda("cuGraphDestroy", graph);
  cuda("cuStreamDestroy_v2", stream);
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
  for (int32_t code : {1, 3, 5, 9, 10, 12})
    EXPECT_EQ(callIt(code), POSENC_INVALID_ARGUMENT) << code;
  EXPECT_EQ(callIt(6), POSENC_DTYPE_MISMATCH);
  for (int32_t code : {4, 13})
    EXPECT_EQ(callIt(code), POSENC_UNSUPPORTED) << code;
  for (int32_t code : {14, 15, -1})
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
  o.device.deviceId = 1;
  EXPECT_EQ(call("odd", "_cuda", pass({&x, &p, &o})), 5);
  for (Buffer *buffer : {&x, &p, &o})
    buffer->device.deviceId = 1;
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
