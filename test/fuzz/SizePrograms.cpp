//===- SizePrograms.cpp - random modules and what sizes they take ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SizePrograms.h"

#include "llvm/ADT/Twine.h"

#include <cmath>
#include <numeric>

using namespace posenc::fuzz;
using llvm::Twine;

using Shape = std::vector<int64_t>;

static int64_t count(const Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

/// Sizes and offsets beyond this fit nothing that the model has.
static constexpr int64_t kMaxSize = 1 << 12;

static bool isInRange(const Shape &sizes) {
  for (int64_t size : sizes)
    if (size < 0 || size > kMaxSize)
      return false;
  return true;
}

/// Calls `visit(index)` for each index, the last dimension fastest.
static void forEach(const Shape &shape,
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

static double &at(ModelTensor &tensor, const Shape &index) {
  int64_t position = 0;
  for (size_t dim = 0; dim < index.size(); ++dim)
    position = position * tensor.shape[dim] + index[dim];
  return tensor.data[position];
}

static ModelTensor makeTensor(Shape shape) {
  ModelTensor result{std::move(shape), {}};
  result.data.resize(count(result.shape));
  return result;
}

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

namespace {

/// A tensor of the function.
struct Value {
  std::string name;
  Shape shape; // of the call that the function was made for
  std::vector<bool> isDynamic;
  bool isInput;
  size_t number;

  const ModelTensor &of(const ModelCall &call) const {
    return isInput ? call.inputs[number] : call.computed[number];
  }
};

/// A size: a constant, or the name of an index.
struct Size {
  int64_t value;
  std::string name;
  std::function<int64_t(const ModelCall &)> of;

  bool isDynamic() const { return !name.empty(); }
  std::string str() const { return isDynamic() ? name : std::to_string(value); }
};

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
  /// A tensor of these sizes to write to.
  std::pair<std::string, std::string> empty(const std::vector<Size> &sizes,
                                            std::vector<bool> &mask);
  Value finish(std::string name, Shape shape, std::vector<bool> mask,
               std::function<bool(ModelCall &, ModelTensor &)> step);

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

} // namespace

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

/// A size of this value: a constant, a dimension of some tensor, an input, or
/// arithmetic on these.
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

static Shape evaluate(const std::vector<Size> &sizes, const ModelCall &call) {
  Shape shape;
  for (const Size &size : sizes)
    shape.push_back(size.of(call));
  return shape;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

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
    // Of a dynamic size one of the parts is dynamic.
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

namespace {
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
} // namespace

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
  return finish(name, shape, mask,
                [x, slice](ModelCall &call, ModelTensor &result) {
                  ModelTensor from = x.of(call);
                  if (!slice.contains(call, from.shape))
                    return false;
                  result = makeTensor(evaluate(slice.sizes, call));
                  forEach(result.shape, [&](const Shape &index) {
                    ::at(result, index) = ::at(from, slice.at(call, index));
                  });
                  return true;
                });
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
                    ::at(result, slice.at(call, index)) = ::at(from, index);
                  });
                  return true;
                });
}

/// Two slices of a tensor that nothing else is written to.
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
  return finish(name, result, mask,
                [x, y, along](ModelCall &call, ModelTensor &result) {
                  ModelTensor a = x.of(call), b = y.of(call);
                  Shape shape = a.shape;
                  for (size_t dim = 0; dim < shape.size(); ++dim)
                    // Another tensor's rows need only have room.
                    if (dim != along && b.shape[dim] != shape[dim])
                      return false;
                  shape[along] += b.shape[along];
                  result = makeTensor(shape);
                  forEach(shape, [&](const Shape &index) {
                    Shape position = index;
                    bool isFirst = index[along] < a.shape[along];
                    if (!isFirst)
                      position[along] -= a.shape[along];
                    ::at(result, index) = ::at(isFirst ? a : b, position);
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
                    ::at(result, position) = ::at(from, index);
                  });
                  return true;
                });
}

