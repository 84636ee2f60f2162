//===- Windows.cpp - windows and convolutions -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Windows that begin at the first element or end at the last one are cumulative
// sums, and become loops. The convolution that cuts an image into patches is a
// product of matrices. Others are loops of sums.
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

using utils::IteratorType;

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

Value Converter::createPrefix(Combiner combiner, int64_t dim, bool isReversed) {
  Value input = getOperand(0), init = getOperand(1);
  Type element = getType(input).getElementType();
  Shape shape = getShape(input), rest(shape), sliceShape(shape);
  rest.erase(rest.begin() + dim);
  sliceShape[dim] = 1;
  Value scalar = getScalar(init);
  Value start = createFilled(rest, scalar);
  Value zero = arith::ConstantIndexOp::create(builder, 0),
        one = arith::ConstantIndexOp::create(builder, 1),
        count = getIndex(shape[dim]);
  SmallVector<OpFoldResult> offsets(shape.size(), builder.getIndexAttr(0)),
      counts = getMixed(sliceShape),
      strides(shape.size(), builder.getIndexAttr(1));
  auto accumulator = cast<RankedTensorType>(start.getType());
  auto loop = scf::ForOp::create(
      builder, zero, count, one, ValueRange{createEmpty(shape, element), start},
      [&](OpBuilder &nested, Location loc, Value index, ValueRange carried) {
        ImplicitLocOpBuilder b(loc, nested);
        if (isReversed) {
          Value last = arith::SubIOp::create(b, count, one);
          index = arith::SubIOp::create(b, last, index);
        }
        offsets[dim] = index;
        Value slice = tensor::ExtractSliceOp::create(b, accumulator, input,
                                                     offsets, counts, strides);
        Value next =
            createGeneric(b, slice, carried[1], {}, {},
                          [&](ImplicitLocOpBuilder &inside, ValueRange args) {
                            return combine(inside, combiner, args[1], args[0]);
                          });
        Value written = tensor::InsertSliceOp::create(b, next, carried[0],
                                                      offsets, counts, strides);
        scf::YieldOp::create(b, ValueRange{written, next});
      });
  return withShape(loop.getResult(0), shape);
}

Value Converter::createWindows(Combiner combiner, ArrayRef<Size> window,
                               ArrayRef<int64_t> strides,
                               ArrayRef<int64_t> dilations, ArrayRef<Size> low,
                               ArrayRef<Size> high) {
  Value input = getOperand(0), init = getOperand(1);
  Shape shape = getShape(input);
  size_t rank = shape.size();
  Type element = getType(input).getElementType();
  if (window.size() != rank || strides.size() != rank ||
      dilations.size() != rank || low.size() != rank || high.size() != rank ||
      getType(init).getRank() != 0 ||
      getType(init).getElementType() != element ||
      llvm::any_of(strides, [](int64_t n) { return n < 1; }) ||
      llvm::any_of(dilations, [](int64_t n) { return n < 1; }))
    return fail("has windows that do not fit its operand");
  // Cumulative sums have the window of all elements, padded on one side.
  std::optional<int64_t> along;
  bool isPrefix = true, isSuffix = true;
  for (size_t dim = 0; dim < rank; ++dim) {
    bool isSingle = window[dim].isConstant(1) && low[dim].isConstant(0) &&
                    high[dim].isConstant(0);
    if (strides[dim] != 1 || dilations[dim] != 1 || (!isSingle && along))
      isPrefix = isSuffix = false;
    if (isSingle)
      continue;
    along = dim;
    isPrefix &= window[dim] == shape[dim] && low[dim] == shape[dim] - 1 &&
                high[dim].isConstant(0);
    isSuffix &= window[dim] == shape[dim] && high[dim] == shape[dim] - 1 &&
                low[dim].isConstant(0);
  }
  if (along && (isPrefix || isSuffix))
    return createPrefix(combiner, *along, !isPrefix);
  Shape result;
  for (size_t dim = 0; dim < rank; ++dim) {
    Size span = shape[dim] + low[dim] + high[dim] -
                (window[dim] - 1) * dilations[dim] - 1;
    if (span.getConstant() && *span.getConstant() < 0)
      return fail("has windows that are larger than its operand");
    result.push_back(
        sizes.table.createTerm(SizeTable::Term::Quotient, span, strides[dim]) +
        1);
  }
  // Padding adds nothing, as in XLA: the initial value is combined once.
  Value padded = input;
  if (llvm::any_of(low, [](const Size &s) { return !s.isConstant(0); }) ||
      llvm::any_of(high, [](const Size &s) { return !s.isConstant(0); }))
    padded = createPad(input, createNeutral(combiner, element), low, high);
  if (!padded)
    return {};
  SmallVector<AffineExpr> read, windows;
  for (size_t dim = 0; dim < rank; ++dim) {
    windows.push_back(builder.getAffineDimExpr(rank + dim));
    read.push_back(builder.getAffineDimExpr(dim) * strides[dim] +
                   windows.back() * dilations[dim]);
  }
  SmallVector<IteratorType> loops(rank, IteratorType::parallel);
  loops.append(rank, IteratorType::reduction);
  Value scalar = getScalar(init);
  Value filled = createFilled(result, scalar);
  MLIRContext *context = builder.getContext();
  AffineMap maps[] = {
      AffineMap::get(2 * rank, 0, read, context),
      AffineMap::get(2 * rank, 0, windows, context),
      builder.getMultiDimIdentityMap(2 * rank).getMajorSubMap(rank)};
  return createGeneric(builder, {padded, createEmpty(window, element)}, filled,
                       maps, loops,
                       [&](ImplicitLocOpBuilder &b, ValueRange args) {
                         return combine(b, combiner, args[2], args[0]);
                       });
}

