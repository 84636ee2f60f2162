//===- Binding.cpp - Binds the arguments of a call ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Binding.h"
#include "Error.h"
#include "Types.h"

#include <cassert>
#include <cinttypes>
#include <cstdio>
#include <cstring>

using namespace posenc::runtime;

static const char *role(bool isOutput) { return isOutput ? "output" : "input"; }

posenc_status posenc::runtime::checkScalar(const posenc_function &function,
                                           const posenc_argument &argument,
                                           int64_t value) {
  if (argument.dtype == POSENC_I32 && (value < INT32_MIN || value > INT32_MAX))
    return fail(POSENC_INVALID_ARGUMENT,
                "%s: %" PRId64 " is out of range for input '%s' of type i32",
                function.name.c_str(), value, argument.name.c_str());
  return POSENC_OK;
}

posenc_status Binding::checkCount(const char *what, size_t expected,
                                  size_t count,
                                  const posenc_value *values) const {
  const char *name = function.name.c_str();
  if (function.numArguments() > POSENC_MAX_ARGUMENTS)
    return fail(POSENC_UNSUPPORTED,
                "%s: %zu arguments; at most %d can be passed", name,
                function.numArguments(), POSENC_MAX_ARGUMENTS);
  size_t numReals = 0;
  for (const posenc_argument &input : function.inputs)
    numReals += isRealScalar(input);
  if (numReals > maxReals)
    return fail(POSENC_UNSUPPORTED,
                "%s: %zu scalars of f32 and f64; at most %zu can be passed",
                name, numReals, maxReals);
  if (count != expected)
    return fail(POSENC_INVALID_ARGUMENT, "%s: %zu %s given, %zu expected", name,
                count, what, expected);
  if (count && !values)
    return fail(POSENC_INVALID_ARGUMENT, "%s: the %s are NULL", name, what);
  return POSENC_OK;
}

posenc_status Binding::bindScalar(const posenc_argument &argument,
                                  const posenc_value &value) const {
  if (value.kind != POSENC_SCALAR)
    return fail(POSENC_INVALID_ARGUMENT,
                "%s: input '%s' is a scalar, but a tensor was given",
                function.name.c_str(), argument.name.c_str());
  return checkScalar(function, argument, value.scalar);
}

posenc_status Binding::bindDim(const posenc_argument &argument, int32_t dim,
                               int64_t given, bool isOutput) {
  const char *name = function.name.c_str();
  const char *tensor = argument.name.c_str();
  assert(dim >= 0 && size_t(dim) < argument.shape.size());
  const Dim &expected = argument.shape[dim];
  if (given < 0)
    return fail(POSENC_SHAPE_MISMATCH,
                "%s: %s '%s' has the negative size %" PRId64
                " in dimension %" PRId32,
                name, role(isOutput), tensor, given, dim);
  switch (expected.kind) {
  case Dim::Kind::Static:
    if (given != expected.value)
      return fail(POSENC_SHAPE_MISMATCH,
                  "%s: %s '%s' has size %" PRId64 " in dimension %" PRId32
                  ", expected %" PRId64,
                  name, role(isOutput), tensor, given, dim, expected.value);
    return POSENC_OK;
  case Dim::Kind::Scalar:
    if (given != inputs[expected.value].scalar)
      return fail(POSENC_SHAPE_MISMATCH,
                  "%s: %s '%s' has size %" PRId64 " in dimension %" PRId32
                  ", but input '%s' is %" PRId64,
                  name, role(isOutput), tensor, given, dim,
                  expected.name.c_str(), inputs[expected.value].scalar);
    return POSENC_OK;
  case Dim::Kind::Computed: {
    int64_t size = 0;
    if (posenc_status status = getComputed(argument, expected, size))
      return status;
    if (given != size)
      return fail(POSENC_SHAPE_MISMATCH,
                  "%s: %s '%s' has size %" PRId64 " in dimension %" PRId32
                  ", expected %s, which is %" PRId64,
                  name, role(isOutput), tensor, given, dim,
                  expected.name.c_str(), size);
    return POSENC_OK;
  }
  case Dim::Kind::Size:
    break;
  }
  auto &origin = origins[expected.value];
  if (!origin.argument) {
    origin = {&argument, dim, isOutput};
    sizes[expected.value] = given;
  } else if (sizes[expected.value] != given) {
    return fail(POSENC_SHAPE_MISMATCH,
                "%s: size '%s' is %" PRId64 " in %s '%s' (dimension %" PRId32
                ") but %" PRId64 " in %s '%s' (dimension %" PRId32 ")",
                name, expected.name.c_str(), sizes[expected.value],
                role(origin.isOutput), origin.argument->name.c_str(),
                origin.dim, given, role(isOutput), tensor, dim);
  }
  return POSENC_OK;
}

