//===- attributes.mlir - every attribute ----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#linear = #posenc.frequencies<dim = 8, base = 1.000000e+04, scaling = #posenc.linear<factor = 4.000000e+00>>
func.func @linear(%p: tensor<?xi64>, %c: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %r:2 = posenc.sincos #linear positions(%p : tensor<?xi64>) outs(%c, %c : tensor<?x4xf32>, tensor<?x4xf32>)
  return %r#0, %r#1 : tensor<?x4xf32>, tensor<?x4xf32>
}
// -----
func.func @llama3(%x: tensor<?x8xf32>, %p: tensor<?xi64>) -> tensor<?x8xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 8, base = 5.000000e+05, scaling = #posenc.llama3<factor = 8.000000e+00, low_freq_factor = 1.000000e+00, high_freq_factor = 4.000000e+00, original_max_position = 8.192000e+03>>
    ins(%x : tensor<?x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  return %r : tensor<?x8xf32>
}
// -----
func.func @yarn(%x: tensor<?x32xf32>, %p: tensor<?xi64>) -> tensor<?x32xf32> {
  %r = posenc.rope half inverse #posenc.frequencies<dim = 32, base = 1.000000e+06, scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 3.276800e+04, beta_fast = 16.0, beta_slow = 2.0, truncate = false, mscale = 1.0, mscale_all_dim = 0.707>>
    ins(%x : tensor<?x32xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x32xf32>)
  return %r : tensor<?x32xf32>
}
// -----
func.func @explicit(%x: tensor<?x4xf64>, %p: tensor<?xi64>) -> tensor<?x4xf64> {
  %r = posenc.rope interleaved #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0, 2.5e-01], attention_factor = 1.25>>
    ins(%x : tensor<?x4xf64>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4xf64>)
  return %r : tensor<?x4xf64>
}
// -----
func.func @axes(%x: tensor<?x16xf32>, %p: tensor<4x?xi64>) -> tensor<?x16xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 16, scaling = #posenc.yarn<factor = 2.0, original_max_position = 16.0, attention_factor = 1.5>>
    axes <interleaved, [2, 2, 2, 2]> ins(%x : tensor<?x16xf32>) positions(%p : tensor<4x?xi64>) dims = [0] outs(%x : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}
// -----
func.func private @holder() attributes {
  test.a = #posenc.axes<contiguous, [16, 24, 24]>,
  test.b = #posenc.axes<axial, [1, 32768]>,
  test.c = #posenc.linear<factor = 5.0e-01>,
  test.d = #posenc.explicit<values = [-1.0, 0.0, 1.0e+300]>,
  test.e = #posenc<pairing interleaved>,
  test.f = #posenc<order sin_cos>,
  test.g = #posenc.arg<"x", tensor<?x4x?xf16>, [0, 3]>,
  test.h = #posenc.frequencies<dim = 65536, base = 1.0e+308>}
// -----
func.func @kernel(%n: index, %x: memref<?x8xf32>, %y: memref<?x8xf32>)
    attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"n", index, []>, #posenc.arg<"x", tensor<?x8xf32>, [1]>], outputs = [#posenc.arg<"y", tensor<?x8xf32>, [1]>], sizes = [0, -1], in_place = [1]>} {
  posenc.rope half #posenc.frequencies<dim = 8> ins(%x : memref<?x8xf32>) positions(%n : index) dims = [0] outs(%y : memref<?x8xf32>)
  return
}
// -----
llvm.func @kernel(%n: i64, %a: !llvm.ptr, %b: !llvm.ptr, %o: i64, %s: i64, %t: i64) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"n", i64, []>], outputs = [#posenc.arg<"out", tensor<?xf32>, [0]>], sizes = [-1], in_place = [-1]>} {
  llvm.return
}
// -----
llvm.func @chunked(%a: !llvm.ptr, %b: !llvm.ptr, %o: i64, %s: i64, %t: i64, %c: i64, %n: i64) attributes {posenc.kernel = #posenc.kernel<tasks = true>, posenc.abi = #posenc.abi<inputs = [], outputs = [#posenc.arg<"out", tensor<4xf32>, []>], sizes = [], in_place = [-1]>} {
  %zero = llvm.mlir.constant(0.0 : f32) : f32
  llvm.store %zero, %b : f32, !llvm.ptr
  llvm.return
}
// -----
llvm.func @bounded(%t0: !llvm.ptr, %t1: !llvm.ptr, %t2: i64, %t3: i64, %t4: i64, %t5: i64, %t6: i64, %n0: !llvm.ptr, %n1: !llvm.ptr, %n2: i64, %n3: i64, %n4: i64, %a: !llvm.ptr, %b: !llvm.ptr, %o: i64, %s: i64, %t: i64, %c: i64, %d: i64) attributes {posenc.kernel = #posenc.kernel<tasks_by = inputs, tasks = true>, posenc.abi = #posenc.abi<inputs = [#posenc.arg<"t", tensor<?x?xi32>, [0, 1]>, #posenc.arg<"n", tensor<?xi64>, [0]>], outputs = [#posenc.arg<"out", tensor<4xf32>, []>], sizes = [-1, -1], in_place = [-1], bounds = [#posenc.bound<kind = lengths, input = 1, limit = [-2, 16]>, #posenc.bound<kind = pages, input = 0, limit = [8], each = [16], lengths = 1>, #posenc.bound<kind = starts, input = 1, limit = [5], each = [-1]>, #posenc.bound<kind = slots, input = 0, limit = [4, 4]>, #posenc.bound<kind = heads, input = 0, limit = [-1], each = [-2]>], terms = [#posenc.term<quotient, ()[s0, s1] -> (s0 * s1, 3)>, #posenc.term<if_less, ()[s0, s1, s2, s3, s4] -> (s4, 8, s0, s1 + 1)>], relations = [#posenc.relation<equal, ()[s0] -> (s0, 3)>, #posenc.relation<at_most, ()[s0, s1, s2, s3, s4, s5] -> (s4 * s0, s1 * -1 + s5)>]>} {
  %zero = llvm.mlir.constant(0.0 : bf16) : bf16
  llvm.store %zero, %b : bf16, !llvm.ptr
  llvm.return
}
