//===- Inputs.cpp - arguments from the command line -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-run/Inputs.h"

#include "DType.h"
#include "InputText.h"
#include "posenc-run/Fill.h"
#include "posenc/Support/Memory.h"
#include "posenc/runtime/npy.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir::posenc;
using llvm::Twine;
namespace runtime = ::posenc::runtime;

llvm::Expected<runtime::Array>
mlir::posenc::allocateArray(posenc_dtype dtype, std::vector<int64_t> shape) {
  uint64_t bytes = posenc_dtype_size(dtype);
  for (int64_t size : shape)
    bytes =
        llvm::SaturatingMultiply(bytes, uint64_t(std::max<int64_t>(size, 0)));
  uint64_t available = ::posenc::getAvailableMemory();
  // If the size overflows, the allocation below reports it.
  if (bytes > available && bytes != UINT64_MAX)
    return llvm::createStringError(
        "needs " + Twine(bytes >> 20) + " MiB of memory, but only " +
        Twine(available >> 20) + " MiB are available");
  runtime::Array array;
  std::string error;
  if (!runtime::Array::allocate(dtype, std::move(shape), array, error))
    return llvm::createStringError(error);
  return array;
}

/// Checks that the type matches the argument's, before memory is allocated.
static llvm::Error checkType(const InputText &text,
                             const runtime::Argument &argument) {
  if (text.dtype == POSENC_DTYPE_INVALID)
    return argument.isScalar() ? llvm::Error::success()
                               : llvm::createStringError("expected a tensor " +
                                                         argument.type());
  bool fits = isSameType(text.dtype, argument.dtype()) &&
              int32_t(text.shape.size()) == argument.rank();
  for (int32_t dim = 0; fits && dim < argument.rank(); ++dim)
    fits = argument.size(dim) == POSENC_DYNAMIC ||
           argument.size(dim) == text.shape[dim];
  if (fits)
    return llvm::Error::success();
  std::string given;
  for (int64_t size : text.shape)
    given += std::to_string(size) + "x";
  return llvm::createStringError("expected " + argument.type() + ", got " +
                                 given + posenc_dtype_name(text.dtype));
}

static llvm::Expected<Input> createInput(const runtime::Argument &argument,
                                         const InputText &text,
                                         uint64_t number) {
  Input input;
  input.isScalar = argument.isScalar();
  input.isReal = argument.isReal();
  if (text.kind == InputText::Kind::File) {
    if (input.isScalar)
      return llvm::createStringError("expected " + argument.type() +
                                     ", a number, not a file");
    std::string error;
    if (!runtime::readNpy(text.path, input.array, error))
      return llvm::createStringError(error);
    interpretBytes(input.array, argument.dtype());
    return input;
  }
  if (llvm::Error error = checkType(text, argument))
    return std::move(error);
  if (input.isReal && text.kind == InputText::Kind::Value) {
    llvm::Expected<double> value = parseReal(text.value);
    if (!value)
      return value.takeError();
    input.real = *value;
    return input;
  }
  if (input.isScalar && text.kind == InputText::Kind::Value) {
    llvm::Expected<int64_t> value = parseInteger(argument.dtype(), text.value);
    if (!value)
      return value.takeError();
    input.scalar = *value;
    return input;
  }
  // A random or iota scalar is generated as an array of one element, too.
  llvm::Expected<runtime::Array> array =
      allocateArray(argument.dtype(), text.shape);
  if (!array)
    return array.takeError();
  input.array = std::move(*array);
  llvm::Error error = [&] {
    switch (text.kind) {
    case InputText::Kind::Random:
      return fillRandom(input.array, text.seed.value_or(number));
    case InputText::Kind::Iota:
      return fillIota(input.array);
    default:
      return fillValue(input.array, text.value);
    }
  }();
  if (error)
    return std::move(error);
  if (input.isReal)
    input.real = argument.dtype() == POSENC_F32
                     ? static_cast<double>(*input.array.dataAs<float>())
                     : *input.array.dataAs<double>();
  else if (input.isScalar)
    input.scalar = argument.dtype() == POSENC_I32
                       ? *input.array.dataAs<int32_t>()
                       : *input.array.dataAs<int64_t>();
  return input;
}

llvm::Expected<std::vector<Input>>
mlir::posenc::createInputs(runtime::Function function,
                           llvm::ArrayRef<std::string> texts) {
  size_t count = function.numInputs();
  if (texts.size() != count) {
    std::string signature;
    for (size_t i = 0; i < count; ++i)
      signature += (i ? ", " : "") + function.input(i).name() + ": " +
                   function.input(i).type();
    return llvm::createStringError(function.name() + " takes (" + signature +
                                   "), but " + Twine(texts.size()) +
                                   " inputs are given");
  }
  std::vector<Input> inputs;
  for (size_t i = 0; i < count; ++i) {
    llvm::Expected<InputText> text = parseInputText(texts[i]);
    llvm::Expected<Input> input =
        text ? createInput(function.input(i), *text, i) : text.takeError();
    if (!input)
      return llvm::createStringError("input #" + Twine(i) + " '" +
                                     function.input(i).name() +
                                     "': " + llvm::toString(input.takeError()));
    inputs.push_back(std::move(*input));
  }
  return inputs;
}
