//===- LinalgModule.cpp - linalg modules of the suite ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LinalgModule.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

using namespace mlir;
using namespace mlir::posenc;

/// Replaces placeholders, in the order of the list.
static std::string
replaceAll(std::string text,
           ArrayRef<std::pair<StringRef, std::string>> replacements) {
  for (const auto &[from, to] : replacements)
    for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos;
         at += to.size())
      text.replace(at, from.size(), to);
  return text;
}

static void addToName(Case &to, StringRef dtype,
                      const std::vector<std::vector<int64_t>> &shapes) {
  to.name +=
      ("/" + dtype + "/" + formatShapes(shapes, /*areHeads=*/false)).str();
}

static const char kProduct[] = R"(
func.func @product(%x: tensor<MxKxT>, %w: tensor<KxNxT>PACKEDBIAS) -> OUT {
  %zero = arith.constant 0.0 : T
  %e = tensor.empty() : tensor<MxNxT>
  %f = linalg.fill ins(%zero : T) outs(%e : tensor<MxNxT>) -> tensor<MxNxT>
  %p = linalg.matmul ins(%x, %w : tensor<MxKxT>, tensor<KxNxT>)
      outs(%f : tensor<MxNxT>) -> tensor<MxNxT>
REST  return %r : OUT
}
)";

static const char kRope[] = R"(
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %b : tensor<MxNxT>, tensor<NxT>) outs(%e : tensor<MxNxT>) {
  ^bb0(%a: T, %c: T, %o: T):
    %d = arith.addf %a, %c : T
    linalg.yield %d : T
  } -> tensor<MxNxT>
  %q = tensor.expand_shape %s [[0], [1, 2]] output_shape [M, H, 64]
      : tensor<MxNxT> into OUT
  %eq = tensor.empty() : OUT
  %r = posenc.rope half #posenc.frequencies<dim = 64> ins(%q : OUT)
      positions(%at : tensor<Mxi64>) dims = [0] outs(%eq : OUT)
)";

void mlir::posenc::setProduct(const ProductForm &form, Case &to) {
  constexpr int64_t headDim = 64, panelColumns = 32;
  std::string type = posenc_dtype_name(form.dtype);
  auto text = [](int64_t number) { return std::to_string(number); };
  std::string heads = text(form.n / headDim);
  std::string bias = ", %b: tensor<NxT>, %at: tensor<Mxi64>";
  to.function = "product";
  to.module = replaceAll(
      kProduct, {{"PACKED", form.isPacked ? " {posenc.packed}" : ""},
                 {"BIAS", form.hasRope ? bias : ""},
                 {"REST", form.hasRope ? kRope : ""},
                 {"%r : ", form.hasRope ? "%r : " : "%p : "},
                 {"OUT", form.hasRope ? "tensor<MxHx64xT>" : "tensor<MxNxT>"},
                 {"<M", "<" + text(form.m)},
                 {"[M", "[" + text(form.m)},
                 {"<K", "<" + text(form.k)},
                 {"<N", "<" + text(form.n)},
                 {"xK", "x" + text(form.k)},
                 {"xN", "x" + text(form.n)},
                 {"xH", "x" + heads},
                 {", H, ", ", " + heads + ", "},
                 {"xT", "x" + type},
                 {": T", ": " + type}});
  to.inputs = {{form.dtype, {form.m, form.k}, CaseInput::Random},
               {form.dtype, {form.k, form.n}, CaseInput::Random}};
  if (form.isPacked)
    to.inputs[1].shape = {form.n / panelColumns, form.k, panelColumns};
  if (form.hasRope) {
    to.inputs.push_back({form.dtype, {form.n}, CaseInput::Random});
    to.inputs.push_back({POSENC_I64, {form.m}, CaseInput::Iota});
  }
  addToName(to, type, {{form.m, form.k, form.n}});
}

