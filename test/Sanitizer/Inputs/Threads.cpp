//===- Threads.cpp - concurrent calls under the thread sanitizer ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PosencThreads LIBRARY COPY FOLDER [MODE]
//
// Opens a library of model.json from several threads, calls its functions at
// the same time, with the parallel loops of all calls in one pool, and compares
// the results with those of one thread. COPY is another file with the same
// library, which is loaded and unloaded meanwhile; FOLDER is for .npy files.
// main() lists the modes, of which relaxed and alias are faults.
//
//===----------------------------------------------------------------------===//

#include "Pool.h"

#include "posenc/kernel/DlTensor.h"
#include "posenc/runtime/Library.h"
#include "posenc/runtime/npy.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>

using namespace posenc::runtime;
using Shape = std::vector<int64_t>;

static void check(bool condition, const std::string &what) {
  if (condition)
    return;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  std::exit(1);
}

static Array allocate(posenc_dtype dtype, const Shape &shape) {
  Array array;
  std::string error;
  check(Array::allocate(dtype, shape, array, error), error);
  return array;
}

static Array floats(const Shape &shape) {
  Array array = allocate(POSENC_F32, shape);
  uint32_t state = 1;
  for (size_t i = 0; i < array.numElements(); ++i) {
    state = state * 1664525 + 1013904223;
    array.dataAs<float>()[i] = float(int32_t(state)) * 0x1p-31f;
  }
  return array;
}

template <typename T>
static Array integers(posenc_dtype dtype, const Shape &shape,
                      const std::function<T(int64_t)> &value) {
  Array array = allocate(dtype, shape);
  for (size_t i = 0; i < array.numElements(); ++i)
    array.dataAs<T>()[i] = value(int64_t(i));
  return array;
}

static Array indices(const Shape &shape,
                     const std::function<int64_t(int64_t)> &value) {
  return integers<int64_t>(POSENC_I64, shape, value);
}

namespace {
/// A function and its inputs, which all threads share.
struct Case {
  std::string name;
  std::vector<Array> inputs;
};

/// Lets threads go on when all of them have arrived.
class Barrier {
public:
  explicit Barrier(int count) : left(count) {}
  void wait() {
    --left;
    while (left)
      std::this_thread::yield();
  }

private:
  std::atomic<int> left;
};
} // namespace

template <typename... Arrays>
static Case makeCase(std::string name, Arrays... inputs) {
  Case result;
  result.name = std::move(name);
  (result.inputs.push_back(std::move(inputs)), ...);
  return result;
}

/// Calls with enough work for several tasks.
static std::vector<Case> createCases() {
  constexpr int64_t tokens = 300, keys = 400, page = 16;
  auto identity = [](int64_t i) { return i; };
  Shape query{1, tokens, 4, 64}, key{1, tokens, 2, 64}, cache{4, 2, keys, 64};
  Shape pages{32, 2, page, 64}, added{4, 20, 2, 64};
  std::vector<Case> cases;
  cases.push_back(makeCase("rope", floats(query), floats(key),
                           indices({1, tokens}, identity)));
  cases.push_back(makeCase("attention", floats(query), floats(key), floats(key),
                           indices({1, tokens}, identity)));
  cases.push_back(
      makeCase("decode", floats({4, 1, 4, 64}), floats(cache), floats(cache),
               indices({4}, [](int64_t i) { return keys - 100 * i; })));
  cases.push_back(makeCase("append", floats(added), floats(added),
                           indices({4}, [](int64_t i) { return 100 + i; }),
                           floats(cache), floats(cache)));
  cases.push_back(makeCase("attention_paged", floats({tokens, 4, 64}),
                           indices({tokens}, identity), floats(pages),
                           floats(pages),
                           integers<int32_t>(POSENC_I32, {1, 20}, identity),
                           indices({2}, [](int64_t i) { return i * tokens; }),
                           indices({1}, [](int64_t) { return tokens; })));
  return cases;
}

static Library openLibrary(const std::string &path) {
  std::string error;
  Library library = Library::open(path, error);
  check(bool(library), error);
  return library;
}

static void setPool(const Library &library, Pool *pool) {
  check(!posenc_library_set_parallel_for(
            library.get(), pool ? Pool::parallelFor : nullptr, pool),
        "the library takes a pool");
}

static std::vector<Array> call(const Library &library, const Case &problem) {
  std::string error;
  Function function = library.find(problem.name, error);
  check(bool(function), error);
  std::vector<posenc_value> inputs;
  for (const Array &input : problem.inputs)
    inputs.push_back(input.value());
  std::vector<Array> outputs;
  check(function.call(inputs, outputs, error), error);
  // Reads what other threads have written.
  for (const Array &output : outputs)
    for (size_t i = 0; i < output.numElements(); ++i)
      check(std::isfinite(output.dataAs<float>()[i]), problem.name);
  return outputs;
}

static bool isEqual(const Array &left, const Array &right) {
  return left.sizeInBytes() == right.sizeInBytes() &&
         !std::memcmp(left.data(), right.data(), left.sizeInBytes());
}

