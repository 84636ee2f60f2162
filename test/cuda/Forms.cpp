//===- Forms.cpp - calls compiled kernels on the fake CUDA driver ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

using namespace posenc;
using namespace posenc::test;

// Returns the path of the log of the fake driver. Child processes of death
// tests inherit the path from their parent.
static std::string getLogPath() {
  const char *name = "POSENC_FAKE_CUDA_LOG";
  std::string path =
      testing::TempDir() + "posenc-cuda-log-" + std::to_string(getpid());
  setenv(name, path.c_str(), /*overwrite=*/0);
  return getenv(name);
}

// Opens the fake driver. Libraries that open libcuda.so.1 later get the same
// one.
static void *openDriver() {
  getLogPath();
  static void *driver = dlopen(POSENC_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL);
  return driver;
}
/// Returns the handle of a library, which is never closed.
static void *openLibrary(const std::string &path = POSENC_CUDA_FORMS) {
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

void *CudaTest::findCuda(const char *name) {
  void *function = dlsym(openDriver(), name);
  if (!function)
    ADD_FAILURE() << "the fake driver has no " << name;
  return function;
}

Buffer::Buffer(posenc_dtype dtype, std::vector<int64_t> sizes,
               const Layout &layout)
    : dtype(dtype), shape(std::move(sizes)), strides(shape.size()) {
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride = stride * shape[dim] + (dim + 1 == shape.size() ? layout.after : 0);
  }
  size_t size = posenc_dtype_size(dtype);
  bytes.resize((layout.before + stride + layout.after) * size);
  CudaTest::tryCuda("cuMemAlloc_v2", &address,
                    std::max(bytes.size(), size_t(1)));
  host.ndim = shape.size();
  host.code = dtype == POSENC_BF16 ? 4 : dtype >= POSENC_I64 ? 0 : 2;
  host.bits = 8 * size;
  host.shape = shape.data();
  host.strides = strides.data();
  host.byteOffset = layout.before * size;
  if (layout.isReversed && shape.size() > 1 && shape[0] > 0) {
    host.byteOffset += (shape[0] - 1) * strides[0] * size;
    strides[0] = -strides[0];
  }
  device = host;
  device.deviceType = 2;
  host.data = bytes.data();
  device.data = reinterpret_cast<void *>(address);
}

Buffer::~Buffer() { CudaTest::tryCuda("cuMemFree_v2", address); }

void Buffer::writeElement(int64_t index, std::mt19937_64 &random) {
  uint8_t *at = bytes.data() + index * posenc_dtype_size(dtype);
  auto put = [at](auto value) { std::memcpy(at, &value, sizeof(value)); };
  // At most 24 significant bits, which f32 and f64 represent exactly.
  float value = std::ldexp(float(int32_t(random()) >> 8), -22);
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const int64_t extremes[] = {0x7fffffff, -0x7fffffff - 1, 0, -1, 131071};
  bool isExtreme = random() % 4 == 0;
  int64_t position =
      isExtreme ? extremes[random() % 5] : int64_t(int32_t(random()));
  switch (dtype) {
  case POSENC_F64:
    return put(double(value) + std::ldexp(double(random()), -90));
  case POSENC_F32:
    return put(value);
  case POSENC_F16:
    // Magnitudes from 2^-3 to 2^2.
    return put(uint16_t((random() & 0x8fff) + 0x3000));
  case POSENC_BF16:
    return put(uint16_t(bits >> 16));
  case POSENC_I32:
    return put(int32_t(position));
  default:
    return put(position);
  }
}

void Buffer::fill(std::mt19937_64 &random) {
  int64_t count = bytes.size() / posenc_dtype_size(dtype);
  for (int64_t i = 0; i < count; ++i)
    writeElement(i, random);
}

void Buffer::upload() {
  CudaTest::tryCuda("cuMemcpyHtoD_v2", address,
                    static_cast<const void *>(bytes.data()), bytes.size());
}

void Buffer::compare(const std::string &name) {
  std::vector<uint8_t> found(bytes.size());
  ASSERT_EQ(CudaTest::tryCuda("cuMemcpyDtoH_v2",
                              static_cast<void *>(found.data()), address,
                              found.size()),
            0)
      << name;
  size_t different = 0, first = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    if (found[i] == bytes[i])
      continue;
    ++different;
    first = i;
  }
  EXPECT_EQ(different, 0u) << name << ": of " << bytes.size()
                           << " bytes; the first is byte " << first;
}

void CudaTest::SetUp() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("fma"))
    GTEST_SKIP() << "the expected results need a CPU with FMA";
#endif
  ASSERT_TRUE(openDriver()) << dlerror();
  ASSERT_TRUE(openLibrary()) << dlerror();
  std::string error;
  library = runtime::Library::open(POSENC_CUDA_FORMS, error);
  ASSERT_TRUE(library) << error;
  void *context = nullptr;
  cuda("cuInit", 0u);
  cuda("cuDevicePrimaryCtxRetain", &context, 0);
  cuda("cuCtxSetCurrent", context);
}

std::vector<std::string> CudaTest::readLog(const std::string &word) {
  std::vector<std::string> lines;
  std::ifstream file(getLogPath());
  for (std::string line; std::getline(file, line);)
    if (word.empty() || line.compare(0, word.size() + 1, word + " ") == 0)
      lines.push_back(line);
  file.close();
  std::remove(getLogPath().c_str());
  return lines;
}

