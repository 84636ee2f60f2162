//===- AttentionModule.cpp - attention modules of the suite ---------------===//
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

/// Returns the `score` region (a score_mod, as in FlexAttention); empty for
/// plain attention. The region for T5 reads the argument %table.
static std::string formatScore(const AttentionForm &form) {
  constexpr const char *softCap = R"(
      %c = arith.constant 50.0 : f32
      %x = arith.divf %score, %c : f32
      %t = math.tanh %x : f32
      %y = arith.mulf %t, %c : f32)";
  constexpr const char *alibi = R"(
      %x = posenc.alibi(%h, %i, %j) heads = {0} : f32
      %y = arith.addf %score, %x : f32)";
  constexpr const char *t5 = R"(
      %d = arith.subi %j, %i : index
      %n = posenc.t5_bucket %d : index
      %x = tensor.extract %table[%n, %h] : tensor<32x{0}xf32>
      %y = arith.addf %score, %x : f32)";
  const char *body = nullptr;
  switch (form.score) {
  case AttentionForm::Plain:
    return "";
  case AttentionForm::SoftCap:
    body = softCap;
    break;
  case AttentionForm::Alibi:
    body = alibi;
    break;
  case AttentionForm::T5:
    body = t5;
    break;
  }
  return "\n    score(%score, %e, %h, %i, %j) {" +
         llvm::formatv(body, form.queryHeads).str() +
         "\n      posenc.yield %y : f32\n    }";
}

/// Returns the `where` region (a mask_mod); empty without one.
static StringRef formatWhere(const AttentionForm &form) {
  if (!form.hasCausalMask)
    return "";
  return R"(
    where(%e, %h, %i, %j) {
      %y = arith.cmpi sle, %j, %i : index
      posenc.yield %y : i1
    })";
}

void mlir::posenc::setAttention(const AttentionForm &form, int64_t tokens,
                                Case &to) {
  constexpr const char *text = R"(
#rotation = {0}
func.func @attention(%q: {1}, %k: {2}, %v: {2}, %p: tensor<?x?xi64>{4}) -> {1} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %q, %c0 : {1}
  %s = tensor.dim %q, %c1 : {1}
  %o = tensor.empty(%b, %s) : {1}
  %r = posenc.attention {3} query_rotation = #rotation key_rotation = #rotation
    ins(%q, %k, %v : {1}, {2}, {2})
    query_positions(%p : tensor<?x?xi64>) key_positions(%p : tensor<?x?xi64>)
    outs(%o : {1}){5}
  return %r : {1}
}
)";
  StringRef dtype = posenc_dtype_name(form.dtype);
  to.function = "attention";
  to.module = llvm::formatv(
      text, formatRotation(form),
      formatTensorType({-1, -1, form.queryHeads, form.headDim}, dtype),
      formatTensorType({-1, -1, form.keyHeads, form.headDim}, dtype),
      (form.isCausal && !form.hasCausalMask ? "causal " : "") +
          (form.window ? "window_left = " + std::to_string(*form.window - 1)
                       : std::string()),
      form.score == AttentionForm::T5
          ? ", %table: tensor<32x" + std::to_string(form.queryHeads) + "xf32>"
          : std::string(),
      formatScore(form) + formatWhere(form).str());
  std::vector<int64_t> query = {1, tokens, form.queryHeads, form.headDim};
  std::vector<int64_t> key = {1, tokens, form.keyHeads, form.headDim};
  to.inputs = {{form.dtype, query},
               {form.dtype, key},
               {form.dtype, key},
               {POSENC_I64, {1, tokens}, CaseInput::Iota}};
  if (form.score == AttentionForm::T5)
    to.inputs.push_back({POSENC_F32, {32, form.queryHeads}});
  to.name += formatName(form, {query, key});
}

void mlir::posenc::setDecode(const AttentionForm &form, int64_t keys,
                             Case &to) {
  constexpr const char *text = R"(
func.func @decode(%q: {1}, %k: {2}, %v: {2}, %n: tensor<?xi64>) -> {1} {{
  %c0 = arith.constant 0 : index
  %b = tensor.dim %q, %c0 : {1}
  %o = tensor.empty(%b) : {1}
  %r = posenc.attention key_layout = {3} query_rotation = {0}
    ins(%q, %k, %v : {1}, {2}, {2}) lengths(%n : tensor<?xi64>) outs(%o : {1})
  return %r : {1}
}
)";
  StringRef dtype = posenc_dtype_name(form.dtype);
  to.function = "decode";
  to.module = llvm::formatv(
      text, formatRotation(form),
      formatTensorType({-1, 1, form.queryHeads, form.headDim}, dtype),
      form.isTokenMajor
          ? formatTensorType({-1, -1, form.keyHeads, form.headDim}, dtype)
          : formatTensorType({-1, form.keyHeads, -1, form.headDim}, dtype),
      form.isTokenMajor ? "token_major" : "head_major");
  std::vector<int64_t> key = {1, form.keyHeads, keys, form.headDim};
  if (form.isTokenMajor)
    std::swap(key[1], key[2]);
  CaseInput lengths = {POSENC_I64, {1}, CaseInput::Constant, keys};
  to.inputs = {{form.dtype, {1, 1, form.queryHeads, form.headDim}},
               {form.dtype, key},
               {form.dtype, key},
               lengths};
  to.name += formatName(form, {key});
}
