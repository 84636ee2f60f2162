//===- Convolutions.cpp - Conv --------------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The convolution that cuts an image into patches, whose kernel is as large as
// its step, is a product of matrices. Others are loops of sums.
//
//===----------------------------------------------------------------------===//

#include "Products.h"
#include "Scalars.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

namespace {
struct Convolution {
  Tensor input, weight;
  int64_t group;
  /// One for each spatial dimension.
  SmallVector<int64_t> kernel, strides, dilations, before, after;
  /// Sizes of the result's spatial dimensions.
  SmallVector<Size> sizes;
};
} // namespace

static LogicalResult readAttributes(NodeImporter &node, Convolution &conv) {
  int64_t rank = conv.input.getRank(), spatial = rank - 2;
  if (spatial < 1 || conv.weight.getRank() != rank)
    return node.emitError() << "expected images and kernels of one rank, at "
                               "least 3";
  if (!conv.input.isFloat() || conv.weight.element != conv.input.element)
    return node.emitError() << "expected floats of one type";
  conv.group = node.getInt("group", 1);
  for (const Size &size : ArrayRef(conv.weight.shape)) {
    if (!size.getConstant() || *size.getConstant() <= 0)
      return node.emitError() << "kernels of unknown size are not supported";
  }
  for (const Size &size : ArrayRef(conv.weight.shape).drop_front(2))
    conv.kernel.push_back(*size.getConstant());
  auto read = [&](StringRef name, size_t count, int64_t fallback) {
    auto ints = node.getInts(name);
    return ints ? *ints : SmallVector<int64_t>(count, fallback);
  };
  if (std::optional<SmallVector<int64_t>> shape = node.getInts("kernel_shape"))
    if (*shape != conv.kernel)
      return node.emitError() << "'kernel_shape' is not that of the kernels";
  conv.strides = read("strides", spatial, 1);
  conv.dilations = read("dilations", spatial, 1);
  SmallVector<int64_t> pads = read("pads", 2 * spatial, 0);
  StringRef automatic = node.getString("auto_pad", "NOTSET");
  if (automatic == "VALID")
    pads.assign(2 * spatial, 0);
  else if (automatic != "NOTSET")
    return node.emitError() << "'auto_pad' is not supported: export with "
                               "'pads'";
  constexpr int64_t limit = 1 << 20;
  auto isIn = [&](ArrayRef<int64_t> values, size_t count, int64_t low) {
    return values.size() == count && llvm::all_of(values, [&](int64_t value) {
             return value >= low && value <= limit;
           });
  };
  if (!isIn(conv.strides, spatial, 1) || !isIn(conv.dilations, spatial, 1) ||
      !isIn(pads, 2 * spatial, 0) || !isIn(conv.kernel, spatial, 1))
    return node.emitError() << "strides, dilations or pads are out of range";
  conv.before.assign(pads.begin(), pads.begin() + spatial);
  conv.after.assign(pads.begin() + spatial, pads.end());
  int64_t outputs = *conv.weight.shape[0].getConstant();
  int64_t channels = *conv.weight.shape[1].getConstant();
  if (conv.group < 1 || outputs % conv.group ||
      !requireEqual(node, conv.input.shape[1], Size(channels) * conv.group))
    return node.emitError() << "the channels of images and kernels differ";
  for (int64_t dim = 0; dim < spatial; ++dim) {
    int64_t reach = conv.dilations[dim] * (conv.kernel[dim] - 1) + 1 -
                    conv.before[dim] - conv.after[dim];
    Size span = conv.input.shape[dim + 2] - reach;
    if (!requireAtMost(node, reach, conv.input.shape[dim + 2]))
      return node.emitError() << "the image is smaller than the kernels";
    conv.sizes.push_back(node.sizes.createTerm(SizeTable::Term::Quotient, span,
                                               conv.strides[dim]) +
                         1);
  }
  return success();
}