void mlir::posenc::setMatvec(int64_t size, Case &to) {
  to.function = "product";
  to.module = replaceAll(
      R"(
func.func @product(%w: tensor<SxSxf32>, %x: tensor<Sxf32>) -> tensor<Sxf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<Sxf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<Sxf32>) -> tensor<Sxf32>
  %r = linalg.matvec ins(%w, %x : tensor<SxSxf32>, tensor<Sxf32>)
      outs(%f : tensor<Sxf32>) -> tensor<Sxf32>
  return %r : tensor<Sxf32>
}
)",
      {{"<S", "<" + std::to_string(size)}, {"xS", "x" + std::to_string(size)}});
  to.inputs = {{POSENC_F32, {size, size}, CaseInput::Random},
               {POSENC_F32, {size}, CaseInput::Random}};
  to.limit = LimitKind::Read;
  addToName(to, "f32", {{size, size}});
}

static const char kBegin[] = R"(
func.func @rows(%x: TENSORMORE) -> RESULT {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %size = arith.constant C.0 : f32
  %e = tensor.empty() : TENSOR
  %er = tensor.empty() : tensor<Rxf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<Rxf32>) -> tensor<Rxf32>
)";

static const char kElementwise[] = R"(
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> MAP, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, OTHER) outs(%e : TENSOR) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    BODY
    linalg.yield %s : f32
  } -> TENSOR
)";

static const char kSilu[] = R"(
    %t = arith.addf %a, %b : f32
    %n = arith.negf %t : f32
    %x0 = math.exp %n : f32
    %d = arith.addf %x0, %one : f32
    %s = arith.divf %t, %d : f32
)";

static const char kNorm[] = R"(
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : TENSOR) outs(%fr : tensor<Rxf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<Rxf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %q, %v : TENSOR, tensor<Rxf32>, tensor<Cxf32>)
      outs(%e : TENSOR) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %m = arith.divf %b, %size : f32
    %n = math.rsqrt %m : f32
    %p = arith.mulf %a, %n : f32
    %s = arith.mulf %p, %c : f32
    linalg.yield %s : f32
  } -> TENSOR
)";

static const char kSoftmax[] = R"(
  %r = linalg.softmax dimension(1) ins(%x : TENSOR) outs(%e : TENSOR) -> TENSOR
)";

static const char kToBF16[] = R"(
  %eb = tensor.empty() : RESULT
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : TENSOR) outs(%eb : RESULT) {
  ^bb0(%a: f32, %o: bf16):
    %s = arith.truncf %a : f32 to bf16
    linalg.yield %s : bf16
  } -> RESULT
)";

void mlir::posenc::setRows(RowWork work, int64_t rows, int64_t columns,
                           Case &to) {
  std::vector<int64_t> shape = {rows, columns};
  to.inputs = {{POSENC_F32, shape, CaseInput::Random}};
  std::string body, more, map, other, sum;
  auto addVector = [&] {
    more = ", %v: tensor<Cxf32>";
    to.inputs.push_back({POSENC_F32, {columns}, CaseInput::Random});
  };
  switch (work) {
  case RowWork::BiasSilu:
    body = kElementwise;
    addVector();
    map = "(j)>";
    other = "%v : TENSOR, tensor<Cxf32>";
    sum = kSilu;
    break;
  case RowWork::Residual:
    body = kElementwise;
    more = ", %y: TENSOR";
    to.inputs.push_back(to.inputs.front());
    map = "(i, j)>";
    other = "%y : TENSOR, TENSOR";
    sum = "%s = arith.addf %a, %b : f32";
    break;
  case RowWork::RmsNorm:
    body = kNorm;
    addVector();
    break;
  case RowWork::Softmax:
    body = kSoftmax;
    break;
  case RowWork::ToBF16:
    body = kToBF16;
    break;
  }
  to.function = "rows";
  to.module = replaceAll(
      kBegin + body + "  return %r : RESULT\n}\n",
      {{"MORE", more},
       {"BODY", sum},
       {"MAP", map},
       {"OTHER", other},
       {"RESULT", work == RowWork::ToBF16 ? "tensor<RxCxbf16>" : "TENSOR"},
       {"TENSOR", "tensor<RxCxf32>"},
       {"<R", "<" + std::to_string(rows)},
       {"<C", "<" + std::to_string(columns)},
       {"xC", "x" + std::to_string(columns)},
       {"C.0", std::to_string(columns) + ".0"}});
  to.inPlace = false;
  addToName(to, "f32", {shape});
}

