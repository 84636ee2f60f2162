// StableHLO, as JAX prints a table whose even lanes are selected by a remainder. Lanes
// are divided with a correction for numbers of different signs, and a zero is added.
//
// RUN: posenc-compile %s --emit=posenc -o - | FileCheck %s
// RUN: posenc-run %s --raise=no --opt-level=0 --input=9xi32=iota --output=@%t.npy
// RUN: posenc-run %s --opt-level=0 --input=9xi32=iota --expected_output=@%t.npy --atol=1e-6

// CHECK: #[[$F:.*]] = #posenc.frequencies<dim = 4, base = 1.000000e+04, precision = hf_f32>
// CHECK-LABEL: func.func public @main
//  CHECK-SAME: (%[[T:.*]]: tensor<9xi32> {posenc.name = "t"})
//       CHECK: %[[R:.*]] = posenc.sinusoidal interleaved #[[$F]] zero_pad positions(%[[T]] : tensor<9xi32>) outs(%{{.*}} : tensor<9x5xf32>)
//  CHECK-NEXT: return %[[R]]
module @jit_table {
  func.func public @main(%t: tensor<9xi32>) -> tensor<9x5xf32> {
    %lane = stablehlo.iota dim = 0 : tensor<4xi32>
    %none = stablehlo.constant dense<0> : tensor<4xi32>
    %one = stablehlo.constant dense<1> : tensor<4xi32>
    %two = stablehlo.constant dense<2> : tensor<4xi32>
    %quotient = stablehlo.divide %lane, %two : tensor<4xi32>
    %sign = stablehlo.sign %lane : tensor<4xi32>
    %other = stablehlo.sign %two : tensor<4xi32>
    %differ = stablehlo.compare NE, %sign, %other, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %rest = stablehlo.remainder %lane, %two : tensor<4xi32>
    %inexact = stablehlo.compare NE, %rest, %none, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %corrected = stablehlo.and %differ, %inexact : tensor<4xi1>
    %less = stablehlo.subtract %quotient, %one : tensor<4xi32>
    %pair = stablehlo.select %corrected, %less, %quotient : tensor<4xi1>, tensor<4xi32>
    %i2 = stablehlo.multiply %two, %pair : tensor<4xi32>
    %if = stablehlo.convert %i2 : (tensor<4xi32>) -> tensor<4xf32>
    %d = stablehlo.constant dense<4.000000e+00> : tensor<4xf32>
    %exponent = stablehlo.divide %if, %d : tensor<4xf32>
    %base = stablehlo.constant dense<1.000000e+04> : tensor<4xf32>
    %period = stablehlo.power %base, %exponent : tensor<4xf32>
    %ones = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
    %f = stablehlo.divide %ones, %period : tensor<4xf32>
    %tf = stablehlo.convert %t : (tensor<9xi32>) -> tensor<9xf32>
    %rows = stablehlo.broadcast_in_dim %tf, dims = [0] : (tensor<9xf32>) -> tensor<9x4xf32>
    %lanes = stablehlo.broadcast_in_dim %f, dims = [1] : (tensor<4xf32>) -> tensor<9x4xf32>
    %a = stablehlo.multiply %rows, %lanes : tensor<9x4xf32>
    %s = stablehlo.sine %a : tensor<9x4xf32>
    %c = stablehlo.cosine %a : tensor<9x4xf32>
    %negative = stablehlo.compare LT, %rest, %none, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %no = stablehlo.constant dense<false> : tensor<4xi1>
    %signs = stablehlo.compare NE, %negative, %no, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %moved = stablehlo.and %signs, %inexact : tensor<4xi1>
    %more = stablehlo.add %rest, %two : tensor<4xi32>
    %remainder = stablehlo.select %moved, %more, %rest : tensor<4xi1>, tensor<4xi32>
    %even = stablehlo.compare EQ, %remainder, %none, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %isEven = stablehlo.broadcast_in_dim %even, dims = [1] : (tensor<4xi1>) -> tensor<9x4xi1>
    %table = stablehlo.select %isEven, %s, %c : tensor<9x4xi1>, tensor<9x4xf32>
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %y = stablehlo.pad %table, %zero, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x5xf32>
    return %y : tensor<9x5xf32>
  }
}