Value Converter::convertReduceWindow() {
  std::optional<Combiner> combiner = getCombiner();
  if (!combiner || op->getNumOperands() != 2)
    return fail("with a region of more than one operation is not supported");
  SmallVector<int64_t> ones(getType(getOperand(0)).getRank(), 1);
  auto window = getNumbers("window_dimensions");
  if (!window)
    return fail("lacks its windows");
  auto strides = getNumbers("window_strides").value_or(ones),
       dilations = getNumbers("window_dilations").value_or(ones),
       baseDilations = getNumbers("base_dilations").value_or(ones),
       padding = getNumbers("padding").value_or(
           SmallVector<int64_t>(2 * ones.size(), 0));
  if (baseDilations != ones)
    return fail("with elements between others is not supported");
  if (padding.size() != 2 * ones.size())
    return fail("has windows that do not fit its operand");
  Shape low, high;
  for (size_t dim = 0; dim < ones.size(); ++dim) {
    low.push_back(padding[2 * dim]);
    high.push_back(padding[2 * dim + 1]);
  }
  return createWindows(*combiner, toShape(*window), strides, dilations, low,
                       high);
}

Value Converter::convertDynamicReduceWindow() {
  // The combiner is a function.
  std::optional<Combiner> combiner;
  auto callees =
      dyn_cast_or_null<ArrayAttr>(getAttribute("called_computations"));
  if (callees && callees.size() == 1)
    if (auto symbol = dyn_cast<FlatSymbolRefAttr>(callees[0]))
      if (auto callee =
              SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, symbol);
          callee && callee.getBody().hasOneBlock())
        combiner = getCombiner(callee.getBody().front());
  auto rank = size_t(getType(getOperand(0)).getRank());
  if (!combiner || op->getNumOperands() != 7 || op->getNumResults() != 1)
    return fail("calls a function of more than one operation, which is not "
                "supported");
  std::optional<Shape> window = sizes.getElements(getOperand(2)),
                       padding = sizes.getElements(getOperand(6));
  auto strides = getConstantElements(3), baseDilations = getConstantElements(4),
       dilations = getConstantElements(5);
  if (!window || !padding || !strides || !baseDilations || !dilations ||
      padding->size() != 2 * rank)
    return fail("has windows that do not follow from sizes");
  if (llvm::any_of(*baseDilations, [](int64_t n) { return n != 1; }))
    return fail("with elements between others is not supported");
  Shape low, high;
  for (size_t dim = 0; dim < rank; ++dim) {
    low.push_back((*padding)[2 * dim]);
    high.push_back((*padding)[2 * dim + 1]);
  }
  return createWindows(*combiner, *window, *strides, *dilations, low, high);
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

