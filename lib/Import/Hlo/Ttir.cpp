//===- Ttir.cpp - operations of TTIR --------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

/// Returns how an operation reduces, or nothing if it does not. A mean is a sum
/// first.
static std::optional<Combiner> getReduction(StringRef name) {
  return llvm::StringSwitch<std::optional<Combiner>>(name)
      .Cases({"sum", "mean"}, Combiner::Add)
      .Case("prod", Combiner::Mul)
      .Case("max", Combiner::Max)
      .Case("min", Combiner::Min)
      .Case("reduce_or", Combiner::Or)
      .Case("reduce_and", Combiner::And)
      .Default(std::nullopt);
}

static bool isComparison(StringRef name) {
  return name == "eq" || name == "ne" || name == "lt" || name == "le" ||
         name == "gt" || name == "ge";
}

FailureOr<SmallVector<Value>> Converter::convertTtir(StringRef name) {
  SmallVector<int64_t> none;
  if (op->getNumResults() == 0 && name == "fill_cache") {
    // Writes the rows at the beginning of the cache of one sequence.
    RankedTensorType rows = getType(getOperand(1));
    SmallVector<OpFoldResult> offsets(rows.getRank(), builder.getIndexAttr(0)),
        strides(rows.getRank(), builder.getIndexAttr(1));
    offsets[0] = builder.getIndexAttr(getNumber("batch_offset").value_or(0));
    return one(tensor::InsertSliceOp::create(
        builder, getOperand(1), getOperand(0), offsets,
        getAsIndexOpFoldResult(builder.getContext(), rows.getShape()),
        strides));
  }
  if (op->getNumResults() == 0 && name == "update_cache") {
    // Writes a row of each sequence at its index.
    RankedTensorType cache = getType(getOperand(0)),
                     rows = getType(getOperand(1)),
                     indices = getType(getOperand(2));
    if (cache.getRank() != 4 || rows.getRank() != 4 || indices.getRank() != 1)
      return fail("is not supported for these shapes");
    Value result = getOperand(0), row = getOperand(1);
    // Rows are (1, heads, sequences, dim) or (sequences, heads, 1, dim).
    int64_t numSequences = cache.getDimSize(0);
    bool isFirst =
        rows.getDimSize(0) == numSequences && rows.getDimSize(2) == 1;
    if (!isFirst && rows.getDimSize(2) != numSequences)
      return fail("has rows of another number of sequences than its cache");
    // The offset is that of the first row, where there are more rows than
    // sequences.
    if (getNumber("batch_offset").value_or(0) != 0)
      return fail("is supported for a batch offset of 0 only");
    if (indices.getDimSize(0) == 1) {
      // All rows have one index.
      if (!isFirst)
        row = transpose(row, {2, 1, 0, 3});
      Value token =
          row ? getClampedIndex(getOperand(2), Size(cache.getDimSize(2) - 1))
              : Value();
      if (!token)
        return failure();
      SmallVector<OpFoldResult> offsets(4, builder.getIndexAttr(0)),
          strides(4, builder.getIndexAttr(1));
      offsets[2] = token;
      return one(tensor::InsertSliceOp::create(
          builder, row, result, offsets,
          getAsIndexOpFoldResult(builder.getContext(), getType(row).getShape()),
          strides));
    }
    if (indices.getDimSize(0) != numSequences)
      return fail("has another number of indices than its cache has sequences");
    for (int64_t b = 0; b < numSequences; ++b) {
      SmallVector<int64_t> begins(4, 0), ends(rows.getShape());
      int64_t dim = isFirst ? 0 : 2;
      begins[dim] = b;
      ends[dim] = b + 1;
      Value one = slice(row, begins, ends, {1, 1, 1, 1});
      Value index = slice(getOperand(2), {b}, {b + 1}, {1});
      Value token = getClampedIndex(index, Size(cache.getDimSize(2) - 1));
      if (!one || !token)
        return failure();
      SmallVector<OpFoldResult> offsets(4, builder.getIndexAttr(0)),
          strides(4, builder.getIndexAttr(1));
      offsets[0] = builder.getIndexAttr(b);
      offsets[2] = token;
      result = tensor::InsertSliceOp::create(
          builder, one, result, offsets,
          getAsIndexOpFoldResult(builder.getContext(), getType(one).getShape()),
          strides);
    }
    return SmallVector<Value>{result};
  }
  if (op->getNumResults() != 1)
    return fail("is not supported");
  RankedTensorType type = getResultType();
  if (name == "constant")
    return one(createConstant(type));
  if (name == "arange")
    return one(createIota(toShape(type.getShape()), type.getElementType(),
                          getNumber("arange_dimension").value_or(0),
                          getNumber("start").value_or(0),
                          getNumber("step").value_or(1)));
  if (name == "zeros" || name == "ones")
    return one(createSplat(type, name == "ones"));
  Value first = op->getNumOperands() ? getOperand(0) : Value();
  if (!first)
    return fail("is not supported");
  RankedTensorType source = getType(first);
  if (name == "typecast")
    return one(convertTo(first, type.getElementType()));
  if (name == "reshape" || name == "squeeze" || name == "unsqueeze")
    return one(reshape(first, type));
  if (name == "broadcast")
    return one(broadcastLast(first, type.getShape()));
  if (name == "permute")
    return one(transpose(first, getNumbers("permutation").value_or(none)));
  if (name == "transpose") {
    SmallVector<int64_t> permutation =
        llvm::to_vector(llvm::seq<int64_t>(source.getRank()));
    int64_t a = getNumber("dim0").value_or(0),
            b = getNumber("dim1").value_or(0);
    for (int64_t *dim : {&a, &b})
      if (*dim < 0)
        *dim += source.getRank();
    if (a < 0 || b < 0 || a >= source.getRank() || b >= source.getRank())
      return fail("has a wrong dimension");
    std::swap(permutation[a], permutation[b]);
    return one(transpose(first, permutation));
  }
  if (name == "slice_static")
    return one(slice(first, getNumbers("begins").value_or(none),
                     getNumbers("ends").value_or(none),
                     getNumbers("step").value_or(none)));
  if (name == "concat")
    return one(concatenate(op->getOperands(), getNumber("dim").value_or(-1)));
  if (name == "dot_general")
    return one(createDot(
        first, getOperand(1), getNumbers("batch_dims_lhs").value_or(none),
        getNumbers("batch_dims_rhs").value_or(none),
        getNumbers("contract_dims_lhs").value_or(none),
        getNumbers("contract_dims_rhs").value_or(none), type.getElementType()));
  if (name == "matmul") {
    Value second = getOperand(1);
    int64_t rank = source.getRank(), otherRank = getType(second).getRank();
    auto isSet = [&](StringRef flag) {
      auto value = dyn_cast_or_null<BoolAttr>(getAttribute(flag));
      return value && value.getValue();
    };
    int64_t numBatch = std::min(rank, otherRank) - 2;
    if (rank < 2 || otherRank < 2 || (otherRank != 2 && rank != otherRank))
      return fail("is not supported for these shapes");
    if (otherRank == 2)
      numBatch = 0;
    SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(numBatch));
    return one(createDot(first, second, batch, batch,
                         {isSet("transpose_a") ? rank - 2 : rank - 1},
                         {isSet("transpose_b") ? otherRank - 1 : otherRank - 2},
                         type.getElementType()));
  }
  if (std::optional<Combiner> combiner = getReduction(name)) {
    SmallVector<int64_t> dims;
    if (std::optional<SmallVector<int64_t>> listed = getNumbers("dim_arg"))
      dims = *listed;
    else if (std::optional<int64_t> dim = getNumber("dim_arg"))
      dims = {*dim};
    else
      dims = llvm::to_vector(llvm::seq<int64_t>(source.getRank()));
    int64_t count = 1;
    for (int64_t &dim : dims) {
      if (dim < 0)
        dim += source.getRank();
      if (dim >= 0 && dim < source.getRank())
        count *= source.getDimSize(dim);
    }
    Value result = reduce(first, {}, dims, *combiner);
    if (!result)
      return failure();
    if (name == "mean")
      result = arith::DivFOp::create(
          builder, result, createSplat(getType(result), double(count)));
    return one(reshape(result, type));
  }
  if (name == "argmax") {
    SmallVector<int64_t> dims = getNumbers("dim_arg").value_or(none);
    if (dims.size() == 1 && dims[0] < 0)
      dims[0] += source.getRank();
    if (dims.size() != 1 || dims[0] < 0 || dims[0] >= source.getRank())
      return fail("is supported along one dimension only");
    if (!isa<FloatType, IntegerType>(source.getElementType()) ||
        !isa<IntegerType>(type.getElementType()))
      return fail("has operands or a result of types that it does not support");
    return one(
        reshape(createArgMax(first, dims[0], type.getElementType()), type));
  }
  if (name == "softmax") {
    int64_t dim = getNumber("dimension").value_or(-1);
    if (dim < 0)
      dim += source.getRank();
    if (dim < 0 || dim >= source.getRank())
      return fail("has a wrong dimension");
    return one(linalg::SoftmaxOp::create(builder, TypeRange(type), first,
                                         createEmpty(type), dim)
                   ->getResult(0));
  }
  if (name == "rms_norm" || name == "layer_norm")
    return one(createNorm(name == "layer_norm"));
  if (name == "conv2d")
    return one(convertConv2d());
  if (name == "embedding") {
    // Rows of the second operand, by the first.
    RankedTensorType table = getType(getOperand(1));
    Value rows = getOperand(1);
    if (table.getRank() != 2)
      rows = reshape(rows, table.clone(table.getShape().take_back(2)));
    if (!rows)
      return failure();
    return one(createEmbedding(first, rows, type));
  }
  if (name != "where" && !isComparison(name) && !isElementwise(name))
    return fail("is not supported");
  SmallVector<Value> operands(op->getOperands());
  if (name == "where") {
    for (Value &operand : operands)
      if (operand = broadcastLast(operand, type.getShape()); !operand)
        return failure();
    Value condition = convertTo(operands[0], builder.getI1Type());
    return one(
        arith::SelectOp::create(builder, condition, operands[1], operands[2]));
  }
  for (Value &operand : operands)
    if (operand = broadcastLast(operand, type.getShape()); !operand)
      return failure();
  Value value = isComparison(name)
                    ? compare(name, operands[0], operands[1])
                    : convertElementwise(name, operands, getType(operands[0]));
  if (!value)
    return fail("is not supported");
  // Conditions may be numbers of the operands' type.
  return one(convertTo(value, type.getElementType()));
}

