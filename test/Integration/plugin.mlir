//===- plugin.mlir - libPosenc.so in the stock mlir-opt -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The stock mlir-opt does not have the sanitizers' runtime.
// UNSUPPORTED: sanitizer

// DEFINE: %{opt} = mlir-opt --load-dialect-plugin=%posenc_lib %s

// RUN: %{opt} | FileCheck %s --check-prefix=PARSED
// PARSED-LABEL: func.func @rope
// PARSED: posenc.rope half #frequencies

// RUN: %{opt} --pass-pipeline='builtin.module(posenc-to-cpu)' -o %t.cpu.mlir
// RUN: FileCheck %s --input-file=%t.cpu.mlir \
// RUN:   --implicit-check-not='posenc.rope'
// CHECK: llvm.func @rope(
// CHECK-SAME: posenc.abi = #posenc.abi<
// CHECK-NOT: {{ (func|arith|scf|memref|vector|linalg|tensor)\.}}
// CHECK: llvm.store {{.*}} : vector<8xf32>, !llvm.ptr
// CHECK-NOT: {{ (func|arith|scf|memref|vector|linalg|tensor)\.}}

// Both programs print the same, and parse each other's output.
// RUN: posenc-opt %s --posenc-to-cpu | diff - %t.cpu.mlir
// RUN: posenc-compile %t.cpu.mlir -o %t.so --threads=none
// RUN: llvm-nm -D %t.so | FileCheck %s --check-prefix=SYMBOLS
// SYMBOLS: T {{.*}}_rope

// With options, and between upstream passes.
// RUN: %{opt} --pass-pipeline='builtin.module(canonicalize,posenc-to-cpu{vector-bytes=64},cse)' \
// RUN:   | FileCheck %s --check-prefix=WIDE
// WIDE: llvm.store {{.*}} : vector<16xf32>, !llvm.ptr

// RUN: %{opt} --pass-pipeline='builtin.module(posenc-to-linalg)' \
// RUN:   | FileCheck %s --check-prefix=LINALG \
// RUN:   --implicit-check-not='posenc.'
// LINALG: linalg.generic
// LINALG-NOT: posenc.

// Single passes; the plugin may also be loaded with --load-pass-plugin.
// RUN: %{opt} --load-pass-plugin=%posenc_lib \
// RUN:   --pass-pipeline='builtin.module(posenc-decompose-rope)' \
// RUN:   | FileCheck %s --check-prefix=DECOMPOSED
// DECOMPOSED: posenc.sincos
// DECOMPOSED: posenc.rotate

// Round trips through bytecode.
// RUN: %{opt} --emit-bytecode | posenc-opt | FileCheck %s --check-prefix=PARSED

// Without the plugin, the dialect is unknown.
// RUN: not mlir-opt %s 2>&1 | FileCheck %s --check-prefix=WITHOUT
// WITHOUT: error: {{.*}}posenc

func.func @rope(%x: tensor<?x4x64xf32>, %p: tensor<?xi64>)
    -> tensor<?x4x64xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4x64xf32>
  %e = tensor.empty(%n) : tensor<?x4x64xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 64, base = 10000.0>
    ins(%x : tensor<?x4x64xf32>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%e : tensor<?x4x64xf32>)
  return %r : tensor<?x4x64xf32>
}