posenc_status Binding::bindTensor(const posenc_argument &argument,
                                  const posenc_value &value, bool isOutput,
                                  bool needData) {
  const char *name = function.name.c_str();
  const char *label = argument.name.c_str();
  const char *what = role(isOutput);
  if (value.kind != POSENC_TENSOR)
    return fail(POSENC_INVALID_ARGUMENT,
                "%s: %s '%s' is a tensor, but a scalar was given", name, what,
                label);
  const posenc_tensor &tensor = value.tensor;
  if (!isCompatible(tensor.dtype, argument.dtype))
    return fail(POSENC_DTYPE_MISMATCH, "%s: %s '%s' is %s, expected %s", name,
                what, label, posenc_dtype_name(tensor.dtype),
                posenc_dtype_name(argument.dtype));
  int32_t rank = static_cast<int32_t>(argument.shape.size());
  if (tensor.rank != rank)
    return fail(POSENC_SHAPE_MISMATCH,
                "%s: %s '%s' has rank %" PRId32 ", expected %" PRId32, name,
                what, label, tensor.rank, rank);
  if (rank && !tensor.shape)
    return fail(POSENC_INVALID_ARGUMENT, "%s: the shape of %s '%s' is NULL",
                name, what, label);
  for (int32_t dim = 0; dim < rank; ++dim)
    if (posenc_status status =
            bindDim(argument, dim, tensor.shape[dim], isOutput))
      return status;
  uint64_t bytes = 0;
  if (!tensorBytes(argument.dtype, tensor.shape, rank, bytes))
    return fail(POSENC_SHAPE_MISMATCH,
                "%s: the sizes of %s '%s' are too large: their product "
                "overflows",
                name, what, label);
  if (argument.isShapeOnly)
    return POSENC_OK;
  if (needData && bytes) {
    uint64_t address = reinterpret_cast<uintptr_t>(tensor.data);
    if (!tensor.data)
      return fail(POSENC_INVALID_ARGUMENT, "%s: the data of %s '%s' is NULL",
                  name, what, label);
    if (address % posenc_dtype_size(argument.dtype))
      return fail(POSENC_INVALID_ARGUMENT,
                  "%s: the data of %s '%s' is not aligned to its element of "
                  "%zu bytes",
                  name, what, label, posenc_dtype_size(argument.dtype));
    if (address + bytes < address)
      return fail(POSENC_INVALID_ARGUMENT,
                  "%s: the data of %s '%s' runs past the end of memory", name,
                  what, label);
  }
  tensors[numTensors++] = {&argument, &tensor, bytes, isOutput};
  return POSENC_OK;
}

posenc_status Binding::bindAll(const posenc_value *inputs, size_t numInputs,
                               const posenc_value *outputs, size_t numOutputs) {
  if (posenc_status status = bindInputs(inputs, numInputs, true))
    return status;
  if (posenc_status status = bindOutputs(outputs, numOutputs))
    return status;
  return checkOverlap();
}

posenc_status Binding::bindInputs(const posenc_value *values, size_t count,
                                  bool needData) {
  if (posenc_status status =
          checkCount("inputs", function.inputs.size(), count, values))
    return status;
  inputs = values;
  // Scalars first, since a shape may depend on any of them.
  for (size_t i = 0; i < count; ++i)
    if (function.inputs[i].kind == POSENC_SCALAR)
      if (posenc_status status = bindScalar(function.inputs[i], values[i]))
        return status;
  for (size_t i = 0; i < count; ++i)
    if (function.inputs[i].kind == POSENC_TENSOR)
      if (posenc_status status =
              bindTensor(function.inputs[i], values[i], false, needData))
        return status;
  return POSENC_OK;
}

posenc_status Binding::bindOutputs(const posenc_value *values, size_t count) {
  if (posenc_status status =
          checkCount("outputs", function.outputs.size(), count, values))
    return status;
  outputs = values;
  for (size_t i = 0; i < count; ++i)
    if (posenc_status status =
            bindTensor(function.outputs[i], values[i], true, true))
      return status;
  return POSENC_OK;
}

