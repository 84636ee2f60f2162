//===- BenchKernel.cpp - a compiled function and its arguments --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BenchKernel.h"

#include "CaseInputs.h"
#include "Threads.h"
#include "posenc/Bench/Pairs.h"
#include "posenc/Run/Kernels.h"
#include "posenc/Tools/Compile.h"

#include "Dispatch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <cstring>

using namespace mlir::posenc;
using llvm::StringRef;
using llvm::Twine;
namespace runtime = ::posenc::runtime;

static bool fail(const Twine &message) {
  llvm::errs() << "error: " << message << "\n";
  return false;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static bool writeText(StringRef path, StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (!error) {
    os << text;
    os.close();
    error = os.error();
    os.clear_error();
  }
  return error ? fail("cannot write '" + path + "': " + error.message()) : true;
}

bool BenchKernel::compile(const Case &from, StringRef folder,
                          std::string &path) {
  std::string source = from.path;
  if (!from.module.empty()) {
    source = (folder + "/module.mlir").str();
    if (!writeText(source, from.module))
      return false;
  }
  InputOptions options = from.inputOptions;
  options.kernels = {from.function};
  std::optional<std::vector<SourceFunction>> functions =
      readSource(source, options);
  if (!functions)
    return false;
  for (const SourceFunction &candidate : *functions)
    if (candidate.name == from.function)
      meaning = candidate.meaning;

  path = (folder + "/libbench.so").str();
  std::vector<std::string> arguments = {"posenc-compile", "-o", path,
                                        "--kernels=" + from.function};
  if (!from.target.empty())
    arguments.push_back("--target=" + from.target);
  if (options.dtype)
    arguments.push_back("--dtype=" + *options.dtype);
  if (options.pairing)
    arguments.push_back("--pairing=" + *options.pairing);
  arguments.push_back("--");
  arguments.push_back(source);
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  return compileMain(static_cast<int>(argv.size()), argv.data()) == 0;
}

/// Runs the chunks of a kernel that starts no threads itself on ours.
static void runChunks(void *context, void (*body)(void *arg, int64_t i),
                      void *arg, int64_t n) {
  int threads = getKernelThreads();
  runThreads(threads, [&](int thread) {
    for (int64_t i = n * thread / threads, end = n * (thread + 1) / threads;
         i < end; ++i)
      body(arg, i);
  });
}

bool BenchKernel::load(const Case &from) {
  llvm::SmallString<128> folder;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("posenc-bench", folder))
    return fail("cannot create a temporary folder: " + error.message());
  // Code that is loaded stays when its file is gone.
  llvm::scope_exit cleanUp([&] { llvm::sys::fs::remove_directories(folder); });
  std::string path = from.path, error;
  bool isLibrary = from.module.empty() && isLibraryPath(path);
  if (!isLibrary && !compile(from, folder, path))
    return false;
  library = runtime::Library::open(path, error);
  if (!library)
    return fail(error);
  function = library.find(from.function, error);
  if (!function)
    return fail(error);
  if (!isLibrary)
    return true;
  meaning.family = from.function;
  meaning.variant = "kernel";
  meaning.results.resize(function.numOutputs());
  auto file = llvm::MemoryBuffer::getFile(path);
  bool hasThreads = file && (*file)->getBuffer().contains("libgomp");
  // One without parallel loops runs on one thread, whatever is asked for.
  if (!hasThreads)
    library.setParallelFor(runChunks, nullptr, error);
  return true;
}