Value Converter::createConvolution(Value input, Value kernel,
                                   const Convolution &conv, Type element) {
  Shape inputShape = getShape(input), kernelShape = getShape(kernel);
  size_t rank = inputShape.size(), spatial = rank - 2;
  auto isIn = [&](ArrayRef<int64_t> numbers, int64_t min) {
    return numbers.size() == spatial && llvm::all_of(numbers, [&](int64_t n) {
             return n >= min && n <= (1 << 20);
           });
  };
  if (rank < 2 || kernelShape.size() != rank || conv.input.size() != rank ||
      conv.kernel.size() != rank || conv.output.size() != rank ||
      !isPermutationVector(conv.input) || !isPermutationVector(conv.kernel) ||
      !isPermutationVector(conv.output) || !isIn(conv.strides, 1) ||
      !isIn(conv.dilations, 1) || !isIn(conv.low, 0) || !isIn(conv.high, 0))
    return fail("has windows that do not fit its operands");
  if (!isa<FloatType>(element) ||
      !isa<FloatType>(getType(input).getElementType()) ||
      getType(input).getElementType() != getType(kernel).getElementType())
    return fail("is supported on floats only");
  const Size &outputs = kernelShape[conv.kernel[0]],
             &depth = kernelShape[conv.kernel[1]],
             &channels = inputShape[conv.input[1]];
  if (conv.groups < 1 || !outputs.getConstant() || !depth.getConstant() ||
      *outputs.getConstant() % conv.groups != 0 ||
      channels != depth * conv.groups)
    return fail("has other channels than its kernel");
  // Sizes of the spatial dimensions of the result.
  Shape extents;
  bool hasPatches = conv.groups == 1;
  for (size_t dim = 0; dim < spatial; ++dim) {
    const Size &size = kernelShape[conv.kernel[dim + 2]];
    Size span = inputShape[conv.input[dim + 2]] + conv.low[dim] +
                conv.high[dim] - (size - 1) * conv.dilations[dim] - 1;
    if (!size.getConstant() || size.isConstant(0) ||
        (span.getConstant() && *span.getConstant() < 0))
      return fail("has a kernel that is larger than its operand");
    extents.push_back(sizes.table.createTerm(SizeTable::Term::Quotient, span,
                                             conv.strides[dim]) +
                      1);
    hasPatches &= size.isConstant(conv.strides[dim]) &&
                  (conv.dilations[dim] == 1 || size.isConstant(1)) &&
                  conv.low[dim] == 0 && conv.high[dim] == 0;
  }
  if (llvm::any_of(conv.low, [](int64_t n) { return n != 0; }) ||
      llvm::any_of(conv.high, [](int64_t n) { return n != 0; })) {
    Shape low(rank, Size(0)), high(low);
    for (size_t dim = 0; dim < spatial; ++dim) {
      low[conv.input[dim + 2]] = conv.low[dim];
      high[conv.input[dim + 2]] = conv.high[dim];
    }
    Value zero = createSplat(getType(input).clone(ArrayRef<int64_t>()), 0);
    input = createPad(input, zero, low, high);
    if (!input)
      return {};
  }
  if (hasPatches) {
    // Each spatial dimension becomes patches and the elements of a patch.
    Shape offsets(rank, Size(0)), covered(inputShape), split;
    for (size_t dim = 0; dim < spatial; ++dim)
      covered[conv.input[dim + 2]] = extents[dim] * conv.strides[dim];
    if (covered != inputShape)
      input = sliceBy(input, offsets, covered, SmallVector<int64_t>(rank, 1));
    SmallVector<int64_t> patchDims(spatial), position(rank), order;
    int64_t depthDim = 0;
    for (size_t dim = 0; dim < rank; ++dim) {
      const auto *it = llvm::find(conv.input, int64_t(dim));
      size_t role = it - conv.input.begin();
      if (role < 2) {
        if (role == 1)
          depthDim = split.size();
        else
          order.push_back(0);
        split.push_back(covered[dim]);
        continue;
      }
      order.push_back(role);
      split.push_back(extents[role - 2]);
      patchDims[role - 2] = split.size();
      split.push_back(conv.strides[role - 2]);
    }
    input = reshape(input, split);
    if (!input)
      return {};
    SmallVector<int64_t> left{depthDim}, right{conv.kernel[1]};
    left.append(patchDims);
    right.append(conv.kernel.begin() + 2, conv.kernel.end());
    Value product = createDot(input, kernel, {}, {}, left, right, element);
    if (!product)
      return {};
    // The product has batch and patches in the order of the input, and the
    // channels last.
    order.push_back(1);
    SmallVector<int64_t> permutation(rank);
    for (size_t role = 0; role < rank; ++role)
      permutation[conv.output[role]] =
          llvm::find(order, int64_t(role)) - order.begin();
    return llvm::is_sorted(permutation) ? product
                                        : transpose(product, permutation);
  }
  // Channels are split into groups.
  bool hasGroups = conv.groups > 1;
  auto splitGroups = [&](Value value, int64_t dim, const Size &inner) {
    Shape shape = getShape(value);
    shape[dim] = inner;
    shape.insert(shape.begin() + dim, Size(conv.groups));
    return reshape(value, shape);
  };
  int64_t perGroup = *outputs.getConstant() / conv.groups;
  if (hasGroups) {
    input = splitGroups(input, conv.input[1], depth);
    kernel = splitGroups(kernel, conv.kernel[0], perGroup);
    if (!input || !kernel)
      return {};
  }
  // Loops over the result (batch, group, channel, spatial dimensions in its
  // order), then over channels and the kernel.
  Shape shape(rank, Size(0));
  shape[conv.output[0]] = inputShape[conv.input[0]];
  shape[conv.output[1]] = perGroup;
  for (size_t dim = 0; dim < spatial; ++dim)
    shape[conv.output[dim + 2]] = extents[dim];
  if (hasGroups)
    shape.insert(shape.begin() + conv.output[1], Size(conv.groups));
  auto loopOf = [&](size_t role) {
    int64_t dim = conv.output[role];
    return builder.getAffineDimExpr(
        dim + (hasGroups && dim >= conv.output[1] ? 1 : 0));
  };
  AffineExpr group = builder.getAffineDimExpr(conv.output[1]);
  size_t numLoops = shape.size();
  SmallVector<IteratorType> loops(numLoops, IteratorType::parallel);
  loops.append(1 + spatial, IteratorType::reduction);
  AffineExpr channel = builder.getAffineDimExpr(numLoops);
  SmallVector<AffineExpr> read(rank), weights(rank);
  read[conv.input[0]] = loopOf(0);
  read[conv.input[1]] = channel;
  weights[conv.kernel[0]] = loopOf(1);
  weights[conv.kernel[1]] = channel;
  for (size_t dim = 0; dim < spatial; ++dim) {
    AffineExpr at = builder.getAffineDimExpr(numLoops + 1 + dim);
    weights[conv.kernel[dim + 2]] = at;
    read[conv.input[dim + 2]] =
        loopOf(dim + 2) * conv.strides[dim] + at * conv.dilations[dim];
  }
  if (hasGroups) {
    read.insert(read.begin() + conv.input[1], group);
    weights.insert(weights.begin() + conv.kernel[0], group);
  }
  MLIRContext *context = builder.getContext();
  AffineMap maps[] = {
      AffineMap::get(loops.size(), 0, read, context),
      AffineMap::get(loops.size(), 0, weights, context),
      builder.getMultiDimIdentityMap(loops.size()).getMajorSubMap(numLoops)};
  Value init = createFilled(shape, builder.getZeroAttr(element));
  Value sum =
      createGeneric(builder, {input, kernel}, init, maps, loops,
                    [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                      Value x = args[0], w = args[1];
                      if (x.getType() != element) {
                        x = arith::ExtFOp::create(b, element, x);
                        w = arith::ExtFOp::create(b, element, w);
                      }
                      Value product = arith::MulFOp::create(b, x, w);
                      return arith::AddFOp::create(b, args[2], product);
                    });
  if (!hasGroups)
    return sum;
  shape.erase(shape.begin() + conv.output[1]);
  shape[conv.output[1]] = outputs;
  return reshape(sum, shape);
}

