//===- AttentionModule.cpp - modules of the suite's attention ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionModule.h"

#include "RopeModule.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir::posenc;
using llvm::StringRef;

static std::string formatRotation(const AttentionForm &form) {
  return "#posenc.rotation<pairing = half, frequencies = " +
         formatFrequencies(form.headDim) + ">";
}

static std::string formatName(const AttentionForm &form,
                              const std::vector<std::vector<int64_t>> &shapes) {
  return ("/" + StringRef(posenc_dtype_name(form.dtype)) + "/" +
          formatShapes(shapes, /*areHeads=*/true))
      .str();
}

void mlir::posenc::setAttention(const AttentionForm &form, int64_t tokens,
                                Case &to) {
  constexpr const char *text = R"(
#rotation = {0}
func.func @attention(%q: {1}, %k: {2}, %v: {2}, %p: tensor<?x?xi64>) -> {1} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %q, %c0 : {1}
  %s = tensor.dim %q, %c1 : {1}
  %o = tensor.empty(%b, %s) : {1}
  %r = posenc.attention {3} query_rotation = #rotation key_rotation = #rotation
    ins(%q, %k, %v : {1}, {2}, {2})
    query_positions(%p : tensor<?x?xi64>) key_positions(%p : tensor<?x?xi64>)
    outs(%o : {1})
  return %r : {1}
}
)";
  StringRef dtype = posenc_dtype_name(form.dtype);
  to.function = "attention";
  to.module = llvm::formatv(
      text, formatRotation(form),
      formatTensorType({-1, -1, form.queryHeads, form.headDim}, dtype),
      formatTensorType({-1, -1, form.keyHeads, form.headDim}, dtype),
      form.isCausal ? "causal" : "");
  std::vector<int64_t> query = {1, tokens, form.queryHeads, form.headDim};
  std::vector<int64_t> key = {1, tokens, form.keyHeads, form.headDim};
  to.inputs = {{form.dtype, query},
               {form.dtype, key},
               {form.dtype, key},
               {POSENC_I64, {1, tokens}, CaseInput::Iota}};
  to.name += formatName(form, {query, key});
}

void mlir::posenc::setDecode(const AttentionForm &form, int64_t keys,
                             Case &to) {
  constexpr const char *text = R"(
func.func @decode(%q: {1}, %k: {2}, %v: {2}, %n: tensor<?xi64>) -> {1} {{
  %c0 = arith.constant 0 : index
  %b = tensor.dim %q, %c0 : {1}
  %o = tensor.empty(%b) : {1}
  %r = posenc.attention key_layout = head_major query_rotation = {0}
    ins(%q, %k, %v : {1}, {2}, {2}) lengths(%n : tensor<?xi64>) outs(%o : {1})
  return %r : {1}
}
)";
  StringRef dtype = posenc_dtype_name(form.dtype);
  to.function = "decode";
  to.module = llvm::formatv(
      text, formatRotation(form),
      formatTensorType({-1, 1, form.queryHeads, form.headDim}, dtype),
      formatTensorType({-1, form.keyHeads, -1, form.headDim}, dtype));
  std::vector<int64_t> key = {1, form.keyHeads, keys, form.headDim};
  CaseInput lengths = {POSENC_I64, {1}, CaseInput::Constant, keys};
  to.inputs = {{form.dtype, {1, 1, form.queryHeads, form.headDim}},
               {form.dtype, key},
               {form.dtype, key},
               lengths};
  to.name += formatName(form, {key});
}
