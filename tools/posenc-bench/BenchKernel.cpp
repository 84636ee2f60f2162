//===- BenchKernel.cpp - a function bound to benchmark inputs -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BenchKernel.h"

#include "posenc/Driver/Diagnostics.h"

#include "AttentionWork.h"
#include "CaseInputs.h"
#include "Threads.h"
#include "posenc-bench/Pairs.h"

#include "Dispatch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <cstring>

using namespace mlir::posenc;
using llvm::Twine;
namespace runtime = ::posenc::runtime;

static constexpr int kMaxVerifiedThreads = 5;

std::unique_ptr<BenchKernel> BenchKernel::create(const Case &from) {
  std::optional<CaseLibrary> code = CaseLibrary::open(from);
  if (!code)
    return nullptr;
  std::unique_ptr<BenchKernel> kernel(new BenchKernel(std::move(*code)));
  kernel->threads =
      std::max(*std::max_element(from.threads.begin(), from.threads.end()),
               kMaxVerifiedThreads);
  llvm::Error error = kernel->makeInputs(from);
  if (!error)
    error = from.viewHeads.empty() ? kernel->makeOutputs(from.inPlace)
                                   : kernel->makeViews(from.viewHeads);
  if (!error) {
    llvm::Expected<Call> own = kernel->bind(kernel->code);
    error = own.takeError();
    if (!error)
      kernel->own = std::move(*own);
  }
  if (error) {
    getErrorStream() << "error: " << from.function << ": "
                     << llvm::toString(std::move(error)) << "\n";
    return nullptr;
  }
  return kernel;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

llvm::Error BenchKernel::makeInputs(const Case &from) {
  llvm::Expected<std::vector<Input>> made = [&] {
    if (!from.inputTexts.empty())
      return ::createInputs(code.function, from.inputTexts);
    return createCaseInputs(
        from.inputs.empty()
            ? getDefaultInputs(code.function, code.info, from.outputBytes)
            : from.inputs);
  }();
  if (!made)
    return made.takeError();
  inputs = std::move(*made);
  return llvm::Error::success();
}

/// Returns for each output the input that it may overwrite, as the library's
/// metadata declares it (`in_place`); nullopt for outputs that have none.
static std::vector<std::optional<size_t>> readInPlace(const CaseLibrary &code) {
  std::vector<std::optional<size_t>> inPlace(code.function.numOutputs());
  // The runtime has parsed the same metadata, so it is well-formed.
  llvm::Expected<llvm::json::Value> metadata =
      llvm::json::parse(code.library.metadata());
  if (!metadata) {
    llvm::consumeError(metadata.takeError());
    return inPlace;
  }
  const llvm::json::Array *functions =
      metadata->getAsObject()->getArray("functions");
  for (const llvm::json::Value &candidate : *functions) {
    if (candidate.getAsObject()->getString("name") != code.function.name())
      continue;
    const llvm::json::Array *outputs =
        candidate.getAsObject()->getArray("outputs");
    for (auto [output, number] : llvm::zip(*outputs, inPlace))
      for (size_t i = 0; i < code.function.numInputs(); ++i)
        if (output.getAsObject()->getString("in_place") ==
            code.function.input(i).name())
          number = i;
  }
  return inPlace;
}

llvm::Error BenchKernel::makeOutputs(bool wantsInPlace) {
  std::vector<std::optional<size_t>> counterparts = readInPlace(code);
  // Calls in place get the results of the previous call as inputs: unrealistic
  // queries for attention, and values that shrink with each call for some
  // linalg ops.
  bool inPlace = wantsInPlace && !code.info.attention && !code.info.readsAll &&
                 !llvm::is_contained(counterparts, std::nullopt);
  std::vector<posenc_value> values;
  for (const Input &input : inputs)
    values.push_back(input.value());
  outputs.resize(counterparts.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string error;
    std::vector<int64_t> shape;
    if (!code.function.outputShape(values, i, shape, error))
      return llvm::createStringError(error);
    outputShapes.push_back(shape);
    const runtime::Array *counterpart =
        counterparts[i] ? &inputs[*counterparts[i]].array : nullptr;
    if (!inPlace) {
      llvm::Expected<runtime::Array> array =
          allocateArray(code.function.output(i).dtype(), std::move(shape));
      if (!array)
        return array.takeError();
      outputs[i] = std::move(*array);
    }
    const runtime::Array *array = inPlace ? counterpart : &outputs[i];
    written.push_back({array, inPlace, {}, std::nullopt});
    written.back().region = getRegion(i, inPlace);
    if (counterpart && !inPlace)
      written.back().source = ByteRows::create(
          counterpart->data(), static_cast<int64_t>(array->sizeInBytes()));
  }
  if (code.info.readsAll)
    findSources(counterparts);
  return llvm::Error::success();
}

static bool isIndex(posenc_dtype dtype) {
  return dtype == POSENC_I64 || dtype == POSENC_I32 || dtype == POSENC_INDEX;
}

void BenchKernel::findSources(
    llvm::ArrayRef<std::optional<size_t>> counterparts) {
  for (auto [number, input] : llvm::enumerate(inputs)) {
    if (input.isScalar || isIndex(input.array.dtype()) ||
        code.function.input(number).isShapeOnly())
      continue;
    auto bytes = static_cast<int64_t>(input.array.sizeInBytes());
    InputTail tail{number, 0};
    for (auto [output, counterpart] : llvm::zip(written, counterparts)) {
      auto outputBytes = static_cast<int64_t>(output.array->sizeInBytes());
      bool isCounterpart = counterpart && *counterpart == number;
      if (isCounterpart) {
        tail.begin = bytes;
        break;
      }
      if (counterpart || output.source || outputBytes > bytes)
        continue;
      output.source = ByteRows::create(input.array.data(), outputBytes);
      tail.begin = outputBytes;
      break;
    }
    if (tail.begin < bytes)
      tails.push_back(tail);
  }
}

/// Returns the memory of an output that the kernel touches. In place, this can
/// be a window of each row, in whole cache lines.
ByteRows BenchKernel::getRegion(size_t output, bool inPlace) const {
  const runtime::Array &array = *written[output].array;
  const FunctionInfo::Result &result = code.info.results[output];
  int64_t bytes = static_cast<int64_t>(array.sizeInBytes());
  if (!result.windowSize || !inPlace || bytes == 0)
    return ByteRows::create(array.data(), bytes);
  int64_t element = static_cast<int64_t>(posenc_dtype_size(array.dtype()));
  int64_t rowBytes = array.shape().back() * element;
  return getTouchedLines(array.data(), bytes / rowBytes, rowBytes,
                         result.windowOffset * element,
                         *result.windowSize * element);
}

static int64_t toWord(const void *address) {
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(address));
}