std::unique_ptr<BenchKernel> BenchKernel::create(const Case &from) {
  std::unique_ptr<BenchKernel> kernel(new BenchKernel);
  if (!kernel->load(from))
    return nullptr;
  llvm::Error error = kernel->makeInputs(from);
  if (!error)
    error = kernel->makeOutputs(from.inPlace);
  if (error) {
    fail(from.function + ": " + llvm::toString(std::move(error)));
    return nullptr;
  }
  kernel->makeWords();
  return kernel;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

llvm::Error BenchKernel::makeInputs(const Case &from) {
  llvm::Expected<std::vector<Input>> made = [&] {
    if (!from.inputTexts.empty())
      return ::createInputs(function, from.inputTexts);
    return createCaseInputs(from.inputs.empty() ? getDefaultInputs(function)
                                                : from.inputs);
  }();
  if (!made)
    return made.takeError();
  inputs = std::move(*made);
  return llvm::Error::success();
}

/// The input that each output may be, by the metadata.
static std::vector<std::optional<size_t>>
readInPlace(const runtime::Library &library, runtime::Function function) {
  std::vector<std::optional<size_t>> inPlace(function.numOutputs());
  // The runtime has read it before.
  llvm::Expected<llvm::json::Value> metadata =
      llvm::json::parse(library.metadata());
  if (!metadata) {
    llvm::consumeError(metadata.takeError());
    return inPlace;
  }
  const llvm::json::Array *functions =
      metadata->getAsObject()->getArray("functions");
  for (const llvm::json::Value &candidate : *functions) {
    if (candidate.getAsObject()->getString("name") != function.name())
      continue;
    const llvm::json::Array *outputs =
        candidate.getAsObject()->getArray("outputs");
    for (auto [output, number] : llvm::zip(*outputs, inPlace))
      for (size_t i = 0; i < function.numInputs(); ++i)
        if (output.getAsObject()->getString("in_place") ==
            function.input(i).name())
          number = i;
  }
  return inPlace;
}

llvm::Error BenchKernel::makeOutputs(bool wantsInPlace) {
  counterparts = readInPlace(library, function);
  inPlace.resize(counterparts.size());
  if (wantsInPlace && llvm::all_of(counterparts, [](auto &counterpart) {
        return counterpart.has_value();
      }))
    inPlace = counterparts;
  std::vector<posenc_value> values;
  for (const Input &input : inputs)
    values.push_back(input.value());
  outputs.resize(function.numOutputs());
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string error;
    std::vector<int64_t> shape;
    if (!function.outputShape(values, i, shape, error))
      return llvm::createStringError(error);
    outputShapes.push_back(shape);
    if (inPlace[i])
      continue;
    llvm::Expected<runtime::Array> array =
        allocateArray(function.output(i).dtype(), std::move(shape));
    if (!array)
      return array.takeError();
    outputs[i] = std::move(*array);
  }
  // The runtime checks all that the C entry does not.
  values.resize(inputs.size());
  std::vector<posenc_value> results;
  for (size_t i = 0; i < outputs.size(); ++i)
    results.push_back(getOutput(i).value());
  std::string error;
  return function.call(values, results, error) ? llvm::Error::success()
                                               : llvm::createStringError(error);
}

void BenchKernel::makeWords() {
  auto getAddress = [](const runtime::Array &array) {
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(array.data()));
  };
  for (const Input &input : inputs)
    words.push_back(input.isScalar ? input.scalar : getAddress(input.array));
  for (size_t i = 0; i < outputs.size(); ++i)
    words.push_back(getAddress(getOutput(i)));
  auto findSize = [&](const std::string &name) -> int64_t {
    for (auto [number, input] : llvm::enumerate(inputs)) {
      runtime::Argument argument = function.input(number);
      for (int32_t dim = 0; dim < argument.rank(); ++dim)
        if (argument.sizeName(dim) == name)
          return input.array.shape()[dim];
    }
    for (auto [number, shape] : llvm::enumerate(outputShapes)) {
      runtime::Argument argument = function.output(number);
      for (int32_t dim = 0; dim < argument.rank(); ++dim)
        if (argument.sizeName(dim) == name)
          return shape[dim];
    }
    return 0;
  };
  for (size_t i = 0; i < posenc_function_num_sizes(function.get()); ++i)
    words.push_back(findSize(posenc_function_size_name(function.get(), i)));
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

int32_t BenchKernel::call() const {
  return runtime::dispatch<int32_t>(posenc_function_address(function.get()),
                                    words.data(), words.size());
}

double BenchKernel::measure(int64_t calls) const {
  return measureSeconds([&] {
    for (int64_t i = 0; i < calls; ++i)
      call();
  });
}