/// Reads the dimensions of one tensor in `[b, 0, 1, f]`, whose first letters
/// are those of the batch and the channel.
static std::optional<SmallVector<int64_t>> readDims(StringRef &text,
                                                    StringRef letters) {
  text = text.drop_until([](char c) { return c == '['; });
  if (!text.consume_front("["))
    return std::nullopt;
  auto [list, rest] = text.split(']');
  text = rest;
  SmallVector<StringRef> names;
  list.split(names, ',');
  SmallVector<int64_t> dims(names.size(), -1);
  for (auto [dim, name] : llvm::enumerate(names)) {
    size_t role;
    if (letters.contains(name.trim()) && name.trim().size() == 1)
      role = letters.find(name.trim());
    else if (!name.trim().getAsInteger(10, role))
      role += 2;
    else
      return std::nullopt;
    if (role >= dims.size())
      return std::nullopt;
    dims[role] = dim;
  }
  return dims;
}

Value Converter::convertConvolution() {
  auto text = dyn_cast_or_null<StringAttr>(getAttribute("dimension_numbers"));
  if (!text || op->getNumOperands() != 2)
    return fail("lacks its dimension numbers");
  StringRef rest = text.getValue();
  auto input = readDims(rest, "bf"), kernel = readDims(rest, "oi"),
       output = readDims(rest, "bf");
  if (!input || !kernel || !output || input->size() < 2 ||
      input->size() != size_t(getType(getOperand(0)).getRank()))
    return fail("has unknown dimension numbers");
  SmallVector<int64_t> ones(input->size() - 2, 1);
  Convolution conv{*input, *kernel, *output, {}, {}, {}, {}, 1};
  conv.strides = getNumbers("window_strides").value_or(ones);
  conv.dilations = getNumbers("rhs_dilation").value_or(ones);
  conv.groups = getNumber("feature_group_count").value_or(1);
  auto padding =
      getNumbers("padding").value_or(SmallVector<int64_t>(2 * ones.size(), 0));
  if (padding.size() != 2 * ones.size())
    return fail("has windows that do not fit its operands");
  for (size_t dim = 0; dim < ones.size(); ++dim) {
    conv.low.push_back(padding[2 * dim]);
    conv.high.push_back(padding[2 * dim + 1]);
  }
  auto reversal = getNumbers("window_reversal");
  if (auto flags =
          dyn_cast_or_null<DenseBoolArrayAttr>(getAttribute("window_reversal")))
    reversal = SmallVector<int64_t>(flags.asArrayRef());
  if (getNumbers("lhs_dilation").value_or(ones) != ones ||
      getNumber("batch_group_count").value_or(1) != 1 ||
      (reversal && llvm::is_contained(*reversal, 1)))
    return fail("with dilated operands, groups of the batch or reversed "
                "kernels is not supported");
  return createConvolution(getOperand(0), getOperand(1), conv,
                           getResultType().getElementType());
}