template <size_t... I>
static int32_t callWith(void *function, const std::vector<uint64_t> &words,
                        std::index_sequence<I...>) {
  return reinterpret_cast<int32_t (*)(decltype(uint64_t(I))...)>(function)(
      words[I]...);
}

int32_t CudaTest::call(const std::string &function, const std::string &suffix,
                       const std::vector<uint64_t> &arguments, void *stream,
                       const std::string &path) {
  // The file name is the prefix of the symbols.
  std::string file = path.empty() ? POSENC_CUDA_FORMS : path;
  size_t begin = file.rfind('/') + 1;
  std::string prefix = file.substr(begin, file.rfind('.') - begin);
  void *found =
      dlsym(openLibrary(file), (prefix + "_" + function + suffix).c_str());
  if (!found) {
    ADD_FAILURE() << "the library has no function " << function << suffix;
    return -1;
  }
  message.assign(256, '\0');
  std::vector<uint64_t> words = arguments;
  // The tensors are small.
  alignas(64) static char hostWorkspace[1 << 24];
  bool isOnDevice = suffix == "_cuda";
  if (dlsym(openLibrary(file), (prefix + "_" + function +
                                (isOnDevice ? "_cuda" : "") + "_workspace")
                                   .c_str()))
    words.push_back(isOnDevice ? workspace
                               : reinterpret_cast<uintptr_t>(hostWorkspace));
  if (isOnDevice)
    words.push_back(reinterpret_cast<uintptr_t>(stream));
  words.push_back(reinterpret_cast<uintptr_t>(message.data()));
  words.push_back(message.size());
  int32_t result = -1;
  switch (words.size()) {
#define CASE(N)                                                                \
  case N:                                                                      \
    result = callWith(found, words, std::make_index_sequence<N>());            \
    break;
    CASE(4)
    CASE(5)
    CASE(6)
    CASE(7)
    CASE(8)
    CASE(9)
    CASE(10)
#undef CASE
  default:
    ADD_FAILURE() << words.size() << " arguments";
  }
  message.resize(std::strlen(message.c_str()));
  return result;
}

std::optional<int64_t>
CudaTest::getWorkspace(const std::string &function,
                       const std::vector<int64_t> &sizes) {
  void *found =
      dlsym(openLibrary(), ("forms_" + function + "_cuda_workspace").c_str());
  if (!found)
    return std::nullopt;
  // Further arguments are ignored.
  int64_t four[4] = {};
  std::copy(sizes.begin(), sizes.end(), four);
  using Measure = int64_t (*)(int64_t, int64_t, int64_t, int64_t);
  return reinterpret_cast<Measure>(found)(four[0], four[1], four[2], four[3]);
}

void CudaTest::check(const std::string &name, const std::vector<int64_t> &sizes,
                     const Layout &layout, bool isInPlace) {
  SCOPED_TRACE(name);
  std::string error;
  runtime::Function function = library.find(name, error);
  ASSERT_TRUE(function) << error;
  std::mt19937_64 random(7);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<uint64_t> host, device;
  // The values of the dynamic sizes, in order of their first appearance.
  std::map<std::string, int64_t> named;
  auto add = [&](const runtime::Argument &argument) -> Buffer & {
    std::vector<int64_t> shape;
    for (int32_t dim = 0; dim < argument.rank(); ++dim) {
      std::string size = argument.sizeName(dim);
      if (!size.empty() && !named.count(size))
        named.emplace(size, sizes.at(named.size()));
      shape.push_back(size.empty() ? argument.size(dim) : named.at(size));
    }
    buffers.push_back(
        std::make_unique<Buffer>(argument.dtype(), shape, layout));
    buffers.back()->fill(random);
    return *buffers.back();
  };
  auto pass = [&](Buffer &buffer) {
    host.push_back(reinterpret_cast<uintptr_t>(&buffer.host));
    device.push_back(reinterpret_cast<uintptr_t>(&buffer.device));
  };
  std::vector<Buffer *> inputs;
  for (size_t i = 0; i < function.numInputs(); ++i) {
    if (function.input(i).isScalar()) {
      host.push_back(-123456);
      device.push_back(-123456);
      inputs.push_back(nullptr);
      continue;
    }
    Buffer &buffer = add(function.input(i));
    buffer.upload();
    pass(buffer);
    inputs.push_back(&buffer);
  }
  bool hasGaps = layout.before || layout.after;
  for (size_t i = 0; i < function.numOutputs(); ++i) {
    if (isInPlace) {
      pass(*inputs[i]);
      continue;
    }
    Buffer &buffer = add(function.output(i));
    // Otherwise the output stays uninitialized: the kernel must write all of it
    // and read none.
    if (hasGaps)
      buffer.upload();
    pass(buffer);
  }
  std::vector<int64_t> values(sizes.begin(), sizes.begin() + named.size());
  // Accesses beyond the workspace are faults.
  Buffer memory(POSENC_I8, {getWorkspace(name, values).value_or(0)});
  workspace = memory.getAddress();
  EXPECT_EQ(call(name, "_dl", host), 0) << message;
  EXPECT_EQ(call(name, "_cuda", device), 0) << message;
  cuda("cuCtxSynchronize");
  for (size_t i = 0; i < buffers.size(); ++i)
    buffers[i]->compare("tensor " + std::to_string(i));
}
