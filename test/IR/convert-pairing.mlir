//===- convert-pairing.mlir - syntax and folds of convert_pairing ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --allow-unregistered-dialect | posenc-opt --allow-unregistered-dialect | FileCheck %s --check-prefix=SYNTAX
// RUN: posenc-opt %s --allow-unregistered-dialect --mlir-print-op-generic | posenc-opt --allow-unregistered-dialect \
// RUN:   | FileCheck %s --check-prefix=SYNTAX
// RUN: posenc-opt %s --allow-unregistered-dialect --canonicalize | FileCheck %s \
// RUN:   --implicit-check-not=posenc.convert_pairing

#f = #posenc.frequencies<dim = 4>

// SYNTAX-LABEL: func.func @back(
// SYNTAX: posenc.convert_pairing half to interleaved dim = 4 offset = 2 %{{.*}} : tensor<?x8xi8>
// CHECK-LABEL: func.func @back(
// CHECK-SAME:    %[[X:.*]]: tensor<?x8xi8>)
// CHECK-NEXT:    return %[[X]]
func.func @back(%x: tensor<?x8xi8>) -> tensor<?x8xi8> {
  %a = posenc.convert_pairing half to interleaved dim = 4 offset = 2 %x : tensor<?x8xi8>
  %r = posenc.convert_pairing interleaved to half dim = 4 offset = 2 %a : tensor<?x8xi8>
  return %r : tensor<?x8xi8>
}

// CHECK-LABEL: func.func @same(
// CHECK-NEXT:    return %arg0
func.func @same(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %r = posenc.convert_pairing half to half dim = 4 %x : tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @other_window(
// CHECK-COUNT-2: posenc.convert_pairing
// CHECK: return
func.func @other_window(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %a = posenc.convert_pairing half to interleaved dim = 4 %x : tensor<?x8xf32>
  %r = posenc.convert_pairing interleaved to half dim = 4 offset = 2 %a : tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// Conversions around a rope cancel, of all its tensors.
// CHECK-LABEL: func.func @around(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x2x4xf32>, %[[K:.*]]: tensor<?x1x4xf32>,
// CHECK-NEXT:    %[[R:.*]]:2 = posenc.rope half {{.*}} ins(%[[Q]], %[[K]] : {{.*}} outs(%[[Q]], %[[K]] :
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1
func.func @around(%q: tensor<?x2x4xf32>, %k: tensor<?x1x4xf32>, %p: tensor<?xi64>) -> (tensor<?x2x4xf32>, tensor<?x1x4xf32>) {
  %a = posenc.convert_pairing half to interleaved dim = 4 %q : tensor<?x2x4xf32>
  %b = posenc.convert_pairing half to interleaved dim = 4 %k : tensor<?x1x4xf32>
  %c:2 = posenc.rope interleaved #f ins(%a, %b : tensor<?x2x4xf32>, tensor<?x1x4xf32>)
    positions(%p : tensor<?xi64>) dims = [0] outs(%a, %b : tensor<?x2x4xf32>, tensor<?x1x4xf32>)
  %r = posenc.convert_pairing interleaved to half dim = 4 %c#0 : tensor<?x2x4xf32>
  %s = posenc.convert_pairing interleaved to half dim = 4 %c#1 : tensor<?x1x4xf32>
  return %r, %s : tensor<?x2x4xf32>, tensor<?x1x4xf32>
}

// A rope of one converted tensor and another remains.
// CHECK-LABEL: func.func @mixed(
// CHECK: posenc.convert_pairing
// CHECK: posenc.rope interleaved
func.func @mixed(%q: tensor<?x2x4xf32>, %p: tensor<?xi64>) -> (tensor<?x2x4xf32>, tensor<?x2x4xf32>) {
  %a = posenc.convert_pairing half to interleaved dim = 4 %q : tensor<?x2x4xf32>
  %c:2 = posenc.rope interleaved #f ins(%a, %q : tensor<?x2x4xf32>, tensor<?x2x4xf32>)
    positions(%p : tensor<?xi64>) dims = [0] outs(%q, %q : tensor<?x2x4xf32>, tensor<?x2x4xf32>)
  return %c#0, %c#1 : tensor<?x2x4xf32>, tensor<?x2x4xf32>
}

// A conversion with another user remains, so the rope stays as it is.
// CHECK-LABEL: func.func @other_user(
// CHECK: posenc.convert_pairing
// CHECK: posenc.rope interleaved
func.func @other_user(%q: tensor<?x2x4xf32>, %p: tensor<?xi64>) -> (tensor<?x2x4xf32>, tensor<?x2x4xf32>) {
  %a = posenc.convert_pairing half to interleaved dim = 4 %q : tensor<?x2x4xf32>
  %c = posenc.rope interleaved #f ins(%a : tensor<?x2x4xf32>)
    positions(%p : tensor<?xi64>) dims = [0] outs(%q : tensor<?x2x4xf32>)
  return %a, %c : tensor<?x2x4xf32>, tensor<?x2x4xf32>
}

// In a graph region, operations may be their own operands; folding ends.
// CHECK-LABEL: "test.graph"
// CHECK-COUNT-3: posenc.convert_pairing
"test.graph"() ({
  %a = posenc.convert_pairing half to interleaved dim = 4 %b : tensor<8x4xf32>
  %b = posenc.convert_pairing interleaved to half dim = 4 %a : tensor<8x4xf32>
  %c = posenc.convert_pairing half to half dim = 4 %c : tensor<8x4xf32>
  "test.use"(%a, %b, %c) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> ()
}) : () -> ()