posenc_status Binding::checkPair(const Bound &output, const Bound &other,
                                 bool &inPlace) const {
  if (!output.bytes || !other.bytes)
    return POSENC_OK;
  auto first = reinterpret_cast<uintptr_t>(output.tensor->data);
  auto second = reinterpret_cast<uintptr_t>(other.tensor->data);
  if (first + output.bytes <= second || second + other.bytes <= first)
    return POSENC_OK;
  const char *name = function.name.c_str();
  const char *label = output.argument->name.c_str();
  const char *otherLabel = other.argument->name.c_str();
  if (other.isOutput)
    return fail(POSENC_INVALID_ARGUMENT,
                "%s: outputs '%s' and '%s' overlap in memory", name, label,
                otherLabel);
  bool same = first == second && output.tensor->rank == other.tensor->rank &&
              isCompatible(output.argument->dtype, other.argument->dtype);
  for (int32_t dim = 0; same && dim < output.tensor->rank; ++dim)
    same = output.tensor->shape[dim] == other.tensor->shape[dim];
  if (!same)
    return fail(POSENC_INVALID_ARGUMENT,
                "%s: output '%s' overlaps input '%s' in memory without being "
                "exactly the same tensor",
                name, label, otherLabel);
  // The kernel may read the second input after it has written the output.
  if (inPlace)
    return fail(POSENC_INVALID_ARGUMENT,
                "%s: output '%s' is in place of two inputs, '%s' and another",
                name, label, otherLabel);
  inPlace = true;
  return POSENC_OK;
}

posenc_status Binding::checkOverlap() const {
  for (size_t i = 0; i < numTensors; ++i) {
    if (!tensors[i].isOutput)
      continue;
    bool inPlace = false;
    // Inputs precede outputs, so this visits each pair of outputs once.
    for (size_t j = 0; j < i; ++j)
      if (posenc_status status = checkPair(tensors[i], tensors[j], inPlace))
        return status;
  }
  return POSENC_OK;
}

posenc_status Binding::computeShapes() {
  if (outputShapes)
    return POSENC_OK;
  size_t count = 0;
  for (const auto *list : {&function.inputs, &function.outputs})
    for (const posenc_argument &argument : *list)
      count += argument.shape.size();
  int64_t *shapes = computed.resize(count);
  if (!shapes)
    return fail(POSENC_OUT_OF_MEMORY, "%s: no memory for %zu dimensions",
                function.name.c_str(), count);
  const void *values[POSENC_MAX_ARGUMENTS];
  size_t numValues = 0;
  int64_t *end = shapes;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const posenc_argument &input = function.inputs[i];
    bool isTensor = input.kind == POSENC_TENSOR;
    if (isTensor)
      end = std::copy_n(inputs[i].tensor.shape, input.shape.size(), end);
    if (input.isSizeValue)
      values[numValues++] =
          isTensor ? inputs[i].tensor.data : &inputs[i].scalar;
  }
  char message[512];
  int32_t code = reinterpret_cast<int32_t (*)(
      const int64_t *, const void *const *, int64_t *, char *, size_t)>(
      function.outputSizes)(shapes, values, end, message, sizeof(message));
  // Other sizes than those that are unknown may be asked for.
  if (code && code != kEntryUnknown)
    return fail(toStatus(code), "%s", message);
  outputShapes = end;
  return POSENC_OK;
}

posenc_status Binding::getComputed(const posenc_argument &output,
                                   const Dim &dim, int64_t &size) {
  if (posenc_status status = computeShapes())
    return status;
  size = outputShapes[dim.value];
  return size >= 0
             ? POSENC_OK
             : fail(POSENC_INVALID_ARGUMENT,
                    "%s: the inputs do not determine the size %s of output "
                    "'%s': data that it depends on is NULL",
                    function.name.c_str(), dim.name.c_str(),
                    output.name.c_str());
}

posenc_status Binding::resolve(const posenc_argument &output, size_t dim,
                               int64_t &size) {
  assert(dim < output.shape.size());
  const Dim &wanted = output.shape[dim];
  const char *name = function.name.c_str();
  switch (wanted.kind) {
  case Dim::Kind::Static:
    size = wanted.value;
    return POSENC_OK;
  case Dim::Kind::Scalar:
    size = inputs[wanted.value].scalar;
    if (size < 0)
      return fail(POSENC_SHAPE_MISMATCH,
                  "%s: input '%s' is %" PRId64 ", which cannot be a size", name,
                  wanted.name.c_str(), size);
    return POSENC_OK;
  case Dim::Kind::Computed:
    return getComputed(output, wanted, size);
  case Dim::Kind::Size:
    break;
  }
  if (!origins[wanted.value].argument)
    return fail(POSENC_INVALID_ARGUMENT,
                "%s: the inputs do not determine size '%s' of output '%s'",
                name, wanted.name.c_str(), output.name.c_str());
  size = sizes[wanted.value];
  return POSENC_OK;
}

void Binding::addArguments(CallArguments &out) const {
  auto pointer = [](const posenc_value &value) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(value.tensor.data));
  };
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    if (function.inputs[i].kind == POSENC_SCALAR)
      out.addScalar(function.inputs[i], inputs[i].scalar, inputs[i].real);
    else
      out.add(pointer(inputs[i]));
  }
  for (size_t i = 0; i < function.outputs.size(); ++i)
    out.add(pointer(outputs[i]));
  for (size_t i = 0; i < function.sizes.size(); ++i)
    out.add(sizes[i]);
}