/// Multiplies patches and kernels. Returns (N, sizes..., outputs) with the
/// channels first.
static FailureOr<Tensor> multiplyPatches(NodeImporter &node,
                                         Convolution &conv) {
  int64_t spatial = conv.kernel.size();
  Tensor image = conv.input;
  // Cuts off what no patch covers.
  SmallVector<Size> offsets(spatial + 2, Size(0)), sizes(image.shape);
  for (int64_t dim = 0; dim < spatial; ++dim)
    sizes[dim + 2] = conv.sizes[dim] * conv.kernel[dim];
  image = slice(node, image, offsets, sizes);
  // (N, C, H, h, W, w) to (N, H, W, C, h, w).
  SmallVector<Size> split{image.shape[0], image.shape[1]};
  SmallVector<int64_t> permutation{0};
  Size rows = image.shape[0], depth = image.shape[1];
  for (int64_t dim = 0; dim < spatial; ++dim) {
    permutation.push_back(2 + 2 * dim);
    split.push_back(conv.sizes[dim]);
    split.push_back(conv.kernel[dim]);
    rows = rows * conv.sizes[dim];
    depth = depth * conv.kernel[dim];
  }
  permutation.push_back(1);
  for (int64_t dim = 0; dim < spatial; ++dim)
    permutation.push_back(3 + 2 * dim);
  FailureOr<Tensor> parts = reshape(node, image, split);
  if (failed(parts))
    return failure();
  Tensor moved = transpose(node, *parts, permutation);
  Size outputs = conv.weight.shape[0];
  FailureOr<Tensor> patches = reshape(node, moved, {rows, depth}),
                    kernels = reshape(node, conv.weight, {outputs, depth});
  if (failed(patches) || failed(kernels))
    return failure();
  FailureOr<Tensor> product =
      multiply(node, *patches, transpose(node, *kernels, {1, 0}));
  if (failed(product))
    return failure();
  SmallVector<Size> shape{image.shape[0]};
  shape.append(conv.sizes);
  shape.push_back(outputs);
  FailureOr<Tensor> result = reshape(node, *product, shape);
  if (failed(result))
    return failure();
  SmallVector<int64_t> back{0, spatial + 1};
  for (int64_t dim = 0; dim < spatial; ++dim)
    back.push_back(dim + 1);
  return transpose(node, *result, back);
}

/// Sums over channels and kernels, of each group by itself.
static FailureOr<Tensor> sumWindows(NodeImporter &node, Convolution &conv) {
  int64_t spatial = conv.kernel.size();
  Type element = conv.input.element, wide = getWideType(element);
  Tensor image = conv.input;
  if (llvm::any_of(conv.before, [](int64_t pad) { return pad; }) ||
      llvm::any_of(conv.after, [](int64_t pad) { return pad; })) {
    SmallVector<OpFoldResult> low(2, node.getIndexAttr(0)), high(low);
    SmallVector<Size> shape(image.shape);
    for (int64_t dim = 0; dim < spatial; ++dim) {
      low.push_back(node.getIndexAttr(conv.before[dim]));
      high.push_back(node.getIndexAttr(conv.after[dim]));
      shape[dim + 2] = shape[dim + 2] + conv.before[dim] + conv.after[dim];
    }
    Value zero = createScalar(node, element, 0);
    Value padded =
        tensor::PadOp::create(node, node.graph.getType(shape, element),
                              node.getValue(image), low, high, zero);
    image = createTensor(node, padded, shape);
  }
  int64_t outputs = *conv.weight.shape[0].getConstant() / conv.group;
  Size channels = conv.weight.shape[1];
  SmallVector<Size> imageShape{image.shape[0], conv.group, channels};
  SmallVector<Size> weightShape{conv.group, outputs, channels};
  SmallVector<Size> shape{image.shape[0], conv.group, outputs};
  imageShape.append(image.shape.begin() + 2, image.shape.end());
  weightShape.append(conv.weight.shape.begin() + 2, conv.weight.shape.end());
  shape.append(conv.sizes);
  FailureOr<Tensor> images = reshape(node, image, imageShape),
                    weights = reshape(node, conv.weight, weightShape);
  if (failed(images) || failed(weights))
    return failure();
  // Loops: n, g, o, result's sizes; c, kernel's sizes.
  int64_t parallel = 3 + spatial, count = parallel + 1 + spatial;
  auto dim = [&](int64_t number) { return node.getAffineDimExpr(number); };
  SmallVector<AffineExpr> in{dim(0), dim(1), dim(parallel)};
  SmallVector<AffineExpr> kernel{dim(1), dim(2), dim(parallel)};
  SmallVector<AffineExpr> out{dim(0), dim(1), dim(2)};
  for (int64_t i = 0; i < spatial; ++i) {
    AffineExpr tap = dim(parallel + 1 + i);
    in.push_back(dim(3 + i) * conv.strides[i] + tap * conv.dilations[i]);
    kernel.push_back(tap);
    out.push_back(dim(3 + i));
  }
  MLIRContext *context = node.getContext();
  AffineMap maps[] = {AffineMap::get(count, 0, in, context),
                      AffineMap::get(count, 0, kernel, context),
                      AffineMap::get(count, 0, out, context)};
  SmallVector<utils::IteratorType> loops(parallel,
                                         utils::IteratorType::parallel);
  loops.append(1 + spatial, utils::IteratorType::reduction);
  Value init = createFilled(node, shape, wide, 0);
  auto body = [&](Scalars &s, ValueRange args) {
    return s.add(args[2], s.mul(s.convert(args[0]), s.convert(args[1])));
  };
  Value inputs[] = {node.getValue(*images), node.getValue(*weights)};
  Tensor grouped = createGeneric(node, inputs, init, maps, loops, shape, body);
  Tensor narrow = convertTensor(node, grouped, element);
  SmallVector<Size> merged{image.shape[0], conv.weight.shape[0]};
  merged.append(conv.sizes);
  return reshape(node, narrow, merged);
}