Value Builder::transpose(const Value &x) {
  size_t rank = x.shape.size();
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  for (size_t dim = rank; dim > 1; --dim)
    std::swap(order[dim - 1], order[random.below(dim)]);
  std::vector<Size> sizes;
  Shape shape;
  for (size_t dim : order) {
    shape.push_back(x.shape[dim]);
    sizes.push_back(makeSize(x.shape[dim]));
  }
  std::vector<bool> mask;
  auto [init, type] = empty(sizes, mask);
  std::string name = newName();
  std::string loops, results;
  for (size_t dim = 0; dim < rank; ++dim) {
    loops += (dim ? ", d" : "d") + std::to_string(dim);
    results += (dim ? ", d" : "d") + std::to_string(order[dim]);
  }
  std::string parallel = "\"parallel\"";
  for (size_t dim = 1; dim < rank; ++dim)
    parallel += ", \"parallel\"";
  // The input is indexed by the loops, the result by their permutation.
  emit(name + " = linalg.generic {indexing_maps = [affine_map<(" + loops +
       ") -> (" + loops + ")>, affine_map<(" + loops + ") -> (" + results +
       ")>], iterator_types = [" + parallel + "]} ins(" + x.name + " : " +
       typeOf(x) + ") outs(" + init + " : " + type + ") {");
  emit("^bb0(%a: f32, %b: f32):");
  emit("  linalg.yield %a : f32");
  emit("} -> " + type);
  return finish(name, shape, mask,
                [x, order, sizes](ModelCall &call, ModelTensor &result) {
                  ModelTensor from = x.of(call);
                  Shape shape;
                  for (size_t dim : order)
                    shape.push_back(from.shape[dim]);
                  if (shape != evaluate(sizes, call))
                    return false;
                  result = makeTensor(shape);
                  forEach(shape, [&](const Shape &index) {
                    Shape position = index;
                    for (size_t dim = 0; dim < index.size(); ++dim)
                      position[order[dim]] = index[dim];
                    ::at(result, index) = ::at(from, position);
                  });
                  return true;
                });
}

Value Builder::multiply(const Value &x) {
  if (x.shape.size() != 2)
    return x.shape.size() > 2 ? collapse(x) : expand(x);
  int64_t columns = pickSize();
  Value y = addInput({x.shape[1], columns});
  std::vector<Size> sizes{makeSize(x.shape[0]), makeSize(columns)};
  std::vector<bool> mask;
  auto [init, type] = empty(sizes, mask);
  std::string zero = newName(), filled = newName(), name = newName();
  emit(zero + " = arith.constant 0.0 : f32");
  emit(filled + " = linalg.fill ins(" + zero + " : f32) outs(" + init + " : " +
       type + ") -> " + type);
  emit(name + " = linalg.matmul ins(" + x.name + ", " + y.name + " : " +
       typeOf(x) + ", " + typeOf(y) + ") outs(" + filled + " : " + type +
       ") -> " + type);
  return finish(
      name, {x.shape[0], columns}, mask,
      [x, y, sizes](ModelCall &call, ModelTensor &result) {
        ModelTensor a = x.of(call), b = y.of(call);
        Shape shape{a.shape[0], b.shape[1]};
        if (a.shape[1] != b.shape[0] || shape != evaluate(sizes, call))
          return false;
        result = makeTensor(shape);
        forEach({shape[0], shape[1], a.shape[1]}, [&](const Shape &index) {
          ::at(result, {index[0], index[1]}) +=
              ::at(a, {index[0], index[2]}) * ::at(b, {index[2], index[1]});
        });
        return true;
      });
}

