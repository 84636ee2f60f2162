//===- SizeShapeOperations.cpp - random slices and reshapes ---------------===//
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

Value Builder::addElements(const Value &x) {
  Value y = addInput(x.shape);
  std::vector<Size> sizes;
  for (int64_t size : x.shape)
    sizes.push_back(makeSize(size));
  std::vector<bool> mask;
  auto [init, type] = empty(sizes, mask);
  std::string name = newName();
  emit(name + " = linalg.add ins(" + x.name + ", " + y.name + " : " +
       typeOf(x) + ", " + typeOf(y) + ") outs(" + init + " : " + type +
       ") -> " + type);
  return finish(name, x.shape, mask,
                [x, y, sizes](ModelCall &call, ModelTensor &result) {
                  const ModelTensor &a = x.of(call), &b = y.of(call);
                  if (a.shape != b.shape || a.shape != evaluate(sizes, call))
                    return false;
                  result = a;
                  for (size_t i = 0; i < a.data.size(); ++i)
                    result.data[i] += b.data[i];
                  return true;
                });
}

static std::string printGroups(size_t rank, size_t first, size_t length) {
  std::string text = "[";
  for (size_t dim = 0; dim < rank;) {
    text += dim ? ", [" : "[";
    size_t end = dim == first ? dim + length : dim + 1;
    for (size_t i = dim; i < end; ++i)
      text += (i > dim ? ", " : "") + std::to_string(i);
    text += "]";
    dim = end;
  }
  return text + "]";
}

static bool reshape(const ModelTensor &from, const Shape &shape,
                    ModelTensor &result) {
  if (!isInRange(shape) || count(shape) != count(from.shape))
    return false;
  result = {shape, from.data};
  return true;
}

Value Builder::expand(const Value &x) {
  size_t dim = random.below(x.shape.size());
  int64_t whole = x.shape[dim], part = 1;
  for (int64_t size : {2, 3, 4})
    if (whole % size == 0 && random.chance(2))
      part = size;
  std::vector<Size> sizes = sizesOf(x);
  Size first = constant(whole / part), second = constant(part);
  if (x.isDynamic[dim]) {
    first = makeSize(first.value);
    second = makeSize(second.value);
    // At least one part of a dynamic size must be dynamic.
    if (!first.isDynamic() && !second.isDynamic())
      first = dimOf(addInput({first.value, 1}), 0);
  }
  sizes[dim] = first;
  sizes.insert(sizes.begin() + dim + 1, second);
  Shape shape;
  std::vector<bool> mask;
  std::string list;
  for (const Size &size : sizes) {
    shape.push_back(size.value);
    mask.push_back(size.isDynamic());
    list += (list.empty() ? "" : ", ") + size.str();
  }
  std::string name = newName();
  emit(name + " = tensor.expand_shape " + x.name + " " +
       printGroups(shape.size(), dim, 2) + " output_shape [" + list +
       "] : " + typeOf(x) + " into " + typeOf(shape, mask));
  return finish(name, shape, mask,
                [x, sizes, dim](ModelCall &call, ModelTensor &result) {
                  Shape shape = evaluate(sizes, call);
                  const ModelTensor &from = x.of(call);
                  return isInRange(shape) &&
                         shape[dim] * shape[dim + 1] == from.shape[dim] &&
                         reshape(from, shape, result);
                });
}

Value Builder::collapse(const Value &x) {
  if (x.shape.size() < 2)
    return expand(x);
  size_t dim = random.below(x.shape.size() - 1);
  Shape shape = x.shape;
  std::vector<bool> mask = x.isDynamic;
  shape[dim] *= shape[dim + 1];
  mask[dim] = mask[dim] || mask[dim + 1];
  shape.erase(shape.begin() + dim + 1);
  mask.erase(mask.begin() + dim + 1);
  std::string name = newName();
  emit(name + " = tensor.collapse_shape " + x.name + " " +
       printGroups(x.shape.size(), dim, 2) + " : " + typeOf(x) + " into " +
       typeOf(shape, mask));
  return finish(name, shape, mask,
                [x, dim](ModelCall &call, ModelTensor &result) {
                  const ModelTensor &from = x.of(call);
                  Shape shape = from.shape;
                  shape[dim] *= shape[dim + 1];
                  shape.erase(shape.begin() + dim + 1);
                  return reshape(from, shape, result);
                });
}

Value Builder::finishSlice(std::string name, Shape shape,
                           std::vector<bool> mask, const Value &x,
                           const Slice &slice) {
  return finish(std::move(name), std::move(shape), std::move(mask),
                [x, slice](ModelCall &call, ModelTensor &result) {
                  ModelTensor from = x.of(call);
                  if (!slice.contains(call, from.shape))
                    return false;
                  result = makeTensor(evaluate(slice.sizes, call));
                  forEach(result.shape, [&](const Shape &index) {
                    model::at(result, index) =
                        model::at(from, slice.at(call, index));
                  });
                  return true;
                });
}

