//===- SizePrograms.cpp - random functions and their models ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SizeBuilder.h"

#include <cmath>
#include <numeric>

using namespace posenc::fuzz;
using namespace posenc::fuzz::model;

bool SizeProgram::run(ModelCall &call) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t dim = 0; dim < inputs[i].shape.size(); ++dim)
      if (!inputs[i].isDynamic[dim] &&
          call.inputs[i].shape[dim] != inputs[i].shape[dim])
        return false;
  for (const auto &step : steps)
    if (!step(call))
      return false;
  return true;
}

std::string Builder::typeOf(const Shape &shape, const std::vector<bool> &mask,
                            const char *element) {
  std::string text = "tensor<";
  for (size_t dim = 0; dim < shape.size(); ++dim)
    text += (mask[dim] ? "?" : std::to_string(shape[dim])) + "x";
  return text + element + ">";
}

Value Builder::addInput(Shape shape, SizeInput::Kind kind, bool keepsLast) {
  SizeInput input{kind, shape, {}, 0};
  for (size_t dim = 0; dim < shape.size(); ++dim)
    input.isDynamic.push_back(random.below(4) != 0 &&
                              !(keepsLast && dim + 1 == shape.size()));
  std::string name = "%in" + std::to_string(program.inputs.size());
  arguments += (program.inputs.empty() ? "" : ", ") + name + ": " +
               typeOf(shape, input.isDynamic,
                      kind == SizeInput::Kind::Floats ? "f32" : "i64");
  Value value{name, std::move(shape), input.isDynamic, true,
              program.inputs.size()};
  program.inputs.push_back(std::move(input));
  if (kind == SizeInput::Kind::Floats)
    values.push_back(value);
  return value;
}

Size Builder::dimOf(const Value &value, size_t dim) {
  std::string index = newName(), name = newName();
  emit(index + " = arith.constant " + Twine(dim) + " : index");
  emit(name + " = tensor.dim " + value.name + ", " + index + " : " +
       typeOf(value));
  return {value.shape[dim], name, [value, dim](const ModelCall &call) {
            return value.of(call).shape[dim];
          }};
}

/// Returns a size with this value: a constant, a dimension of a tensor, an
/// input, the element of one, or a difference or quotient of these.
Size Builder::makeSize(int64_t value) {
  std::vector<std::pair<const Value *, size_t>> same, larger;
  for (const Value &it : values)
    for (size_t dim = 0; dim < it.shape.size(); ++dim) {
      if (it.shape[dim] == value)
        same.push_back({&it, dim});
      else if (it.shape[dim] > value)
        larger.push_back({&it, dim});
    }
  size_t choice = random.below(8);
  if (choice < 4 && !same.empty()) {
    auto [it, dim] = random.pick(llvm::ArrayRef(same));
    return dimOf(*it, dim);
  }
  if (choice == 4 && !larger.empty()) {
    auto [it, dim] = random.pick(llvm::ArrayRef(larger));
    Size whole = dimOf(*it, dim);
    int64_t less = whole.value - value;
    std::string number = newName(), name = newName();
    bool isQuotient = value > 0 && whole.value % value == 0 && random.chance(2);
    int64_t operand = isQuotient ? whole.value / value : less;
    emit(number + " = arith.constant " + Twine(operand) + " : index");
    emit(name + " = arith." + (isQuotient ? "divui " : "subi ") + whole.name +
         ", " + number + " : index");
    return {value, name, [whole, isQuotient, operand](const ModelCall &call) {
              int64_t size = whole.of(call);
              return isQuotient ? size / operand : size - operand;
            }};
  }
  if (choice == 5) {
    SizeInput input{SizeInput::Kind::Scalar, {}, {}, value};
    size_t number = program.inputs.size();
    std::string argument = "%in" + std::to_string(number);
    bool isIndex = random.chance(2);
    arguments += (program.inputs.empty() ? "" : ", ") + argument + ": " +
                 (isIndex ? "index" : "i64");
    program.inputs.push_back(input);
    std::string name = argument;
    if (!isIndex) {
      name = newName();
      emit(name + " = arith.index_cast " + argument + " : i64 to index");
    }
    return {value, name,
            [number](const ModelCall &call) { return call.scalars[number]; }};
  }
  if (choice == 6) {
    SizeInput input{
        SizeInput::Kind::Element, Shape(random.below(3), 1), {}, value};
    input.isDynamic.resize(input.shape.size());
    size_t number = program.inputs.size(), rank = input.shape.size();
    std::string argument = "%in" + std::to_string(number),
                type = typeOf(input.shape, input.isDynamic, "i64"),
                zero = newName(), element = newName(), name = newName();
    arguments += (program.inputs.empty() ? "" : ", ") + argument + ": " + type;
    program.inputs.push_back(input);
    emit(zero + " = arith.constant 0 : index");
    emit(element + " = tensor.extract " + argument + "[" +
         (rank > 1 ? zero + ", " + zero
          : rank   ? zero
                   : "") +
         "] : " + type);
    emit(name + " = arith.index_cast " + element + " : i64 to index");
    return {value, name,
            [number](const ModelCall &call) { return call.scalars[number]; }};
  }
  return constant(value);
}

