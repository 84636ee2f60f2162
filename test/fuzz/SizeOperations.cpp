//===- SizeOperations.cpp - random products, calls and posenc ops ---------===//
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
  // The indices of the input are the loops, those of the result a permutation
  // of them.
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
                    model::at(result, index) = model::at(from, position);
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
          model::at(result, {index[0], index[1]}) +=
              model::at(a, {index[0], index[2]}) *
              model::at(b, {index[2], index[1]});
        });
        return true;
      });
}

/// Emits a 1-D convolution, whose input is indexed by the sum of two loops.
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
  return finish(
      name, {size}, mask,
      [x, kernel, sizes](ModelCall &call, ModelTensor &result) {
        ModelTensor a = x.of(call), b = kernel.of(call);
        Shape shape = evaluate(sizes, call);
        if (!isInRange(shape) || shape[0] + b.shape[0] - 1 > a.shape[0])
          return false;
        result = makeTensor(shape);
        forEach({shape[0], b.shape[0]}, [&](const Shape &index) {
          model::at(result, {index[0]}) +=
              model::at(a, {index[0] + index[1]}) * model::at(b, {index[1]});
        });
        return true;
      });
}

/// Rotates the first two elements of each row, so that any last dimension of at
/// least 2 is supported.
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
          double angle =
              model::at(at, Shape(row.begin(), row.begin() + numLoops));
          Shape first = row, second = row;
          first.push_back(0);
          second.push_back(1);
          double a = model::at(result, first), b = model::at(result, second);
          model::at(result, first) = a * std::cos(angle) - b * std::sin(angle);
          model::at(result, second) = b * std::cos(angle) + a * std::sin(angle);
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

/// Calls a private function that takes every second element or adds two
/// tensors.
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
  return finishSlice(name, shape, mask, x, slice);
}

/// Emits attention of queries (batch x queries x heads x dim) to random keys,
/// with or without key lengths.
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
        int64_t batch = q.shape[0], heads = q.shape[2], dim = q.shape[3];
        int64_t keys = key.shape[1], keyHeads = key.shape[2];
        if (key.shape != value.shape || key.shape[0] != batch ||
            key.shape[3] != dim ||
            (keyHeads ? heads % keyHeads != 0 : heads != 0))
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
          int64_t b = row[0], keyHead = row[2] / (heads / keyHeads);
          std::vector<double> weights;
          double maxScore = -INFINITY, sum = 0;
          for (int64_t j = 0; j < valid[b]; ++j) {
            double score = 0;
            for (int64_t d = 0; d < dim; ++d)
              score += model::at(q, {b, row[1], row[2], d}) *
                       model::at(key, {b, j, keyHead, d}) * .5;
            weights.push_back(score);
            maxScore = std::max(maxScore, score);
          }
          for (double &weight : weights)
            sum += weight = std::exp(weight - maxScore);
          for (int64_t j = 0; j < valid[b]; ++j)
            for (int64_t d = 0; d < dim; ++d)
              model::at(result, {b, row[1], row[2], d}) +=
                  weights[j] / sum * model::at(value, {b, j, keyHead, d});
        });
        return true;
      });
}
