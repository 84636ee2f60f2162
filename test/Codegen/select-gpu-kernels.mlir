//===- select-gpu-kernels.mlir - functions without GPU kernels ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-to-nvvm=chip=sm_90 --verify-diagnostics | FileCheck %s

#dynamic = #posenc.frequencies<dim = 64, base = 1.000000e+04, scaling = #posenc.dynamic<factor = 2, max_position = 64>>

// CHECK: func.func @rope
func.func @rope(%x: tensor<?x2x2xf32>, %p: tensor<?xi64>) -> tensor<?x2x2xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 2> ins(%x : tensor<?x2x2xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x2xf32>)
  return %r : tensor<?x2x2xf32>
}

// Two tables of half a position each, in shared memory.
// CHECK: func.func @widest
func.func @widest(%x: tensor<?x4096xf32>, %p: tensor<?xi64>) -> tensor<?x4096xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 4096> ins(%x : tensor<?x4096xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4096xf32>)
  return %r : tensor<?x4096xf32>
}

// expected-warning @below {{'too_wide' is left out for the GPU: it has operations without a GPU kernel}}
func.func @too_wide(%x: tensor<?x4098xf32>, %p: tensor<?xi64>) -> tensor<?x4098xf32> {
  // expected-note @below {{such as 'posenc.rope'}}
  %r = posenc.rope half #posenc.frequencies<dim = 4098> ins(%x : tensor<?x4098xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4098xf32>)
  return %r : tensor<?x4098xf32>
}

// expected-warning @below {{'too_wide_f64' is left out for the GPU: it has operations without a GPU kernel}}
func.func @too_wide_f64(%x: tensor<?x2050xf64>, %c: tensor<?x1025xf64>) -> tensor<?x2050xf64> {
  // expected-note @below {{such as 'posenc.rotate'}}
  %r = posenc.rotate half ins(%x : tensor<?x2050xf64>) tables(%c, %c : tensor<?x1025xf64>) dims = [0] outs(%x : tensor<?x2050xf64>)
  return %r : tensor<?x2050xf64>
}

// Math functions are expanded, not called.
// CHECK: func.func @functions
func.func @functions(%a: tensor<4xf32>, %b: tensor<4xf64>) -> (tensor<4xf32>, tensor<4xf64>) {
  %q = linalg.div ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  %r = math.powf %q, %a : tensor<4xf32>
  %s = math.sin %b : tensor<4xf64>
  return %r, %s : tensor<4xf32>, tensor<4xf64>
}