Value Builder::slice(const Value &x) {
  Slice slice;
  Shape shape;
  std::vector<bool> mask;
  for (int64_t whole : x.shape) {
    int64_t stride = random.below(4) == 0 ? 2 : 1;
    int64_t size =
        whole ? 1 + int64_t(random.below((whole - 1) / stride + 1)) : 0;
    int64_t space = whole - (whole ? (size - 1) * stride + 1 : 0);
    slice.strides.push_back(stride);
    slice.offsets.push_back(makeSize(int64_t(random.below(space + 1))));
    slice.sizes.push_back(makeSize(size));
    shape.push_back(size);
    mask.push_back(slice.sizes.back().isDynamic());
  }
  std::string name = newName();
  emit(name + " = tensor.extract_slice " + x.name + slice.str() + " : " +
       typeOf(x) + " to " + typeOf(shape, mask));
  return finishSlice(name, shape, mask, x, slice);
}

Value Builder::insert(const Value &x) {
  Slice slice;
  Shape shape;
  for (int64_t size : x.shape) {
    int64_t before = random.below(3), after = random.below(2);
    slice.strides.push_back(1);
    slice.offsets.push_back(makeSize(before));
    shape.push_back(before + size + after);
  }
  slice.sizes = sizesOf(x);
  Value target = addInput(shape);
  std::string name = newName();
  emit(name + " = tensor.insert_slice " + x.name + " into " + target.name +
       slice.str() + " : " + typeOf(x) + " into " + typeOf(target));
  return finish(name, shape, target.isDynamic,
                [x, target, slice](ModelCall &call, ModelTensor &result) {
                  result = target.of(call);
                  if (!slice.contains(call, result.shape))
                    return false;
                  ModelTensor from = x.of(call);
                  forEach(from.shape, [&](const Shape &index) {
                    model::at(result, slice.at(call, index)) =
                        model::at(from, index);
                  });
                  return true;
                });
}

/// Concatenates two tensors by inserting both into an empty tensor.
Value Builder::concat(const Value &x) {
  size_t along = random.below(x.shape.size());
  Shape shape = x.shape;
  shape[along] = pickSize();
  Value y = addInput(shape);
  Size first = dimOf(x, along), second = dimOf(y, along);
  std::string total = newName();
  emit(total + " = arith.addi " + first.name + ", " + second.name + " : index");
  std::vector<Size> sizes = sizesOf(x);
  sizes[along] = {first.value + second.value, total,
                  [first, second](const ModelCall &call) {
                    return first.of(call) + second.of(call);
                  }};
  std::vector<bool> mask;
  auto [name, type] = empty(sizes, mask);
  for (const Value *part : {&x, static_cast<const Value *>(&y)}) {
    Slice slice;
    slice.sizes = sizesOf(*part);
    slice.strides.assign(x.shape.size(), 1);
    slice.offsets.assign(x.shape.size(), constant(0));
    if (part == &y)
      slice.offsets[along] = first;
    std::string next = newName();
    emit(next + " = tensor.insert_slice " + part->name + " into " + name +
         slice.str() + " : " + typeOf(*part) + " into " + type);
    name = next;
  }
  Shape result = x.shape;
  result[along] += shape[along];
  return finish(
      name, result, mask, [x, y, along](ModelCall &call, ModelTensor &result) {
        ModelTensor a = x.of(call), b = y.of(call);
        Shape shape = a.shape;
        for (size_t dim = 0; dim < shape.size(); ++dim)
          // The other dimensions must agree.
          if (dim != along && b.shape[dim] != shape[dim])
            return false;
        shape[along] += b.shape[along];
        result = makeTensor(shape);
        forEach(shape, [&](const Shape &index) {
          Shape position = index;
          bool isFirst = index[along] < a.shape[along];
          if (!isFirst)
            position[along] -= a.shape[along];
          model::at(result, index) = model::at(isFirst ? a : b, position);
        });
        return true;
      });
}

Value Builder::pad(const Value &x) {
  std::vector<Size> low, high;
  Shape shape;
  std::vector<bool> mask;
  std::string lows, highs, indices;
  for (size_t dim = 0; dim < x.shape.size(); ++dim) {
    low.push_back(makeSize(random.below(3)));
    high.push_back(makeSize(random.below(2)));
    lows += (dim ? ", " : "") + low.back().str();
    highs += (dim ? ", " : "") + high.back().str();
    indices += (dim ? ", %i" : "%i") + std::to_string(dim) + ": index";
    shape.push_back(low.back().value + x.shape[dim] + high.back().value);
    mask.push_back(x.isDynamic[dim] || low.back().isDynamic() ||
                   high.back().isDynamic());
  }
  std::string zero = newName(), name = newName();
  emit(zero + " = arith.constant 0.0 : f32");
  emit(name + " = tensor.pad " + x.name + " low[" + lows + "] high[" + highs +
       "] {");
  emit("^bb0(" + indices + "):");
  emit("  tensor.yield " + zero + " : f32");
  emit("} : " + typeOf(x) + " to " + typeOf(shape, mask));
  return finish(name, shape, mask,
                [x, low, high](ModelCall &call, ModelTensor &result) {
                  ModelTensor from = x.of(call);
                  Shape before = evaluate(low, call),
                        after = evaluate(high, call), shape = from.shape;
                  if (!isInRange(before) || !isInRange(after))
                    return false;
                  for (size_t dim = 0; dim < shape.size(); ++dim)
                    shape[dim] += before[dim] + after[dim];
                  result = makeTensor(shape);
                  forEach(from.shape, [&](const Shape &index) {
                    Shape position = index;
                    for (size_t dim = 0; dim < index.size(); ++dim)
                      position[dim] += before[dim];
                    model::at(result, position) = model::at(from, index);
                  });
                  return true;
                });
}
