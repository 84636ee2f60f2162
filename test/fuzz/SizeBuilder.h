//===- SizeBuilder.h - builds random functions on tensors -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_SIZEBUILDER_H
#define POSENC_TEST_FUZZ_SIZEBUILDER_H

#include "SizePrograms.h"

#include "llvm/ADT/Twine.h"

namespace posenc::fuzz::model {

using llvm::Twine;
using Shape = std::vector<int64_t>;

inline int64_t count(const Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

/// The model refuses sizes and offsets beyond this limit.
inline constexpr int64_t kMaxSize = 1 << 12;

inline bool isInRange(const Shape &sizes) {
  for (int64_t size : sizes)
    if (size < 0 || size > kMaxSize)
      return false;
  return true;
}

/// Calls `visit(index)` for each index, the last dimension fastest.
inline void forEach(const Shape &shape,
                    const std::function<void(const Shape &)> &visit) {
  if (count(shape) == 0)
    return;
  Shape index(shape.size(), 0);
  for (;;) {
    visit(index);
    size_t dim = shape.size();
    while (dim > 0 && ++index[dim - 1] == shape[dim - 1])
      index[--dim] = 0;
    if (dim == 0)
      return;
  }
}

inline double &at(ModelTensor &tensor, const Shape &index) {
  int64_t position = 0;
  for (size_t dim = 0; dim < index.size(); ++dim)
    position = position * tensor.shape[dim] + index[dim];
  return tensor.data[position];
}

inline ModelTensor makeTensor(Shape shape) {
  ModelTensor result{std::move(shape), {}};
  result.data.resize(count(result.shape));
  return result;
}

/// A tensor value of the function, and its counterpart in the model.
struct Value {
  std::string name;
  Shape shape; // in the call that the function is built for
  std::vector<bool> isDynamic;
  bool isInput;
  size_t number;

  /// Returns the value's tensor in a call.
  const ModelTensor &of(const ModelCall &call) const {
    return isInput ? call.inputs[number] : call.computed[number];
  }
};

/// A size or offset: a constant, or an SSA value of type index. `value` is its
/// value in the call that the function is built for, `of` that in any call.
struct Size {
  int64_t value;
  std::string name;
  std::function<int64_t(const ModelCall &)> of;

  bool isDynamic() const { return !name.empty(); }
  std::string str() const { return isDynamic() ? name : std::to_string(value); }
};

/// The offsets, sizes and strides of a slice.
struct Slice {
  std::vector<Size> offsets, sizes;
  Shape strides;

  bool contains(const ModelCall &call, const Shape &whole) const {
    for (size_t dim = 0; dim < whole.size(); ++dim) {
      int64_t offset = offsets[dim].of(call), size = sizes[dim].of(call);
      if (!isInRange({offset, size}) ||
          offset + (size - 1) * strides[dim] + 1 > whole[dim])
        return false;
    }
    return true;
  }
  /// Returns the index in the whole tensor of an index in the slice.
  Shape at(const ModelCall &call, const Shape &index) const {
    Shape position = index;
    for (size_t dim = 0; dim < index.size(); ++dim)
      position[dim] = offsets[dim].of(call) + index[dim] * strides[dim];
    return position;
  }
  std::string str() const {
    std::string text;
    for (const auto *list : {&offsets, &sizes}) {
      text += "[";
      for (const Size &size : *list)
        text += (&size == list->data() ? "" : ", ") + size.str();
      text += "] ";
    }
    text += "[";
    for (size_t dim = 0; dim < strides.size(); ++dim)
      text += (dim ? ", " : "") + std::to_string(strides[dim]);
    return text + "]";
  }
};

/// Builds a random function and its model, one op after another. Each op method
/// emits an op on `x` and returns its result; if it does not support the shape
/// of `x`, it emits another op instead.
class Builder {
public:
  explicit Builder(Random &random) : random(random) {}
  SizeProgram build();

private:
  int64_t pickSize() {
    static constexpr int64_t sizes[] = {1, 2, 2, 3, 4, 4, 6};
    return random.pick(llvm::ArrayRef(sizes));
  }
  std::string newName() { return "%v" + std::to_string(numNames++); }
  void emit(const Twine &line) { body += ("  " + line + "\n").str(); }
  static std::string typeOf(const Shape &shape, const std::vector<bool> &mask,
                            const char *element = "f32");
  static std::string typeOf(const Value &value) {
    return typeOf(value.shape, value.isDynamic);
  }
  Value addInput(Shape shape, SizeInput::Kind kind = SizeInput::Kind::Floats,
                 bool keepsLast = false);
  Size constant(int64_t value) {
    return {value, "", [value](const ModelCall &) { return value; }};
  }
  Size dimOf(const Value &value, size_t dim);
  Size makeSize(int64_t value);
  std::vector<Size> sizesOf(const Value &value);
  /// Emits a tensor.empty of these sizes, and returns its name and type. `mask`
  /// gets which of the sizes are dynamic.
  std::pair<std::string, std::string> empty(const std::vector<Size> &sizes,
                                            std::vector<bool> &mask);
  /// Adds a result and the step that computes it in the model.
  Value finish(std::string name, Shape shape, std::vector<bool> mask,
               std::function<bool(ModelCall &, ModelTensor &)> step);

  /// Adds the result of a slice of `x`, whose op has been emitted.
  Value finishSlice(std::string name, Shape shape, std::vector<bool> mask,
                    const Value &x, const Slice &slice);

  Value addElements(const Value &x);
  Value expand(const Value &x);
  Value collapse(const Value &x);
  Value slice(const Value &x);
  Value insert(const Value &x);
  Value concat(const Value &x);
  Value pad(const Value &x);
  Value transpose(const Value &x);
  Value multiply(const Value &x);
  Value convolve(const Value &x);
  Value rotate(const Value &x);
  Value cast(const Value &x);
  Value call(const Value &x);
  Value attend(const Value &x);

  Random &random;
  SizeProgram program;
  std::string body, functions, arguments;
  std::vector<Value> values;
  unsigned numNames = 0, numFunctions = 0;
};

inline Shape evaluate(const std::vector<Size> &sizes, const ModelCall &call) {
  Shape shape;
  for (const Size &size : sizes)
    shape.push_back(size.of(call));
  return shape;
}

} // namespace posenc::fuzz::model

#endif // POSENC_TEST_FUZZ_SIZEBUILDER_H