static FailureOr<Tensor> convolve(NodeImporter &node) {
  Convolution conv;
  conv.input = node.getInput(0);
  conv.weight = node.getInput(1);
  if (failed(readAttributes(node, conv)))
    return failure();
  auto isAll = [](ArrayRef<int64_t> values, int64_t value) {
    return llvm::all_of(values, [&](int64_t v) { return v == value; });
  };
  bool arePatches = conv.group == 1 && conv.strides == conv.kernel &&
                    isAll(conv.dilations, 1) && isAll(conv.before, 0) &&
                    isAll(conv.after, 0);
  FailureOr<Tensor> result =
      arePatches ? multiplyPatches(node, conv) : sumWindows(node, conv);
  if (failed(result))
    return failure();
  if (node.hasInput(2)) {
    Tensor &bias = node.getInput(2);
    SmallVector<Size> shape(conv.kernel.size() + 1, Size(1));
    shape.front() = conv.weight.shape[0];
    FailureOr<Tensor> column = reshape(node, bias, shape);
    if (failed(column))
      return failure();
    return addTensors(node, {&*result, &*column});
  }
  return result;
}

static LogicalResult importConv(NodeImporter &node) {
  return node.setResult(convolve(node));
}

/// A convolution, to whose results an activation is applied.
static LogicalResult importFusedConv(NodeImporter &node) {
  if (node.hasInput(3))
    return node.emitError() << "a summand is not supported";
  StringRef op = node.getString("activation", "");
  SmallVector<float> params;
  if (const AttributeProto *given = node.getAttribute("activation_params"))
    params.assign(given->floats);
  unsigned count = llvm::StringSwitch<unsigned>(op)
                       .Cases({"Relu", "Sigmoid", "Tanh"}, 0)
                       .Case("LeakyRelu", 1)
                       .Cases({"Clip", "HardSigmoid"}, 2)
                       .Default(~0u);
  if (count != params.size())
    return node.emitError() << "activation '" << op.take_front(64) << "' with "
                            << params.size() << " parameters is not supported";
  FailureOr<Tensor> result = convolve(node);
  if (failed(result))
    return failure();
  return node.setResult(
      mapFloats(node, &*result, [&](Scalars &s, ValueRange args) -> Value {
        Value x = args[0];
        if (op == "Relu")
          return s.max(x, s.get(0));
        if (op == "Sigmoid")
          return s.sigmoid(x);
        if (op == "Tanh")
          return math::TanhOp::create(s, x);
        if (op == "LeakyRelu")
          return s.select(s.less(x, s.get(0)), s.mul(x, s.get(params[0])), x);
        if (op == "Clip")
          return s.min(s.max(x, s.get(params[0])), s.get(params[1]));
        Value line = s.add(s.mul(x, s.get(params[0])), s.get(params[1]));
        return s.max(s.get(0), s.min(s.get(1), line));
      }));
}

void onnx::addConvolutionOperators(OperatorTable &table) {
  table["Conv"] = {2, 3, 1, importConv};
  table["com.microsoft/FusedConv"] = {2, 4, 1, importFusedConv};
}
