//===- RopeModule.cpp - rope modules of the suite -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RopeModule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace mlir::posenc;
using llvm::StringRef;

std::string mlir::posenc::formatTensorType(llvm::ArrayRef<int64_t> sizes,
                                           StringRef type) {
  std::string text = "tensor<";
  for (int64_t size : sizes)
    text += (size < 0 ? "?" : std::to_string(size)) + "x";
  return text + type.str() + ">";
}

std::string mlir::posenc::formatFrequencies(int64_t dim) {
  return "#posenc.frequencies<dim = " + std::to_string(dim) +
         ", base = 5.0e+05>";
}

std::string
mlir::posenc::formatShapes(const std::vector<std::vector<int64_t>> &shapes,
                           bool areHeads) {
  if (shapes.empty())
    return "";
  auto join = [](const std::vector<int64_t> &shape) {
    return llvm::join(
        llvm::map_range(shape,
                        [](int64_t size) { return std::to_string(size); }),
        "x");
  };
  const std::vector<int64_t> &first = shapes.front();
  // The only dimension in which the shapes differ.
  std::optional<size_t> differing;
  for (const std::vector<int64_t> &shape : shapes) {
    bool comparable = shape.size() == first.size();
    for (size_t dim = 0; comparable && dim < first.size(); ++dim)
      if (shape[dim] != first[dim]) {
        comparable = !differing || *differing == dim;
        differing = dim;
      }
    if (!comparable)
      return llvm::join(llvm::map_range(shapes, join), "+");
  }
  if (!differing && areHeads && shapes.size() > 1 && first.size() > 2)
    differing = first.size() - 2;
  if (!differing)
    return join(first);
  std::string text;
  for (size_t dim = 0; dim < first.size(); ++dim) {
    text += dim ? "x" : "";
    if (dim != *differing)
      text += std::to_string(first[dim]);
    else
      text += llvm::join(
          llvm::map_range(
              shapes, [&](auto &shape) { return std::to_string(shape[dim]); }),
          "+");
  }
  return text;
}

void mlir::posenc::setRope(const RopeForm &form, int64_t tokens, Case &to) {
  StringRef dtype = posenc_dtype_name(form.dtype);
  bool isTHD = form.layout == RopeForm::THD;
  // The sizes of a tensor. Batch and sequence are -1 for its type.
  auto getSizes = [&](int64_t heads, int64_t batch,
                      int64_t sequence) -> std::vector<int64_t> {
    if (isTHD)
      return {sequence, heads, form.headDim};
    if (form.layout == RopeForm::BHSD)
      return {batch, heads, sequence, form.headDim};
    return {batch, sequence, heads, form.headDim};
  };
  std::vector<int64_t> heads = {form.queryHeads};
  if (form.keyHeads)
    heads.push_back(form.keyHeads);

  std::string arguments, types, inputs, names, sizes, destinations;
  std::vector<std::vector<int64_t>> shapes;
  for (auto [number, count] : llvm::enumerate(heads)) {
    std::string name = number ? "k" : "q";
    std::string type = formatTensorType(getSizes(count, -1, -1), dtype);
    StringRef comma = number ? ", " : "";
    arguments += "%" + name + ": " + type + ", ";
    types += (comma + type).str();
    names += (comma + "%" + name).str();
    destinations += (comma + "%" + name + "_out").str();
    inputs += "  %" + name + "_out = tensor.empty(" +
              (isTHD ? "%s" : "%b, %s") + ") : " + type + "\n";
    shapes.push_back(getSizes(count, 1, tokens));
    to.inputs.push_back({form.dtype, shapes.back(), CaseInput::Random});
  }
  std::vector<int64_t> positionSizes = {-1}, positionShape = {tokens};
  if (!isTHD) {
    positionSizes = {-1, -1};
    positionShape = {1, tokens};
  }
  if (form.numAxes) {
    positionSizes.insert(positionSizes.begin(), form.numAxes);
    positionShape.insert(positionShape.begin(), form.numAxes);
  }
  if (form.isView) {
    int64_t heads = form.queryHeads + 2 * form.keyHeads;
    to.viewHeads = {form.queryHeads, form.keyHeads};
    to.inputs = {
        {form.dtype, {tokens, heads, form.headDim}, CaseInput::Random}};
  }
  to.inputs.push_back({POSENC_I64, positionShape, form.positions});
  std::string positions = formatTensorType(positionSizes, "i64");

  std::string qType =
      formatTensorType(getSizes(form.queryHeads, -1, -1), dtype);
  int sequenceDim = isTHD ? 0 : form.layout == RopeForm::BHSD ? 2 : 1;
  std::string dims = isTHD ? "[0]" : "[0, " + std::to_string(sequenceDim) + "]";
  std::string results = "%r" + (heads.size() > 1 ? std::string(":2") : "");
  std::string returned = heads.size() > 1 ? "%r#0, %r#1" : "%r";
  std::string axes =
      *form.axes ? " axes #posenc.axes" + std::string(form.axes) : "";
  to.function = "rope";
  to.module = "func.func @rope(" + arguments + "%p: " + positions + ") -> (" +
              types +
              ") {\n"
              "  %c0 = arith.constant 0 : index\n"
              "  %cs = arith.constant " +
              std::to_string(sequenceDim) +
              " : index\n"
              "  %b = tensor.dim %q, %c0 : " +
              qType + "\n  %s = tensor.dim %q, %cs : " + qType + "\n" + inputs +
              "  " + results + " = posenc.rope " + form.pairing + " " +
              formatFrequencies(form.rotaryDim) + axes + " ins(" + names +
              " : " + types + ") positions(%p : " + positions +
              ") dims = " + dims + " outs(" + destinations + " : " + types +
              ")\n  return " + returned + " : " + types + "\n}\n";
  to.name +=
      ("/" + dtype + "/" + formatShapes(shapes, /*areHeads=*/true)).str();
}

void mlir::posenc::setSinusoidal(posenc_dtype dtype, int64_t dim,
                                 int64_t tokens, Case &to) {
  StringRef name = posenc_dtype_name(dtype);
  std::string table = formatTensorType({-1, dim}, name);
  to.function = "sinusoidal";
  to.module = "func.func @sinusoidal(%p: tensor<?xi64>) -> " + table +
              " {\n"
              "  %c0 = arith.constant 0 : index\n"
              "  %n = tensor.dim %p, %c0 : tensor<?xi64>\n"
              "  %e = tensor.empty(%n) : " +
              table + "\n  %r = posenc.sinusoidal interleaved " +
              formatFrequencies(dim) +
              " positions(%p : tensor<?xi64>) outs(%e : " + table +
              ")\n  return %r : " + table + "\n}\n";
  to.inputs = {{POSENC_I64, {tokens}, CaseInput::Iota}};
  to.name +=
      ("/" + name + "/" + formatShapes({{tokens, dim}}, /*areHeads=*/false))
          .str();
}