/// Makes the arguments of the DLPack entry point. The inputs are a buffer of
/// fused rows, of which the tensors are views, and the positions.
llvm::Error BenchKernel::makeViews(llvm::ArrayRef<int64_t> heads) {
  const runtime::Array &buffer = inputs.front().array;
  std::vector<int64_t> tensors;
  int64_t firstHead = 0;
  for (int64_t count : heads) {
    tensors.push_back(toWord(views.addHeads(buffer, firstHead, count)));
    outputShapes.push_back({buffer.shape()[0], count, buffer.shape()[2]});
    firstHead += count;
  }
  tensorWords = tensors;
  tensorWords.push_back(toWord(views.add(inputs.back().array)));
  llvm::append_range(tensorWords, tensors);
  // No buffer for an error message.
  tensorWords.insert(tensorWords.end(), {0, 0});

  int64_t row = static_cast<int64_t>(buffer.sizeInBytes()) / buffer.shape()[0];
  ByteRows region;
  region.data = buffer.dataAs<char>();
  region.rows = buffer.shape()[0];
  region.stride = row;
  region.runs = {{0, row / buffer.shape()[1] * firstHead}};
  written.push_back({&buffer, true, std::move(region), std::nullopt});
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

static bool haveSameType(runtime::Argument a, runtime::Argument b) {
  if (a.isScalar() != b.isScalar() || a.dtype() != b.dtype() ||
      a.rank() != b.rank())
    return false;
  for (int32_t dim = 0; dim < a.rank(); ++dim)
    if (a.size(dim) != b.size(dim))
      return false;
  return true;
}

llvm::Error BenchKernel::checkSignature(const CaseLibrary &other) const {
  runtime::Function expected = code.function, actual = other.function;
  bool isSame = expected.numInputs() == actual.numInputs() &&
                expected.numOutputs() == actual.numOutputs();
  for (size_t i = 0; isSame && i < expected.numInputs(); ++i)
    isSame = haveSameType(expected.input(i), actual.input(i));
  for (size_t i = 0; isSame && i < expected.numOutputs(); ++i)
    isSame = haveSameType(expected.output(i), actual.output(i));
  if (isSame)
    return llvm::Error::success();
  return llvm::createStringError(
      "the signature of function '" + actual.name() +
      "' differs from that of the function to compare with");
}

/// Allocates scratch memory for the maximum number of threads and appends its
/// address to the call's arguments, if the entry point takes any.
llvm::Error BenchKernel::makeWorkspace(const CaseLibrary &library,
                                       size_t numSizes, Call &call) const {
  if (!library.workspaceFunction)
    return llvm::Error::success();
  setKernelThreads(threads);
  int64_t bytes = runtime::dispatch<int64_t>(
      library.workspaceFunction,
      call.words.data() + call.words.size() - numSizes, numSizes);
  llvm::Expected<runtime::Array> array =
      allocateArray(POSENC_I8, {std::max<int64_t>(bytes, 1)});
  if (!array)
    return array.takeError();
  call.workspace = std::move(*array);
  call.words.push_back(toWord(call.workspace.data()));
  return llvm::Error::success();
}

llvm::Expected<BenchKernel::Call>
BenchKernel::bind(const CaseLibrary &other) const {
  if (llvm::Error error = checkSignature(other))
    return std::move(error);
  Call call;
  if (!tensorWords.empty()) {
    if (!other.tensorEntryPoint)
      return llvm::createStringError(
          "the library has no entry point for DLPack tensors");
    call.entryPoint = other.tensorEntryPoint;
    call.words = tensorWords;
    return call;
  }
  call.entryPoint = other.entryPoint;
  runtime::CallArguments scalars;
  for (auto [number, input] : llvm::enumerate(inputs)) {
    if (input.isReal)
      scalars.addReal(other.function.input(number).dtype(), input.real);
    else
      call.words.push_back(input.isScalar ? input.scalar
                                          : toWord(input.array.data()));
  }
  if (scalars.numReals > 0)
    call.reals.assign(std::begin(scalars.reals), std::end(scalars.reals));
  for (const Written &output : written)
    call.words.push_back(toWord(output.array->data()));
  auto findSize = [&](const std::string &name) -> int64_t {
    for (auto [number, input] : llvm::enumerate(inputs)) {
      runtime::Argument argument = other.function.input(number);
      for (int32_t dim = 0; dim < argument.rank(); ++dim)
        if (argument.sizeName(dim) == name)
          return input.array.shape()[dim];
    }
    for (auto [number, shape] : llvm::enumerate(outputShapes)) {
      runtime::Argument argument = other.function.output(number);
      for (int32_t dim = 0; dim < argument.rank(); ++dim)
        if (argument.sizeName(dim) == name)
          return shape[dim];
    }
    return 0;
  };
  const posenc_function *function = other.function.get();
  size_t numSizes = posenc_function_num_sizes(function);
  for (size_t i = 0; i < numSizes; ++i)
    call.words.push_back(findSize(posenc_function_size_name(function, i)));
  if (llvm::Error error = makeWorkspace(other, numSizes, call))
    return std::move(error);
  return call;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static int32_t run(const BenchKernel::Call &code) {
  return runtime::dispatch<int32_t>(
      code.entryPoint, code.words.data(), code.words.size(),
      code.reals.empty() ? nullptr : code.reals.data());
}

int32_t BenchKernel::call() const { return run(own); }

double BenchKernel::measure(int64_t calls, const Call &code) {
  return measureSeconds([&] {
    for (int64_t i = 0; i < calls; ++i)
      run(code);
  });
}

/// Calls the function once through the runtime, which checks the arguments that
/// the C entry point trusts.
llvm::Error BenchKernel::checkCall() const {
  if (!tensorWords.empty())
    return llvm::Error::success();
  std::vector<posenc_value> values, results;
  for (const Input &input : inputs)
    values.push_back(input.value());
  for (const Written &output : written)
    results.push_back(output.array->value());
  std::string error;
  return code.function.call(values, results, error)
             ? llvm::Error::success()
             : llvm::createStringError(error);
}

namespace {
/// A copy of the memory that calls write, which restore() writes back.
class SavedMemory {
public:
  void add(const runtime::Array &array) {
    const char *data = array.dataAs<char>();
    copies.push_back({data, data + array.sizeInBytes()});
    arrays.push_back(&array);
  }
  void restore() const {
    for (auto [array, copy] : llvm::zip_equal(arrays, copies))
      if (!copy.empty())
        std::memcpy(array->data(), copy.data(), copy.size());
  }
  uint64_t getHash() const {
    uint64_t hash = 0;
    for (const runtime::Array *array : arrays)
      hash = hash * 31 + llvm::xxh3_64bits(llvm::ArrayRef(
                             array->dataAs<uint8_t>(), array->sizeInBytes()));
    return hash;
  }

private:
  std::vector<const runtime::Array *> arrays;
  std::vector<std::vector<char>> copies;
};
} // namespace

llvm::Expected<BenchKernel::Verification> BenchKernel::verify() const {
  SavedMemory memory;
  for (const Written &output : written)
    memory.add(*output.array);
  llvm::Error error = checkCall();
  memory.restore();
  if (error)
    return std::move(error);
  return verify(own);
}

llvm::Expected<BenchKernel::Verification>
BenchKernel::verify(const Call &code) const {
  // A call in place overwrites its input, which is restored before each call.
  // Other outputs start with a pattern that reveals elements that are not
  // written.
  SavedMemory memory;
  for (const Written &output : written) {
    if (!output.inPlace && output.array->sizeInBytes() > 0)
      std::memset(output.array->data(), 0x55, output.array->sizeInBytes());
    memory.add(*output.array);
  }
  Verification result = {true, 0};
  bool isFirst = true;
  for (int threads : {1, 2, 3, kMaxVerifiedThreads, 1}) {
    memory.restore();
    setKernelThreads(threads);
    if (int32_t status = run(code)) {
      memory.restore();
      return llvm::createStringError("the kernel returned error code " +
                                     Twine(status));
    }
    uint64_t hash = memory.getHash();
    result.isStable &= isFirst || hash == result.hash;
    result.hash = hash;
    isFirst = false;
  }
  memory.restore();
  return result;
}

//===----------------------------------------------------------------------===//
// Steps of the limit
//===----------------------------------------------------------------------===//

static StreamStep::Kind getKind(LimitKind kind, bool inPlace, bool hasSource) {
  switch (kind) {
  case LimitKind::InPlace:
    return StreamStep::Scale;
  case LimitKind::Copy:
    return StreamStep::Copy;
  case LimitKind::Memset:
    return StreamStep::Fill;
  case LimitKind::Read:
  case LimitKind::Fma:
  case LimitKind::Auto:
    break;
  }
  return inPlace     ? StreamStep::Scale
         : hasSource ? StreamStep::Copy
                     : StreamStep::Fill;
}

llvm::Expected<std::vector<StreamStep>>
BenchKernel::getWriteSteps(LimitKind kind) const {
  std::vector<StreamStep> steps;
  for (auto [number, output] : llvm::enumerate(written)) {
    StreamStep step;
    step.kind = getKind(kind, output.inPlace, output.source.has_value());
    step.dtype = output.array->dtype();
    step.to = output.region;
    if (step.kind == StreamStep::Copy && !output.source)
      return llvm::createStringError(
          "the limit 'copy' does not apply: result #" + Twine(number) +
          (output.inPlace ? " is written in place"
                          : " has no argument of its size"));
    if (output.source)
      step.from = *output.source;
    steps.push_back(std::move(step));
  }
  for (const InputTail &tail : tails)
    steps.push_back(createReadStep(tail));
  return steps;
}

StreamStep BenchKernel::createReadStep(const InputTail &tail) const {
  const runtime::Array &array = inputs[tail.input].array;
  StreamStep step;
  step.kind = StreamStep::Read;
  step.dtype = array.dtype();
  step.from =
      ByteRows::create(static_cast<char *>(array.data()) + tail.begin,
                       static_cast<int64_t>(array.sizeInBytes()) - tail.begin);
  return step;
}

/// Returns the reads of attention. For other functions, all arrays but integers
/// count as read.
std::vector<StreamStep> BenchKernel::getReadSteps() const {
  if (code.info.attention)
    return ::getReadSteps(*code.info.attention, inputs);
  std::vector<StreamStep> steps;
  for (auto [number, input] : llvm::enumerate(inputs))
    if (!input.isScalar && !isIndex(input.array.dtype()))
      steps.push_back(createReadStep({number, 0}));
  return steps;
}

llvm::Expected<std::vector<StreamStep>>
BenchKernel::getSteps(LimitKind kind) const {
  if (kind == LimitKind::Auto && code.info.attention)
    kind = code.info.attention->isDecode ? LimitKind::Read : LimitKind::Fma;
  if (kind == LimitKind::Auto && !code.info.results.empty() &&
      llvm::all_of(code.info.results, [](const FunctionInfo::Result &result) {
        return result.reduction.has_value();
      }))
    kind = LimitKind::Fma;
  std::vector<StreamStep> steps;
  if (kind == LimitKind::Fma) {
    // Bounds the time of the limit; its rate does not depend on the count.
    constexpr double maxFlops = 4e9;
    StreamStep step;
    step.kind = StreamStep::Fma;
    step.dtype = written.front().array->dtype();
    step.flops = std::min(getFlops(), maxFlops);
    steps.push_back(std::move(step));
  } else if (kind == LimitKind::Read) {
    steps = getReadSteps();
  } else {
    llvm::Expected<std::vector<StreamStep>> writes = getWriteSteps(kind);
    if (!writes)
      return writes.takeError();
    steps = std::move(*writes);
  }
  auto isEmpty = [](const StreamStep &step) {
    return step.bytes() == 0 && step.flops == 0;
  };
  if (!llvm::all_of(steps, isEmpty))
    return steps;
  return llvm::createStringError(
      kind == LimitKind::Fma
          ? "the limit 'fma' does not apply: no products and sums are known"
      : kind == LimitKind::Read
          ? "the limit 'read' does not apply: the function reads nothing but "
            "indices"
          : "nothing to measure: the results have no elements");
}

int64_t BenchKernel::getBytes() const {
  if (code.info.attention)
    return Stream{"", getReadSteps(), false}.bytes();
  // LimitKind::Auto asks for a copy only where there is a source, so there is
  // no error.
  return Stream{"", llvm::cantFail(getWriteSteps(LimitKind::Auto)), false}
      .bytes();
}

double BenchKernel::getFlops() const {
  if (code.info.attention)
    return ::getFlops(*code.info.attention, inputs);
  double flops = 0;
  for (auto [result, shape] : llvm::zip(code.info.results, outputShapes)) {
    double elements = 1;
    for (int64_t size : shape)
      elements *= double(size);
    if (result.windowSize)
      elements *= double(*result.windowSize) / double(shape.back());
    double flopsPerElement = result.flops;
    if (result.reduction) {
      auto [input, dim] = *result.reduction;
      flopsPerElement = 2 * double(inputs[input].array.shape()[dim]);
    }
    flops += elements * flopsPerElement;
  }
  return flops;
}

double BenchKernel::getTiles() const {
  return code.info.attention ? ::getTiles(*code.info.attention, inputs) : 0;
}

std::vector<std::vector<int64_t>> BenchKernel::getNamedShapes() const {
  const std::optional<AttentionInfo> &attention = code.info.attention;
  if (!attention)
    return outputShapes;
  std::vector<std::vector<int64_t>> shapes;
  if (!attention->isDecode)
    shapes.push_back(inputs[attention->query].array.shape());
  shapes.push_back(inputs[attention->key].array.shape());
  return shapes;
}

bool BenchKernel::isInPlace() const {
  return llvm::all_of(written,
                      [](const Written &output) { return output.inPlace; });
}