/// A sum over windows, which are indexed by a sum of two loops.
Value Builder::convolve(const Value &x) {
  if (x.shape.size() != 1)
    return collapse(x);
  int64_t width = 1 + int64_t(random.below(std::max<int64_t>(x.shape[0], 1)));
  Value kernel = addInput({width});
  int64_t size = std::max<int64_t>(x.shape[0] - width + 1, 0);
  std::vector<Size> sizes{makeSize(size)};
  std::vector<bool> mask;
  auto [init, type] = empty(sizes, mask);
  std::string zero = newName(), filled = newName(), name = newName();
  emit(zero + " = arith.constant 0.0 : f32");
  emit(filled + " = linalg.fill ins(" + zero + " : f32) outs(" + init + " : " +
       type + ") -> " + type);
  emit(name +
       " = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0 + d1)>, "
       "affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], "
       "iterator_types = [\"parallel\", \"reduction\"]} ins(" +
       x.name + ", " + kernel.name + " : " + typeOf(x) + ", " + typeOf(kernel) +
       ") outs(" + filled + " : " + type + ") {");
  emit("^bb0(%a: f32, %b: f32, %c: f32):");
  emit("  %p = arith.mulf %a, %b : f32");
  emit("  %q = arith.addf %p, %c : f32");
  emit("  linalg.yield %q : f32");
  emit("} -> " + type);
  return finish(name, {size}, mask,
                [x, kernel, sizes](ModelCall &call, ModelTensor &result) {
                  ModelTensor a = x.of(call), b = kernel.of(call);
                  Shape shape = evaluate(sizes, call);
                  if (!isInRange(shape) ||
                      shape[0] + b.shape[0] - 1 > a.shape[0])
                    return false;
                  result = makeTensor(shape);
                  forEach({shape[0], b.shape[0]}, [&](const Shape &index) {
                    ::at(result, {index[0]}) +=
                        ::at(a, {index[0] + index[1]}) * ::at(b, {index[1]});
                  });
                  return true;
                });
}

/// Rotates the first two lanes, so that every last dimension of two or more
/// can be rotated.
Value Builder::rotate(const Value &x) {
  size_t rank = x.shape.size();
  if (rank < 2 || x.isDynamic.back() || x.shape.back() < 2)
    return cast(x);
  size_t numLoops = rank > 2 && random.chance(2) ? 2 : 1;
  Shape loops(x.shape.begin(), x.shape.begin() + numLoops);
  Value positions = addInput(loops, SizeInput::Kind::Positions);
  std::string out = x.name, type = typeOf(x), name = newName();
  std::vector<Size> sizes = sizesOf(x);
  std::vector<bool> mask = x.isDynamic;
  if (random.chance(2)) {
    for (size_t dim = 0; dim + 1 < rank; ++dim)
      if (random.chance(2))
        sizes[dim] = makeSize(x.shape[dim]);
    std::tie(out, type) = empty(sizes, mask);
  }
  emit(name + " = posenc.rope half #posenc.frequencies<dim = 2> ins(" + x.name +
       " : " + typeOf(x) + ") positions(" + positions.name + " : " +
       typeOf(positions.shape, positions.isDynamic, "i64") + ") dims = [0" +
       (numLoops == 2 ? ", 1" : "") + "] outs(" + out + " : " + type + ")");
  return finish(
      name, x.shape, mask,
      [x, positions, sizes, numLoops](ModelCall &call, ModelTensor &result) {
        result = x.of(call);
        ModelTensor at = positions.of(call);
        if (at.shape !=
                Shape(result.shape.begin(), result.shape.begin() + numLoops) ||
            result.shape != evaluate(sizes, call))
          return false;
        Shape rows(result.shape.begin(), result.shape.end() - 1);
        forEach(rows, [&](const Shape &row) {
          double angle = ::at(at, Shape(row.begin(), row.begin() + numLoops));
          Shape first = row, second = row;
          first.push_back(0);
          second.push_back(1);
          double a = ::at(result, first), b = ::at(result, second);
          ::at(result, first) = a * std::cos(angle) - b * std::sin(angle);
          ::at(result, second) = b * std::cos(angle) + a * std::sin(angle);
        });
        return true;
      });
}