// CHECK: func.func @remainder
func.func @remainder(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = arith.remf %a, %a : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK: func.func @total
func.func @total(%a: tensor<4xf32>, %o: tensor<f32>) -> tensor<f32> {
  %r = linalg.reduce ins(%a : tensor<4xf32>) outs(%o : tensor<f32>) dimensions = [0]
    (%x: f32, %y: f32) {
      %s = arith.addf %x, %y : f32
      linalg.yield %s : f32
    }
  return %r : tensor<f32>
}

// expected-warning @below {{'product' is left out for the GPU: it has operations without a GPU kernel}}
func.func @product(%a: tensor<4x4xf32>, %o: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-note @below {{such as 'linalg.matmul'}}
  %r = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// The rows of a token, in f32, do not fit in shared memory.
// expected-warning @below {{'many_heads' is left out for the GPU: it has operations without a GPU kernel}}
func.func @many_heads(%k: tensor<?x?x256x128xbf16>, %n: tensor<?xi64>, %c: tensor<?x?x256x128xi8>, %s: tensor<?x256x?xf32>) -> tensor<?x?x256x128xi8> {
  // expected-note @below {{such as 'scf.forall'}}
  %r:4 = posenc.kv_append ins(%k, %k : tensor<?x?x256x128xbf16>, tensor<?x?x256x128xbf16>) lengths(%n : tensor<?xi64>)
    outs(%c, %c, %s, %s : tensor<?x?x256x128xi8>, tensor<?x?x256x128xi8>, tensor<?x256x?xf32>, tensor<?x256x?xf32>)
  return %r#0 : tensor<?x?x256x128xi8>
}

// The length of a table is the largest position, which is in device memory.
// CHECK-LABEL: func.func @length
// CHECK-NOT: memref.load
// CHECK: gpu.launch_func @kernels::@length_rows
// CHECK: gpu.launch_func @kernels::@length_elements
func.func @length(%x: tensor<?x64xf32>, %p: tensor<?xi64>) -> tensor<?x64xf32> {
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<i64>
  %f = linalg.fill ins(%zero : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %m = linalg.reduce { arith.maxsi } ins(%p : tensor<?xi64>) outs(%f : tensor<i64>) dimensions = [0]
  %n = tensor.extract %m[] : tensor<i64>
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r = posenc.rope half #dynamic ins(%x : tensor<?x64xf32>) positions(%p : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>) dims = [0] outs(%x : tensor<?x64xf32>)
  return %r : tensor<?x64xf32>
}

// The conversion would round twice, through f32.
// expected-warning @below {{'narrowed' is left out for the GPU: it has operations without a GPU kernel}}
func.func @narrowed(%a: tensor<4xf64>) -> tensor<4xf16> {
  // expected-note @below {{such as 'arith.truncf'}}
  %r = arith.truncf %a : tensor<4xf64> to tensor<4xf16>
  return %r : tensor<4xf16>
}

// A slice of a constant.
// expected-warning @below {{'part' is left out for the GPU: it has operations without a GPU kernel}}
func.func @part(%x: tensor<2x2x2xf32>, %i: index) -> tensor<2x2x2xf32> {
  // expected-note @below {{such as 'memref.get_global'}}
  %c = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %p = tensor.extract_slice %c[%i] [2] [1] : tensor<4xi64> to tensor<2xi64>
  %r = posenc.rope half #posenc.frequencies<dim = 2> ins(%x : tensor<2x2x2xf32>) positions(%p : tensor<2xi64>) dims = [0] outs(%x : tensor<2x2x2xf32>)
  return %r : tensor<2x2x2xf32>
}

// CHECK-LABEL: func.func @between
// CHECK: memref.alloc
// CHECK: gpu.launch_func @kernels::@between
func.func @between(%x: tensor<?x2x2xf32>, %p: tensor<?xi64>) -> tensor<?x2x2xf32> {
  %0 = posenc.rope half #posenc.frequencies<dim = 2> ins(%x : tensor<?x2x2xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x2xf32>)
  %1 = posenc.rope interleaved #posenc.frequencies<dim = 2, base = 5.0> ins(%0 : tensor<?x2x2xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x2xf32>)
  return %1 : tensor<?x2x2xf32>
}

// The size of a workspace is computed from the sizes of tensors alone.
// expected-warning @below {{'repeated' is left out for the GPU: it has operations without a GPU kernel}}
func.func @repeated(%n: index, %x: tensor<2x2xf32>) -> tensor<?x2x2xf32> {
  // expected-note @below {{such as 'memref.alloc': its size depends on a scalar argument, but the size of a workspace is computed from the sizes of tensors}}
  %e = tensor.empty(%n) : tensor<?x2x2xf32>
  %0 = linalg.broadcast ins(%x : tensor<2x2xf32>) outs(%e : tensor<?x2x2xf32>) dimensions = [0]
  %1 = posenc.rope half #posenc.frequencies<dim = 2> ins(%0 : tensor<?x2x2xf32>) positions(%n : index) dims = [0] outs(%e : tensor<?x2x2xf32>)
  return %1 : tensor<?x2x2xf32>
}

// Calls for a GPU read no elements.
// expected-warning @below {{'counted' is left out for the GPU: its sizes depend on the element of 't', which is in the memory of the device, where calls read no elements}}
func.func @counted(%t: tensor<i64> {posenc.name = "t"}) -> tensor<?xf32> {
  %element = tensor.extract %t[] : tensor<i64>
  %n = arith.index_cast %element : i64 to index
  %c = arith.constant 1.0 : f32
  %r = tensor.splat %c[%n] : tensor<?xf32>
  return %r : tensor<?xf32>
}

// A sum of positions needs no memory.
// CHECK-LABEL: func.func @twice
// CHECK-NOT: memref.alloc
// CHECK: gpu.launch_func @kernels::@twice_narrow
func.func @twice(%x: tensor<?x2x2xf32>, %p: tensor<?xi64>, %q: tensor<?xi64>) -> tensor<?x2x2xf32> {
  %0 = posenc.rope half #posenc.frequencies<dim = 2> ins(%x : tensor<?x2x2xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x2xf32>)
  %1 = posenc.rope half #posenc.frequencies<dim = 2> ins(%0 : tensor<?x2x2xf32>) positions(%q : tensor<?xi64>) dims = [0] outs(%x : tensor<?x2x2xf32>)
  return %1 : tensor<?x2x2xf32>
}

// CHECK: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90">]
// CHECK: llvm.func @rope_narrow({{.*}}gpu.kernel
// CHECK-NOT: @__nv