/// Runs `body(i)` on `count` threads, which begin at the same time.
static void runThreads(int count, const std::function<void(int)> &body) {
  Barrier barrier(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      barrier.wait();
      body(i);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// Uses the parts of the runtime that do not call functions.
static void useRuntime(const std::string &copy, const std::string &folder,
                       int number) {
  std::string name = folder + "/" + std::to_string(number), error;
  posenc_library *none = nullptr;
  check(posenc_library_open(name.c_str(), &none) == POSENC_NOT_FOUND,
        "a missing library");
  check(std::strstr(posenc_last_error(), name.c_str()),
        "each thread has its own error");
  Array written = floats({number + 1, 3}), read;
  check(writeNpy(name + ".npy", written.tensor(), error), error);
  // The threads replace this file at the same time.
  check(writeNpy(folder + "/all.npy", written.tensor(), error), error);
  check(readNpy(name + ".npy", read, error), error);
  check(isEqual(written, read), "a file that was written");
  check(openLibrary(copy).numFunctions() == 5, "the copy");
}

/// Uses everything at the same time.
static void runOnCpu(const std::string &path, const std::string &copy,
                     const std::string &folder) {
  std::vector<Case> cases = createCases();
  Pool pool(3);
  // The first calls, at which the library finds out about the CPU, are made by
  // all threads at the same time.
  Library library = openLibrary(path);
  check(
      !posenc_library_set_parallel_for(library.get(), Pool::parallelFor, &pool),
      "the library takes a pool");
  constexpr int numThreads = 4;
  std::vector<std::vector<Array>> results[numThreads];
  runThreads(numThreads, [&](int number) {
    Library mine = openLibrary(path);
    for (size_t i = 0; i < cases.size(); ++i)
      results[number].push_back(
          call(mine, cases[(i + size_t(number)) % cases.size()]));
    useRuntime(copy, folder, number);
  });
  check(pool.getNumTasks() > 2 * numThreads * int64_t(cases.size()),
        "each call has several tasks");

  setPool(library, nullptr);
  for (size_t i = 0; i < cases.size(); ++i) {
    std::vector<Array> expected = call(library, cases[i]);
    for (size_t number = 0; number < numThreads; ++number) {
      size_t at = (i + cases.size() - number) % cases.size();
      for (size_t j = 0; j < expected.size(); ++j)
        check(isEqual(results[number][at][j], expected[j]), cases[i].name);
    }
  }
}

/// Makes the first calls of `rope`, without a pool.
static void callFirst(const std::string &path) {
  Case problem = std::move(createCases().front());
  runThreads(4, [&](int) { call(openLibrary(path), problem); });
}

/// Calls `rope` with a pool that does not order its tasks. The sanitizer
/// forgets accesses that a thread made long ago, so this is the only call.
static void callRelaxed(const std::string &path) {
  Pool pool(2, /*isRelaxed=*/true);
  Library library = openLibrary(path);
  setPool(library, &pool);
  call(library, createCases().front());
}

/// Two threads call `rope` with the same outputs.
static void callAliased(const std::string &path) {
  Library library = openLibrary(path);
  Case problem = std::move(createCases().front());
  std::string error;
  Function function = library.find(problem.name, error);
  std::vector<posenc_value> inputs;
  for (const Array &input : problem.inputs)
    inputs.push_back(input.value());
  Array q = floats(problem.inputs[0].shape());
  Array k = floats(problem.inputs[1].shape());
  runThreads(2, [&](int) {
    std::string error;
    check(function.call(inputs, {q.value(), k.value()}, error), error);
  });
}

static PosencDlTensor describe(const Array &array, uint8_t code, uint8_t bits) {
  return {array.data(), kDLCUDA, 0, int32_t(array.shape().size()),
          code,         bits,    1, array.shape().data(),
          nullptr,      0};
}

/// Makes the first calls of the CUDA entry point of gpu.mlir.
static void runOnCuda(const std::string &path) {
  void *handle = dlopen(path.c_str(), RTLD_NOW);
  check(handle, "the library for CUDA");
  using Entry = int32_t(const PosencDlTensor *, const PosencDlTensor *,
                        const PosencDlTensor *, void *, char *, size_t);
  auto *entry = reinterpret_cast<Entry *>(dlsym(handle, "gpu_sincos_cuda"));
  check(entry, "the entry point for CUDA");
  runThreads(4, [&](int) {
    Array positions = indices({8}, [](int64_t i) { return i; });
    Array cosines = floats({8, 32}), sines = floats({8, 32});
    PosencDlTensor p = describe(positions, kDLInt, 64);
    PosencDlTensor c = describe(cosines, kDLFloat, 32);
    PosencDlTensor s = describe(sines, kDLFloat, 32);
    char error[256] = "";
    for (int i = 0; i < 3; ++i)
      check(!entry(&p, &c, &s, nullptr, error, sizeof(error)), error);
  });
}

int main(int argc, char **argv) {
  check(argc == 4 || argc == 5, "expected LIBRARY COPY FOLDER [MODE]");
  std::string mode = argc == 5 ? argv[4] : "";
  if (mode == "cuda")
    runOnCuda(argv[1]);
  else if (mode == "alias")
    callAliased(argv[1]);
  else if (mode == "first")
    callFirst(argv[1]);
  else if (mode == "relaxed")
    callRelaxed(argv[1]);
  else if (mode.empty())
    runOnCpu(argv[1], argv[2], argv[3]);
  else
    check(false, "there is no mode " + mode);
  std::puts("ok");
  return 0;
}