llvm::Expected<BenchKernel::Verification> BenchKernel::verify() {
  // A call in place eats its own input.
  std::vector<std::pair<const runtime::Array *, std::vector<char>>> originals;
  for (const std::optional<size_t> &number : inPlace)
    if (number) {
      const runtime::Array &array = inputs[*number].array;
      const char *bytes = array.dataAs<char>();
      originals.emplace_back(
          &array, std::vector<char>(bytes, bytes + array.sizeInBytes()));
    }
  Verification result = {true, 0};
  bool isFirst = true;
  for (int threads : {1, 2, 3, 5, 1}) {
    for (const auto &[array, bytes] : originals)
      std::memcpy(array->data(), bytes.data(), bytes.size());
    // What is not written must not look as if it were.
    for (const runtime::Array &output : outputs)
      if (output.data())
        std::memset(output.data(), 0x55, output.sizeInBytes());
    setKernelThreads(threads);
    if (int32_t status = call())
      return llvm::createStringError("the kernel fails with " + Twine(status));
    uint64_t hash = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const runtime::Array &output = getOutput(i);
      hash = hash * 31 + llvm::xxh3_64bits(llvm::ArrayRef(
                             output.dataAs<uint8_t>(), output.sizeInBytes()));
    }
    result.isStable &= isFirst || hash == result.hash;
    result.hash = hash;
    isFirst = false;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// What is moved
//===----------------------------------------------------------------------===//

/// What a kernel in place touches of an output.
Region BenchKernel::getRegion(size_t number) const {
  const runtime::Array &array = getOutput(number);
  const Meaning::Result &result = meaning.results[number];
  const std::vector<int64_t> &shape = outputShapes[number];
  int64_t bytes = static_cast<int64_t>(array.sizeInBytes());
  if (!result.windowSize || !inPlace[number] || bytes == 0)
    return Region::create(array.data(), bytes);
  int64_t element = static_cast<int64_t>(posenc_dtype_size(array.dtype()));
  int64_t rowBytes = shape.back() * element;
  return getTouchedLines(array.data(), bytes / rowBytes, rowBytes,
                         result.windowOffset * element,
                         *result.windowSize * element);
}

llvm::Expected<std::vector<StreamStep>>
BenchKernel::getSteps(LimitKind kind) const {
  std::vector<StreamStep> steps;
  for (size_t i = 0; i < outputs.size(); ++i) {
    StreamStep step;
    step.dtype = getOutput(i).dtype();
    step.to = getRegion(i);
    step.kind = kind == LimitKind::InPlace  ? StreamStep::Scale
                : kind == LimitKind::Copy   ? StreamStep::Copy
                : kind == LimitKind::Memset ? StreamStep::Fill
                : inPlace[i]                ? StreamStep::Scale
                : counterparts[i]           ? StreamStep::Copy
                                            : StreamStep::Fill;
    if (step.kind == StreamStep::Copy) {
      if (!counterparts[i] || inPlace[i])
        return llvm::createStringError(
            "there is nothing to copy: result #" + Twine(i) +
            (inPlace[i] ? " is written in place"
                        : " is the size of no argument"));
      const runtime::Array &source = inputs[*counterparts[i]].array;
      step.from = Region::create(source.data(), step.to.bytes());
    }
    steps.push_back(std::move(step));
  }
  if (llvm::all_of(steps, [](auto &step) { return step.bytes() == 0; }))
    return llvm::createStringError("there is nothing to do");
  return steps;
}

bool BenchKernel::isInPlace() const {
  return llvm::all_of(inPlace, [](auto &input) { return input.has_value(); });
}

int64_t BenchKernel::getBytes() const {
  // Of this kind there always are some.
  return Stream{"", llvm::cantFail(getSteps(LimitKind::Auto)), false}.bytes();
}

double BenchKernel::getFlops() const {
  double flops = 0;
  for (auto [result, shape, output] :
       llvm::zip(meaning.results, outputShapes, llvm::seq(outputs.size()))) {
    double lanes = double(getOutput(output).numElements());
    if (result.windowSize)
      lanes *= double(*result.windowSize) / double(shape.back());
    flops += lanes * result.flops;
  }
  return flops;
}