Value Converter::createEmbedding(Value indices, Value rows,
                                 RankedTensorType type) {
  return gatherElements(
      rows, toShape(type.getShape()),
      [&](ImplicitLocOpBuilder &b, ValueRange loops) {
        Value number = tensor::ExtractOp::create(b, indices, loops.drop_back());
        if (isa<FloatType>(number.getType()))
          number = arith::FPToSIOp::create(b, b.getI64Type(), number);
        Value row = arith::IndexCastOp::create(b, b.getIndexType(), number);
        Value zero = arith::ConstantIndexOp::create(b, 0);
        Value last =
            arith::ConstantIndexOp::create(b, getType(rows).getDimSize(0) - 1);
        row = arith::MaxSIOp::create(b, row, zero);
        row = arith::MinSIOp::create(b, row, last);
        return SmallVector<Value>{row, loops.back()};
      });
}

/// Returns the norm over the last dimension; weight and bias are optional.
Value Converter::createNorm(bool hasMean) {
  Value x = getOperand(0);
  RankedTensorType type = getType(x);
  auto real = dyn_cast<FloatType>(type.getElementType());
  auto shape = getNumbers("normalized_shape");
  if (!real || (shape && shape->size() != 1))
    return fail("is supported over the last dimension only");
  auto epsilonAttr = dyn_cast_or_null<FloatAttr>(getAttribute("epsilon"));
  double epsilon = epsilonAttr ? epsilonAttr.getValueAsDouble() : 1e-5;
  Type wide = real.getWidth() < 32 ? Type(builder.getF32Type()) : Type(real);
  Value value = convertTo(x, wide);
  RankedTensorType wideType = type.clone(wide);
  int64_t last = type.getRank() - 1;
  SmallVector<int64_t> kept(type.getShape());
  kept.back() = 1;
  auto mean = [&](Value of) {
    Value sum = reduce(of, {}, last, Combiner::Add);
    Value size = createSplat(getType(sum), double(type.getShape().back()));
    Value quotient = arith::DivFOp::create(builder, sum, size);
    return reshape(quotient, wideType.clone(kept));
  };
  if (hasMean)
    value = arith::SubFOp::create(builder, value,
                                  broadcastLast(mean(value), type.getShape()));
  Value square = arith::MulFOp::create(builder, value, value);
  Value variance = mean(square);
  Value sum = arith::AddFOp::create(builder, variance,
                                    createSplat(getType(variance), epsilon));
  Value factor = convertElementwise("rsqrt", sum, getType(sum));
  value = arith::MulFOp::create(builder, value,
                                broadcastLast(factor, type.getShape()));
  unsigned numWeights = op->getNumOperands() - 1;
  if (numWeights > 0) {
    Value weight =
        broadcastLast(convertTo(getOperand(1), wide), type.getShape());
    value = arith::MulFOp::create(builder, value, weight);
  }
  if (numWeights > 1) {
    Value bias = broadcastLast(convertTo(getOperand(2), wide), type.getShape());
    value = arith::AddFOp::create(builder, value, bias);
  }
  return convertTo(value, real);
}