Value Converter::convertConv2d() {
  if (getType(getOperand(0)).getRank() != 4 ||
      getType(getOperand(1)).getRank() != 4)
    return fail("expected operands of rank 4");
  auto get = [&](StringRef name, int64_t fallback) {
    return getNumber(name).value_or(fallback);
  };
  SmallVector<int64_t> dims{get("batch_dim", 0), get("channel_dim", 3),
                            get("height_dim", 1), get("width_dim", 2)};
  auto pair = [&](StringRef name) {
    SmallVector<int64_t> numbers;
    if (std::optional<int64_t> number = getNumber(name))
      numbers = {*number, *number};
    else
      numbers = getNumbers(name).value_or(SmallVector<int64_t>{1, 1});
    return numbers;
  };
  Convolution conv{dims, {0, 1, 2, 3}, dims, {}, {}, {}, {}, get("groups", 1)};
  conv.strides = pair("stride");
  conv.dilations = pair("dilation");
  // The order is top, left, bottom, right.
  auto padding =
      getNumbers("padding").value_or(SmallVector<int64_t>{0, 0, 0, 0});
  if (std::optional<int64_t> all = getNumber("padding"))
    padding.assign(4, *all);
  if (padding.size() == 2)
    padding = {padding[0], padding[1], padding[0], padding[1]};
  if (padding.size() != 4)
    return fail("has windows that do not fit its operands");
  conv.low = {padding[0], padding[1]};
  conv.high = {padding[2], padding[3]};
  Type element = getResultType().getElementType();
  if (!isa<FloatType>(element))
    return fail("is supported on floats only");
  Value result = createConvolution(getOperand(0), getOperand(1), conv, element);
  if (!result || op->getNumOperands() < 3)
    return result;
  // A bias has the channels in its dimension of the result.
  Value bias = broadcastLast(getOperand(2), getShape(result));
  if (!bias)
    return {};
  return arith::AddFOp::create(builder, result, bias);
}