void mlir::posenc::setAddSinusoidal(int64_t batch, int64_t tokens, int64_t dim,
                                    Case &to) {
  to.function = "add_positions";
  to.module = replaceAll(R"(
func.func @add_positions(%x: TENSOR, %at: tensor<Sxi64>) -> TENSOR {
  %e = tensor.empty() : tensor<SxDxf32>
  %t = posenc.sinusoidal interleaved #posenc.frequencies<dim = D>
      positions(%at : tensor<Sxi64>) outs(%e : tensor<SxDxf32>)
  %o = tensor.empty() : TENSOR
  %r = linalg.generic {indexing_maps = [affine_map<(b, s, d) -> (b, s, d)>,
      affine_map<(b, s, d) -> (s, d)>, affine_map<(b, s, d) -> (b, s, d)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %t : TENSOR, tensor<SxDxf32>) outs(%o : TENSOR) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> TENSOR
  return %r : TENSOR
}
)",
                         {{"TENSOR", "tensor<BxSxDxf32>"},
                          {"= D", "= " + std::to_string(dim)},
                          {"<B", "<" + std::to_string(batch)},
                          {"<S", "<" + std::to_string(tokens)},
                          {"xS", "x" + std::to_string(tokens)},
                          {"xD", "x" + std::to_string(dim)}});
  to.inputs = {{POSENC_F32, {batch, tokens, dim}, CaseInput::Random},
               {POSENC_I64, {tokens}, CaseInput::Iota}};
  addToName(to, "f32", {{batch, tokens, dim}});
}

void mlir::posenc::setNormRope(int64_t tokens, int64_t heads, int64_t headDim,
                               Case &to) {
  to.function = "norm_rope";
  to.module = replaceAll(R"(
func.func @norm_rope(%x: TENSOR, %g: tensor<Dxf32>, %at: tensor<Sxi64>)
    -> TENSOR {
  %zero = arith.constant 0.0 : f32
  %size = arith.constant D.0 : f32
  %e = tensor.empty() : TENSOR
  %er = tensor.empty() : tensor<SxHxf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<SxHxf32>)
      -> tensor<SxHxf32>
  %q = linalg.generic {indexing_maps = [affine_map<(s, h, d) -> (s, h, d)>,
      affine_map<(s, h, d) -> (s, h)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : TENSOR) outs(%fr : tensor<SxHxf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<SxHxf32>
  %n = linalg.generic {indexing_maps = [affine_map<(s, h, d) -> (s, h, d)>,
      affine_map<(s, h, d) -> (s, h)>, affine_map<(s, h, d) -> (d)>,
      affine_map<(s, h, d) -> (s, h, d)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %q, %g : TENSOR, tensor<SxHxf32>, tensor<Dxf32>)
      outs(%e : TENSOR) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %m = arith.divf %b, %size : f32
    %k = math.rsqrt %m : f32
    %p = arith.mulf %a, %k : f32
    %s = arith.mulf %p, %c : f32
    linalg.yield %s : f32
  } -> TENSOR
  %r = posenc.rope half #posenc.frequencies<dim = D> ins(%n : TENSOR)
      positions(%at : tensor<Sxi64>) dims = [0] outs(%e : TENSOR)
  return %r : TENSOR
}
)",
                         {{"TENSOR", "tensor<SxHxDxf32>"},
                          {"= D", "= " + std::to_string(headDim)},
                          {"D.0", std::to_string(headDim) + ".0"},
                          {"<S", "<" + std::to_string(tokens)},
                          {"<D", "<" + std::to_string(headDim)},
                          {"xH", "x" + std::to_string(heads)},
                          {"xD", "x" + std::to_string(headDim)}});
  to.inputs = {{POSENC_F32, {tokens, heads, headDim}, CaseInput::Random},
               {POSENC_F32, {headDim}, CaseInput::Random},
               {POSENC_I64, {tokens}, CaseInput::Iota}};
  addToName(to, "f32", {{tokens, heads, headDim}});
}