Value Builder::cast(const Value &x) {
  std::vector<bool> mask = x.isDynamic;
  for (size_t dim = 0; dim < mask.size(); ++dim)
    if (dim + 1 == mask.size() || random.chance(3))
      mask[dim] = false;
  std::string name = newName();
  emit(name + " = tensor.cast " + x.name + " : " + typeOf(x) + " to " +
       typeOf(x.shape, mask));
  if (mask == x.isDynamic)
    return x;
  return finish(name, x.shape, mask,
                [x, mask](ModelCall &call, ModelTensor &result) {
                  result = x.of(call);
                  for (size_t dim = 0; dim < mask.size(); ++dim)
                    if (!mask[dim] && result.shape[dim] != x.shape[dim])
                      return false;
                  return true;
                });
}

/// A private function that takes every second element, or adds two tensors.
Value Builder::call(const Value &x) {
  std::string callee = "@g" + std::to_string(numFunctions++);
  size_t rank = x.shape.size();
  if (random.chance(2)) {
    Value y = addInput(x.shape);
    std::string text = "func.func private " + callee + "(%x: " + typeOf(x) +
                       ", %y: " + typeOf(y) + ") -> " + typeOf(x) + " {\n" +
                       "  %0 = linalg.add ins(%x, %y : " + typeOf(x) + ", " +
                       typeOf(y) + ") outs(%x : " + typeOf(x) + ") -> " +
                       typeOf(x) + "\n  return %0 : " + typeOf(x) + "\n}\n";
    functions += text;
    std::string name = newName();
    emit(name + " = func.call " + callee + "(" + x.name + ", " + y.name +
         ") : (" + typeOf(x) + ", " + typeOf(y) + ") -> " + typeOf(x));
    return finish(name, x.shape, x.isDynamic,
                  [x, y](ModelCall &call, ModelTensor &result) {
                    const ModelTensor &a = x.of(call), &b = y.of(call);
                    if (a.shape != b.shape)
                      return false;
                    result = a;
                    for (size_t i = 0; i < a.data.size(); ++i)
                      result.data[i] += b.data[i];
                    return true;
                  });
  }
  // The size is an argument of the callee.
  Slice slice;
  slice.offsets.assign(rank, constant(0));
  slice.strides.assign(rank, 1);
  slice.strides.back() = 2;
  Shape shape = x.shape;
  shape.back() = (shape.back() + 1) / 2;
  Size last = makeSize(shape.back());
  if (!last.isDynamic())
    last = dimOf(addInput({shape.back()}), 0);
  std::string sizes, offsets, strides, head;
  std::vector<bool> mask = x.isDynamic;
  mask.back() = true;
  for (size_t dim = 0; dim + 1 < rank; ++dim) {
    std::string number = std::to_string(dim);
    if (x.isDynamic[dim])
      head += "  %c" + number + " = arith.constant " + number +
              " : index\n  %d" + number + " = tensor.dim %x, %c" + number +
              " : " + typeOf(x) + "\n";
    sizes += (x.isDynamic[dim] ? "%d" + number : std::to_string(x.shape[dim])) +
             ", ";
    offsets += "0, ";
    strides += "1, ";
  }
  functions += "func.func private " + callee + "(%x: " + typeOf(x) +
               ", %n: index) -> " + typeOf(shape, mask) + " {\n" + head +
               "  %0 = tensor.extract_slice %x[" + offsets + "0] [" + sizes +
               "%n] [" + strides + "2] : " + typeOf(x) + " to " +
               typeOf(shape, mask) + "\n  return %0 : " + typeOf(shape, mask) +
               "\n}\n";
  std::string name = newName();
  emit(name + " = func.call " + callee + "(" + x.name + ", " + last.name +
       ") : (" + typeOf(x) + ", index) -> " + typeOf(shape, mask));
  slice.sizes = {};
  for (size_t dim = 0; dim + 1 < rank; ++dim)
    slice.sizes.push_back({x.shape[dim], "", [x, dim](const ModelCall &call) {
                             return x.of(call).shape[dim];
                           }});
  slice.sizes.push_back(last);
  return finish(name, shape, mask,
                [x, slice](ModelCall &call, ModelTensor &result) {
                  ModelTensor from = x.of(call);
                  if (!slice.contains(call, from.shape))
                    return false;
                  result = makeTensor(evaluate(slice.sizes, call));
                  forEach(result.shape, [&](const Shape &index) {
                    ::at(result, index) = ::at(from, slice.at(call, index));
                  });
                  return true;
                });
}