std::vector<Size> Builder::sizesOf(const Value &value) {
  std::vector<Size> sizes;
  for (size_t dim = 0; dim < value.shape.size(); ++dim)
    sizes.push_back(value.isDynamic[dim] ? dimOf(value, dim)
                                         : constant(value.shape[dim]));
  return sizes;
}

std::pair<std::string, std::string>
Builder::empty(const std::vector<Size> &sizes, std::vector<bool> &mask) {
  std::string name = newName(), operands;
  Shape shape;
  mask.clear();
  for (const Size &size : sizes) {
    shape.push_back(size.value);
    mask.push_back(size.isDynamic());
    if (size.isDynamic())
      operands += (operands.empty() ? "" : ", ") + size.name;
  }
  std::string type = typeOf(shape, mask);
  emit(name + " = tensor.empty(" + operands + ") : " + type);
  return {name, type};
}

Value Builder::finish(std::string name, Shape shape, std::vector<bool> mask,
                      std::function<bool(ModelCall &, ModelTensor &)> step) {
  program.steps.push_back([step](ModelCall &call) {
    ModelTensor result;
    if (!step(call, result) || !isInRange(result.shape))
      return false;
    call.computed.push_back(std::move(result));
    return true;
  });
  Value value{std::move(name), std::move(shape), std::move(mask), false,
              program.steps.size() - 1};
  values.push_back(value);
  return value;
}

SizeProgram Builder::build() {
  Shape shape(1 + random.below(3));
  for (int64_t &size : shape)
    size = pickSize();
  Value last = addInput(shape);
  using Operation = Value (Builder::*)(const Value &);
  static constexpr Operation operations[] = {
      &Builder::addElements, &Builder::expand,    &Builder::collapse,
      &Builder::slice,       &Builder::insert,    &Builder::concat,
      &Builder::pad,         &Builder::transpose, &Builder::multiply,
      &Builder::convolve,    &Builder::rotate,    &Builder::cast,
      &Builder::call,        &Builder::attend,    &Builder::rotate,
      &Builder::attend};
  size_t length = 2 + random.below(5);
  for (size_t i = 0; i < length || program.steps.empty(); ++i) {
    Value next = (this->*random.pick(llvm::ArrayRef(operations)))(last);
    // Limits tensors to rank 5.
    if (next.shape.size() > 5)
      next = collapse(next);
    last = next;
  }
  program.text = functions + "func.func @f(" + arguments + ") -> " +
                 typeOf(last) + " {\n" + body + "  return " + last.name +
                 " : " + typeOf(last) + "\n}\n";
  return std::move(program);
}

SizeProgram posenc::fuzz::makeSizeProgram(Random &random) {
  return Builder(random).build();
}