/// Attention of (batch, queries, heads, lanes) to caches of given lengths.
Value Builder::attend(const Value &x) {
  if (x.shape.size() != 4 || x.isDynamic.back())
    return x.shape.size() < 4 ? expand(x) : cast(x);
  int64_t heads = x.shape[2] % 2 ? 1 : 2, keys = pickSize();
  if (x.shape[2] == 0 || x.shape[3] == 0)
    return cast(x);
  Value k = addInput({x.shape[0], keys, heads, x.shape[3]},
                     SizeInput::Kind::Floats, /*keepsLast=*/true);
  Value v = addInput(k.shape, SizeInput::Kind::Floats, /*keepsLast=*/true);
  bool hasLengths = random.chance(2);
  Value lengths = x;
  std::string text;
  if (hasLengths) {
    lengths = addInput({x.shape[0]}, SizeInput::Kind::Lengths);
    text = " lengths(" + lengths.name + " : " +
           typeOf(lengths.shape, lengths.isDynamic, "i64") + ")";
  }
  std::string name = newName();
  emit(name + " = posenc.attention scale = 0.5 ins(" + x.name + ", " + k.name +
       ", " + v.name + " : " + typeOf(x) + ", " + typeOf(k) + ", " + typeOf(v) +
       ")" + text + " outs(" + x.name + " : " + typeOf(x) + ")");
  return finish(
      name, x.shape, x.isDynamic, [=](ModelCall &call, ModelTensor &result) {
        ModelTensor q = x.of(call), key = k.of(call), value = v.of(call);
        int64_t batch = q.shape[0], heads = q.shape[2], lanes = q.shape[3];
        int64_t keys = key.shape[1], groups = key.shape[2];
        if (key.shape != value.shape || key.shape[0] != batch ||
            key.shape[3] != lanes ||
            (groups ? heads % groups != 0 : heads != 0))
          return false;
        std::vector<int64_t> valid(batch, keys);
        if (hasLengths) {
          const ModelTensor &given = lengths.of(call);
          if (given.shape != Shape{batch})
            return false;
          for (int64_t b = 0; b < batch; ++b) {
            valid[b] = int64_t(given.data[b]);
            if (valid[b] < 0 || valid[b] > keys)
              return false;
          }
        }
        result = makeTensor(q.shape);
        forEach({batch, q.shape[1], heads}, [&](const Shape &row) {
          int64_t b = row[0], group = row[2] / (heads / groups);
          std::vector<double> weights;
          double most = -INFINITY, sum = 0;
          for (int64_t j = 0; j < valid[b]; ++j) {
            double score = 0;
            for (int64_t d = 0; d < lanes; ++d)
              score += ::at(q, {b, row[1], row[2], d}) *
                       ::at(key, {b, j, group, d}) * .5;
            weights.push_back(score);
            most = std::max(most, score);
          }
          for (double &weight : weights)
            sum += weight = std::exp(weight - most);
          for (int64_t j = 0; j < valid[b]; ++j)
            for (int64_t d = 0; d < lanes; ++d)
              ::at(result, {b, row[1], row[2], d}) +=
                  weights[j] / sum * ::at(value, {b, j, group, d});
        });
        return true;
      });
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
    // Five dimensions of up to six are enough.
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
